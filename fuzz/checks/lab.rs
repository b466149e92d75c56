//! Whatever a lab file holds, reading it gives a lab that reads back to the same runs, or diagnostics. Each of these has a
//! place and a suggestion, and no control characters for a terminal.

use std::path::Path;
use weir_plan::Lab;

/// Trees of more runs are not compared: they would only take more time.
const MOST_RUNS: u64 = 64;

/// Reads a text as a lab.
pub(crate) fn check(data: &[u8]) {
    let text = match std::str::from_utf8(data) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&data[..error.valid_up_to()]).unwrap_or_default(),
    };
    match Lab::from_str(text, "lab.toml", Path::new("nowhere"), &[]) {
        Ok(lab) => {
            if lab.tree().runs() <= MOST_RUNS {
                let again = Lab::from_str(lab.source(), "again.toml", Path::new("nowhere"), &[]);
                assert_eq!(
                    again.map(|again| again.runs()).map_err(|error| error.to_string()),
                    Ok(lab.runs())
                );
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.problems().is_empty());
            let shown = diagnostics.render(false, 80);
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
            for problem in diagnostics.problems() {
                assert!(problem.location().is_some(), "no place: {problem}");
                assert!(problem.suggestion().is_some(), "no suggestion: {problem}");
            }
        }
    }
}
