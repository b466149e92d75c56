//! A run's records in memory: read back from disk, or gathered directly (it is a [`Recorder`] itself, for tests and for
//! runs that nobody keeps).

use crate::packed::PackedHistogram;
use crate::table::Batch;
use crate::tables::Table;
use crate::types::{
    DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, Recorder, RttSample, StateSample,
    TransportSample,
};
use std::sync::Arc;

/// All records of a run, each kind in the order in which it was written: by time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Records {
    /// Links' counters.
    pub links: Vec<LinkSample>,
    /// Sojourn times at queues.
    pub delays: Vec<DelaySample<PackedHistogram>>,
    /// Flows' counters.
    pub flows: Vec<FlowSample>,
    /// RTTs of groups.
    pub rtts: Vec<RttSample<PackedHistogram>>,
    /// Transports' states.
    pub transport: Vec<TransportSample>,
    /// Internal states of queues and controllers.
    pub states: Vec<StateSample<Arc<str>>>,
    /// What happened to flows.
    pub events: Vec<FlowEvent>,
    /// Requests and frames.
    pub messages: Vec<Message>,
    /// Packets at links; read only when asked for, since there may be millions.
    pub packets: Vec<PacketRecord>,
}

impl Records {
    /// Adds the rows of a batch of this table, in their order.
    pub(crate) fn append(&mut self, table: Table, batch: &Batch) -> Result<(), String> {
        match table {
            Table::Links => batch.load(&mut self.links),
            Table::Delays => batch.load(&mut self.delays),
            Table::Flows => batch.load(&mut self.flows),
            Table::Rtts => batch.load(&mut self.rtts),
            Table::Transport => batch.load(&mut self.transport),
            Table::States => batch.load(&mut self.states),
            Table::Events => batch.load(&mut self.events),
            Table::Messages => batch.load(&mut self.messages),
            Table::Packets => batch.load(&mut self.packets),
        }
    }
}

impl Recorder for Records {
    fn link(&mut self, sample: &LinkSample) {
        self.links.push(sample.clone());
    }
    fn delay(&mut self, sample: &DelaySample) {
        let DelaySample { at, link, class, ref delay } = *sample;
        self.delays.push(DelaySample { at, link, class, delay: delay.into() });
    }
    fn flow(&mut self, sample: &FlowSample) {
        self.flows.push(sample.clone());
    }
    fn rtt(&mut self, sample: &RttSample) {
        let RttSample { at, group, ref rtt } = *sample;
        self.rtts.push(RttSample { at, group, rtt: rtt.into() });
    }
    fn transport(&mut self, sample: &TransportSample) {
        self.transport.push(*sample);
    }
    fn state(&mut self, sample: &StateSample<&str>) {
        let StateSample { at, of, name, value } = *sample;
        self.states.push(StateSample { at, of, name: name.into(), value });
    }
    fn event(&mut self, event: &FlowEvent) {
        self.events.push(*event);
    }
    fn message(&mut self, message: &Message) {
        self.messages.push(*message);
    }
    fn packet(&mut self, packet: &PacketRecord) {
        self.packets.push(*packet);
    }
}
