//! Datagrams in parts: those of services with repairs, an order, blobs or smoothed release, which the UDP proxy carries
//! ([`crate::proxy::udp`]), and those for which a packet has no room. They are flows of their own, whose protocol says so, so that the node
//! where they leave knows them by it.
//!
//! A UDP datagram is carried as its payload and its checksum, and others whole, before they are cut.

use super::datagram::{Fate, PROTOCOL_IP, PROTOCOL_UDP, Read};
use crate::context::Inner;
use crate::nodes::NodeId;
use crate::packet::Flow;
use crate::proxy::udp::Code;
use crate::proxy::udp::receiving::Receiving;
use crate::proxy::udp::release::{Origin, Release};
use std::collections::{BTreeMap, BTreeSet};
use weir_base::{Span, Time};

/// The protocol numbers for experiments (RFC 3692, section 2.1): among a flow's fields they say that its packets are parts of UDP datagrams, or of
/// datagrams that are carried whole.
const PARTS_OF_UDP: u8 = 253;
const PARTS_OF_IP: u8 = 254;
/// Flows of a node whose parts are kept at most, and bytes of all flows.
const MOST_FLOWS: usize = 64;
const MOST_BYTES: usize = 64 << 20;
/// What is kept is counted when so many bytes have come, and each second.
const COUNTS: usize = 8 << 20;
const LOOK: Span = Span::from_secs(1);
/// A flow of which nothing has come for so long is forgotten (digest A 7.6).
const IDLE: Span = Span::from_secs(120);

/// The flow of a datagram's parts.
pub(super) fn flow(inner: &Inner) -> Inner {
    let protocol = if inner.protocol == PROTOCOL_UDP { PARTS_OF_UDP } else { PARTS_OF_IP };
    Inner { protocol, ..*inner }
}

/// The flow of the datagrams whose parts are this flow's packets; `None` if they are no parts.
pub fn whole(inner: &Inner) -> Option<Inner> {
    let protocol = match inner.protocol {
        PARTS_OF_UDP => PROTOCOL_UDP,
        PARTS_OF_IP => PROTOCOL_IP,
        _ => return None,
    };
    Some(Inner { protocol, ..*inner })
}

/// Writes into `to` what is cut into parts of a datagram.
pub(super) fn joined(read: &Read<'_>, to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(read.body);
    if read.inner.protocol == PROTOCOL_UDP {
        to.extend_from_slice(&read.checksum.to_be_bytes());
    }
}

/// The body and the checksum of a datagram that has been put together.
pub(super) fn split<'a>(inner: &Inner, joined: &'a [u8]) -> Option<(&'a [u8], u16)> {
    if inner.protocol != PROTOCOL_UDP {
        return Some((joined, 0));
    }
    let (body, checksum) = joined.split_last_chunk()?;
    Some((body, u16::from_be_bytes(*checksum)))
}

/// When each of several things is due.
#[derive(Debug)]
pub(super) struct Due<K> {
    times: BTreeMap<K, Time>,
    order: BTreeSet<(Time, K)>,
}

