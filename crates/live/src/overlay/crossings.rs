//! When datagrams enter the overlay and when they leave it. What daemons send is sealed and made anew at each of them, so a datagram of a
//! workload gets a number as it leaves its host, in the last bytes of its payload, which are zeros otherwise; at the end of its receiver's
//! site the number tells when that was. Streams over proxies have no such packets, and what a proxy acknowledges to a host says nothing of
//! the way across, so that no round trips are read from it.

use super::Dissolved;
use super::multicast::copies;
use crate::packet::LivePacket;
use std::collections::VecDeque;
use std::ops::Range;
use weir_base::{Histogram, Packet, Span, Time};
use weir_fabric::Wire;
use weir_record::{Recorder, TransitSample};
use weir_workload::Role;

/// Bytes of a number.
const NUMBER: usize = 8;
/// The shortest payload that has a number at its end: what an application writes stands at the front of it.
const SHORTEST: usize = 64;
/// Datagrams of a flow that may be under way.
const MOST: usize = 1 << 14;

/// All flows that the overlay carries.
#[derive(Debug, Default)]
pub(crate) struct Crossings(Vec<Option<Carried>>);

/// How the overlay carries a flow.
#[derive(Debug)]
enum Carried {
    Datagrams(Crossing),
    /// The stream of a host behind this end.
    Stream(usize),
}

/// The datagrams of a flow that are under way.
#[derive(Debug)]
struct Crossing {
    /// The sending host, and the end at which they reach the receiver's site.
    from: usize,
    gate: usize,
    /// The flows of further receivers, to whose sites they go too.
    copies: Range<usize>,
    deadline: Option<Span>,
    /// The number of the first one in `left`.
    first: u64,
    /// When each one left its host; `None` of one that has arrived.
    left: VecDeque<Option<Time>>,
    in_time: u64,
    times: Histogram,
}

impl Crossings {
    /// None under way.
    pub(crate) fn new(dissolved: &Dissolved) -> Crossings {
        let run = &dissolved.run;
        let carried = |flow: usize| {
            let (group, pair) = (&run.groups[run.flows[flow].group], run.pair(flow));
            let carriage = group.overlay.as_ref()?;
            if !matches!(group.workload.role(), Role::Datagrams(_)) {
                return dissolved.gate(pair.from).map(Carried::Stream);
            }
            Some(Carried::Datagrams(Crossing {
                from: pair.from,
                gate: dissolved.gate(pair.to)?,
                copies: copies(run, flow),
                deadline: carriage.deadline,
                first: 0,
                left: VecDeque::new(),
                in_time: 0,
                times: Histogram::new(),
            }))
        };
        Crossings((0..run.flows.len()).map(carried).collect())
    }

    /// A packet enters the fabric at a node. Returns the further flows that it is for, if it leaves its host.
    pub(crate) fn enters(&mut self, node: usize, packet: &mut LivePacket, now: Time) -> Range<usize> {
        match self.0.get_mut(packet.flow().0 as usize) {
            Some(Some(Carried::Datagrams(crossing))) if node == crossing.from => {
                let (has_number, copies) = (crossing.leaves(packet, now), crossing.copies.clone());
                for copy in copies.clone().filter(|_| has_number) {
                    if let Some(Some(Carried::Datagrams(copy))) = self.0.get_mut(copy) {
                        copy.push(now);
                    }
                }
                return copies;
            }
            Some(Some(Carried::Datagrams(crossing))) if node == crossing.gate => {
                crossing.arrives(packet, now)
            }
            Some(Some(Carried::Stream(gate))) if node == *gate => packet.hide_tcp(),
            _ => {}
        }
        0..0
    }

    /// Records the period that ends now.
    pub(crate) fn sample(&mut self, at: Time, recorder: &mut dyn Recorder) {
        for (flow, carried) in (0..).zip(&mut self.0) {
            let Some(Carried::Datagrams(crossing)) = carried else { continue };
            if crossing.times.count() == 0 {
                continue;
            }
            let (in_time, times) =
                (std::mem::take(&mut crossing.in_time), std::mem::take(&mut crossing.times));
            recorder.transit(&TransitSample {
                at,
                flow,
                admitted: 0,
                in_time,
                links: 0,
                hops: Histogram::default(),
                times,
                waits: Histogram::default(),
            });
        }
    }
}

