//! What rules are made of: attributes of netlink, and the expressions of nf_tables.

use super::family;
use std::net::{IpAddr, SocketAddr};
use weir_base::Prefix;

/// `NLA_F_NESTED` (linux/netlink.h).
const NESTED: u16 = 0x8000;
/// An expression in a list, its name and what it takes (`NFTA_LIST_ELEM`, `NFTA_EXPR_*`).
const ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
/// Data of an expression: bytes or a verdict (`NFTA_DATA_*`, `NFTA_VERDICT_CODE`).
const VALUE: u16 = 1;
const VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
/// What the expressions take (`NFTA_IMMEDIATE_*`, `NFTA_CMP_*`, `NFTA_BITWISE_*`, `NFTA_PAYLOAD_*`, `NFTA_META_*`, `NFTA_SOCKET_*`,
/// `NFTA_TPROXY_*`).
const IMMEDIATE_INTO: u16 = 1;
const IMMEDIATE_DATA: u16 = 2;
const CMP_FROM: u16 = 1;
const CMP_HOW: u16 = 2;
const CMP_DATA: u16 = 3;
const BITWISE_FROM: u16 = 1;
const BITWISE_INTO: u16 = 2;
const BITWISE_LENGTH: u16 = 3;
const BITWISE_MASK: u16 = 4;
const BITWISE_XOR: u16 = 5;
const PAYLOAD_INTO: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LENGTH: u16 = 4;
const META_INTO: u16 = 1;
const META_KEY: u16 = 2;
const META_FROM: u16 = 3;
const SOCKET_KEY: u16 = 1;
const SOCKET_INTO: u16 = 2;
const TPROXY_FAMILY: u16 = 1;
const TPROXY_ADDRESS: u16 = 2;
const TPROXY_PORT: u16 = 3;

/// The register through which values pass, 16 bytes wide (`NFT_REG_1`), and the one of a second value.
const REGISTER: u32 = libc::NFT_REG_1 as u32;
const SECOND_REGISTER: u32 = libc::NFT_REG_2 as u32;
/// `NFT_SOCKET_TRANSPARENT`: whether a packet's socket is transparent (`IP_TRANSPARENT`).
pub(super) const TRANSPARENT: u32 = 0;
/// `NFT_SOCKET_WILDCARD`: whether a packet's socket is bound to no address (Linux 5.10).
pub(super) const WILDCARD: u32 = 2;

/// Which address of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Source,
    Destination,
}

/// Attributes of netlink (`struct nlattr`): length, kind, value, padded to four bytes. Numbers are in network order
/// (`NFTA_*` in nf_tables.h), values of registers are as they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes(pub(super) Vec<u8>);

