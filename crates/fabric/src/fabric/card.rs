//! What holds a host's packets back before they leave: its card's queue, or a station that admits its flow at a rate.

use super::Fabric;
use crate::route::Hop;
use crate::wire::Wire;
use weir_base::{FlowId, Time};

impl<P: Wire> Fabric<P> {
    /// Whether a host's card, or the station at the end of its access link, would now accept a packet of this flow and IP length. Any
    /// other host sends every packet.
    pub fn takes(&self, host: usize, to: usize, flow: FlowId, length: u32) -> bool {
        match self.hops.next(host, to) {
            Hop::Link(link) => self.links[link].takes(flow, length),
            Hop::Station(Some(link)) => self.stations.admits(self.links[link].to as usize, flow),
            Hop::Arrived | Hop::Nowhere | Hop::Station(None) => true,
        }
    }

    /// Counts that the card of a flow's sending host has refused data. The data stays unsent; this is not a loss.
    pub fn count_refused(&mut self, flow: usize) {
        self.taps.refused(flow);
    }

    /// The next packet that has left a host's card and was not returned yet: its flow, its IP bytes, and when; or a flow that a station
    /// admits again, with no bytes. [`Fabric::advance`] stops when there is one.
    #[inline]
    pub fn left_card(&mut self) -> Option<(FlowId, u32, Time)> {
        self.around.left_cards.pop_front()
    }

    /// Whether [`Fabric::left_card`] would return a packet.
    #[inline]
    pub fn has_left_card(&self) -> bool {
        !self.around.left_cards.is_empty()
    }
}
