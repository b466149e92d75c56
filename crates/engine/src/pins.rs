//! Pins of a person on results: a list of results shows those with a pin first. A pin is an empty file in the result folder, which no run,
//! rerun or report touches. So it appears and vanishes whole, whoever else writes.

use crate::atomic_write::{atomic_write, remove_if_there};
use crate::error::at;
use crate::folder::is_results;
use crate::notes::NoteError;
use std::path::Path;

/// The file.
const FILE: &str = "pinned";

/// Whether a result has a pin.
pub fn is_pinned(folder: &Path) -> bool {
    folder.join(FILE).symlink_metadata().is_ok_and(|about| about.is_file())
}

/// Sets or removes a result's pin.
///
/// # Errors
/// The folder holds no results, or cannot be written.
pub fn set_pinned(folder: &Path, pinned: bool) -> Result<(), NoteError> {
    if !is_results(folder) {
        return Err(NoteError::NoResults(folder.display().to_string()));
    }
    let path = folder.join(FILE);
    let done = if pinned { atomic_write(folder, FILE, b"") } else { remove_if_there(&path) };
    Ok(done.map_err(at(&path))?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_set_and_removed_however_often_and_only_on_results() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(set_pinned(folder.path(), true), Err(NoteError::NoResults(_))));
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        std::fs::write(folder.path().join("lab.toml"), "").unwrap();
        for pinned in [false, true, true, false, false] {
            set_pinned(folder.path(), pinned).unwrap();
            assert_eq!(is_pinned(folder.path()), pinned);
        }
    }
}
