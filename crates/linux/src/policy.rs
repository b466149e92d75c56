//! Policy routing (ip-rule(8), net/core/fib_rules.c): packets with a mark are delivered to this host, whatever their destination.
//!
//! Two things make it: a local route in a table of its own, and a rule by which packets with the mark use that table. The route is
//! that of a device, and goes with it. A rule would stay when the process is killed; it has no effect then, since its table is empty.
//! That tells a rule that was left from one in use: the next process removes it ([`remove_left_rules`]).

use crate::netlink::{Netlink, bytes_of, family_of};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NetlinkDeserializable, NetlinkHeader};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use std::io;
use std::net::IpAddr;

/// Who makes such a rule (`FRA_PROTOCOL`): a number that no other program has in iproute2's list of protocols, 'w'.
const PROTOCOL: u8 = 119;
/// Priority of such a rule: after that of local addresses (0), before those of the tables `main` and `default` (32,766 and 32,767).
const PRIORITY: u32 = 7770;

/// Packets with a mark are delivered to this host until this is dropped, or until its device is gone.
#[derive(Debug)]
pub struct Delivery {
    netlink: Netlink,
    rule: RuleMessage,
}

impl Delivery {
    /// Delivers packets with a mark, of the IP version of `version`, in the calling thread's network namespace. The local route is in the
    /// table `table` (256 or more), which must be empty, and belongs to the device `device`, which must be up.
    ///
    /// # Errors
    /// The kernel's: the table has such a route already, for example.
    pub fn new(version: IpAddr, mark: u32, table: u32, device: u32) -> io::Result<Delivery> {
        let mut netlink = Netlink::open()?;
        let mut route = RouteMessage::default();
        route.header.address_family = family_of(version);
        route.header.table = RouteHeader::RT_TABLE_UNSPEC;
        route.header.protocol = RouteProtocol::Other(PROTOCOL);
        route.header.scope = RouteScope::Host;
        route.header.kind = RouteType::Local;
        route.attributes = vec![RouteAttribute::Table(table), RouteAttribute::Oif(device)];
        netlink.change(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_EXCL)?;
        let mut rule = RuleMessage::default();
        rule.header.family = family_of(version);
        rule.header.action = RuleAction::ToTable;
        rule.attributes = vec![
            RuleAttribute::FwMark(mark),
            RuleAttribute::FwMask(u32::MAX),
            RuleAttribute::Table(table),
            RuleAttribute::Priority(PRIORITY),
            RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)),
        ];
        netlink.change(RouteNetlinkMessage::NewRule(rule.clone()), NLM_F_CREATE | NLM_F_EXCL)?;
        Ok(Delivery { netlink, rule })
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        // A rule that stays has no effect once the device is gone, and the next process removes it.
        let _ = self.netlink.change(RouteNetlinkMessage::DelRule(self.rule.clone()), 0);
    }
}

/// Removes the rules that killed processes have left in the calling thread's network namespace: those of [`Delivery`] whose tables are
/// empty. Returns how many.
///
/// # Errors
/// The kernel's.
pub fn remove_left_rules() -> io::Result<usize> {
    let mut netlink = Netlink::open()?;
    let mut removed = 0;
    for version in [IpAddr::from([0; 4]), IpAddr::from([0; 16])] {
        let rules = match rules(&mut netlink, version) {
            // A kernel without this IP version has no rules of it.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EOPNOTSUPP)) => {
                continue;
            }
            rules => rules?,
        };
        let used: Vec<u32> = routes(&mut netlink, version)?.iter().map(table_of_route).collect();
        for rule in rules {
            let is_ours = rule.attributes.contains(&RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)));
            let table = rule.attributes.iter().find_map(|attribute| match attribute {
                RuleAttribute::Table(table) => Some(*table),
                _ => None,
            });
            if is_ours && table.is_some_and(|table| !used.contains(&table)) {
                netlink.change(RouteNetlinkMessage::DelRule(rule), 0)?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

fn table_of_route(route: &RouteMessage) -> u32 {
    let numbered = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    numbered.unwrap_or(route.header.table.into())
}

/// All routes of an IP version, those of all tables.
fn routes(netlink: &mut Netlink, version: IpAddr) -> io::Result<Vec<RouteMessage>> {
    let mut asked = RouteMessage::default();
    asked.header.address_family = family_of(version);
    let like = RouteNetlinkMessage::NewRoute(RouteMessage::default());
    list(netlink, &RouteNetlinkMessage::GetRoute(asked), &like, |answer| match answer {
        RouteNetlinkMessage::NewRoute(route) => Some(route),
        _ => None,
    })
}

/// All rules of an IP version.
fn rules(netlink: &mut Netlink, version: IpAddr) -> io::Result<Vec<RuleMessage>> {
    let mut asked = RuleMessage::default();
    asked.header.family = family_of(version);
    let like = RouteNetlinkMessage::NewRule(RuleMessage::default());
    list(netlink, &RouteNetlinkMessage::GetRule(asked), &like, |answer| match answer {
        RouteNetlinkMessage::NewRule(rule) => Some(rule),
        _ => None,
    })
}

/// Asks for a list of messages of the kind of `like`, until it was read without a change meanwhile.
fn list<T>(
    netlink: &mut Netlink,
    asked: &RouteNetlinkMessage,
    like: &RouteNetlinkMessage,
    take: impl Fn(RouteNetlinkMessage) -> Option<T>,
) -> io::Result<Vec<T>> {
    let mut header = NetlinkHeader::default();
    header.message_type = like.message_type();
    loop {
        let mut answers = vec![];
        netlink.send(asked.message_type(), NLM_F_DUMP, &bytes_of(asked))?;
        let whole = netlink.receive(&mut |body| {
            answers.extend(RouteNetlinkMessage::deserialize(&header, body).ok().and_then(&take));
        })?;
        if whole {
            return Ok(answers);
        }
    }
}
