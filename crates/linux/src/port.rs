//! A device as one side of a wire: a packet socket that receives all frames of the device, whatever their address, and sends
//! frames out of it. Each frame carries the kernel's offload header (`PACKET_VNET_HDR`, packet(7)): a bundle of TCP segments
//! stays a bundle, and a checksum that a device is to fill in stays marked as such, so that no device setting has to change.
//! The VLAN tag, which the kernel keeps beside a frame, is put back into the frame.

use crate::auxdata::{Auxdata, BESIDE};
use crate::offload::{NEEDS_CHECKSUM, Offload, UDP_BUNDLE, WITH_ECN};
use crate::option;
use crate::ring::{bind, packet_socket, take_all};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::SocketType;
use std::io;

/// Frames received or sent in one call.
pub const BATCH: usize = 64;
/// Length of a VLAN tag (IEEE 802.1Q).
const TAG: usize = 4;
/// Room for the longest bundle that a device takes by default (GSO_LEGACY_MAX_SIZE in netdevice.h), with an Ethernet header and
/// two tags. Not a power of two, so that the heads of neighbouring buffers fall into different sets of a cache.
const LONGEST: usize = 65_536 + 14 + 2 * TAG + 186;
/// Memory that waiting frames may take: a quarter of a second of 100,000 packets a second, each charged about 2 KiB.
const WAITING: usize = 64 << 20;

/// The buffer of a frame between being received and being sent.
#[derive(Debug)]
pub struct Slot {
    offload: Offload,
    bytes: Box<[u8]>,
    start: usize,
    length: usize,
}

impl Slot {
    fn new() -> Slot {
        Slot { offload: Offload::default(), bytes: vec![0; LONGEST].into(), start: TAG, length: 0 }
    }

    /// A slot with this frame; `bundled` is the payload length of each datagram if the frame is a bundle.
    pub fn of(frame: &[u8], bundled: Option<u16>) -> Slot {
        let mut slot = Slot::new();
        slot.length = frame.len();
        slot.frame().copy_from_slice(frame);
        if let Some(segment) = bundled {
            slot.offload = Offload { flags: NEEDS_CHECKSUM, kind: UDP_BUNDLE, segment, ..Offload::default() };
        }
        slot
    }

    /// The frame, from its Ethernet header on.
    pub fn frame(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    /// Whether the transport checksum is still to be filled in.
    pub fn needs_checksum(&self) -> bool {
        self.offload.flags & NEEDS_CHECKSUM != 0
    }

    /// The length of the payload of each datagram in a bundle of datagrams; `None` if the frame is not such a bundle.
    pub fn bundled(&self) -> Option<usize> {
        let is_bundle = self.offload.kind & !WITH_ECN == UDP_BUNDLE && self.offload.segment > 0;
        is_bundle.then_some(self.offload.segment.into())
    }

    /// Puts a VLAN tag that the kernel has taken out back behind the addresses.
    fn insert(&mut self, tag: [u8; TAG]) {
        self.bytes.copy_within(TAG..TAG + 12, 0);
        self.bytes[12..12 + TAG].copy_from_slice(&tag);
        (self.start, self.length) = (0, self.length + TAG);
        for at in [&mut self.offload.headers, &mut self.offload.checksum_start] {
            if *at > 0 {
                *at += TAG as u16;
            }
        }
    }
}

/// Frames on their way from one port to the other.
#[derive(Debug)]
pub struct Batch {
    slots: Vec<Slot>,
    /// Number of slots that hold frames, from the first on.
    filled: usize,
}

impl Default for Batch {
    /// An empty batch.
    fn default() -> Batch {
        Batch { slots: (0..BATCH).map(|_| Slot::new()).collect(), filled: 0 }
    }
}

impl Batch {
    /// The frames that were received last.
    pub fn frames(&mut self) -> &mut [Slot] {
        &mut self.slots[..self.filled]
    }
}

/// Frames at a port since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frames {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
    /// Refused by the device: its queue was full, or the frame longer than its MTU.
    pub not_sent: u64,
    /// Not received: the kernel had no room for them, or they were longer than any bundle.
    pub missed: u64,
}

/// One side of a wire.
#[derive(Debug)]
pub struct Port {
    socket: OwnedFd,
    /// Its frames so far.
    pub counted: Frames,
}

