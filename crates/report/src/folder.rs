//! Writes a report folder so that it is never half written: every file appears whole, pages after the files that they need,
//! `index.html` last. Pages of an earlier report that this one does not have are removed at the end.

use crate::{ReportError, WriteError};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_engine::atomic_write;

/// The folders below `report/` with the files of single runs and of pairs of flows.
const RUN_FOLDERS: [&str; 6] = ["sim", "live", "both", "pages", "series", "trajectories"];

/// A report folder that is being written.
pub struct Folder {
    root: PathBuf,
    written: Mutex<HashSet<PathBuf>>,
}

impl Folder {
    /// A report below `root`, the result folder.
    pub fn new(root: &Path) -> Folder {
        Folder { root: root.into(), written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one file; `name` is its path from the result folder, with slashes.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), ReportError> {
        let path = self.root.join(name);
        atomic_write(&self.root, name, content)
            .map_err(|source| WriteError { path: path.clone(), source })?;
        self.written().insert(path);
        Ok(())
    }

    /// Removes the pages of single runs that this report has not written.
    pub fn sweep(&self) -> Result<(), ReportError> {
        for kind in RUN_FOLDERS {
            let folder = self.root.join("report").join(kind);
            let Ok(files) = fs::read_dir(&folder) else { continue };
            for path in files.flatten().map(|entry| entry.path()) {
                let page = path.extension().is_some_and(|ending| ending == "html" || ending == "js");
                if page && !folder.is_symlink() && path.is_file() && !self.written().contains(&path) {
                    fs::remove_file(&path).map_err(|source| WriteError { path: path.clone(), source })?;
                }
            }
        }
        Ok(())
    }
}
