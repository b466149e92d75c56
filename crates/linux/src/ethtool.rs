//! Switches off a device's offloads: segmentation, merging, and checksums left to "hardware" that a veth does not have. A
//! packet queue must see packets as TCP forms them, not 64 KiB bundles, and with checksums filled in (with tx checksumming on,
//! TCP over a packet socket does not even connect).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Commands `ETHTOOL_S...` of `linux/ethtool.h`, in the order in which the offloads are switched off. Scatter-gather stays on.
const OFFLOADS: [(u32, &str); 5] =
    [(0x15, "rx checksumming"), (0x17, "tx checksumming"), (0x1f, "tso"), (0x24, "gso"), (0x2c, "gro")];

/// `SIOCETHTOOL` of `linux/sockios.h`.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Commands `ETHTOOL_G...` of `linux/ethtool.h` for offloads that save work for each packet, with their names in `ethtool -K`.
const BUNDLING: [(u32, &str); 3] = [(0x1e, "tso"), (0x23, "gso"), (0x2b, "gro")];

/// Switches every offload of a device off, in the calling thread's namespace.
///
/// # Errors
/// The kernel's; the text names device and offload.
pub fn switch_offloads_off(device: &str) -> io::Result<()> {
    OFFLOADS.iter().try_for_each(|(command, what)| {
        ask(device, *command).map(drop).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot switch off {what} of {device}: {error}"))
        })
    })
}

/// Which of tso, gso and gro a device of the calling thread's namespace has switched off.
///
/// # Errors
/// The kernel's.
pub fn missing_offloads(device: &str) -> io::Result<Vec<&'static str>> {
    let mut missing = vec![];
    for (command, what) in BUNDLING {
        if ask(device, command)? == 0 {
            missing.push(what);
        }
    }
    Ok(missing)
}

/// Sends a command with a value of 0. Returns the value in the answer.
fn ask(device: &str, command: u32) -> io::Result<u32> {
    let socket: OwnedFd =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    let mut value = Value { command, data: 0 };
    // SAFETY: `ifreq` is plain data for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request names a `struct ethtool_value` that lives until the call returns, as SIOCETHTOOL expects for each of
    // these commands.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value.data)
}
