//! Finds the results below a folder. Symbolic links are not followed.

use std::fs;
use std::path::{Path, PathBuf};
use weir_engine::holds_results;

/// Most levels of folders above a result.
const MOST_LEVELS: usize = 12;

/// The result folders below `folder`, which may be one itself, by path.
pub(crate) fn find(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    search(folder, MOST_LEVELS, &mut found);
    found.sort();
    found
}

fn search(folder: &Path, levels: usize, found: &mut Vec<PathBuf>) {
    if holds_results(folder) {
        found.push(folder.to_owned());
        return;
    }
    // A folder that cannot be read shows no results.
    let Ok(entries) = fs::read_dir(folder) else { return };
    let below: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
        .collect();
    // What has runs but no lab, or a lab but no runs, was a result: it is damaged, or is only begun.
    if folder.join("runs").is_dir() || folder.join("lab.toml").is_file() && below.is_empty() {
        found.push(folder.to_owned());
        return;
    }
    if levels > 0 {
        below.iter().for_each(|folder| search(folder, levels - 1, found));
    }
}
