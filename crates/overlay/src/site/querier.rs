//! The groups that hosts of a network have joined, as the router of the network learns them: it asks all hosts now and then, and asks again
//! when one of them leaves a group. Where another router with a lower address asks, this one only listens.
//!
//! Source: IGMP version 2 (RFC 2236, sections 3, 6 and 8). Hosts of version 3 answer its queries as hosts of version 2 do (RFC 3376, section
//! 7.2.1). Hosts of version 1, which do not say that they leave, and do not answer within a second, are not waited for when another one leaves.

use super::igmp::{self, Query};
use crate::message::MOST_JOINED;
use std::collections::BTreeMap;
use weir_base::{Span, Time};

/// RFC 2236, section 8: the robustness variable, the query interval, the query response interval, and what follows from them.
const ROBUSTNESS: u64 = 2;
const INTERVAL: Span = Span::from_secs(125);
const RESPONSE: Span = Span::from_secs(10);
const MEMBERSHIP: Span = Span::from_secs(ROBUSTNESS * 125 + 10);
const OTHER_QUERIER: Span = Span::from_secs(ROBUSTNESS * 125 + 5);
const STARTUP_INTERVAL: Span = Span::from_millis(125_000 / 4);
const LAST_MEMBER_INTERVAL: Span = Span::from_secs(1);

/// A group with members.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Member {
    /// It has none if nobody reports until then.
    until: Time,
    /// Queries about it that are left to send, and when the next one is due.
    asks: u64,
    ask_at: Time,
}

/// The router of a network.
#[derive(Debug)]
pub(super) struct Querier {
    /// Its address there.
    address: u32,
    members: BTreeMap<u32, Member>,
    /// When all hosts are asked again, and how often soon after the start.
    asks_at: Time,
    starts: u64,
    /// Another router asks until then.
    listens_until: Time,
}

impl Querier {
    /// A router that has this address in the network, and asks at once.
    pub(super) fn new(address: u32) -> Querier {
        let members = BTreeMap::new();
        Querier { address, members, asks_at: Time::ZERO, starts: ROBUSTNESS, listens_until: Time::ZERO }
    }

    /// Whether a host has joined the group.
    pub(super) fn has(&self, group: u32) -> bool {
        self.members.contains_key(&group)
    }

    /// A datagram of IGMP has come from the network. Groups that are carried, and of which a host speaks, go to `heard`.
    pub(super) fn hear(
        &mut self,
        datagram: &[u8],
        is_carried: impl Fn(u32) -> bool,
        now: Time,
        mut heard: impl FnMut(u32),
    ) {
        if let Some(query) = igmp::query_of(datagram) {
            return self.hear_query(&query, now);
        }
        let asks = self.asks(now);
        igmp::read(datagram, |group, is_member| {
            if !is_carried(group) {
                return;
            }
            if is_member {
                if self.members.len() < MOST_JOINED || self.has(group) {
                    let member = Member { until: now + MEMBERSHIP, asks: 0, ask_at: Time::NEVER };
                    self.members.insert(group, member);
                }
            } else if let Some(member) = self.members.get_mut(&group).filter(|_| asks) {
                // Others may be members still.
                let until = member.until.min(now + LAST_MEMBER_INTERVAL * ROBUSTNESS);
                *member = Member { until, asks: ROBUSTNESS, ask_at: now };
            }
            heard(group);
        });
    }

    fn hear_query(&mut self, query: &Query, now: Time) {
        // Hosts and switches ask with no address; they are no routers.
        if query.source != 0 && query.source < self.address {
            self.listens_until = now + OTHER_QUERIER;
            self.asks_at = self.asks_at.max(self.listens_until);
        }
        if let Some(member) = self.members.get_mut(&query.group).filter(|_| now < self.listens_until) {
            member.until = member.until.min(now + query.within * ROBUSTNESS);
        }
    }

    /// Whether this router is the one that asks.
    fn asks(&self, now: Time) -> bool {
        now >= self.listens_until
    }

    /// When [`Querier::on_timer`] is due.
    pub(super) fn next_time(&self) -> Time {
        let soonest = |member: &Member| member.until.min(member.ask_at);
        self.members.values().map(soonest).min().unwrap_or(Time::NEVER).min(self.asks_at)
    }

