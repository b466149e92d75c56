//! The packet sockets of the fabric's namespace. One receives from every device at once, through a ring that the kernel
//! fills (`TPACKET_V2`, packet(7) and Documentation/networking/packet_mmap.rst), so that packets of all hosts come merged
//! in the order in which the kernel saw them, each with its stamp. Another sends batches past the queueing layer.

use crate::clock::nanos_of;
use crate::netlink::Mac;
use crate::option;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of one memory block of the ring: 64 KiB, a power of two of pages that the kernel finds even in fragmented memory.
const BLOCK: usize = 1 << 16;
/// Packets that the ring holds: 130 ms of 1 Gbit/s in both directions, more than any stall that leaves a run usable.
const FRAMES: usize = 1 << 14;
/// Room that a frame's header, address and alignment take in the ring before the packet itself.
const HEADROOM: usize = 128;
/// Packets handed to the kernel in one call.
const BATCH: usize = 64;

/// The receiving side.
#[derive(Debug)]
pub struct ReceiveRing {
    socket: OwnedFd,
    map: NonNull<u8>,
    length: usize,
    frame: usize,
    next: usize,
}

/// A frame as it lies in the ring.
#[derive(Debug)]
pub struct Received<'a> {
    /// Index of the device that it came in on.
    pub device: u32,
    /// The kernel's receive stamp: nanoseconds of `CLOCK_REALTIME`.
    pub stamp: u64,
    /// From the Ethernet header on.
    pub bytes: &'a [u8],
    /// Whether the kernel cut it off because it did not fit.
    pub cut: bool,
}

impl ReceiveRing {
    /// Opens a ring for every device of the calling thread's namespace, for packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// Packet sockets are not permitted, or memory is short.
    pub fn open(mtu: usize) -> io::Result<ReceiveRing> {
        let socket = packet_socket(SocketType::RAW)?;
        option::set(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as libc::c_int,
        )?;
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1 as libc::c_int)?;
        let frame = (mtu + HEADROOM).next_power_of_two();
        let frames = FRAMES.max(BLOCK / frame);
        let length = frame * frames;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (length / BLOCK) as u32,
            tp_frame_size: frame as u32,
            tp_frame_nr: frames as u32,
        };
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        // SAFETY: a fresh mapping at an address that the kernel chooses touches no memory of ours.
        let map = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &socket,
                0,
            )
        }?;
        let map = NonNull::new(map.cast())
            .ok_or_else(|| io::Error::other("the packet ring was mapped at address zero"))?;
        // Binding to a protocol starts reception; it comes last, so that no frame is received outside the ring.
        bind(&socket, 0, libc::ETH_P_ALL as u16)?;
        Ok(ReceiveRing { socket, map, length, frame, next: 0 })
    }

    /// Whether a frame is waiting.
    pub fn ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Hands the oldest waiting frame to `take` and gives its place back to the kernel; `None` when no frame waits.
    pub fn receive<T>(&mut self, take: impl FnOnce(Received<'_>) -> T) -> Option<T> {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let at = self.next * self.frame;
        // SAFETY: `at` is the start of a frame inside the mapping, and TP_STATUS_USER, read with acquire, says that the
        // kernel has finished writing it and will not touch it before the status is given back.
        let header = unsafe { self.map.add(at).cast::<libc::tpacket2_hdr>().read() };
        let address_at = at + (size_of::<libc::tpacket2_hdr>()).next_multiple_of(libc::TPACKET_ALIGNMENT);
        // SAFETY: as above; packet_mmap.rst puts a sockaddr_ll behind the aligned header.
        let address = unsafe { self.map.add(address_at).cast::<libc::sockaddr_ll>().read_unaligned() };
        let start = usize::from(header.tp_mac).min(self.frame);
        let length = (header.tp_snaplen as usize).min(self.frame - start);
        // SAFETY: as above; start and length were clamped to this frame.
        let bytes = unsafe { std::slice::from_raw_parts(self.map.add(at + start).as_ptr(), length) };
        let taken = take(Received {
            device: address.sll_ifindex as u32,
            stamp: nanos_of(header.tp_sec.into(), header.tp_nsec.into()),
            bytes,
            cut: header.tp_snaplen < header.tp_len,
        });
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % (self.length / self.frame);
        Some(taken)
    }

    /// Packets that the kernel dropped because the ring was full, since the last call.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take_drops(&self) -> io::Result<u64> {
        dropped(&self.socket)
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: tp_status is the first field of a frame's header, aligned, inside the mapping as long as `self` lives, and
        // only ever accessed atomically on this side.
        unsafe { AtomicU32::from_ptr(self.map.add(self.next * self.frame).as_ptr().cast()) }
    }
}

