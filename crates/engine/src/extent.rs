//! The files of a result folder from outside. A [`Glance`] notices most changes and costs little; an [`Extent`] looks at every file. Neither
//! reads one.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, DirEntry, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most levels of folders that are looked into.
const MOST_LEVELS: usize = 16;
/// The folder of runs.
const RUNS: &str = "runs";

/// What is directly in a result folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glance {
    /// When a run was last added, in seconds since 1970; 0 if there are none.
    pub ended: i64,
    /// What the files and folders are: their inodes, lengths and times of change.
    pub stamp: u64,
    /// What is neither a file nor a folder, if there is any: a symbolic link, a pipe.
    pub odd: Option<PathBuf>,
}

impl Glance {
    /// Looks at what is directly in a result folder. What vanishes meanwhile is left out.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn of(folder: &Path) -> io::Result<Glance> {
        let mut glance = Glance::default();
        for entry in entries(folder)? {
            let entry = entry?;
            let Ok(about) = entry.metadata() else { continue };
            if !about.is_dir() && !about.is_file() {
                glance.odd.get_or_insert_with(|| entry.path());
            }
            if entry.file_name() == RUNS {
                glance.ended = about.mtime();
            }
            // The order in which a folder names its files does not count.
            glance.stamp = glance.stamp.wrapping_add(stamp(&about));
        }
        Ok(glance)
    }
}

/// A number for a file as it is. The inode stands for the name: a file that takes another's place has its own.
fn stamp(about: &Metadata) -> u64 {
    let mut file = DefaultHasher::new();
    [about.ino(), about.len()].into_iter().for_each(|part| file.write_u64(part));
    [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()]
        .into_iter()
        .for_each(|part| file.write_i64(part));
    file.finish()
}

/// All files of a result folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extent {
    /// Size of all files, in bytes.
    pub bytes: u64,
    /// What is neither a file nor a folder, if there is any: a symbolic link, a pipe.
    pub odd: Option<PathBuf>,
    /// The files of each folder below `runs`, with their lengths.
    lengths: HashMap<PathBuf, Vec<(OsString, u64)>>,
}

impl Extent {
    /// Looks at all files of a result folder. What vanishes meanwhile is left out.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn of(folder: &Path) -> io::Result<Extent> {
        let mut extent = Extent::default();
        extent.walk(folder, MOST_LEVELS, false)?;
        Ok(extent)
    }

    /// The length in bytes of a file in a folder below `runs`; `None` if it is not there, or is no file.
    pub(crate) fn length(&self, folder: &Path, name: &str) -> Option<u64> {
        let files = self.lengths.get(folder)?;
        files.iter().find(|(file, _)| file == name).map(|(_, length)| *length)
    }

    fn walk(&mut self, folder: &Path, levels: usize, of_runs: bool) -> io::Result<()> {
        let mut files = vec![];
        for entry in entries(folder)? {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, entry.file_name());
            if kind.is_dir() {
                if levels > 0 {
                    self.walk(&entry.path(), levels - 1, of_runs || name == RUNS)?;
                }
            } else if kind.is_file() {
                let Ok(about) = entry.metadata() else { continue };
                self.bytes += about.len();
                files.push((name, about.len()));
            } else {
                self.odd.get_or_insert_with(|| entry.path());
            }
        }
        if of_runs {
            self.lengths.insert(folder.to_owned(), files);
        }
        Ok(())
    }
}

/// What is in a folder; nothing if it has vanished.
fn entries(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<DirEntry>>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        entries => Ok(Some(entries?).into_iter().flatten()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn a_glance_notices_a_new_run_and_an_extent_every_file() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("runs/sim-r1")).unwrap();
        fs::create_dir_all(path("report/sim")).unwrap();
        fs::write(path("lab.toml"), "lab").unwrap();
        fs::write(path("runs/sim-r1/run.json"), "{}").unwrap();
        fs::write(path("report/sim/r1.html"), "page").unwrap();
        let (glance, extent) = (Glance::of(place.path()).unwrap(), Extent::of(place.path()).unwrap());
        assert!(glance.ended > 0 && glance.odd.is_none() && extent.odd.is_none());
        assert_eq!(Glance::of(place.path()).unwrap(), glance);
        assert_eq!(extent.bytes, 9);
        assert_eq!(extent.length(&path("runs/sim-r1"), "run.json"), Some(2));
        assert_eq!(extent.length(&path("runs/sim-r1"), "records.json"), None);
        fs::create_dir(path("runs/sim-r2")).unwrap();
        let second = Glance::of(place.path()).unwrap();
        assert_ne!(second.stamp, glance.stamp);
        std::os::unix::fs::symlink("/", path("runs/sim-r1/link")).unwrap();
        assert_eq!(Extent::of(place.path()).unwrap().odd, Some(path("runs/sim-r1/link")));
        std::os::unix::fs::symlink("/", path("link")).unwrap();
        assert_eq!(Glance::of(place.path()).unwrap().odd, Some(path("link")));
    }
}
