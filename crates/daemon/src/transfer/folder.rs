//! The folder of received files: nothing is written outside it, no file in it is overwritten, and it holds no more than its
//! quota.

use super::guard;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use weir_circuit::transfer::{check_name, part_name};

/// A folder for received files.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
    /// Most bytes that it may hold.
    quota: Mutex<Option<u64>>,
    /// Lengths of the files that are being received, by name.
    promised: Mutex<BTreeMap<String, u64>>,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// It is not there, or is no folder.
    pub(crate) fn open(path: &Path, quota: Option<u64>) -> io::Result<Folder> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Folder { path: path.to_owned(), descriptor, quota: Mutex::new(quota), promised: Mutex::default() })
    }

    /// Sets the most bytes that it may hold from now on; what is being received already goes on.
    pub(crate) fn set_quota(&self, quota: Option<u64>) {
        *guard(&self.quota) = quota;
    }

    /// Opens a file of this name and length that is there already, to be read. `None` if there is no file of this name.
    ///
    /// # Errors
    /// The name is not allowed, or what has it is no file of this length.
    pub(crate) fn there(&self, name: &str, bytes: u64) -> io::Result<Option<File>> {
        check_name(name).map_err(io::Error::other)?;
        if rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).is_err() {
            return Ok(None);
        }
        let taken = || io::Error::other(format!("{name:?} is there already, and nothing is overwritten"));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()).map_err(|_| taken())?;
        let file = File::from(file);
        let about = file.metadata()?;
        if about.is_file() && about.len() == bytes { Ok(Some(file)) } else { Err(taken()) }
    }

    /// Opens or makes the partial file of this name, locks it against other sessions, and reserves room for `bytes` bytes.
    ///
    /// # Errors
    /// The name is not allowed or is taken, the partial file has a second name, another session is receiving the file, or there is no
    /// room.
    pub(crate) fn part(&self, name: &str, bytes: u64) -> io::Result<File> {
        check_name(name).map_err(io::Error::other)?;
        let there = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok() {
            return Err(io::Error::other(format!("{name:?} is there already, and nothing is overwritten")));
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let part = File::from(rustix::fs::openat(
            &self.descriptor,
            part_name(name),
            flags,
            Mode::from_bits_truncate(0o644),
        )?);
        let about = part.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other(format!("{:?} is not a file", part_name(name))));
        }
        // By a hard link, the partial file may be a file outside the folder.
        if about.nlink() > 1 {
            return Err(io::Error::other(format!(
                "{:?} is also a file of another name, which would change: remove the link",
                part_name(name)
            )));
        }
        rustix::fs::flock(&part, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other(format!("{name:?} is being received in another session")))?;
        let room = self.promise(name, bytes);
        if room.is_err() {
            self.give_up(name, &part);
        }
        room.map(|()| part)
    }

    /// The same file, opened for direct I/O past the page cache; `None` if the file system does not support that.
    pub(crate) fn direct(&self, name: &str) -> Option<File> {
        let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.descriptor, part_name(name), flags, Mode::empty()).ok().map(File::from)
    }

    /// Gives a complete file its name, after it has been written to the disk, and ends the reservation of its room.
    ///
    /// # Errors
    /// Another file has the name meanwhile, or the disk's error.
    pub(crate) fn complete(&self, name: &str, part: &File, bytes: u64) -> io::Result<()> {
        part.set_len(bytes)?;
        part.sync_all()?;
        let here = &self.descriptor;
        rustix::fs::renameat_with(here, part_name(name), here, name, RenameFlags::NOREPLACE)?;
        guard(&self.promised).remove(name);
        Ok(rustix::fs::fsync(here)?)
    }

    /// Reserves room for a file of this many bytes until it is complete or given up.
    fn promise(&self, name: &str, bytes: u64) -> io::Result<()> {
        let mut promised = guard(&self.promised);
        let (mut held, mut there) = (0, 0);
        for entry in fs::read_dir(&self.path)?.flatten() {
            let length = entry.metadata().map_or(0, |about| about.len());
            let part = |name: &str| entry.file_name().to_str() == Some(&part_name(name));
            match promised.keys().map(String::as_str).chain([name]).any(part) {
                true => there += length,
                false => held += length,
            }
        }
        let needed = promised.values().sum::<u64>().saturating_add(bytes);
        if let Some(quota) = *guard(&self.quota) {
            let free = quota.saturating_sub(held).saturating_sub(needed - bytes);
            if bytes > free {
                return Err(io::Error::other(format!(
                    "{bytes} bytes do not fit the quota, of which {free} are free"
                )));
            }
        }
        let disk = rustix::fs::fstatvfs(&self.descriptor)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize).saturating_add(there);
        if needed > free {
            return Err(io::Error::other(format!("{bytes} bytes do not fit the disk")));
        }
        promised.insert(name.to_owned(), bytes);
        Ok(())
    }

    /// Gives up a file that will not become whole now. Its part stays, unless it is empty.
    pub(crate) fn give_up(&self, name: &str, part: &File) {
        if part.metadata().is_ok_and(|about| about.len() == 0) {
            let _ = rustix::fs::unlinkat(&self.descriptor, part_name(name), AtFlags::empty());
        }
        guard(&self.promised).remove(name);
    }
}