/// The end of a datagram's payload, where its number is, and its checksum.
fn number_of(packet: &mut LivePacket) -> Option<(&mut [u8; NUMBER], &mut [u8; 2])> {
    let view = packet.datagram().filter(|view| view.head.len() >= SHORTEST)?;
    Some((view.head.last_chunk_mut()?, view.checksum?))
}

impl Crossing {
    /// Returns whether the packet got a number.
    fn leaves(&mut self, packet: &mut LivePacket, now: Time) -> bool {
        let Some((number, checksum)) = number_of(packet) else { return false };
        *number = (self.first + self.left.len() as u64).to_be_bytes();
        // None (RFC 768): the payload is another one now.
        *checksum = [0, 0];
        self.push(now);
        true
    }

    /// The numbers of the flows of a group are the same, since each flow keeps each packet.
    fn push(&mut self, now: Time) {
        self.left.push_back(Some(now));
        if self.left.len() > MOST {
            self.left.pop_front();
            self.first += 1;
        }
    }

    fn arrives(&mut self, packet: &mut LivePacket, now: Time) {
        let Some((number, _)) = number_of(packet) else { return };
        let place = u64::from_be_bytes(*number).checked_sub(self.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let left = place.and_then(|place| self.left.get_mut(place)).and_then(Option::take);
        let Some(left) = left else { return };
        let time = now.since(left);
        self.times.record(time);
        self.in_time += u64::from(self.deadline.is_none_or(|deadline| time <= deadline));
        while self.left.front().is_some_and(Option::is_none) {
            self.left.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::udp_frame;
    use crate::overlay::Ways;
    use crate::packet::{Directory, Pool};
    use weir_base::Ecn;
    use weir_plan::Ip;

    #[test]
    fn the_time_of_each_datagram_is_found_by_its_number_whatever_their_order() {
        let directory = Directory {
            addressed: vec![true; 4],
            flows: 1,
            commands: vec![None; 4],
            beyond: None,
            ways: vec![],
            groups: Ways::default(),
        };
        let pool = Pool::new(directory, 1500);
        let mut crossing = Crossing {
            from: 0,
            gate: 2,
            copies: 0..0,
            deadline: Some(Span::from_millis(10)),
            first: 0,
            left: VecDeque::new(),
            in_time: 0,
            times: Histogram::new(),
        };
        let at = |millis: u64| Time::ZERO + Span::from_millis(millis);
        let mut packets: Vec<LivePacket> =
            (0..3).map(|_| pool.packet(0, &udp_frame(0, 1, Ip::V4, 0, 300, Ecn::NotEct)).unwrap()).collect();
        for (millis, packet) in (0..).zip(&mut packets) {
            crossing.leaves(packet, at(millis));
        }
        // The second is lost, the third overtakes the first, and comes twice.
        crossing.arrives(&mut packets[2], at(9));
        crossing.arrives(&mut packets[2], at(9));
        crossing.arrives(&mut packets[0], at(20));
        assert_eq!((crossing.times.count(), crossing.in_time, crossing.left.len()), (2, 1, 2));
        assert_eq!(crossing.times.max(), Some(Span::from_millis(20)));
        // One that is too short for a number, and one with a number that nobody has given.
        let mut short = pool.packet(0, &udp_frame(0, 1, Ip::V4, 0, 40, Ecn::NotEct)).unwrap();
        crossing.leaves(&mut short, at(21));
        let mut foreign = pool.packet(0, &udp_frame(0, 1, Ip::V4, 0, 300, Ecn::NotEct)).unwrap();
        crossing.arrives(&mut foreign, at(22));
        assert_eq!((crossing.times.count(), crossing.left.len()), (2, 2));
    }
}
