//! A flow: the packets between two ports of two addresses, in both directions.

mod direction;
mod repeats;
mod round_trips;
mod sequence;

pub(crate) use direction::Direction;

use crate::packet::{Packet, Tcp};
use crate::rate::{Peak, elapsed};
use core::hash::{Hash, Hasher};
use core::net::IpAddr;
use serde::Serialize;
use weir_base::{Span, Time};

/// The share of a path's round trip up to which the capture counts as taken at an end.
const AT_AN_END: f64 = 0.1;

/// Where on the path a capture was taken, as round trips to both ends tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// At the first end, within a tenth of the path's round trip.
    First,
    /// At the second end.
    Second,
    /// Between them.
    Between,
}

/// The ends of a flow; the first one opened it, as far as the capture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) protocol: u8,
    pub(crate) addresses: [IpAddr; 2],
    pub(crate) ports: [u16; 2],
}

impl Hash for Key {
    /// As few words as possible: each packet is looked up by its key.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [from, to] = self.addresses.map(|address| match address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        });
        match self.addresses {
            [IpAddr::V4(_), IpAddr::V4(_)] => state.write_u64((from << 32 | to) as u64),
            _ => [from, to].into_iter().for_each(|address| state.write_u128(address)),
        }
        let [from, to] = self.ports.map(u64::from);
        state.write_u64(from << 32 | to << 16 | u64::from(self.protocol));
    }
}

impl Key {
    /// The key of a packet, which is the same for both directions, and whether it goes from the key's second end to the first.
    pub(crate) fn of(packet: &Packet) -> (Key, bool) {
        let Packet { addresses: [from, to], ports: [source, destination], protocol, .. } = *packet;
        let is_back = (from, source) > (to, destination);
        let (addresses, ports) = match is_back {
            true => ([to, from], [destination, source]),
            false => ([from, to], [source, destination]),
        };
        (Key { protocol, addresses, ports }, is_back)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) key: Key,
    /// By the key's ends.
    pub(crate) directions: [Direction; 2],
    pub(crate) peaks: [Peak; 2],
    /// The end that opened it: it sent a SYN, or else the first packet.
    pub(crate) opener: usize,
    pub(crate) first: Time,
    pub(crate) last: Time,
    /// When the SYN and its answer passed, while the answer to each is missing.
    opening: [Option<Time>; 2],
    /// The round trips of the handshake to the key's ends.
    handshake: [Option<Span>; 2],
}

impl Flow {
    pub(crate) fn new(key: Key, packet: &Packet, at: Time, sender: usize) -> Flow {
        let is_answer = packet.tcp.is_some_and(|tcp| tcp.syn && tcp.acknowledgement.is_some());
        Flow {
            key,
            directions: Default::default(),
            peaks: Default::default(),
            opener: if is_answer { 1 - sender } else { sender },
            first: at,
            last: at,
            opening: [None; 2],
            handshake: [None; 2],
        }
    }

    /// A packet of the flow, from this end of the key.
    pub(crate) fn count(&mut self, at: Time, packet: &Packet, sender: usize) {
        self.last = self.last.max(at);
        let is_late = packet.tcp.is_some_and(|tcp| self.directions[sender].is_late(&tcp));
        let round_trip = if is_late { self.round_trip() } else { None };
        self.directions[sender].count(at, packet, round_trip);
        if let Some(tcp) = &packet.tcp {
            self.shake_hands(at, tcp, sender);
            if let Some(number) = tcp.acknowledgement.filter(|_| !tcp.rst) {
                self.directions[1 - sender].acknowledge(at, number, tcp);
            }
        }
    }

    fn shake_hands(&mut self, at: Time, tcp: &Tcp, sender: usize) {
        let is_answer = tcp.acknowledgement.is_some();
        let took = |then: &mut Option<Time>| then.take().map(|then| elapsed(then, at));
        match (tcp.syn, is_answer) {
            (true, false) => {
                // Of a SYN that was retransmitted, the answer may be to either.
                let is_again = self.directions[sender].syn_repeats > 0;
                self.opening[0] = Some(at).filter(|_| !is_again);
            }
            (true, true) => {
                Direction::agree(&mut self.directions);
                self.handshake[sender] = took(&mut self.opening[0]).or(self.handshake[sender]);
                let is_again = self.directions[sender].syn_repeats > 0;
                self.opening[1] = Some(at).filter(|_| !is_again);
            }
            (false, true) => self.handshake[sender] = took(&mut self.opening[1]).or(self.handshake[sender]),
            (false, false) => {}
        }
    }

    /// The shortest time from a packet at the capture towards this end to the answer of this end.
    pub(crate) fn nearest(&self, end: usize) -> Option<Span> {
        [self.directions[1 - end].nearest(), self.handshake[end]].into_iter().flatten().min()
    }

    /// The shortest round trip of the whole path: that to one end and that to the other.
    pub(crate) fn round_trip(&self) -> Option<Span> {
        Some(self.nearest(0)? + self.nearest(1)?)
    }

    /// Where the capture was taken, seen from the end that opened the flow.
    pub(crate) fn side(&self) -> Option<Side> {
        let whole = self.round_trip().filter(|whole| !whole.is_zero())?;
        let share = self.nearest(self.opener)?.as_secs_f64() / whole.as_secs_f64();
        Some(match share {
            share if share <= AT_AN_END => Side::First,
            share if share >= 1.0 - AT_AN_END => Side::Second,
            _ => Side::Between,
        })
    }

    /// Whether this packet of a flow's ends begins another connection.
    pub(crate) fn is_ended_by(&self, packet: &Packet, sender: usize) -> bool {
        packet.tcp.is_some_and(|tcp| {
            tcp.syn && tcp.acknowledgement.is_none() && self.directions[sender].is_new(&tcp)
        })
    }
}

#[cfg(test)]
mod tests;
