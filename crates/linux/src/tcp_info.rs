//! The kernel's state of a connection: `TCP_INFO` (tcp(7), `tcp_get_info` in net/ipv4/tcp.c).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Retransmissions of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Segments that were retransmitted.
    pub retransmitted: u64,
    /// Retransmitted segments that the receiver already had, by its DSACKs (RFC 2883).
    pub unneeded: u64,
}

/// A connection's retransmissions so far.
///
/// # Errors
/// The kernel's.
pub fn losses(socket: impl AsFd) -> io::Result<Losses> {
    let (info, _) = tcp_info(socket)?;
    Ok(Losses { retransmitted: info.tcpi_total_retrans.into(), unneeded: info.tcpi_dsack_dups.into() })
}

/// The kernel's answer, and its length in bytes, which depends on the kernel.
///
/// # Errors
/// The kernel's.
pub fn tcp_info(socket: impl AsFd) -> io::Result<(libc::tcp_info, usize)> {
    // SAFETY: plain data for which all zeros is a valid value; older kernels fill in a part of it and leave the rest zero.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointer names a tcp_info of the given length.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok((info, length as usize)) }
}