impl Attributes {
    pub(super) fn bytes(mut self, kind: u16, value: &[u8]) -> Attributes {
        self.0.extend((4 + value.len() as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(super) fn number(self, kind: u16, value: u32) -> Attributes {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(super) fn text(self, kind: u16, value: &str) -> Attributes {
        self.bytes(kind, &[value.as_bytes(), b"\0"].concat())
    }

    pub(super) fn nested(self, kind: u16, inner: Attributes) -> Attributes {
        self.bytes(kind | NESTED, &inner.0)
    }

    /// Bytes for a register, or to compare it with.
    pub(super) fn data(self, kind: u16, value: &[u8]) -> Attributes {
        self.nested(kind, Attributes::default().bytes(VALUE, value))
    }
}

/// The expressions of a rule, in order: conditions, then what happens.
#[derive(Debug, Clone, Default)]
pub(super) struct Rule(pub(super) Attributes);

impl Rule {
    pub(super) fn expression(self, name: &str, takes: Attributes) -> Rule {
        let expression = Attributes::default().text(EXPRESSION_NAME, name).nested(EXPRESSION_DATA, takes);
        Rule(self.0.nested(ELEMENT, expression))
    }

    pub(super) fn load_meta(self, key: libc::c_int) -> Rule {
        let takes = Attributes::default().number(META_INTO, REGISTER).number(META_KEY, key.cast_unsigned());
        self.expression("meta", takes)
    }

    pub(super) fn compare(self, how: libc::c_int, value: &[u8]) -> Rule {
        let takes = Attributes::default().number(CMP_FROM, REGISTER).number(CMP_HOW, how.cast_unsigned());
        self.expression("cmp", takes.data(CMP_DATA, value))
    }

    pub(super) fn equals(self, value: &[u8]) -> Rule {
        self.compare(libc::NFT_CMP_EQ, value)
    }

    pub(super) fn load(self, value: &[u8]) -> Rule {
        let takes = Attributes::default().number(IMMEDIATE_INTO, REGISTER).data(IMMEDIATE_DATA, value);
        self.expression("immediate", takes)
    }

    /// Compares the name of the packet's device; nothing without a name.
    pub(super) fn of_device(self, device: Option<&str>, key: libc::c_int, how: libc::c_int) -> Rule {
        let Some(device) = device else { return self };
        let mut name = [0; libc::IFNAMSIZ];
        // A longer name is none of a device: no packet has it.
        name.iter_mut().zip(device.bytes()).for_each(|(place, byte)| *place = byte);
        self.load_meta(key).compare(how, &name)
    }

    pub(super) fn tcp(self) -> Rule {
        self.load_meta(libc::NFT_META_L4PROTO).equals(&[libc::IPPROTO_TCP as u8])
    }

    pub(super) fn marked(self, mark: u32) -> Rule {
        self.load_meta(libc::NFT_META_MARK).equals(&mark.to_ne_bytes())
    }

    /// One address has the prefix. Offsets of addresses: RFC 791 section 3.1, RFC 8200 section 3.
    pub(super) fn with(self, prefix: &Prefix, end: End) -> Rule {
        if prefix.length() == 0 {
            return self;
        }
        let (address, offset) = match (prefix.address(), end) {
            (IpAddr::V4(address), End::Source) => (address.octets().to_vec(), 12),
            (IpAddr::V4(address), End::Destination) => (address.octets().to_vec(), 16),
            (IpAddr::V6(address), End::Source) => (address.octets().to_vec(), 8),
            (IpAddr::V6(address), End::Destination) => (address.octets().to_vec(), 24),
        };
        let length = address.len() as u32;
        let takes = Attributes::default()
            .number(PAYLOAD_INTO, REGISTER)
            .number(PAYLOAD_BASE, libc::NFT_PAYLOAD_NETWORK_HEADER.cast_unsigned())
            .number(PAYLOAD_OFFSET, offset)
            .number(PAYLOAD_LENGTH, length);
        let rule = self.expression("payload", takes);
        let rule = if u32::from(prefix.length()) == 8 * length {
            rule
        } else {
            rule.masked(prefix.length(), address.len())
        };
        rule.equals(&address)
    }

    /// Clears all but the first `bits` bits of `length` bytes.
    pub(super) fn masked(self, bits: u8, length: usize) -> Rule {
        let of_byte = |byte: usize| match usize::from(bits).saturating_sub(8 * byte) {
            left @ 0..8 => !(0xff_u8 >> left),
            _ => 0xff,
        };
        let mask: Vec<u8> = (0..length).map(of_byte).collect();
        let takes = Attributes::default()
            .number(BITWISE_FROM, REGISTER)
            .number(BITWISE_INTO, REGISTER)
            .number(BITWISE_LENGTH, length as u32)
            .data(BITWISE_MASK, &mask)
            .data(BITWISE_XOR, &vec![0; length]);
        self.expression("bitwise", takes)
    }

    /// The packet has a socket on this host with this property.
    pub(super) fn socket(self, key: u32) -> Rule {
        let takes = Attributes::default().number(SOCKET_KEY, key).number(SOCKET_INTO, REGISTER);
        self.expression("socket", takes).equals(&[1])
    }

    /// Hands the packet to the transparent socket at this address; the rule ends here if there is none.
    pub(super) fn redirect(self, to: SocketAddr) -> Rule {
        let port = Attributes::default()
            .number(IMMEDIATE_INTO, SECOND_REGISTER)
            .data(IMMEDIATE_DATA, &to.port().to_be_bytes());
        let takes = Attributes::default().number(TPROXY_FAMILY, family(to.ip()).into());
        let (rule, takes) = match to.ip() {
            any if any.is_unspecified() => (self, takes),
            IpAddr::V4(address) => (self.load(&address.octets()), takes.number(TPROXY_ADDRESS, REGISTER)),
            IpAddr::V6(address) => (self.load(&address.octets()), takes.number(TPROXY_ADDRESS, REGISTER)),
        };
        rule.expression("immediate", port).expression("tproxy", takes.number(TPROXY_PORT, SECOND_REGISTER))
    }

    pub(super) fn mark(self, mark: u32) -> Rule {
        let takes = Attributes::default()
            .number(META_KEY, libc::NFT_META_MARK.cast_unsigned())
            .number(META_FROM, REGISTER);
        self.load(&mark.to_ne_bytes()).expression("meta", takes)
    }

    pub(super) fn accept(self) -> Rule {
        self.verdict(libc::NF_ACCEPT)
    }

    pub(super) fn verdict(self, code: libc::c_int) -> Rule {
        let code = Attributes::default().number(VERDICT_CODE, code.cast_unsigned());
        let data = Attributes::default().nested(VERDICT, code);
        let takes = Attributes::default()
            .number(IMMEDIATE_INTO, libc::NFT_REG_VERDICT.cast_unsigned())
            .nested(IMMEDIATE_DATA, data);
        self.expression("immediate", takes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_to_four_bytes_and_numbers_are_in_network_order() {
        let inner = Attributes::default().text(1, "masq").number(2, 7);
        assert_eq!(inner.0[..4], [9_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat());
        assert_eq!(inner.0[4..12], *b"masq\0\0\0\0");
        assert_eq!(inner.0[16..], [0, 0, 0, 7]);
        let outer = Attributes::default().nested(4, inner);
        assert_eq!(outer.0[..4], [24_u16.to_ne_bytes(), 0x8004_u16.to_ne_bytes()].concat());
    }

    #[test]
    fn a_mask_has_as_many_bits_as_the_prefix() {
        let mask = |bits, length| {
            let rule = Rule::default().masked(bits, length);
            let text = rule.0.0;
            // Behind the headers of the mask and of its value.
            let at = text.windows(4).position(|it| it[2..] == (BITWISE_MASK | NESTED).to_ne_bytes()).unwrap();
            text[at + 8..at + 8 + length].to_vec()
        };
        assert_eq!(mask(15, 4), [0xff, 0xfe, 0, 0]);
        assert_eq!(mask(24, 4), [0xff, 0xff, 0xff, 0]);
        assert_eq!(mask(33, 16)[..6], [0xff, 0xff, 0xff, 0xff, 0x80, 0]);
    }
}
