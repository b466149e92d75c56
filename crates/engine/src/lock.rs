//! One writer at a time: a process that writes into a folder holds a lock on a file in it (flock(2)). The kernel releases
//! the lock when the process ends, however it ends, so a lock is never stale. The file names the holder; it is empty when
//! nobody holds the lock.

use crate::error::{FolderError, Holder, at};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file that is locked.
const FILE: &str = ".weir-lock";
/// Largest number of bytes of the file that are read, and of characters of a command that are shown.
const MOST_READ: u64 = 4096;
const MOST_SHOWN: usize = 120;

/// The right to write into a folder, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock of an existing folder.
    ///
    /// # Errors
    /// Another process holds it, or its file cannot be written.
    pub fn take(folder: &Path) -> Result<Lock, FolderError> {
        let path = folder.join(FILE);
        let mut file = open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FolderError::Held {
                    folder: folder.display().to_string(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
        }
        let command: Vec<String> = std::env::args().collect();
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}\n{}", std::process::id(), shown(&command.join(" "))))
            .map_err(at(&path))?;
        Ok(Lock { file })
    }
}

/// Opens a file that is locked, which is made if it does not exist.
///
/// # Errors
/// It is a symbolic link, or cannot be written.
pub(crate) fn open(path: &Path) -> Result<File, FolderError> {
    if path.is_symlink() {
        return Err(at(path)(std::io::Error::other("a symbolic link, which weir does not follow")));
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(at(path))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A holder's name that stays in the file does no harm: the lock itself ends when the file is closed.
        let _ = self.file.set_len(0);
    }
}

/// Locks of files as the kernel lists them, one a line: `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`, where 5678 is the file's inode.
const LOCKS: &str = "/proc/locks";

/// The process that writes into a folder, found without taking the lock, which would refuse a writer that begins just then. `None` if
/// nobody writes.
pub fn writer(folder: &Path) -> Option<Holder> {
    let path = folder.join(FILE);
    // The file is empty while nobody holds the lock. A holder that was killed leaves its name in it, but no lock.
    let about = path.symlink_metadata().ok().filter(|about| about.is_file() && about.len() > 0)?;
    let inode = about.ino().to_string();
    let is_it = |line: &str| {
        let mut words = line.split_whitespace();
        words.nth(1) == Some("FLOCK") && words.nth(3).and_then(|file| file.rsplit(':').next()) == Some(&inode)
    };
    let is_held = std::fs::read_to_string(LOCKS).ok()?.lines().any(is_it);
    if is_held { Some(holder(&mut File::open(path).ok()?)) } else { None }
}

/// The holder that the file names; parts that cannot be read are `None`.
fn holder(file: &mut File) -> Holder {
    let held = file.metadata().and_then(|about| about.modified()).ok().and_then(|since| since.elapsed().ok());
    let mut text = String::new();
    let read = file.take(MOST_READ).read_to_string(&mut text);
    let mut lines = text.lines();
    let (process, command) = (lines.next().and_then(|line| line.parse().ok()), lines.next().map(shown));
    match (read, process) {
        (Ok(_), Some(process)) => Holder { process: Some(process), command, held },
        _ => Holder::default(),
    }
}

/// A command line made fit to be shown: one line, no control characters, at most [`MOST_SHOWN`] characters.
fn shown(command: &str) -> String {
    let plain: String =
        command.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match plain.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", &plain[..end]),
        None => plain,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_learns_who_the_first_is_and_may_write_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).unwrap();
        let Err(FolderError::Held { holder, .. }) = Lock::take(folder.path()) else { panic!("two writers") };
        assert_eq!(holder.process, Some(std::process::id()));
        assert!(holder.command.is_some_and(|command| !command.is_empty()));
        assert_eq!(writer(folder.path()).and_then(|writer| writer.process), holder.process);
        drop(lock);
        assert_eq!(writer(folder.path()), None);
        assert_eq!(std::fs::read(folder.path().join(FILE)).unwrap(), b"");
        Lock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_lock_whose_holder_was_killed_is_free_and_its_name_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "1\nweir run lab.toml with a long tail of words\n").unwrap();
        assert_eq!(writer(folder.path()), None, "it is named, but holds no lock");
        let lock = Lock::take(folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(text.starts_with(&format!("{}\n", std::process::id())) && !text.contains("tail"), "{text}");
        drop(lock);
    }

    #[test]
    fn the_text_of_a_lock_file_is_escaped_for_terminals() {
        let command = shown(&format!("weir \u{1b}[31m{}", "x".repeat(500)));
        assert!(command.starts_with("weir  [31mxxx") && command.ends_with("x..."), "{command}");
        let held = Some(std::time::Duration::from_secs(200));
        let holder = Holder { process: Some(7), command: Some("weir run a.toml".into()), held };
        assert_eq!(holder.to_string(), "process 7 (`weir run a.toml`), for 3 min");
    }
}
