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
    if holds_results(folder) || is_part(folder) {
        found.push(folder.to_owned());
    } else if levels > 0 {
        folders(folder).iter().for_each(|folder| search(folder, levels - 1, found));
    }
}

/// Whether a folder holds a part of a result: runs without a lab, or a lab and a summary without runs.
fn is_part(folder: &Path) -> bool {
    let is_run = |path: &PathBuf| path.join("records.json").is_file() || path.join("run.json").is_file();
    let has = |file: &str| folder.join(file).is_file();
    has("lab.toml") && has("summary.json") || folders(&folder.join("runs")).iter().any(is_run)
}

/// The folders in a folder whose names do not begin with a dot; none if it cannot be read.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_at_any_depth_and_folders_of_others_are_no_results() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        for file in [
            "a/lab.toml",
            "a/runs/sim-r1/run.json",
            // Below a folder that happens to have the name.
            "runs/today/b/lab.toml",
            "runs/today/b/runs/sim-r1/run.json",
            "lost-lab/runs/sim-r1/records.json",
            "lost-runs/lab.toml",
            "lost-runs/summary.json",
            "rerun/.weir-rerun/lab.toml",
            "rerun/.weir-rerun/runs/sim-r1/run.json",
            // Neither labs nor anything hidden.
            "labs/lab.toml",
            ".hidden/lab.toml",
            ".hidden/runs/sim-r1/run.json",
        ] {
            write(file);
        }
        std::os::unix::fs::symlink("a", place.path().join("link")).unwrap();
        let found = find(place.path());
        let found: Vec<_> = found.iter().map(|path| path.strip_prefix(place.path()).unwrap()).collect();
        assert_eq!(found, ["a", "lost-lab", "lost-runs", "rerun", "runs/today/b"].map(Path::new));
        assert_eq!(find(&place.path().join("a")), [place.path().join("a")]);
    }
}
