//! Filters, which assign packets to classes: the kernel's `u32` filter, which compares words of the IP header. A packet can also get
//! its class without a filter: HTB reads a socket's priority (`SO_PRIORITY`) as a class's handle.

use crate::message::{Handle, Message, OPTIONS, attributes, push, word};
use std::fmt;
use std::net::IpAddr;

/// Attributes of u32 (include/uapi/linux/pkt_cls.h).
const CLASS: u16 = 1;
const SELECTOR: u16 = 5;
const FLAGS: u16 = 11;
/// The flags that a request may set: not in the card, or not in the kernel (`TCA_CLS_FLAGS_SKIP_HW`, `TCA_CLS_FLAGS_SKIP_SW`).
const ASKED: u32 = 3;
/// `TC_U32_TERMINAL`: packets that match go to the class.
const TERMINAL: u8 = 1;
/// Ethernet types of IPv4 and IPv6 (IEEE 802 numbers).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Offsets of the destination address in the headers of IPv4 and IPv6, in bytes (RFC 791, RFC 8200).
const DESTINATION: [u32; 2] = [16, 24];
/// Offsets of the ports behind headers without options, in bytes; source and destination share a word (RFC 9293, RFC 768).
const PORTS: [u32; 2] = [20, 40];
/// The first word of an IPv4 header without options: a length of five words.
const NO_OPTIONS: Key = Key { mask: 0x0f00_0000, value: 0x0500_0000, at: 0 };

/// The packets that a filter matches: those to a prefix of addresses, or only those to one port of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The first address; bits after the prefix are zero.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub length: u8,
    /// Destination port; `None` for all ports. A port matches only IPv4 packets without options and IPv6 packets without extension
    /// headers.
    pub port: Option<u16>,
}

/// A word of the packet that is compared.
#[derive(Debug, Clone, Copy)]
struct Key {
    mask: u32,
    value: u32,
    at: u32,
}

impl Match {
    /// Priority and protocol, in the form of `tcm_info`.
    pub(crate) fn info(&self) -> u32 {
        u32::from(self.priority()) << 16 | u32::from(self.protocol().to_be())
    }

    fn protocol(&self) -> u16 {
        if self.address.is_ipv4() { IPV4 } else { IPV6 }
    }

    /// The kernel asks filters of lower numbers first: longer prefixes, as in routing, and those with a port before those without. A
    /// number belongs to one protocol: 1 to 66 to IPv4, those from 67 on to IPv6.
    fn priority(&self) -> u16 {
        let (first, most) = if self.address.is_ipv4() { (1, 32) } else { (67, 128) };
        let bits_left = most - u16::from(self.length).min(most);
        first + 2 * bits_left + u16::from(self.port.is_none())
    }

    fn keys(&self) -> Vec<Key> {
        let (octets, family) = match self.address {
            IpAddr::V4(v4) => (v4.octets().to_vec(), 0),
            IpAddr::V6(v6) => (v6.octets().to_vec(), 1),
        };
        let mut keys = vec![];
        let mut left = u32::from(self.length);
        for (word, at) in octets.chunks_exact(4).zip((DESTINATION[family]..).step_by(4)) {
            let bits = left.min(32);
            left -= bits;
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            if mask != 0 {
                keys.push(Key {
                    mask,
                    value: u32::from_be_bytes([word[0], word[1], word[2], word[3]]) & mask,
                    at,
                });
            }
        }
        if let Some(port) = self.port {
            keys.extend((family == 0).then_some(NO_OPTIONS));
            keys.push(Key { mask: 0xffff, value: port.into(), at: PORTS[family] });
        }
        if keys.is_empty() {
            keys.push(Key { mask: 0, value: 0, at: 0 });
        }
        keys
    }

    /// Attributes of the filter: its class, and `struct tc_u32_sel` with its keys.
    pub(crate) fn options(&self, class: Handle) -> Vec<u8> {
        let keys = self.keys();
        let mut selector = vec![TERMINAL, 0, keys.len() as u8, 0];
        selector.resize(16, 0);
        for key in keys {
            selector.extend(key.mask.to_be_bytes());
            selector.extend(key.value.to_be_bytes());
            selector.extend(key.at.to_ne_bytes());
            selector.extend([0; 4]);
        }
        let mut options = vec![];
        push(&mut options, CLASS, &class.0.to_ne_bytes());
        push(&mut options, SELECTOR, &selector);
        options
    }
}

impl fmt::Display for Match {
    /// As `tc` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.address.is_ipv4() { "ip" } else { "ipv6" };
        write!(f, "protocol {protocol} pref {} u32", self.priority())?;
        for Key { mask, value, at } in self.keys() {
            write!(f, " match u32 0x{value:08x} 0x{mask:08x} at {at}")?;
        }
        Ok(())
    }
}

/// The class of a u32 filter; `None` for a table of filters.
pub(crate) fn class_of(filter: &Message) -> Option<Handle> {
    let options = attributes(filter.attribute(OPTIONS)?);
    let class = options.iter().find(|(kind, _)| *kind == CLASS)?;
    word(&class.1, 0).map(Handle)
}

/// The request that makes a filter, from the kernel's listing of it. `None` for the other entries of a listing: the priorities that
/// have filters, and the table that holds them.
pub(crate) fn as_request(mut filter: Message) -> Option<Message> {
    let filter_text = attributes(filter.attribute(OPTIONS)?);
    if filter.handle == Handle::NONE
        || (filter.kind() == "u32" && filter_text.iter().all(|(kind, _)| *kind != SELECTOR))
    {
        return None;
    }
    if filter.kind() == "u32" {
        let mut options = vec![];
        for (kind, value) in filter_text {
            match word(&value, 0) {
                // `TCA_CLS_FLAGS_IN_HW` and its opposite (whether the card filters) appear in listings only.
                Some(flags) if kind == FLAGS => push(&mut options, kind, &(flags & ASKED).to_ne_bytes()),
                _ => push(&mut options, kind, &value),
            }
        }
        filter = Message { attributes: vec![], ..filter }.with("u32", options);
    }
    Some(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter_text(address: &str, length: u8, port: Option<u16>) -> String {
        Match { address: address.parse().unwrap(), length, port }.to_string()
    }

    #[test]
    fn filters_compare_the_bits_of_the_prefix() {
        assert_eq!(
            filter_text("10.1.0.0", 16, None),
            "protocol ip pref 34 u32 match u32 0x0a010000 0xffff0000 at 16"
        );
        assert_eq!(
            filter_text("10.1.2.3", 32, None),
            "protocol ip pref 2 u32 match u32 0x0a010203 0xffffffff at 16"
        );
        assert_eq!(
            filter_text("0.0.0.0", 0, None),
            "protocol ip pref 66 u32 match u32 0x00000000 0x00000000 at 0"
        );
        let v6 = "protocol ipv6 pref 228 u32 match u32 0x20010db8 0xffffffff at 24 match u32 0x00010000 0xffff0000 at 28";
        assert_eq!(filter_text("2001:db8:1::", 48, None), v6);
        let port = "protocol ip pref 1 u32 match u32 0x0a010203 0xffffffff at 16 match u32 0x05000000 0x0f000000 at 0 \
                    match u32 0x00000050 0x0000ffff at 20";
        assert_eq!(filter_text("10.1.2.3", 32, Some(80)), port);
    }
}
