//! Journals of what must be undone: a journal is a file that is replaced whole, and is on the disk before a change begins. Only the
//! process that holds the folder's lock may read and write it; a process that is killed loses the lock and leaves the file.

use crate::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use weir_linux::lock::{FolderLock, remove_unlocked};

/// The folder of journals. Only this process may use it until this is dropped.
#[derive(Debug)]
pub struct Journals {
    lock: FolderLock,
}

impl Journals {
    /// Creates the folder if it does not exist, and waits until no other process holds its lock. When the lock is released and the folder
    /// is empty, it is removed, and its parent too if that is empty.
    ///
    /// # Errors
    /// The folder cannot be created or opened.
    pub fn lock(path: &Path) -> Result<Journals, Problem> {
        let failed = |error| Problem::Failed { what: format!("cannot lock {}", path.display()), error };
        let journals = Journals { lock: FolderLock::exclusive(path).map_err(failed)? };
        journals.remove_drafts();
        Ok(journals)
    }

    /// Removes drafts: a process that was killed may have left one half written.
    fn remove_drafts(&self) {
        let entries = fs::read_dir(self.lock.path()).into_iter().flatten().flatten();
        let drafts =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "draft"));
        drafts.for_each(|draft| drop(fs::remove_file(draft)));
    }

    /// The names of all journals.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Problem> {
        let entries = fs::read_dir(self.lock.path()).map_err(|error| self.failed("read", error))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
        names.sort();
        Ok(names)
    }

    /// Reads a journal. `None` if there is none of this name.
    ///
    /// # Errors
    /// The journal cannot be read, or is damaged.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Problem> {
        let path = self.file(name);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| self.failed("read", error))?,
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Problem::Journal { path, why: error.to_string() })
    }

    /// Writes a journal; it is on the disk when this returns.
    ///
    /// # Errors
    /// The journal cannot be written; then the older one is still in place.
    pub fn write<T: Serialize>(&self, name: &str, journal: &T) -> Result<(), Problem> {
        let (path, draft) = (self.file(name), self.lock.path().join(format!("{name}.draft")));
        let write = || -> io::Result<()> {
            let bytes = serde_json::to_vec(journal)?;
            let mut file = File::create(&draft)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            self.lock.sync()
        };
        write().map_err(|error| self.failed("write", error))
    }

    /// Removes a journal, once there is nothing left to undo. It need not exist.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), Problem> {
        match fs::remove_file(self.file(name)).and_then(|()| self.lock.sync()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("remove", error)),
            _ => Ok(()),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.lock.path().join(format!("{name}.json"))
    }

    fn failed(&self, what: &str, error: io::Error) -> Problem {
        Problem::Failed { what: format!("cannot {what} a journal in {}", self.lock.path().display()), error }
    }
}

impl Drop for Journals {
    fn drop(&mut self) {
        if self.lock.remove()
            && let Some(parent) = self.lock.path().parent()
        {
            remove_unlocked(parent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_read_as_it_was_written_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("one/two");
        let journals = Journals::lock(&place).unwrap();
        assert_eq!(journals.read::<Vec<u8>>("a").unwrap(), None);
        journals.write("a", &vec![1, 2]).unwrap();
        journals.write("b", &vec![3]).unwrap();
        // A draft that a killed process left half written is no journal, and is removed.
        fs::write(place.join("c.draft"), "[1,").unwrap();
        assert_eq!(journals.names().unwrap(), ["a", "b"]);
        drop(journals);
        let journals = Journals::lock(&place).unwrap();
        assert!(!place.join("c.draft").exists());
        assert_eq!(journals.names().unwrap(), ["a", "b"]);
        assert_eq!(journals.read("a").unwrap(), Some(vec![1, 2]));
        journals.remove("a").unwrap();
        journals.remove("a").unwrap();
        assert_eq!(journals.names().unwrap(), ["b"]);
        journals.remove("b").unwrap();
        drop(journals);
        assert!(!folder.path().join("one").exists(), "a folder without journals goes");
    }

    #[test]
    fn a_damaged_journal_is_reported_and_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let journals = Journals::lock(folder.path()).unwrap();
        fs::write(folder.path().join("a.json"), "[1, 2").unwrap();
        let problem = journals.read::<Vec<u8>>("a").unwrap_err();
        assert!(problem.to_string().contains("a.json is damaged"), "{problem}");
        assert!(problem.help().contains("tc qdisc show"));
        assert_eq!(journals.names().unwrap(), ["a"]);
    }
}
