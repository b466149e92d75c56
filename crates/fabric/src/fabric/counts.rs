//! How a fabric is read: counters, queues' states, and the totals of all packets.

use super::{Decided, Fabric, Link, LinkCounters, StationCounters, Wire};
use crate::tap::FlowCounters;
use crate::transit::Transits;
use weir_base::{Ecn, FlowId, Histogram, Time};
use weir_queue::Backlog;

/// What became of all packets of a run. The totals add up:
/// `sent + duplicated + made = delivered + corrupted + dropped + lost + discarded + held + in_flight + unroutable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Packets that hosts handed in.
    pub sent: u64,
    /// Duplicates that links made.
    pub duplicated: u64,
    /// Packets that stations made.
    pub made: u64,
    /// Packets that reached a host undamaged.
    pub delivered: u64,
    /// Packets that reached their host, or the station that they were addressed to, damaged; they are discarded
    /// there.
    pub corrupted: u64,
    /// Packets that queues dropped.
    pub dropped: u64,
    /// Packets that links lost.
    pub lost: u64,
    /// Packets that stations discarded.
    pub discarded: u64,
    /// Packets that stations hold.
    pub held: u64,
    /// Packets in queues, in transmission, on their way, or waiting to leave their hosts.
    pub in_flight: u64,
    /// Discarded because no route leads to their destination.
    pub unroutable: u64,
}

impl<P: Wire> Fabric<P> {
    /// The counters of a link since they were last taken, up to now.
    pub fn take_link(&mut self, link: usize, now: Time) -> LinkCounters {
        self.settle_link(link, now);
        self.links[link].take_counters(now)
    }

    /// The packets and bytes in a link's queue.
    pub fn backlog(&self, link: usize) -> Backlog {
        self.links[link].queue().backlog()
    }

    /// The internal state of a link's queue, as of `now`.
    pub fn queue_state(&mut self, link: usize, now: Time, report: &mut dyn FnMut(&str, f64)) {
        self.links[link].settle(now);
        self.links[link].queue().state(report);
    }

    /// The counters of a station since the start.
    pub fn station(&self, number: usize) -> StationCounters {
        self.stations.counters(number)
    }

    /// The internal state of a station.
    pub fn station_state(&self, number: usize, report: &mut dyn FnMut(&str, f64)) {
        self.stations.state(number, report);
    }

    /// The internal state of a station about flows.
    pub fn station_flow_state(&self, number: usize, report: &mut dyn FnMut(FlowId, &str, f64)) {
        self.stations.flow_state(number, report);
    }

    /// What a station has decided about flows since the last call.
    pub fn station_decided(&mut self, number: usize, tell: &mut dyn FnMut(Decided)) {
        self.stations.decided(number, tell);
    }

    /// The sojourn times of a link's classes since they were last cleared; the caller clears each histogram once it
    /// is recorded.
    pub fn delays(&mut self, link: usize) -> impl Iterator<Item = (Ecn, &mut Histogram)> {
        self.links[link].delays()
    }

    /// The counters of a flow since they were last taken; `None` if nothing was counted.
    pub fn take_flow(&mut self, flow: usize) -> Option<FlowCounters> {
        self.taps.take(flow)
    }

    /// The number of the last flow that stations have carried, and one more.
    pub fn carried_flows(&self) -> usize {
        self.transits.len()
    }

    /// The counters of a flow that stations carry, since they were last cleared; the caller clears them once they are recorded. `None` if
    /// nothing was counted.
    pub fn transits(&mut self, flow: usize) -> Option<&mut Transits> {
        self.transits.get_mut(flow).filter(|transits| !transits.is_empty())
    }

    /// The RTTs of a group since they were last cleared; the caller clears the histogram once it is recorded.
    pub fn group_rtts(&mut self, group: usize) -> &mut Histogram {
        &mut self.taps.group_rtts[group]
    }

    /// When the last event was.
    pub fn passed(&self) -> Time {
        self.events.passed()
    }

    /// The link that holds most packets, and how many; `None` without links.
    pub fn fullest_link(&self) -> Option<(usize, u64)> {
        self.links.iter().map(Link::inside).enumerate().max_by_key(|(_, inside)| *inside)
    }

    /// What became of all packets of the run.
    pub fn totals(&self) -> Totals {
        let waiting: u64 = self.edges.iter().map(|edge| edge.waiting.len() as u64).sum();
        let StationCounters { made, discarded, held, .. } = self.stations.total();
        Totals {
            sent: self.sent,
            duplicated: self.links.iter().map(|link| link.total_duplicated).sum(),
            made,
            delivered: self.delivered,
            corrupted: self.corrupted,
            dropped: self.links.iter().map(|link| link.total_dropped()).sum(),
            lost: self.links.iter().map(|link| link.total_lost).sum(),
            discarded,
            held,
            in_flight: self.links.iter().map(Link::inside).sum::<u64>() + waiting,
            unroutable: self.unroutable,
        }
    }
}
