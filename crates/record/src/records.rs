//! A run's records in memory: recorded by an engine, or read from disk.

use crate::packed::PackedHistogram;
use crate::table::{Batch, place_of};
use crate::tables::Table;
use crate::types::{
    DecisionRecord, DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, Recorder,
    RttSample, StateSample, TransitSample, TransportSample,
};
use std::sync::Arc;

/// All records of a run, each kind in the order in which it was recorded, which is that of time.
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
    /// What an overlay did with flows.
    pub transits: Vec<TransitSample<PackedHistogram>>,
    /// Transports' states.
    pub transport: Vec<TransportSample>,
    /// Internal states of queues and controllers.
    pub states: Vec<StateSample<Arc<str>>>,
    /// Events of flows.
    pub events: Vec<FlowEvent>,
    /// What stations decided about flows.
    pub decisions: Vec<DecisionRecord<Arc<str>>>,
    /// Requests and frames.
    pub messages: Vec<Message>,
    /// Packets at links. [`Records::read`] leaves them out, since there may be millions.
    pub packets: Vec<PacketRecord>,
    /// Working memory of recording.
    pub(crate) desk: Desk,
}

/// Working memory of recording, without information of its own: any two are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Desk {
    /// The names of the states so far; all records of a state share its name.
    names: Vec<Arc<str>>,
    /// Index of the last state's name.
    last: usize,
    /// Memory of earlier packed histograms, to be reused.
    rooms: Vec<Vec<u8>>,
}

impl PartialEq for Desk {
    fn eq(&self, _: &Desk) -> bool {
        true
    }
}

/// Evaluates an expression for the rows of any table: `of_table!(table, |rows| rows.len(), &records)`.
macro_rules! of_table {
    ($table:expr, |$rows:ident| $do:expr, $($records:tt)+) => {
        match $table {
            Table::Links => { let $rows = $($records)+.links; $do }
            Table::Delays => { let $rows = $($records)+.delays; $do }
            Table::Flows => { let $rows = $($records)+.flows; $do }
            Table::Rtts => { let $rows = $($records)+.rtts; $do }
            Table::Transits => { let $rows = $($records)+.transits; $do }
            Table::Transport => { let $rows = $($records)+.transport; $do }
            Table::States => { let $rows = $($records)+.states; $do }
            Table::Events => { let $rows = $($records)+.events; $do }
            Table::Decisions => { let $rows = $($records)+.decisions; $do }
            Table::Messages => { let $rows = $($records)+.messages; $do }
            Table::Packets => { let $rows = $($records)+.packets; $do }
        }
    };
}

impl Records {
    /// No records, with memory for this many of each kind that flows have in each period. Vectors of some hundred kilobytes grow
    /// without a copy; smaller ones are copied at each step.
    pub(crate) fn with_room(samples: usize) -> Records {
        Records {
            flows: Vec::with_capacity(samples),
            transport: Vec::with_capacity(samples),
            states: Vec::with_capacity(samples),
            ..Records::default()
        }
    }

    /// Removes all records and keeps their memory, for the records of the next run.
    pub fn clear(&mut self) {
        let delays = self.delays.drain(..).map(|sample| sample.delay);
        let rooms =
            delays.chain(self.rtts.drain(..).map(|sample| sample.rtt)).map(PackedHistogram::into_room);
        self.desk.rooms.extend(rooms);
        let transits = self.transits.drain(..).flat_map(|sample| [sample.hops, sample.times, sample.waits]);
        self.desk.rooms.extend(transits.map(PackedHistogram::into_room));
        for table in Table::ALL {
            of_table!(table, |rows| rows.clear(), &mut self);
        }
        self.desk.names.clear();
    }

