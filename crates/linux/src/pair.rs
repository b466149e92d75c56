//! A pair of devices in the place of a TUN device, where the kernel or a container has none: what is routed to the near device leaves
//! at the far one, where a packet socket takes it. The far device is in a network namespace of its own that the socket alone holds. When the
//! socket is closed the kernel removes that namespace, and with it both devices, their addresses and routes, within some milliseconds.

use crate::device::{check_name, index_of_name};
use crate::ethtool::switch_offloads_off;
use crate::namespace::Namespace;
use crate::netlink::{End, Mac, Netlink};
use crate::option;
use crate::ring::{bind, packet_socket, send_packet};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketType, sockopt};
use std::io;

/// Hardware addresses, administered locally. No other device sees them.
const NEAR: Mac = [2, 0, 0, 0, 0, 1];
const FAR: Mac = [2, 0, 0, 0, 0, 2];
/// The name of the far device in its namespace.
const FAR_NAME: &str = "far";
/// Memory that waiting packets may take: 500 of 1,500 bytes, as many as a TUN device holds (`TUN_READQ_SIZE`), each charged about 2 KiB.
const WAITING: usize = 1 << 20;

/// A pair of devices.
#[derive(Debug)]
pub struct Pair {
    socket: OwnedFd,
    far: u32,
    index: u32,
}

impl Pair {
    /// Makes a device of this name and MTU in the calling thread's network namespace. It is down. The other one is up.
    ///
    /// # Errors
    /// The name is empty or longer than 15 bytes, another device has it, or the process may make neither devices nor namespaces.
    pub fn open(name: &str, mtu: u32) -> io::Result<Pair> {
        check_name(name)?;
        let apart = Namespace::new()?;
        let near = End { name, mac: NEAR, namespace: None };
        let far = End { name: FAR_NAME, mac: FAR, namespace: Some(apart.as_fd()) };
        Netlink::open()?.add_veth(&near, &far, mtu)?;
        let index = index_of_name(name).ok_or_else(io::Error::last_os_error)?;
        // The far end hands packets on as they are: checksums must be filled in, and bundles split.
        switch_offloads_off(name)?;
        let (socket, far) = apart.inside(|| {
            let far = index_of_name(FAR_NAME).ok_or_else(io::Error::last_os_error)?;
            Netlink::open()?.set_up(far)?;
            // Without link header: the kernel takes it off, and puts one before what is sent (packet(7)).
            let socket = packet_socket(SocketType::DGRAM)?;
            option::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1 as libc::c_int)?;
            // Without CAP_NET_ADMIN the system's limit holds.
            let _ = sockopt::set_socket_recv_buffer_size_force(&socket, WAITING);
            bind(&socket, far, libc::ETH_P_ALL as u16)?;
            Ok((socket, far))
        })?;
        Ok(Pair { socket, far, index })
    }

    /// The near device's index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Takes the next packet that was routed to the near device, and returns the packet's length; `None` if there is none now.
    ///
    /// # Errors
    /// The kernel's. The device was removed, for example.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::net::recv(&self.socket, into, RecvFlags::DONTWAIT) {
            Ok((length, _)) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands a packet to the kernel. Returns whether the kernel has taken it: it refuses packets that are longer than the MTU, and those
    /// for which there is no memory. What is no IP packet is not handed over.
    pub fn send(&self, packet: &[u8]) -> bool {
        let protocol = match packet.first().map(|first| first >> 4) {
            Some(4) => libc::ETH_P_IP,
            Some(6) => libc::ETH_P_IPV6,
            _ => return false,
        };
        send_packet(&self.socket, self.far, protocol as u16, NEAR, packet)
    }
}

impl AsFd for Pair {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
