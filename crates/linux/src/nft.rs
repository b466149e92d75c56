//! Tables of nf_tables, through netlink (include/uapi/linux/netfilter/nf_tables.h, nfnetlink.h): masquerading, and the redirection of TCP
//! to a transparent proxy.
//!
//! A table belongs to the socket that made it (`NFT_TABLE_F_OWNER`, Linux 5.12). The kernel removes it with its chains and rules when the
//! socket is closed, however the process ends, and lets nobody else change it. A table is made by one batch: all of it, or nothing.

mod rule;

use rule::{Attributes, End, Rule, TRANSPARENT, WILDCARD};

use crate::namespace::Namespace;
use crate::netlink::Netlink;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use weir_base::Prefix;

/// `NFT_TABLE_F_OWNER`.
const OWNER: u32 = 2;

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