    /// Hands all records to a recorder, kind by kind, each in the order of time.
    pub fn replay(&self, recorder: &mut dyn Recorder) {
        self.links.iter().for_each(|sample| recorder.link(sample));
        for DelaySample { at, link, class, delay } in &self.delays {
            recorder.delay(&DelaySample { at: *at, link: *link, class: *class, delay: delay.unpack() });
        }
        self.flows.iter().for_each(|sample| recorder.flow(sample));
        for RttSample { at, group, rtt } in &self.rtts {
            recorder.rtt(&RttSample { at: *at, group: *group, rtt: rtt.unpack() });
        }
        for sample in &self.transits {
            let TransitSample { at, flow, admitted, in_time, links, ref hops, ref times, ref waits } =
                *sample;
            let [hops, times, waits] = [hops, times, waits].map(PackedHistogram::unpack);
            recorder.transit(&TransitSample { at, flow, admitted, in_time, links, hops, times, waits });
        }
        self.transport.iter().for_each(|sample| recorder.transport(sample));
        for StateSample { at, of, name, value } in &self.states {
            recorder.state(&StateSample { at: *at, of: *of, name, value: *value });
        }
        self.events.iter().for_each(|event| recorder.event(event));
        for DecisionRecord { at, flow, by, standing, rule, value, bound } in &self.decisions {
            let (at, flow, value, bound) = (*at, *flow, *value, *bound);
            recorder.decision(&DecisionRecord { at, flow, by, standing, rule, value, bound });
        }
        self.messages.iter().for_each(|message| recorder.message(message));
        self.packets.iter().for_each(|packet| recorder.packet(packet));
    }

    /// Removes the first `count` records of a table, and keeps memory for as many.
    pub(crate) fn forget(&mut self, table: Table, count: usize) {
        of_table!(
            table,
            |rows| {
                rows.drain(..count);
                rows.shrink_to(count);
            },
            &mut self
        );
    }

    /// Number of records of a table.
    #[inline]
    pub(crate) fn count(&self, table: Table) -> usize {
        of_table!(table, |rows| rows.len(), &self)
    }

    /// The records of a table by column, without the first `from`.
    pub(crate) fn batch(&self, table: Table, from: usize) -> Batch {
        of_table!(table, |rows| Batch::of_records(&rows[from..]), &self)
    }

    /// Appends the rows of a batch of this table.
    pub(crate) fn append(&mut self, table: Table, batch: &Batch) -> Result<(), String> {
        of_table!(table, |rows| batch.load(rows), &mut self)
    }
}

impl Recorder for Records {
    fn link(&mut self, sample: &LinkSample) {
        self.links.push(sample.clone());
    }
    fn delay(&mut self, sample: &DelaySample) {
        let DelaySample { at, link, class, ref delay } = *sample;
        let delay = PackedHistogram::pack(delay, self.desk.rooms.pop().unwrap_or_default());
        self.delays.push(DelaySample { at, link, class, delay });
    }
    fn flow(&mut self, sample: &FlowSample) {
        self.flows.push(sample.clone());
    }
    fn rtt(&mut self, sample: &RttSample) {
        let RttSample { at, group, ref rtt } = *sample;
        let rtt = PackedHistogram::pack(rtt, self.desk.rooms.pop().unwrap_or_default());
        self.rtts.push(RttSample { at, group, rtt });
    }
    fn transit(&mut self, sample: &TransitSample) {
        let TransitSample { at, flow, admitted, in_time, links, ref hops, ref times, ref waits } = *sample;
        let [hops, times, waits] = [hops, times, waits]
            .map(|one| PackedHistogram::pack(one, self.desk.rooms.pop().unwrap_or_default()));
        self.transits.push(TransitSample { at, flow, admitted, in_time, links, hops, times, waits });
    }
    fn transport(&mut self, sample: &TransportSample) {
        self.transport.push(*sample);
    }
    fn state(&mut self, sample: &StateSample<&str>) {
        let StateSample { at, of, name, value } = *sample;
        let Desk { names, last, .. } = &mut self.desk;
        *last = place_of(names, *last, name);
        self.states.push(StateSample { at, of, name: names[*last].clone(), value });
    }
    fn event(&mut self, event: &FlowEvent) {
        self.events.push(*event);
    }
    fn decision(&mut self, decision: &DecisionRecord<&str>) {
        let DecisionRecord { at, flow, by, standing, rule, value, bound } = *decision;
        let names = &mut self.desk.names;
        let [by, standing, rule] = [by, standing, rule].map(|name| {
            let place = place_of(names, 0, name);
            names[place].clone()
        });
        self.decisions.push(DecisionRecord { at, flow, by, standing, rule, value, bound });
    }
    fn message(&mut self, message: &Message) {
        self.messages.push(*message);
    }
    fn packet(&mut self, packet: &PacketRecord) {
        self.packets.push(*packet);
    }
}
