//! What senders to a group and its members share: the group's address, its socket, and the first bytes of a session.

use crate::failure::Failure;
use crate::transfer::PORT;
use rustix::net::sockopt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// The first bytes of a member's connection to a sender; the number of the session follows in eight bytes.
pub(super) const GROUP_SESSION: [u8; 8] = *b"weir-g 1";
/// Receive buffer of a member's socket in bytes, if this user may set it: twice the largest window, as the kernel counts datagrams.
const BUFFER: usize = 2 << 20;

/// The group that a text names, with or without its port; `None` if it names no multicast address.
pub(super) fn named(text: &str) -> Option<SocketAddrV4> {
    let with_port = text.parse().ok().or_else(|| Some(SocketAddrV4::new(text.parse().ok()?, PORT)));
    with_port.filter(|group: &SocketAddrV4| group.ip().is_multicast() && group.port() > 0)
}

/// The group that an argument names.
///
/// # Errors
/// It names none.
pub(super) fn group(text: &str) -> Result<SocketAddrV4, Failure> {
    let help = "write an address from 224.0.0.0 to 239.255.255.255, as 239.1.2.3 or 239.1.2.3:7765";
    named(text).ok_or_else(|| Failure::bad_input(format!("{text} is no multicast group"), help))
}

/// A socket that is a member of a group, and receives nothing else. The route to the group chooses the device.
///
/// # Errors
/// No device leads there, or the port is taken.
pub(super) fn join(group: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(group)?;
    // A smaller buffer loses more, which is asked for again.
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, BUFFER));
    socket.join_multicast_v4(group.ip(), &Ipv4Addr::UNSPECIFIED)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_multicast_addresses_are_groups() {
        assert_eq!(named("239.1.2.3"), Some(SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), PORT)));
        assert_eq!(named("224.0.0.9:9000").map(|group| group.port()), Some(9000));
        for other in ["10.2.0.1", "10.2.0.1:7765", "host", "239.1.2.3:0", "239.1.2", "ff02::1", ""] {
            assert_eq!(named(other), None, "{other}");
        }
        assert_eq!(group("10.2.0.1").unwrap_err().status, 2);
    }
}
