//! Changes of what lasts are made by one process at a time: it locks weir's folder under `/run` (flock(2)), and the lock goes with
//! it however it ends. Only root may open the folder, so nobody else can hold the lock.

use rustix::fs::FlockOperation;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};

/// Weir's folder.
pub(crate) const FOLDER: &str = "/run/weir";
/// Only its owner reads it, writes it or opens what is in it.
pub(crate) const PRIVATE: u32 = 0o700;

/// The lock, until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    folder: File,
    exclusive: bool,
}

impl Lock {
    /// Waits until nobody else has the lock.
    ///
    /// # Errors
    /// The folder cannot be made or opened.
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

    /// Waits until nobody has the lock for itself; several may have it like this. Where the folder is not there nothing lasts, and
    /// nothing needs to be locked.
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
        // Whoever waits for the lock of a folder that is gone tries again with a new one. One that is not empty stays.
        if self.exclusive && is_at_its_place(&self.folder) {
            let _ = fs::remove_dir(FOLDER);
        }
    }
}

/// Opens and locks the folder. None if it was removed meanwhile: another process may have made and locked a new one.
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
