//! Multicast datagrams of IPv4 on a device, without a membership of this host's own: a packet socket takes those that come from the device's
//! network, and sends others there (packet(7)). What this host itself sends is not taken.

use crate::auxdata::{Auxdata, BESIDE};
use crate::option;
use crate::ring::{bind, packet_socket, send_packet, take_all};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::SocketType;
use std::io;

/// A classic BPF program (Documentation/networking/filter.rst): takes what goes to 224.0.0.0/4. With this kind of socket a packet begins with its
/// IP header, whose byte 16 is the first one of the destination.
const FILTER: [libc::sock_filter; 5] = [
    step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, 16),
    step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, 0xf0),
    step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, 0xe0),
    step(libc::BPF_RET | libc::BPF_K, 0, 0, 0x4_0000),
    step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
];

const fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// A datagram that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Come {
    /// Its length.
    pub length: usize,
    /// Whether the host that sent it has left its transport checksum to its device, which is one of this machine's.
    pub lacks_checksum: bool,
}

/// The multicast datagrams of a device.
#[derive(Debug)]
pub struct Multicast {
    socket: OwnedFd,
    device: u32,
}

impl Multicast {
    /// Opens the device of this index in the calling thread's namespace. The device takes all multicast frames until this is closed.
    ///
    /// # Errors
    /// The kernel's; packet sockets take CAP_NET_RAW.
    pub fn open(device: u32) -> io::Result<Multicast> {
        // Nothing comes before the filter is there.
        let socket = packet_socket(SocketType::DGRAM)?;
        let mut filter = FILTER;
        let program = libc::sock_fprog { len: FILTER.len() as u16, filter: filter.as_mut_ptr() };
        option::set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)?;
        for option in [libc::PACKET_AUXDATA, libc::PACKET_IGNORE_OUTGOING] {
            option::set(&socket, libc::SOL_PACKET, option, 1 as libc::c_int)?;
        }
        take_all(&socket, device, libc::PACKET_MR_ALLMULTI)?;
        bind(&socket, device, libc::ETH_P_IP as u16)?;
        Ok(Multicast { socket, device })
    }

    /// Takes the next datagram; `None` if there is none now. One with a VLAN tag is of another network, and has length 0.
    ///
    /// # Errors
    /// The kernel's: `NetworkDown` once after the device has gone down or away.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<Come>> {
        let mut beside = [0u64; BESIDE];
        let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        // SAFETY: plain data for which all zeros is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        (header.msg_iov, header.msg_iovlen) = (&raw mut vector, 1);
        (header.msg_control, header.msg_controllen) = (beside.as_mut_ptr().cast(), size_of_val(&beside) as _);
        // SAFETY: the message names a buffer and room beside it, of the given lengths, which live until the call returns and which nobody else
        // reads or writes meanwhile.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        let auxdata = Auxdata::read(&beside);
        let is_tagged = auxdata.is_some_and(|auxdata| auxdata.tag().is_some());
        let length = if is_tagged { 0 } else { length as usize };
        Ok(Some(Come { length, lacks_checksum: auxdata.is_some_and(Auxdata::lacks_checksum) }))
    }

    /// Sends a datagram of IPv4 to the hosts that listen to its group. Returns whether the kernel has taken it: it refuses what is longer than
    /// the device's MTU, and what goes to no group is not handed to it.
    pub fn send(&self, datagram: &[u8]) -> bool {
        let Some(&[first, b, c, d]) = datagram.get(16..20).and_then(<[u8]>::first_chunk) else {
            return false;
        };
        if first & 0xf0 != 0xe0 {
            return false;
        }
        // The low 23 bits of the group (RFC 1112, section 6.4).
        let to = [1, 0, 0x5e, b & 0x7f, c, d];
        send_packet(&self.socket, self.device, libc::ETH_P_IP as u16, to, datagram)
    }
}

impl AsFd for Multicast {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