impl<K> Default for Due<K> {
    fn default() -> Due<K> {
        Due { times: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Due<K> {
    /// A thing is due at another time; [`Time::NEVER`] for not at all.
    pub(super) fn set(&mut self, key: K, time: Time) {
        let before = if time == Time::NEVER { self.times.remove(&key) } else { self.times.insert(key, time) };
        if let Some(before) = before {
            self.order.remove(&(before, key));
        }
        if time != Time::NEVER {
            self.order.insert((time, key));
        }
    }

    /// The soonest time.
    pub(super) fn soonest(&self) -> Time {
        self.order.first().map_or(Time::NEVER, |(time, _)| *time)
    }

    /// Takes a thing that is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<K> {
        let (_, key) = *self.order.first().filter(|(time, _)| *time <= now)?;
        self.set(key, Time::NEVER);
        Some(key)
    }
}

/// A flow whose parts come.
#[derive(Debug)]
struct Arriving {
    receiving: Receiving,
    /// Datagrams that wait so that they leave with the spacing that they had.
    smooth: Release<(Fate, Vec<u8>)>,
    /// The flow of whole datagrams.
    whole: Inner,
    /// Of the part that has come last.
    fate: Fate,
    due: Option<Time>,
    used: Time,
    /// What has been counted of it: restored and incomplete datagrams.
    counted: [u64; 2],
}

/// A datagram that is whole: the flow of such, the fate of its last part, and what was cut.
pub(super) type Whole<'a> = (&'a Inner, Fate, &'a [u8]);

impl Arriving {
    fn new(whole: Inner, now: Time) -> Arriving {
        let fate = Fate { hops: 0, ecn: 0, checksum: 0, sequence: 0 };
        let (receiving, smooth) = (Receiving::default(), Release::default());
        Arriving { receiving, smooth, whole, fate, due: None, used: now, counted: [0; 2] }
    }

    /// Does something with what has come. Datagrams that are whole with it, or have waited for long enough, go to `release`.
    fn work(
        &mut self,
        now: Time,
        release: &mut impl FnMut(Whole<'_>),
        work: impl FnOnce(&mut Receiving, &mut dyn FnMut(&[u8], Option<Origin>)),
    ) {
        let Arriving { receiving, smooth, whole, fate, due, .. } = self;
        work(receiving, &mut |joined, origin| {
            let Some(origin) = origin else { return release((whole, *fate, joined)) };
            if let Some((fate, joined)) = smooth.packet(origin, *due, (*fate, joined.to_vec()), now) {
                release((whole, fate, &joined));
            }
        });
        while let Some((fate, joined)) = smooth.pop(now) {
            release((whole, fate, &joined));
        }
    }

    /// Bytes of all that is kept.
    fn held(&self) -> usize {
        self.receiving.held() + self.smooth.waiting().map(|(_, joined)| joined.len()).sum::<usize>()
    }
}

/// What has come of parts, and what became of it.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    flows: BTreeMap<Flow, Arriving>,
    due: Due<Flow>,
    looked: Time,
    /// Bytes that have come since what is kept was counted.
    come: usize,
    /// Parts that repairs have restored, and datagrams that were never whole or too late.
    pub(super) restored: u64,
    pub(super) incomplete: u64,
}

impl Incoming {
    /// A part has come, which is due then. Datagrams that are whole go to `release`.
    pub(super) fn part(
        &mut self,
        (flow, whole): (Flow, Inner),
        (part, fate, due): (&[u8], Fate, Option<Time>),
        code: &dyn Code,
        now: Time,
        mut release: impl FnMut(Whole<'_>),
    ) {
        self.make_room(flow);
        self.come += part.len();
        let arriving = self.flows.entry(flow).or_insert_with(|| Arriving::new(whole, now));
        (arriving.fate, arriving.due, arriving.used) = (fate, due, now);
        arriving.work(now, &mut release, |receiving, leave| receiving.datagram(part, due, code, now, leave));
        self.settle(flow);
        if self.come > COUNTS {
            self.look(now);
        }
    }

    /// When [`Incoming::on_timer`] is due.
    pub(super) fn next_time(&self) -> Time {
        let looks = if self.flows.is_empty() { Time::NEVER } else { self.looked + LOOK };
        self.due.soonest().min(looks)
    }

    /// Datagrams that have waited for long enough go to `release`.
    pub(super) fn on_timer(&mut self, now: Time, mut release: impl FnMut(Whole<'_>)) {
        while let Some(flow) = self.due.pop(now) {
            let Some(arriving) = self.flows.get_mut(&flow) else { continue };
            arriving.work(now, &mut release, |receiving, leave| receiving.on_timer(now, leave));
            self.settle(flow);
        }
        if now >= self.looked + LOOK {
            self.look(now);
        }
    }

    /// Counts what has become of a flow's datagrams, and notes when it is due.
    fn settle(&mut self, flow: Flow) {
        let Some(arriving) = self.flows.get_mut(&flow) else { return };
        let counted = [arriving.receiving.restored(), arriving.receiving.late()];
        self.restored += counted[0] - arriving.counted[0];
        self.incomplete += counted[1] - arriving.counted[1];
        arriving.counted = counted;
        self.due.set(flow, arriving.receiving.next_time().min(arriving.smooth.next_time()));
    }

    /// Forgets the flow of the same node that was used longest ago, if there are too many and this one is new.
    fn make_room(&mut self, flow: Flow) {
        if self.flows.contains_key(&flow) {
            return;
        }
        let of = |generation, number| Flow { source: flow.source, generation, number };
        let own = self.flows.range(of(0, 0)..=of(u8::MAX, u16::MAX));
        let (count, oldest) = (own.clone().count(), own.min_by_key(|(_, arriving)| arriving.used));
        if let (true, Some((oldest, _))) = (count >= MOST_FLOWS, oldest) {
            self.forget(*oldest);
        }
    }

    fn forget(&mut self, flow: Flow) {
        self.flows.remove(&flow);
        self.due.set(flow, Time::NEVER);
    }

    /// Forgets flows that are over. If too much is kept, flows of the node that has most of it are forgotten, the largest one first.
    fn look(&mut self, now: Time) {
        (self.looked, self.come) = (now, 0);
        let over = |(flow, arriving): (&Flow, &Arriving)| (now.since(arriving.used) >= IDLE).then_some(*flow);
        let over: Vec<Flow> = self.flows.iter().filter_map(over).collect();
        over.into_iter().for_each(|flow| self.forget(flow));
        let mut kept: BTreeMap<Flow, usize> =
            self.flows.iter().map(|(flow, arriving)| (*flow, arriving.held())).collect();
        while kept.values().sum::<usize>() > MOST_BYTES {
            let mut nodes: BTreeMap<NodeId, usize> = BTreeMap::new();
            kept.iter().for_each(|(flow, held)| *nodes.entry(flow.source).or_default() += held);
            let most = nodes.into_iter().max_by_key(|(_, held)| *held).map(|(node, _)| node);
            let of_it = kept.iter().filter(|(flow, _)| Some(flow.source) == most);
            let Some(largest) = of_it.max_by_key(|(_, held)| **held).map(|(flow, _)| *flow) else { break };
            kept.remove(&largest);
            self.forget(largest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::udp::sending::Sending;
    use crate::proxy::udp::{self, tests::Parity};

    const FATE: Fate = Fate { hops: 1, ecn: 0, checksum: 0, sequence: 1 };

    fn flow(source: u8, number: u16) -> Flow {
        Flow { source: NodeId::new(source).unwrap(), generation: 1, number }
    }

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    /// The first of two parts of a datagram, so that it stays.
    fn half(bytes: usize) -> Vec<u8> {
        let service = udp::Service { chunk: bytes as u16, ..udp::Service::default() };
        let mut parts = vec![];
        Sending::new(service).packet(&vec![7; bytes + 1], &Parity, at(0), |part| parts.push(part.to_vec()));
        parts.swap_remove(0)
    }

    fn take(incoming: &mut Incoming, flow: Flow, part: &[u8], now: Time) {
        let what = (flow, Inner::default());
        incoming.part(what, (part, FATE, None), &Parity, now, |_| panic!("it is not whole"));
    }

    #[test]
    fn what_is_due_comes_in_the_order_of_times_and_once() {
        let mut due = Due::default();
        for (key, secs) in [(1, 5), (2, 3), (1, 4), (3, 9)] {
            due.set(key, at(secs));
        }
        due.set(3, Time::NEVER);
        assert_eq!((due.soonest(), due.pop(at(2)), due.pop(at(3))), (at(3), None, Some(2)));
        assert_eq!((due.pop(at(9)), due.pop(at(9)), due.soonest()), (Some(1), None, Time::NEVER));
    }

    #[test]
    fn a_flow_that_is_idle_is_forgotten_and_a_node_has_so_many_at_a_time() {
        let (mut incoming, part) = (Incoming::default(), half(100));
        for number in 0..70 {
            take(&mut incoming, flow(1, number), &part, at(u64::from(number) / 30));
        }
        take(&mut incoming, flow(2, 1), &part, at(3));
        assert_eq!(incoming.flows.len(), MOST_FLOWS + 1);
        assert!(!incoming.flows.contains_key(&flow(1, 5)) && incoming.flows.contains_key(&flow(1, 6)));
        // Halves are given up after 3 s, and flows after two minutes.
        let mut now = at(3);
        while incoming.next_time() < at(200) {
            now = incoming.next_time();
            incoming.on_timer(now, |_| panic!("it is not whole"));
        }
        assert_eq!((incoming.flows.len(), incoming.next_time()), (0, Time::NEVER));
        assert_eq!(incoming.incomplete, 65);
        assert!(now <= at(124));
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_node_that_has_most_of_it_loses_it() {
        let mut incoming = Incoming::default();
        let first = half(1000);
        take(&mut incoming, flow(2, 1), &first, at(0));
        // Node 1 sends halves of which nothing can be made: each has numbers of its own.
        let mut sending = (0..64)
            .map(|_| Sending::new(udp::Service { chunk: 1400, ..udp::Service::default() }))
            .collect::<Vec<_>>();
        for _ in 0..1000 {
            for (number, sending) in (0..).zip(&mut sending) {
                let mut parts = vec![];
                sending.packet(&[7; 1401], &Parity, at(0), |part| parts.push(part.to_vec()));
                take(&mut incoming, flow(1, number), &parts[0], at(0));
            }
        }
        let held: usize = incoming.flows.values().map(Arriving::held).sum();
        assert!(held <= MOST_BYTES + COUNTS, "{held}");
        assert!(held > MOST_BYTES / 2 && incoming.flows.contains_key(&flow(2, 1)));
    }
}
