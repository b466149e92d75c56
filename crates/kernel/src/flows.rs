//! The number of connections of this network namespace that use each control, from the kernel's `sock_diag`
//! (sock_diag(7)).

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};
use std::collections::BTreeMap;
use std::io;

/// `SOCK_DIAG_BY_FAMILY` (include/uapi/linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// Lengths of `nlmsghdr`, `inet_diag_req_v2` and `inet_diag_msg`.
const HEADER: usize = 16;
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
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.send_to(&request(family as u8), &SocketAddr::new(0, 0), 0)?;
        while {
            let (answer, _) = socket.recv_from_full()?;
            count(&answer, &mut counts)?
        } {}
    }
    Ok(counts)
}

fn request(family: u8) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + REQUEST];
    bytes[0..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    let body = &mut bytes[HEADER..];
    body[0] = family;
    body[1] = libc::IPPROTO_TCP as u8;
    body[2] = WANTS_CONTROL;
    body[4..8].copy_from_slice(&STATES.to_ne_bytes());
    bytes
}

/// Counts the connections of one answer; returns whether more answers follow.
fn count(mut answer: &[u8], counts: &mut BTreeMap<String, usize>) -> io::Result<bool> {
    while let Some(header) = answer.get(..HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let message = answer.get(HEADER..length).unwrap_or_default();
        match u16::from_ne_bytes([header[4], header[5]]) {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => return Err(io::Error::other("the kernel refuses sock_diag")),
            _ => {}
        }
        if let Some(name) = message.get(MESSAGE..).and_then(control_of) {
            *counts.entry(name).or_default() += 1;
        }
        answer = answer.get(length.next_multiple_of(4).max(HEADER)..).unwrap_or_default();
    }
    Ok(true)
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
