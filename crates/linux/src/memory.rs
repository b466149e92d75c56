//! Folders in memory without a name: each is a file system of its own (tmpfs(5)) that is mounted nowhere (fsmount(2)). Processes reach it by
//! a descriptor, and the kernel frees it with the last one, however they end.

use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use weir_base::{Bytes, not_started};

/// Numbers of linux/mount.h.
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_SET_STRING: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;

/// A folder in memory that only this user reads.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// An empty folder with room for so many bytes.
    ///
    /// # Errors
    /// The process may not mount file systems: it needs the rights of root, in its user namespace at least.
    pub fn new(most: Bytes) -> io::Result<Folder> {
        // A thread with a mount namespace of its own may mount also where the process has only a user namespace of its own.
        let made = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("weir-folder".into()).spawn_scoped(scope, || {
                // SAFETY: only the mount namespace and the working directory of this thread change.
                unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }?;
                mount(most)
            });
            thread.map(|thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that mounts panicked")))
            })
        });
        made.map_err(not_started)?.map(Folder)
    }

    /// Its path, for this process and for commands to which it was [given](Folder::give).
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    /// Lets a command use it too. The folder must be there when the command starts.
    pub fn give(&self, command: &mut Command) {
        let folder = self.0.as_raw_fd();
        // SAFETY: fcntl is async-signal-safe and changes the descriptor of the new process alone.
        unsafe {
            command.pre_exec(move || match libc::fcntl(folder, libc::F_SETFD, 0) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            })
        };
    }
}

/// Makes a file system in memory.
fn mount(most: Bytes) -> io::Result<OwnedFd> {
    // SAFETY: the name is a string of C, and the kernel makes the descriptor for this call alone.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), FSOPEN_CLOEXEC) })?;
    let size = std::ffi::CString::new(most.get().to_string())?;
    configure(&context, FSCONFIG_SET_STRING, Some((c"mode", c"0700")))?;
    configure(&context, FSCONFIG_SET_STRING, Some((c"size", &size)))?;
    configure(&context, FSCONFIG_CMD_CREATE, None)?;
    // SAFETY: numbers alone are passed, and the kernel makes the descriptor for this call alone.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0) })
}

fn configure(context: &OwnedFd, what: libc::c_uint, value: Option<(&CStr, &CStr)>) -> io::Result<()> {
    let (key, value) =
        value.map_or((std::ptr::null(), std::ptr::null()), |(key, value)| (key.as_ptr(), value.as_ptr()));
    // SAFETY: both pointers are null or strings of C that live until the call returns.
    match unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), what, key, value, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    match RawFd::try_from(result) {
        // SAFETY: the descriptor was made for the caller, and nothing else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
