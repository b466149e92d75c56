//! Tables of nf_tables, through netlink (include/uapi/linux/netfilter/nf_tables.h, nfnetlink.h): masquerading, and the redirection of TCP
//! to a transparent proxy.
//!
//! A table belongs to the socket that made it (`NFT_TABLE_F_OWNER`, Linux 5.12). The kernel removes it with its chains and rules when the
//! socket is closed, however the process ends, and lets nobody else change it. A table is made by one batch: all of it, or nothing.

use crate::namespace::Namespace;
use crate::netlink::Netlink;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use weir_base::Prefix;

/// `NFT_TABLE_F_OWNER`.
const OWNER: u32 = 2;
/// `NLA_F_NESTED` (linux/netlink.h).
const NESTED: u16 = 0x8000;

/// Attributes of a table, a chain, its hook, and a rule (`NFTA_TABLE_*`, `NFTA_CHAIN_*`, `NFTA_HOOK_*`, `NFTA_RULE_*`).
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
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
const TRANSPARENT: u32 = 0;
/// `NFT_SOCKET_WILDCARD`: whether a packet's socket is bound to no address (Linux 5.10).
const WILDCARD: u32 = 2;
/// Priorities of hooks (linux/netfilter_ipv4.h, `NF_IP_PRI_MANGLE` and `NF_IP_PRI_NAT_SRC`): those of IPv6 are equal.
const MANGLE: i32 = libc::NF_IP_PRI_MANGLE;
const NAT_SOURCE: i32 = libc::NF_IP_PRI_NAT_SRC;

/// What the kernel refused of a table: each part, and why.
#[derive(Debug)]
pub struct Refused(Vec<(String, io::Error)>);

impl Refused {
    /// The parts and the kernel's errors, in order; never empty.
    pub fn parts(&self) -> &[(String, io::Error)] {
        &self.0
    }

    /// Whether the process lacks the privilege (CAP_NET_ADMIN in its network namespace).
    pub fn is_forbidden(&self) -> bool {
        self.0.iter().any(|(_, error)| error.kind() == io::ErrorKind::PermissionDenied)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the kernel refuses ")?;
        for (number, (part, error)) in self.0.iter().enumerate() {
            write!(f, "{}{part}: {error}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        let kind = refused.0.first().map_or(io::ErrorKind::Other, |(_, error)| error.kind());
        io::Error::new(kind, refused.to_string())
    }
}

/// A table in the network namespace of the thread that made it. It is gone when this is dropped.
#[derive(Debug)]
pub struct Table {
    _owner: Netlink,
}

/// Devices that forward what they receive only to some others.
#[derive(Debug, Clone, Copy)]
pub struct Only<'a> {
    /// The devices.
    pub from: &'a [String],
    /// What the names of the others begin with; packets that would leave by any other device are dropped. 1 to 15 bytes.
    pub to: &'a str,
}

/// A transparent proxy of this host: the connections (TCP) that are redirected to it, wherever they come from.
///
/// Forwarded packets and those that this host makes itself get the mark `mark`. A policy route ([`crate::policy::Delivery`]) delivers
/// packets with that mark to this host, where a listener with `IP_TRANSPARENT` accepts them. The local address of an accepted
/// connection is its original destination.
#[derive(Debug, Clone, Copy)]
pub struct Transparent<'a> {
    /// The destinations, all of the listener's IP version.
    pub to: &'a [Prefix],
    /// Destinations that are not meant though one of `to` covers them. Of all prefixes that cover an address, the longest decides.
    pub not_to: &'a [Prefix],
    /// The listener's address: its port, and any address of this host if the address is unspecified.
    pub at: SocketAddr,
    /// The mark of redirected packets.
    pub mark: u32,
    /// The mark (`SO_MARK`) of the proxy's own sockets, the listener included; their packets are left alone.
    pub own_mark: u32,
    /// A device from which packets are not redirected.
    pub except: Option<&'a str>,
}

