//! Socket options that rustix does not have.

use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// Sets an option of this level (`SOL_PACKET`, say) whose value is `T` as the kernel lays it out (setsockopt(2)).
pub fn set<T: Copy>(socket: &impl AsFd, level: libc::c_int, option: libc::c_int, value: T) -> io::Result<()> {
    // SAFETY: the pointer names a value of the given length; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
