//! The extent of a result folder: its size, when its runs ended, and a stamp by which a change of any file in it is noticed.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most levels of folders in a result folder.
const MOST_LEVELS: usize = 16;

/// The extent of a result folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Extent {
    /// Size of all files, in bytes.
    pub(crate) bytes: u64,
    /// When a file of its runs last changed, in seconds since 1970; 0 if there are no runs.
    pub(crate) ended: i64,
    /// What its files are: names, lengths and times of change.
    pub(crate) stamp: u64,
    /// A symbolic link, a pipe or something else that is neither a file nor a folder, if there is any.
    pub(crate) odd: Option<PathBuf>,
}

impl Extent {
    /// The extent of a folder. A file that vanishes meanwhile is left out.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(crate) fn of(folder: &Path) -> io::Result<Extent> {
        let mut extent = Extent::default();
        extent.add(folder, MOST_LEVELS, false)?;
        Ok(extent)
    }

    fn add(&mut self, folder: &Path, levels: usize, of_runs: bool) -> io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && levels > 0 {
                let is_runs = of_runs || levels == MOST_LEVELS && entry.file_name() == "runs";
                self.add(&entry.path(), levels - 1, is_runs)?;
            } else if kind.is_file() {
                let Ok(about) = entry.metadata() else { continue };
                self.bytes += about.len();
                if of_runs {
                    self.ended = self.ended.max(about.mtime());
                }
                let mut file = DefaultHasher::new();
                // The inode stands for the name: a file that takes another's place has its own.
                [about.ino(), about.len(), about.mtime() as u64, about.mtime_nsec() as u64]
                    .into_iter()
                    .for_each(|part| file.write_u64(part));
                // The order in which a folder names its files does not count.
                self.stamp = self.stamp.wrapping_add(file.finish());
            } else {
                self.odd.get_or_insert_with(|| entry.path());
            }
        }
        Ok(())
    }
}
