//! Connections that several flows share.

use super::World;
use super::bounds::MOST_IN_ONE_TURN;
use super::turn::transmit_one;
use weir_base::Time;
use weir_workload::End;

impl World<'_> {
    /// A flow begins: it gets a connection of its own, or a stream of the connection that it shares with flows that have begun.
    pub(super) fn begin(&mut self, number: usize) {
        let others = self.flows[number].shares().map_or(&[][..], |connection| &self.shared[connection]);
        match others.iter().find(|other| self.flows[**other].has_begun()) {
            Some(&other) => {
                let Ok([flow, other]) = self.flows.get_disjoint_mut([number, other]) else { return };
                flow.join(self.run, number, other);
            }
            None => self.flows[number].begin(self.run, number),
        }
    }

    /// An end of a shared connection has moved. All its flows are asked, since a packet of one may carry data of another. They then
    /// send in the connection's order, until none has anything to send.
    #[cold]
    pub(super) fn flush_shared(&mut self, connection: usize, end: End, now: Time) {
        // An application that is asked may call this again; it then finds no flows, and all packets are sent below.
        let sharing = std::mem::take(&mut self.shared[connection]);
        for number in &sharing {
            if self.flows[*number].asks(end) {
                self.ask(*number, end, now);
            }
        }
        let mut more = MOST_IN_ONE_TURN;
        while more > 0 && sharing.iter().any(|number| self.transmit_one(*number, end, now)) {
            more -= 1;
        }
        if more == 0 {
            return self.sends_without_end(sharing[0], end, now);
        }
        for number in &sharing {
            self.flush_one(*number, end, now);
        }
        self.shared[connection] = sharing;
    }

    /// Hands the next packet to the fabric if it is this flow's; returns whether it was.
    fn transmit_one(&mut self, number: usize, end: End, now: Time) -> bool {
        let flow = &mut self.flows[number];
        if flow.has_card(end) {
            return false;
        }
        flow.end_and_outlet(end).is_some_and(|(endpoint, outlet)| {
            transmit_one(endpoint, outlet, &mut self.pool, &mut self.fabric, now)
        })
    }
}