    /// Asks who is due to be asked, by `send`. Groups that have no member any more go to `gone`.
    pub(super) fn on_timer(&mut self, now: Time, mut send: impl FnMut(&[u8]), mut gone: impl FnMut(u32)) {
        let asks = self.asks(now);
        if now >= self.asks_at {
            self.starts = self.starts.saturating_sub(1);
            self.asks_at = now + if self.starts > 0 { STARTUP_INTERVAL } else { INTERVAL };
            send(&Query { source: self.address, group: 0, within: RESPONSE }.written());
        }
        let address = self.address;
        self.members.retain(|group, member| {
            if now >= member.until {
                gone(*group);
                return false;
            }
            if now >= member.ask_at {
                if asks {
                    let within = LAST_MEMBER_INTERVAL;
                    send(&Query { source: address, group: *group, within }.written());
                }
                member.asks -= 1;
                member.ask_at = if member.asks > 0 { now + LAST_MEMBER_INTERVAL } else { Time::NEVER };
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::igmp::tests::{joins, leaves};
    use super::*;

    const GROUP: u32 = 0xef01_0203;
    const ADDRESS: u32 = 0x0a01_0101;

    fn carried(group: u32) -> bool {
        group == GROUP
    }

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    /// Groups, each with a second.
    type Seconds = Vec<(u64, u32)>;

    /// The queries that are sent up to a time, and the groups that are gone.
    fn run(querier: &mut Querier, until: Time) -> (Seconds, Seconds) {
        let (mut sent, mut gone) = (vec![], vec![]);
        while querier.next_time() <= until {
            let now = querier.next_time();
            let second = now.since(Time::ZERO).as_millis() / 1000;
            let ask = |datagram: &[u8]| sent.push((second, igmp::query_of(datagram).unwrap().group));
            querier.on_timer(now, ask, |group| gone.push((second, group)));
        }
        (sent, gone)
    }

    #[test]
    fn all_hosts_are_asked_twice_at_the_start_and_then_each_125_seconds() {
        let mut querier = Querier::new(ADDRESS);
        let (sent, _) = run(&mut querier, at(300));
        assert_eq!(sent, [(0, 0), (31, 0), (156, 0), (281, 0)]);
    }

    #[test]
    fn a_group_without_a_report_for_260_seconds_has_no_member() {
        let mut querier = Querier::new(ADDRESS);
        let mut heard = vec![];
        querier.hear(&joins(GROUP), carried, at(0), |group| heard.push(group));
        querier.hear(&joins(GROUP + 1), carried, at(0), |_| panic!("it is not carried"));
        assert_eq!((heard, querier.has(GROUP), querier.has(GROUP + 1)), (vec![GROUP], true, false));
        querier.hear(&joins(GROUP), carried, at(100), |_| {});
        assert_eq!(run(&mut querier, at(359)).1, []);
        assert_eq!(run(&mut querier, at(361)).1, [(360, GROUP)]);
        assert!(!querier.has(GROUP));
    }

    #[test]
    fn when_a_host_leaves_the_others_are_asked_twice_and_a_report_keeps_the_group() {
        let mut querier = Querier::new(ADDRESS);
        run(&mut querier, at(40));
        querier.hear(&joins(GROUP), carried, at(40), |_| {});
        querier.hear(&leaves(GROUP), carried, at(50), |_| {});
        let (sent, gone) = run(&mut querier, at(60));
        assert_eq!((sent, gone), (vec![(50, GROUP), (51, GROUP)], vec![(52, GROUP)]));
        querier.hear(&joins(GROUP), carried, at(60), |_| {});
        querier.hear(&leaves(GROUP), carried, at(70), |_| {});
        assert_eq!(run(&mut querier, at(70)).0, [(70, GROUP)]);
        querier.hear(&joins(GROUP), carried, at(71), |_| {});
        assert_eq!(run(&mut querier, at(90)), (vec![], vec![]));
        assert!(querier.has(GROUP));
    }

    #[test]
    fn a_router_of_a_lower_address_asks_in_its_place_until_it_is_silent() {
        let mut querier = Querier::new(ADDRESS);
        run(&mut querier, at(40));
        let of = |source, group, secs| Query { source, group, within: Span::from_secs(secs) }.written();
        querier.hear(&of(ADDRESS - 1, 0, 10), carried, at(50), |_| {});
        querier.hear(&joins(GROUP), carried, at(60), |_| {});
        // It decides nothing by itself when a host leaves.
        querier.hear(&leaves(GROUP), carried, at(70), |_| {});
        assert_eq!(run(&mut querier, at(100)), (vec![], vec![]));
        querier.hear(&of(ADDRESS - 1, GROUP, 1), carried, at(100), |_| {});
        assert_eq!(run(&mut querier, at(103)), (vec![], vec![(102, GROUP)]));
        // 255 s after the other one's last word.
        assert_eq!(run(&mut querier, at(356)).0, [(355, 0)]);
        // A higher address, and a query without one, change nothing.
        querier.hear(&of(ADDRESS + 1, 0, 10), carried, at(360), |_| {});
        querier.hear(&of(0, 0, 10), carried, at(360), |_| {});
        assert_eq!(run(&mut querier, at(481)).0, [(480, 0)]);
    }
}
