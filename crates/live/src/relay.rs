//! Records on their way from the threads that measure to the one that writes: measuring must never wait for a disk.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use weir_base::Time;
use weir_record::{
    DecisionRecord, DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, Recorder,
    RttSample, StateSample, TransitSample, TransportSample,
};

/// A record of any kind.
#[derive(Debug)]
pub(crate) enum Record {
    Link(LinkSample),
    Delay(DelaySample),
    Flow(FlowSample),
    Rtt(RttSample),
    Transit(TransitSample),
    Transport(TransportSample),
    State(StateSample<Arc<str>>),
    Event(FlowEvent),
    Decision(DecisionRecord<Arc<str>>),
    Message(Message),
    Packet(PacketRecord),
}

impl Record {
    /// The time that it is sorted by.
    pub(crate) fn at(&self) -> Time {
        match self {
            Record::Link(record) => record.at,
            Record::Delay(record) => record.at,
            Record::Flow(record) => record.at,
            Record::Rtt(record) => record.at,
            Record::Transit(record) => record.at,
            Record::Transport(record) => record.at,
            Record::State(record) => record.at,
            Record::Event(record) => record.at,
            Record::Decision(record) => record.at,
            Record::Message(record) => record.at,
            Record::Packet(record) => record.at,
        }
    }

    /// Hands it to a recorder.
    pub(crate) fn write(&self, recorder: &mut dyn Recorder) {
        match self {
            Record::Link(record) => recorder.link(record),
            Record::Delay(record) => recorder.delay(record),
            Record::Flow(record) => recorder.flow(record),
            Record::Rtt(record) => recorder.rtt(record),
            Record::Transit(record) => recorder.transit(record),
            Record::Transport(record) => recorder.transport(record),
            Record::State(StateSample { at, of, name, value }) => {
                recorder.state(&StateSample { at: *at, of: *of, name, value: *value });
            }
            Record::Event(record) => recorder.event(record),
            Record::Decision(DecisionRecord { at, flow, by, standing, rule, value, bound }) => {
                let (at, flow, value, bound) = (*at, *flow, *value, *bound);
                recorder.decision(&DecisionRecord { at, flow, by, standing, rule, value, bound });
            }
            Record::Message(record) => recorder.message(record),
            Record::Packet(record) => recorder.packet(record),
        }
    }
}

/// A recorder whose records come out of a channel. Records sent after the receiver has gone are dropped.
#[derive(Debug, Clone)]
pub(crate) struct Relay(pub(crate) Sender<Record>);

impl Relay {
    fn pass(&self, record: Record) {
        let _ = self.0.send(record);
    }
}

impl Recorder for Relay {
    fn link(&mut self, sample: &LinkSample) {
        self.pass(Record::Link(sample.clone()));
    }
    fn delay(&mut self, sample: &DelaySample) {
        self.pass(Record::Delay(sample.clone()));
    }
    fn flow(&mut self, sample: &FlowSample) {
        self.pass(Record::Flow(sample.clone()));
    }
    fn rtt(&mut self, sample: &RttSample) {
        self.pass(Record::Rtt(sample.clone()));
    }
    fn transit(&mut self, sample: &TransitSample) {
        self.pass(Record::Transit(sample.clone()));
    }
    fn transport(&mut self, sample: &TransportSample) {
        self.pass(Record::Transport(*sample));
    }
    fn state(&mut self, sample: &StateSample<&str>) {
        let StateSample { at, of, name, value } = *sample;
        self.pass(Record::State(StateSample { at, of, name: name.into(), value }));
    }
    fn decision(&mut self, decision: &DecisionRecord<&str>) {
        let DecisionRecord { at, flow, by, standing, rule, value, bound } = *decision;
        let [by, standing, rule] = [by, standing, rule].map(Arc::from);
        self.pass(Record::Decision(DecisionRecord { at, flow, by, standing, rule, value, bound }));
    }
    fn event(&mut self, event: &FlowEvent) {
        self.pass(Record::Event(*event));
    }
    fn message(&mut self, message: &Message) {
        self.pass(Record::Message(*message));
    }
    fn packet(&mut self, packet: &PacketRecord) {
        self.pass(Record::Packet(*packet));
    }
}
