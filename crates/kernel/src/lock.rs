//! A lock, so that one process at a time changes pinned controls: it locks weir's folder under `/run` (flock(2)), and the kernel
//! releases the lock however the process ends. Only root may open the folder, so no other user can hold the lock.

use rustix::fs::FlockOperation;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};

/// Weir's folder.
pub(crate) const FOLDER: &str = "/run/weir";
/// Only its owner may read it, write it or open files in it.
pub(crate) const PRIVATE: u32 = 0o700;

/// The lock; it is released when this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    folder: File,
    exclusive: bool,
}

impl Lock {
    /// Waits until no other process has the lock.
    ///
    /// # Errors
    /// The folder cannot be created or opened.
    pub(crate) fn exclusive() -> io::Result<Lock> {
        loop {
            match DirBuilder::new().mode(PRIVATE).create(FOLDER) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            if let Some(folder) = open_locked(FlockOperation::LockExclusive)? {
                folder.set_permissions(Permissions::from_mode(PRIVATE))?;
                return Ok(Lock { folder, exclusive: true });
            }
        }
    }

    /// Waits until no process has the lock exclusively; several may share it. `None` if there is no folder: then no control is
    /// pinned, and no lock is needed.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub(crate) fn shared() -> io::Result<Option<Lock>> {
        while fs::exists(FOLDER)? {
            if let Some(folder) = open_locked(FlockOperation::LockShared)? {
                return Ok(Some(Lock { folder, exclusive: false }));
            }
        }
        Ok(None)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A process that waits for the lock of a removed folder tries again with a new one. A folder that is not empty stays.
        if self.exclusive && is_at_its_place(&self.folder) {
            let _ = fs::remove_dir(FOLDER);
        }
    }
}

/// Opens and locks the folder. `None` if it was removed meanwhile: another process may have created and locked a new one.
fn open_locked(how: FlockOperation) -> io::Result<Option<File>> {
    let folder = match File::open(FOLDER) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    rustix::io::retry_on_intr(|| rustix::fs::flock(&folder, how))?;
    Ok(is_at_its_place(&folder).then_some(folder))
}

fn is_at_its_place(folder: &File) -> bool {
    let same =
        |found: fs::Metadata, open: fs::Metadata| found.ino() == open.ino() && found.dev() == open.dev();
    fs::metadata(FOLDER).is_ok_and(|found| folder.metadata().is_ok_and(|open| same(found, open)))
}
