//! A folder whose lock a process holds (flock(2)), so that one process at a time changes what is recorded in it. The kernel releases the
//! lock however the process ends. Only its owner may open the folder, so no other user can hold the lock.

use rustix::fs::FlockOperation;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Only its owner may read the folder, write it or open files in it.
pub const PRIVATE: u32 = 0o700;

/// A lock; it is released when this is dropped.
#[derive(Debug)]
pub struct FolderLock {
    path: PathBuf,
    folder: File,
    exclusive: bool,
}

impl FolderLock {
    /// Creates the folder if it does not exist, and waits until no other process has its lock. When this is dropped and the folder is
    /// empty, it is removed.
    ///
    /// # Errors
    /// The folder cannot be created or opened.
    pub fn exclusive(path: &Path) -> io::Result<FolderLock> {
        loop {
            DirBuilder::new().recursive(true).mode(PRIVATE).create(path)?;
            if let Some(folder) = open_locked(path, FlockOperation::LockExclusive)? {
                folder.set_permissions(Permissions::from_mode(PRIVATE))?;
                return Ok(FolderLock { path: path.to_owned(), folder, exclusive: true });
            }
        }
    }

    /// Waits until no process has the lock exclusively; several may share it. `None` if there is no folder.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn shared(path: &Path) -> io::Result<Option<FolderLock>> {
        while fs::exists(path)? {
            if let Some(folder) = open_locked(path, FlockOperation::LockShared)? {
                return Ok(Some(FolderLock { path: path.to_owned(), folder, exclusive: false }));
            }
        }
        Ok(None)
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the names of the folder's files are on the disk.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    /// Removes the folder if it is empty. Returns whether it did; the lock is worthless then.
    pub fn remove(&self) -> bool {
        // A process that waits for the lock of a removed folder tries again with a new one. A folder that is not empty stays.
        self.exclusive && is_at(&self.path, &self.folder) && fs::remove_dir(&self.path).is_ok()
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes a folder if it is empty, unless a process has its lock.
pub fn remove_unlocked(path: &Path) {
    let Ok(opened) = File::open(path) else { return };
    if rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive).is_ok() {
        let _ = fs::remove_dir(path);
    }
}

/// Opens and locks a folder. `None` if it was removed meanwhile: another process may have created and locked a new one.
fn open_locked(path: &Path, how: FlockOperation) -> io::Result<Option<File>> {
    let folder = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    rustix::io::retry_on_intr(|| rustix::fs::flock(&folder, how))?;
    Ok(is_at(path, &folder).then_some(folder))
}

fn is_at(path: &Path, folder: &File) -> bool {
    let same =
        |found: fs::Metadata, open: fs::Metadata| (found.ino(), found.dev()) == (open.ino(), open.dev());
    fs::metadata(path).is_ok_and(|found| folder.metadata().is_ok_and(|open| same(found, open)))
}
