//! TCP sockets with addresses of other hosts (`IP_TRANSPARENT`, ip(7)): a proxy accepts what was meant for another host, and speaks in the
//! name of one. The kernel lets only those do so who have CAP_NET_RAW or CAP_NET_ADMIN.

use crate::option;
use crate::privileges::CapabilitySet;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with, sockopt,
};
use std::io;
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

/// Connections that wait until they are accepted.
const WAITING: i32 = 1024;

/// The rights without which there are no such sockets, ports below 1024 included.
pub fn rights() -> CapabilitySet {
    CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE
}

/// A socket whose packets have this mark (`SO_MARK`, socket(7)).
fn socket(mark: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    option::set(&socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1_i32)?;
    option::set(&socket, libc::SOL_SOCKET, libc::SO_MARK, mark)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

/// Listens at an address. Connections that are steered there keep the address for which they were meant, as their own one. Accepting does
/// not block. Packets of the connections have this mark.
///
/// # Errors
/// The kernel's: the process lacks the right, or the address is in use.
pub fn listener(at: SocketAddrV4, mark: u32) -> io::Result<TcpListener> {
    let socket = socket(mark)?;
    bind(&socket, &at)?;
    listen(&socket, WAITING)?;
    Ok(socket.into())
}

/// Begins a connection to a host in the name of another one, with this mark. It does not block: the socket can be written when the
/// connection is there.
///
/// # Errors
/// The kernel's: the process lacks the right, or the pair of addresses is in use.
pub fn begin(from: SocketAddrV4, to: SocketAddrV4, mark: u32) -> io::Result<TcpStream> {
    let socket = socket(mark)?;
    bind(&socket, &from)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Bytes that were written and that the other host's TCP has not acknowledged (`SIOCOUTQ`, tcp(7)).
///
/// # Errors
/// The kernel's.
pub fn unacknowledged(stream: &impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the pointer names an integer that lives until the call returns.
    let result = unsafe { libc::ioctl(stream.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(u64::try_from(bytes).unwrap_or(0)) }
}

/// Ends a connection by a reset (RFC 9293, section 3.10.7; `SO_LINGER` of 0 s, socket(7)).
pub fn reset(stream: TcpStream) {
    // A socket that refuses the option is closed as usual.
    let _ = sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO));
    drop(stream);
}
