//! Network devices: their indices and addresses.

use std::ffi::{CStr, CString};
use std::io;
use std::net::IpAddr;

/// The index of the device of this name in the calling thread's namespace.
pub fn index_of_name(device: &str) -> Option<u32> {
    let name = CString::new(device).ok()?;
    // SAFETY: the pointer names a string that ends with zero and lives until the call returns.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index > 0).then_some(index)
}

/// Longest name of a device in bytes.
const LONGEST_NAME: usize = libc::IFNAMSIZ - 1;

/// Refuses a name that no device can have for its length.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    match name.len() {
        1..=LONGEST_NAME => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "a device's name has 1 to 15 bytes")),
    }
}

/// The addresses of a device.
pub fn addresses(device: &str) -> io::Result<Vec<IpAddr>> {
    let mut first = std::ptr::null_mut();
    // SAFETY: the pointer names a place for the head of the list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut found, mut at) = (vec![], first);
    while !at.is_null() {
        // SAFETY: an entry of the list that getifaddrs has made, which nobody has freed yet.
        let entry = unsafe { &*at };
        at = entry.ifa_next;
        // SAFETY: the name of an entry is a string that ends with zero.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        if name.to_bytes() != device.as_bytes() || entry.ifa_addr.is_null() {
            continue;
        }
        // SAFETY: an address that is there begins with its family, which says what it is.
        let address = unsafe {
            match i32::from((*entry.ifa_addr).sa_family) {
                libc::AF_INET => {
                    let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                    IpAddr::from(address.sin_addr.s_addr.to_ne_bytes())
                }
                libc::AF_INET6 => {
                    let address = entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned();
                    IpAddr::from(address.sin6_addr.s6_addr)
                }
                _ => continue,
            }
        };
        found.push(address);
    }
    // SAFETY: the list is freed once, and no entry of it is used from here on.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}