impl Table {
    /// Makes a table of this name, in which packets from `source` that leave by `device`, or by any device, get the address of that
    /// device as their source; `only` bounds what is forwarded.
    ///
    /// # Errors
    /// The kernel's: there is a table of this name, or no support for it.
    pub fn masquerade(
        name: &str,
        source: &Prefix,
        device: Option<&str>,
        only: Option<&Only<'_>>,
    ) -> Result<Table, Refused> {
        let mut batch = Batch::new(name, source.address());
        batch.chain("leaving", "nat", libc::NF_INET_POST_ROUTING, NAT_SOURCE);
        let rule = Rule::default().of_device(device, libc::NFT_META_OIFNAME, libc::NFT_CMP_EQ);
        let rule = rule.with(source, End::Source).expression("masq", Attributes::default());
        batch.rule("leaving", "the masquerading", rule);
        if let Some(Only { from, to }) = only {
            batch.chain("passing", "filter", libc::NF_INET_FORWARD, libc::NF_IP_PRI_FILTER);
            for device in *from {
                let rule = Rule::default()
                    .of_device(Some(device), libc::NFT_META_IIFNAME, libc::NFT_CMP_EQ)
                    .load_meta(libc::NFT_META_OIFNAME)
                    .compare(libc::NFT_CMP_NEQ, to.as_bytes())
                    .verdict(libc::NF_DROP);
                batch.rule("passing", &format!("the bound of {device}"), rule);
            }
        }
        batch.make()
    }

    /// Makes a table of this name, by which connections reach a transparent proxy.
    ///
    /// # Errors
    /// The kernel's: there is a table of this name, or no support for it; the prefixes are of both IP versions.
    pub fn transparent(name: &str, proxy: &Transparent<'_>) -> Result<Table, Refused> {
        let mut all: Vec<(&Prefix, bool)> = proxy.to.iter().map(|prefix| (prefix, true)).collect();
        all.extend(proxy.not_to.iter().map(|prefix| (prefix, false)));
        if let Some((other, _)) = all.iter().find(|(it, _)| it.address().is_ipv4() != proxy.at.is_ipv4()) {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "a table has one IP version");
            return Err(Refused(vec![(format!("the rule for {other}"), error)]));
        }
        all.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.length()));
        let (marked, own) = (proxy.mark, Rule::default().marked(proxy.own_mark).accept());
        let mut batch = Batch::new(name, proxy.at.ip());
        batch.chain("arriving", "filter", libc::NF_INET_PRE_ROUTING, MANGLE);
        batch.rule("arriving", "the exception of the proxy's packets", own.clone());
        for (prefix, is_meant) in &all {
            let rule = Rule::default().of_device(proxy.except, libc::NFT_META_IIFNAME, libc::NFT_CMP_NEQ);
            let rule = rule.tcp().with(prefix, End::Destination);
            let rule = if *is_meant { rule.redirect(proxy.at).mark(marked) } else { rule };
            batch.rule("arriving", &format!("the redirection of {prefix}"), rule.accept());
        }
        // Answers to transparent sockets have a foreign address as their destination. The listener is transparent too, and is bound to
        // no address: it must not take what is only forwarded to the same port.
        batch.rule("arriving", "the exception of listeners", Rule::default().tcp().socket(WILDCARD).accept());
        let answers = Rule::default().tcp().socket(TRANSPARENT).mark(marked).accept();
        batch.rule("arriving", "the rule for answers", answers);
        // A chain of this type looks the route up again when a mark has changed.
        batch.chain("made-here", "route", libc::NF_INET_LOCAL_OUT, MANGLE);
        batch.rule("made-here", "the exception of the proxy's packets", own);
        for (prefix, is_meant) in &all {
            let rule = Rule::default().tcp().with(prefix, End::Destination);
            let rule = if *is_meant { rule.mark(marked) } else { rule };
            batch.rule("made-here", &format!("the mark for {prefix}"), rule.accept());
        }
        batch.make()
    }
}

/// Tries, in a namespace that is gone afterwards, whether the kernel can masquerade.
///
/// # Errors
/// It cannot, or this process may make no namespace.
pub fn try_masquerade() -> io::Result<()> {
    let source = IpAddr::from([10, 0, 0, 1]).into();
    Namespace::new()?.inside(|| Ok(Table::masquerade("weir-try", &source, Some("lo"), None).map(drop)?))
}

