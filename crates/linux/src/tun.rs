//! A TUN device: the kernel hands IP packets that are routed to it to the process, and takes packets from the process as if they had
//! arrived (Documentation/networking/tuntap.rst). The device is gone, with its addresses and routes, when its descriptor is closed.

use crate::device::{check_name, index_of_name};
use crate::offload::{NEEDS_CHECKSUM, Offload, UDP_BUNDLE};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, IoSlice, IoSliceMut};

/// The requests that make a device, and say which packets the process takes from it (linux/if_tun.h).
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
/// `TUN_F_CSUM`, `TUN_F_USO4` and `TUN_F_USO6`: packets without checksums, and bundles of UDP datagrams.
const BUNDLES: libc::c_ulong = 0x01 | 0x20 | 0x40;
/// Length of the headers of a bundle: IPv4 without options, and UDP. The field of the checksum of UDP (RFC 768).
const IP: u16 = 20;
const UDP: u16 = 8;
const CHECKSUM: u16 = 6;

/// A device.
#[derive(Debug)]
pub struct Tun {
    descriptor: OwnedFd,
    index: u32,
    takes_bundles: bool,
}

impl Tun {
    /// Makes a device of this name in the calling thread's network namespace. It is down.
    ///
    /// # Errors
    /// The name is empty or longer than 15 bytes, another device has it, or the process may make none.
    pub fn open(name: &str) -> io::Result<Tun> {
        check_name(name)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
        // SAFETY: all-zero bytes are a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        let kind = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = kind as libc::c_short;
        // SAFETY: the pointer names an `ifreq` that lives until the call returns.
        if unsafe { libc::ioctl(descriptor.as_raw_fd(), TUNSETIFF, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let index = index_of_name(name).ok_or_else(io::Error::last_os_error)?;
        // A kernel that would hand out bundles takes them, too (since 6.2). The process takes none.
        let takes_bundles = [BUNDLES, 0].map(|what| {
            // SAFETY: the request takes its argument by value.
            let told = unsafe { libc::ioctl(descriptor.as_raw_fd(), TUNSETOFFLOAD, what) };
            told == 0
        });
        Ok(Tun { descriptor, index, takes_bundles: takes_bundles == [true; 2] })
    }

    /// Its index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Takes the next packet that was routed to it, and returns the packet's length; `None` if there is none now.
    ///
    /// # Errors
    /// The kernel's. The device was removed, for example.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        // It says that nothing is left to do, since the process has asked for that.
        let mut offload = [0; Offload::LENGTH];
        let mut parts = [IoSliceMut::new(&mut offload), IoSliceMut::new(into)];
        match rustix::io::readv(&self.descriptor, &mut parts) {
            Ok(length) => Ok(Some(length.saturating_sub(Offload::LENGTH))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands a packet to the kernel. Returns whether the kernel has taken it: it refuses packets that are none, and those for which there
    /// is no memory.
    pub fn send(&self, packet: &[u8]) -> bool {
        self.write(Offload::default(), packet)
    }

    /// Whether [`Tun::send_bundle`] can be used.
    pub fn takes_bundles(&self) -> bool {
        self.takes_bundles
    }

    /// Hands UDP datagrams over IPv4 to the kernel in one packet: the headers without options, whose lengths are those of the whole and
    /// whose UDP checksum is the sum of the pseudo-header alone, then the payloads, each of `segment` bytes, but for the last, which may be
    /// shorter. Returns whether the kernel has taken them.
    pub fn send_bundle(&self, bundle: &[u8], segment: u16) -> bool {
        let (checksum_start, checksum_offset, headers) = (IP, CHECKSUM, IP + UDP);
        let (flags, kind) = (NEEDS_CHECKSUM, UDP_BUNDLE);
        self.write(Offload { flags, kind, headers, segment, checksum_start, checksum_offset }, bundle)
    }

    fn write(&self, offload: Offload, packet: &[u8]) -> bool {
        rustix::io::writev(&self.descriptor, &[IoSlice::new(&offload.bytes()), IoSlice::new(packet)]).is_ok()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
