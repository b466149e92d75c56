//! A TUN device: the kernel hands IP packets that are routed to it to the process, and takes packets from the process as if they had
//! arrived (Documentation/networking/tuntap.rst). The device is gone, with its addresses and routes, when its descriptor is closed.

use crate::device::{check_name, index_of_name};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;

/// The request that makes a device (linux/if_tun.h).
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

/// A device.
#[derive(Debug)]
pub struct Tun {
    descriptor: OwnedFd,
    index: u32,
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
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL) as libc::c_short;
        // SAFETY: the pointer names an `ifreq` that lives until the call returns.
        if unsafe { libc::ioctl(descriptor.as_raw_fd(), TUNSETIFF, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let index = index_of_name(name).ok_or_else(io::Error::last_os_error)?;
        Ok(Tun { descriptor, index })
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
        match rustix::io::read(&self.descriptor, into) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands a packet to the kernel. Returns whether the kernel has taken it: it refuses packets that are none, and those for which there
    /// is no memory.
    pub fn send(&self, packet: &[u8]) -> bool {
        rustix::io::write(&self.descriptor, packet).is_ok()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