/// Tries, in a namespace that is gone afterwards, whether the kernel can redirect connections to a transparent proxy.
///
/// # Errors
/// It cannot, or this process may make no namespace.
pub fn try_transparent() -> io::Result<()> {
    let to = [IpAddr::from([10, 0, 0, 1]).into()];
    let at = SocketAddr::from(([127, 0, 0, 1], 1));
    let proxy = Transparent { to: &to, not_to: &[], at, mark: 1, own_mark: 2, except: Some("lo") };
    Namespace::new()?.inside(|| Ok(Table::transparent("weir-try", &proxy).map(drop)?))
}

/// Which address of a packet.
#[derive(Debug, Clone, Copy)]
enum End {
    Source,
    Destination,
}

/// Attributes of netlink (`struct nlattr`): length, kind, value, padded to four bytes. Numbers are in network order
/// (`NFTA_*` in nf_tables.h), values of registers are as they are.
#[derive(Debug, Clone, Default)]
struct Attributes(Vec<u8>);

impl Attributes {
    fn bytes(mut self, kind: u16, value: &[u8]) -> Attributes {
        self.0.extend((4 + value.len() as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn number(self, kind: u16, value: u32) -> Attributes {
        self.bytes(kind, &value.to_be_bytes())
    }

    fn text(self, kind: u16, value: &str) -> Attributes {
        self.bytes(kind, &[value.as_bytes(), b"\0"].concat())
    }

    fn nested(self, kind: u16, inner: Attributes) -> Attributes {
        self.bytes(kind | NESTED, &inner.0)
    }

    /// Bytes for a register, or to compare it with.
    fn data(self, kind: u16, value: &[u8]) -> Attributes {
        self.nested(kind, Attributes::default().bytes(VALUE, value))
    }
}

/// The expressions of a rule, in order: conditions, then what happens.
#[derive(Debug, Clone, Default)]
struct Rule(Attributes);

impl Rule {
    fn expression(self, name: &str, takes: Attributes) -> Rule {
        let expression = Attributes::default().text(EXPRESSION_NAME, name).nested(EXPRESSION_DATA, takes);
        Rule(self.0.nested(ELEMENT, expression))
    }

    fn load_meta(self, key: libc::c_int) -> Rule {
        let takes = Attributes::default().number(META_INTO, REGISTER).number(META_KEY, key.cast_unsigned());
        self.expression("meta", takes)
    }

    fn compare(self, how: libc::c_int, value: &[u8]) -> Rule {
        let takes = Attributes::default().number(CMP_FROM, REGISTER).number(CMP_HOW, how.cast_unsigned());
        self.expression("cmp", takes.data(CMP_DATA, value))
    }

    fn equals(self, value: &[u8]) -> Rule {
        self.compare(libc::NFT_CMP_EQ, value)
    }

    fn load(self, value: &[u8]) -> Rule {
        let takes = Attributes::default().number(IMMEDIATE_INTO, REGISTER).data(IMMEDIATE_DATA, value);
        self.expression("immediate", takes)
    }

    /// Compares the name of the packet's device; nothing without a name.
    fn of_device(self, device: Option<&str>, key: libc::c_int, how: libc::c_int) -> Rule {
        let Some(device) = device else { return self };
        let mut name = [0; libc::IFNAMSIZ];
        // A longer name is none of a device: no packet has it.
        name.iter_mut().zip(device.bytes()).for_each(|(place, byte)| *place = byte);
        self.load_meta(key).compare(how, &name)
    }

    fn tcp(self) -> Rule {
        self.load_meta(libc::NFT_META_L4PROTO).equals(&[libc::IPPROTO_TCP as u8])
    }

    fn marked(self, mark: u32) -> Rule {
        self.load_meta(libc::NFT_META_MARK).equals(&mark.to_ne_bytes())
    }

    /// One address has the prefix. Offsets of addresses: RFC 791 section 3.1, RFC 8200 section 3.
    fn with(self, prefix: &Prefix, end: End) -> Rule {
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
    fn masked(self, bits: u8, length: usize) -> Rule {
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
    fn socket(self, key: u32) -> Rule {
        let takes = Attributes::default().number(SOCKET_KEY, key).number(SOCKET_INTO, REGISTER);
        self.expression("socket", takes).equals(&[1])
    }

    /// Hands the packet to the transparent socket at this address; the rule ends here if there is none.
    fn redirect(self, to: SocketAddr) -> Rule {
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

    fn mark(self, mark: u32) -> Rule {
        let takes = Attributes::default()
            .number(META_KEY, libc::NFT_META_MARK.cast_unsigned())
            .number(META_FROM, REGISTER);
        self.load(&mark.to_ne_bytes()).expression("meta", takes)
    }

    fn accept(self) -> Rule {
        self.verdict(libc::NF_ACCEPT)
    }

    fn verdict(self, code: libc::c_int) -> Rule {
        let code = Attributes::default().number(VERDICT_CODE, code.cast_unsigned());
        let data = Attributes::default().nested(VERDICT, code);
        let takes = Attributes::default()
            .number(IMMEDIATE_INTO, libc::NFT_REG_VERDICT.cast_unsigned())
            .nested(IMMEDIATE_DATA, data);
        self.expression("immediate", takes)
    }
}

/// The family of tables for an IP version (`NFPROTO_IPV4`, `NFPROTO_IPV6`).
fn family(version: IpAddr) -> u8 {
    (if version.is_ipv4() { libc::NFPROTO_IPV4 } else { libc::NFPROTO_IPV6 }) as u8
}

/// The messages that make a table.
struct Batch<'a> {
    table: &'a str,
    family: u8,
    /// Kind, flags and body of each.
    messages: Vec<(u16, u16, Vec<u8>)>,
    /// What each makes.
    parts: Vec<String>,
}

impl<'a> Batch<'a> {
    fn new(table: &'a str, version: IpAddr) -> Batch<'a> {
        let mut batch = Batch { table, family: family(version), messages: vec![], parts: vec![] };
        let attributes = Attributes::default().text(TABLE_NAME, table).number(TABLE_FLAGS, OWNER);
        batch.push(libc::NFT_MSG_NEWTABLE, NLM_F_EXCL, attributes, format!("the table {table}"));
        batch
    }

    fn chain(&mut self, name: &str, kind: &str, hook: libc::c_int, priority: i32) {
        let hook = Attributes::default()
            .number(HOOK_NUMBER, hook.cast_unsigned())
            .number(HOOK_PRIORITY, priority.cast_unsigned());
        let attributes = Attributes::default()
            .text(CHAIN_TABLE, self.table)
            .text(CHAIN_NAME, name)
            .nested(CHAIN_HOOK, hook)
            .text(CHAIN_TYPE, kind);
        self.push(libc::NFT_MSG_NEWCHAIN, NLM_F_EXCL, attributes, format!("a chain of type {kind}"));
    }

    fn rule(&mut self, chain: &str, what: &str, rule: Rule) {
        let attributes = Attributes::default()
            .text(RULE_TABLE, self.table)
            .text(RULE_CHAIN, chain)
            .nested(RULE_EXPRESSIONS, rule.0);
        self.push(libc::NFT_MSG_NEWRULE, NLM_F_APPEND, attributes, what.to_owned());
    }

    /// A message begins with `struct nfgenmsg`: the family, the version 0, no resource.
    fn push(&mut self, kind: libc::c_int, flags: u16, attributes: Attributes, part: String) {
        let kind = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | kind as u16;
        let body = [&[self.family, 0, 0, 0], &attributes.0[..]].concat();
        self.messages.push((kind, NLM_F_CREATE | flags, body));
        self.parts.push(part);
    }

    fn make(self) -> Result<Table, Refused> {
        let whole = |error| Refused(vec![(self.parts[0].clone(), error)]);
        let mut netlink = Netlink::netfilter().map_err(whole)?;
        let refused = netlink.batch(libc::NFNL_SUBSYS_NFTABLES as u16, &self.messages).map_err(whole)?;
        let named = |(number, error): (usize, io::Error)| (self.parts[number].clone(), error);
        match refused.is_empty() {
            true => Ok(Table { _owner: netlink }),
            false => Err(Refused(refused.into_iter().map(named).collect())),
        }
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

    #[test]
    fn what_is_refused_is_said_part_by_part() {
        let refused = Refused(vec![
            ("the table a".into(), io::ErrorKind::PermissionDenied.into()),
            ("a chain".into(), io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        ]);
        let told = refused.to_string();
        assert!(
            told.starts_with("the kernel refuses the table a: permission denied, a chain: Operation not"),
            "{told}"
        );
        assert!(refused.is_forbidden());
        assert_eq!(io::Error::from(refused).kind(), io::ErrorKind::PermissionDenied);
    }
}
