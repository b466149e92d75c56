//! Whatever a lab file holds, reading it ends with a lab that reads back to the same runs, or with diagnostics that each have a
//! place and a suggestion.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use weir_plan::Lab;

fuzz_target!(|text: &str| {
    match Lab::from_str(text, "lab.toml", Path::new("nowhere"), &[]) {
        Ok(lab) => {
            // A tree is sound at any size; to spell a great one out twice only costs time.
            if lab.tree().runs() <= 64 {
                let again = Lab::from_str(lab.source(), "again.toml", Path::new("nowhere"), &[]);
                assert_eq!(again.map(|again| again.runs()).map_err(|error| error.to_string()), Ok(lab.runs()));
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.problems().is_empty());
            let _ = diagnostics.render(true, 80);
            for problem in diagnostics.problems() {
                assert!(problem.location().is_some(), "no place: {problem}");
                assert!(problem.suggestion().is_some(), "no suggestion: {problem}");
            }
        }
    }
});