impl Port {
    /// Opens the device of this index in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's; packet sockets take CAP_NET_RAW.
    pub fn open(device: u32) -> io::Result<Port> {
        let socket = packet_socket(SocketType::RAW)?;
        for option in [libc::PACKET_VNET_HDR, libc::PACKET_AUXDATA, libc::PACKET_IGNORE_OUTGOING] {
            option::set(&socket, libc::SOL_PACKET, option, 1 as libc::c_int)?;
        }
        for force in [
            rustix::net::sockopt::set_socket_recv_buffer_size_force,
            rustix::net::sockopt::set_socket_send_buffer_size_force,
        ] {
            // Without CAP_NET_ADMIN the system's limit holds.
            let _ = force(&socket, WAITING);
        }
        take_all(&socket, device, libc::PACKET_MR_PROMISC)?;
        bind(&socket, device, libc::ETH_P_ALL as u16)?;
        Ok(Port { socket, counted: Frames::default() })
    }

    /// Receives the waiting frames, a batch at most. Returns whether the batch was full, so that more may wait.
    ///
    /// # Errors
    /// The kernel's: `NetworkDown` once after the device has gone down or away.
    pub fn receive(&mut self, batch: &mut Batch) -> io::Result<bool> {
        // SAFETY: plain data for which all zeros is a valid value.
        let (mut vectors, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { std::mem::zeroed() };
        let mut beside = [[0u64; BESIDE]; BATCH];
        for (n, slot) in batch.slots.iter_mut().enumerate() {
            vectors[n] = [part(std::slice::from_mut(&mut slot.offload)), part(&mut slot.bytes[TAG..])];
            let header = &mut messages[n].msg_hdr;
            (header.msg_iov, header.msg_iovlen) = (vectors[n].as_mut_ptr(), 2);
            (header.msg_control, header.msg_controllen) =
                (beside[n].as_mut_ptr().cast(), size_of_val(&beside[n]));
        }
        // SAFETY: every message names a header, a frame and room beside it, of the given lengths, all of which live until the call
        // returns; nobody else reads or writes them meanwhile.
        let received = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        batch.filled = 0;
        if received < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            };
        }
        for (n, message) in messages.iter().take(received as usize).enumerate() {
            let length = (message.msg_len as usize).saturating_sub(size_of::<Offload>());
            if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 || length < 14 {
                self.counted.missed += 1;
                continue;
            }
            batch.slots.swap(batch.filled, n);
            let slot = &mut batch.slots[batch.filled];
            (slot.start, slot.length) = (TAG, length);
            if let Some(tag) = Auxdata::read(&beside[n]).and_then(Auxdata::tag) {
                slot.insert(tag);
            }
            batch.filled += 1;
            self.counted.received += 1;
        }
        Ok(received as usize == BATCH)
    }

    /// Sends frames, in order.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a mut Slot>) {
        // SAFETY: plain data for which all zeros is a valid value.
        let (mut vectors, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { std::mem::zeroed() };
        let mut count = 0;
        for slot in frames.take(BATCH) {
            let Slot { offload, bytes, start, length } = slot;
            // The other flags of a received frame mean nothing on a frame that is sent.
            offload.flags &= NEEDS_CHECKSUM;
            vectors[count] =
                [part(std::slice::from_mut(offload)), part(&mut bytes[*start..*start + *length])];
            let header = &mut messages[count].msg_hdr;
            (header.msg_iov, header.msg_iovlen) = (vectors[count].as_mut_ptr(), 2);
            count += 1;
        }
        let mut done = 0;
        while done < count {
            let rest = &mut messages[done..count];
            // SAFETY: every message names a header and a frame of the given lengths, which live until the call returns; the kernel
            // only reads them.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as u32,
                    libc::MSG_DONTWAIT as _,
                )
            };
            if sent > 0 {
                done += sent as usize;
                self.counted.sent += sent as u64;
            } else if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                // The first of the rest was refused; go on behind it.
                self.counted.not_sent += 1;
                done += 1;
            }
        }
    }

    /// Adds the frames that the kernel had no room for since the last call.
    pub fn count_missed(&mut self) {
        self.counted.missed += crate::ring::dropped(&self.socket).unwrap_or(0);
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A part of a message.
fn part<T>(of: &mut [T]) -> libc::iovec {
    libc::iovec { iov_base: of.as_mut_ptr().cast(), iov_len: size_of_val(of) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_goes_back_behind_the_addresses_and_moves_the_checksum() {
        let mut slot = Slot::new();
        slot.bytes[TAG..TAG + 12].copy_from_slice(b"ABCDEFabcdef");
        slot.bytes[TAG + 12..TAG + 18].copy_from_slice(&[8, 0, 1, 2, 3, 4]);
        slot.length = 18;
        slot.offload.checksum_start = 34;
        slot.insert([0x81, 0, 0, 7]);
        assert_eq!(slot.frame(), [b"ABCDEFabcdef".as_slice(), &[0x81, 0, 0, 7, 8, 0, 1, 2, 3, 4]].concat());
        assert_eq!((slot.offload.checksum_start, slot.offload.headers), (38, 0));
    }
}
