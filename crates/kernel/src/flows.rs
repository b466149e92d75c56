//! The number of connections of this network namespace that use each control, from the kernel's `sock_diag`
//! (sock_diag(7)).

use netlink_packet_core::NLM_F_DUMP;
use std::collections::BTreeMap;
use std::io;
use weir_linux::netlink::Netlink;

/// `SOCK_DIAG_BY_FAMILY` (include/uapi/linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// Lengths of `inet_diag_req_v2` and `inet_diag_msg`.
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// `INET_DIAG_CONG`, and the bit that asks for it (include/uapi/linux/inet_diag.h).
const CONTROL: u16 = 4;
const WANTS_CONTROL: u8 = 1 << (CONTROL - 1);
/// All states but LISTEN (include/net/tcp_states.h): a listening socket sends nothing.
const STATES: u32 = 0xfff & !(1 << 10);

/// Number of connections by the kernel's name of their control.
pub(crate) fn by_control() -> io::Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut netlink = Netlink::sock_diag()?;
        netlink.send(BY_FAMILY, NLM_F_DUMP, &request(family as u8))?;
        netlink.receive(&mut |message| {
            if let Some(name) = message.get(MESSAGE..).and_then(control_of) {
                *counts.entry(name).or_default() += 1;
            }
        })?;
    }
    Ok(counts)
}

fn request(family: u8) -> [u8; REQUEST] {
    let mut body = [0; REQUEST];
    body[0] = family;
    body[1] = libc::IPPROTO_TCP as u8;
    body[2] = WANTS_CONTROL;
    body[4..8].copy_from_slice(&STATES.to_ne_bytes());
    body
}

/// The control's name among a connection's attributes.
fn control_of(mut attributes: &[u8]) -> Option<String> {
    while let Some(header) = attributes.get(..4) {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]])).max(4);
        if u16::from_ne_bytes([header[2], header[3]]) == CONTROL {
            let text = attributes.get(4..length)?.split(|byte| *byte == 0).next()?;
            return String::from_utf8(text.to_vec()).ok();
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}