impl AsFd for ReceiveRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for ReceiveRing {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no borrow of it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.map.as_ptr().cast(), self.length) };
    }
}

// SAFETY: the mapping belongs to this value alone; moving it to another thread moves the only access to it.
unsafe impl Send for ReceiveRing {}

/// The sending side.
#[derive(Debug)]
pub struct Sender {
    socket: OwnedFd,
}

impl Sender {
    /// Opens a socket in the calling thread's namespace.
    ///
    /// # Errors
    /// Packet sockets are not permitted.
    pub fn open() -> io::Result<Sender> {
        // Protocol 0 receives nothing.
        let socket = packet_socket(SocketType::RAW)?;
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1 as libc::c_int)?;
        // A packet's memory is charged to the socket until the host has received it; a large buffer keeps that from stopping
        // the pump.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, 64 << 20)
            .or_else(|_| rustix::net::sockopt::set_socket_send_buffer_size(&socket, 64 << 20));
        Ok(Sender { socket })
    }

    /// Sends frames, each out of its device, in order; returns how many of them the kernel refused.
    pub fn send<'a>(&self, frames: impl Iterator<Item = (u32, &'a [u8])>) -> u64 {
        let mut frames = frames.peekable();
        let mut refused = 0;
        while frames.peek().is_some() {
            refused += self.send_batch(&mut frames);
        }
        refused
    }

    fn send_batch<'a>(&self, frames: &mut impl Iterator<Item = (u32, &'a [u8])>) -> u64 {
        // SAFETY: all three are plain data for which all zeros is a valid value.
        let (mut addresses, mut vectors, mut messages): (
            [libc::sockaddr_ll; BATCH],
            [libc::iovec; BATCH],
            [libc::mmsghdr; BATCH],
        ) = unsafe { std::mem::zeroed() };
        let mut count = 0;
        for (device, bytes) in frames.take(BATCH) {
            addresses[count].sll_family = libc::AF_PACKET as u16;
            addresses[count].sll_ifindex = device as i32;
            addresses[count].sll_halen = 6;
            vectors[count] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            let header = &mut messages[count].msg_hdr;
            header.msg_name = (&raw mut addresses[count]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            header.msg_iov = &raw mut vectors[count];
            header.msg_iovlen = 1;
            count += 1;
        }
        let (mut done, mut refused) = (0, 0);
        while done < count {
            // SAFETY: messages[done..count] point to addresses, vectors and frame bytes that all live until the call returns;
            // the kernel only reads what the vectors name.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    messages[done..].as_mut_ptr(),
                    (count - done) as u32,
                    0,
                )
            };
            if sent > 0 {
                done += sent as usize;
            } else if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                // The first of the rest was refused; go on behind it.
                refused += 1;
                done += 1;
            }
        }
        refused
    }
}

/// Packets that the kernel has dropped because a packet socket had no room, since the last call.
///
/// # Errors
/// The kernel's.
pub fn dropped(socket: &OwnedFd) -> io::Result<u64> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the pointer names a tpacket_stats of the given length, as PACKET_STATISTICS fills in but for version 3.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(statistics.tp_drops.into()) }
}

/// A packet socket: `SocketType::RAW` for whole frames, `SocketType::DGRAM` for packets without their link header (packet(7)). It receives
/// nothing before [`bind`].
pub(crate) fn packet_socket(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::PACKET, kind, flags, None)?)
}

/// Lets the device take more frames than its own while the socket is open: `kind` is `PACKET_MR_PROMISC` for all, or `PACKET_MR_ALLMULTI`.
pub(crate) fn take_all(socket: &OwnedFd, device: u32, kind: libc::c_int) -> io::Result<()> {
    let all =
        libc::packet_mreq { mr_ifindex: device as i32, mr_type: kind as u16, mr_alen: 0, mr_address: [0; 8] };
    option::set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, all)
}

/// Starts reception of one protocol from the device of this index, or from every device with 0.
pub fn bind(socket: &OwnedFd, device: u32, protocol: u16) -> io::Result<()> {
    let address = link_address(device, protocol);
    // SAFETY: the pointer names a sockaddr_ll of the given length.
    let result = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends a packet without link header out of the device of this index, to this hardware address. Returns whether the kernel has taken it.
pub(crate) fn send_packet(socket: &OwnedFd, device: u32, protocol: u16, to: Mac, packet: &[u8]) -> bool {
    let mut address = link_address(device, protocol);
    address.sll_halen = to.len() as u8;
    address.sll_addr[..to.len()].copy_from_slice(&to);
    // SAFETY: the pointers name a packet and an address of the given lengths, which live until the call returns; the kernel only reads
    // them.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            libc::MSG_DONTWAIT,
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    sent >= 0
}

fn link_address(device: u32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: plain data for which all zeros is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = device as i32;
    address
}
