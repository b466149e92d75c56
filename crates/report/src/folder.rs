//! Writing a report folder so that it is never half written: every file is written beside its place and renamed into it,
//! pages after what they need, `index.html` last. What an earlier report left and this one does not have goes at the end.

use crate::{ReportError, WriteError};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A report folder being written.
pub(crate) struct Folder {
    root: PathBuf,
    written: Mutex<HashSet<PathBuf>>,
}

impl Folder {
    /// A report below `root`, the result folder.
    pub(crate) fn new(root: &Path) -> Folder {
        Folder { root: root.into(), written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one file; `name` is its path from the result folder, with slashes.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), ReportError> {
        let path = self.root.join(name);
        let fail = |source| WriteError { path: path.clone(), source };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(fail)?;
        }
        // The name beside it ends in what no page links to; the process keeps two writers apart.
        let beside = path.with_file_name(format!(
            ".{}.{}",
            path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default(),
            std::process::id()
        ));
        fs::write(&beside, content).and_then(|()| fs::rename(&beside, &path)).map_err(|source| {
            // Nothing is lost when the leftover cannot be removed either.
            let _ = fs::remove_file(&beside);
            fail(source)
        })?;
        self.written().insert(path);
        Ok(())
    }

    /// Removes the pages of runs that are no longer there.
    pub(crate) fn sweep(&self) -> Result<(), ReportError> {
        let report = self.root.join("report");
        let Ok(engines) = fs::read_dir(&report) else { return Ok(()) };
        for engine in engines.flatten().filter(|entry| entry.path().is_dir()) {
            let Ok(files) = fs::read_dir(engine.path()) else { continue };
            for path in files.flatten().map(|entry| entry.path()) {
                let ours = path.extension().is_some_and(|ending| ending == "html" || ending == "js");
                if ours && path.is_file() && !self.written().contains(&path) {
                    fs::remove_file(&path).map_err(|source| WriteError { path: path.clone(), source })?;
                }
            }
        }
        Ok(())
    }
}
