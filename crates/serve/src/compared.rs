//! Comparisons that somebody has asked for. Their pages are in a folder for temporary files, which is removed at the end.

use crate::files::Files;
use crate::refusal::Refusal;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// Most comparisons that are kept; the oldest is removed for a new one.
const MOST_KEPT: usize = 8;

/// Writes the page of a comparison of one result or two into a folder.
///
/// # Errors
/// They cannot be compared; the text says why, and what to do.
pub type Compare = dyn Fn(&[PathBuf], &Path) -> Result<(), String> + Send + Sync;

/// The comparisons, the oldest first.
pub(crate) struct Comparisons {
    compare: Box<Compare>,
    made: Mutex<VecDeque<(u64, TempDir)>>,
}

impl Comparisons {
    /// No comparison yet; `compare` makes them.
    pub(crate) fn new(compare: Box<Compare>) -> Comparisons {
        Comparisons { compare, made: Mutex::default() }
    }

    /// Compares, and returns the number of the comparison.
    ///
    /// # Errors
    /// The results cannot be compared, or the page cannot be written.
    pub(crate) fn make(&self, results: &[PathBuf]) -> Result<u64, Refusal> {
        let folder = TempDir::with_prefix("weir-compare-").map_err(Refusal::failed)?;
        (self.compare)(results, folder.path()).map_err(Refusal::bad_request)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let number = made.back().map_or(1, |(last, _)| last + 1);
        made.push_back((number, folder));
        if made.len() > MOST_KEPT {
            made.pop_front();
        }
        Ok(number)
    }

    /// The files of a comparison.
    ///
    /// # Errors
    /// It was removed, or never made.
    pub(crate) fn files(&self, number: u64) -> Result<Files, Refusal> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = made.iter().find(|(one, _)| *one == number).ok_or_else(Refusal::missing)?;
        Files::below(folder.1.path()).map_err(Refusal::failed)
    }
}
