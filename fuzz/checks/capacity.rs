//! Whatever a CSV file holds is a network that reads back as it was written, or a fault with its line.

use weir_optimum::{read_csv, write_csv};

/// Reads a network.
pub(crate) fn check(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match read_csv(text) {
        Ok(network) => {
            let written = write_csv(&network);
            let again = read_csv(&written).expect("what was written can be read");
            assert_eq!(network, again, "{written}");
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line <= text.lines().count().max(1), "{error:?}");
            assert!(!error.message.is_empty() && !error.help.is_empty(), "{error:?}");
        }
    }
}
