//! The records of a wrapped run on their way: what they say of links is shown, and all of them go on to the run's recorder.

use crate::live::{Moment, Show};
use weir_base::{Span, Time};
use weir_plan::Run;
use weir_record::{
    DecisionRecord, DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, Recorder,
    RttSample, StateSample, TransitSample, TransportSample,
};

/// How often the links are shown; at the end of a sample period.
const EACH: Span = Span::from_millis(500);

/// A recorder before another one.
pub(super) struct Shown<'a> {
    recorder: &'a mut dyn Recorder,
    show: Show,
    /// The links that are shown, by their numbers in the network, and what is known of each since the last time.
    links: Vec<(u32, Moment)>,
    last: Time,
    /// The latest sample.
    at: Time,
}

/// The names of the links that are shown: those with records of their own.
pub(super) fn names(run: &Run) -> Vec<String> {
    run.instrumented_links().map(|(_, link)| link.name.clone()).collect()
}

impl<'a> Shown<'a> {
    /// Shows the links of a run, those of [`names`].
    pub(super) fn new(run: &Run, show: Show, recorder: &'a mut dyn Recorder) -> Shown<'a> {
        let links = run.instrumented_links().map(|(index, _)| (index as u32, Moment::default()));
        Shown { recorder, show, links: links.collect(), last: Time::ZERO, at: Time::ZERO }
    }

    fn moment(&mut self, link: u32) -> Option<&mut Moment> {
        self.links.iter_mut().find(|(number, _)| *number == link).map(|(_, moment)| moment)
    }

    /// A sample of this time follows: the samples of earlier times are complete.
    fn reach(&mut self, at: Time) {
        if at <= self.at {
            return;
        }
        let span = self.at.since(self.last);
        if span >= EACH {
            self.last = self.at;
            let take = |(_, moment): &mut (u32, Moment)| Moment { span, ..std::mem::take(moment) };
            let moments: Vec<Moment> = self.links.iter_mut().map(take).collect();
            self.show.show(self.at.since(Time::ZERO), &moments);
        }
        self.at = at;
    }
}

impl Recorder for Shown<'_> {
    fn link(&mut self, sample: &LinkSample) {
        self.reach(sample.at);
        if let Some(moment) = self.moment(sample.link) {
            moment.bytes += sample.sent_bytes.iter().sum::<u64>();
            moment.drops += sample.dropped.iter().sum::<u64>();
            moment.marks += sample.marked.iter().sum::<u64>();
            moment.backlog_bytes = sample.backlog_bytes.get();
        }
        self.recorder.link(sample);
    }
    fn delay(&mut self, sample: &DelaySample) {
        self.reach(sample.at);
        if let Some(moment) = self.moment(sample.link) {
            moment.packets += sample.delay.count();
            moment.sojourn_ns += sample.delay.sum();
        }
        self.recorder.delay(sample);
    }
    fn flow(&mut self, sample: &FlowSample) {
        self.recorder.flow(sample);
    }
    fn rtt(&mut self, sample: &RttSample) {
        self.recorder.rtt(sample);
    }
    fn transit(&mut self, sample: &TransitSample) {
        self.recorder.transit(sample);
    }
    fn transport(&mut self, sample: &TransportSample) {
        self.recorder.transport(sample);
    }
    fn state(&mut self, sample: &StateSample<&str>) {
        self.recorder.state(sample);
    }
    fn event(&mut self, event: &FlowEvent) {
        self.recorder.event(event);
    }
    fn decision(&mut self, decision: &DecisionRecord<&str>) {
        self.recorder.decision(decision);
    }
    fn message(&mut self, message: &Message) {
        self.recorder.message(message);
    }
    fn packet(&mut self, packet: &PacketRecord) {
        self.recorder.packet(packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Bytes, Ecn, Histogram};
    use weir_plan::Lab;
    use weir_record::{LinkCounters, Records};

    #[test]
    fn the_moments_of_links_add_up_and_every_record_goes_on() {
        let text = "format = 1\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '40 ms'\n[run]\nduration = '9 s'\n[traffic.a]\n";
        let run = Lab::from_str(text, "lab.toml", ".".as_ref(), &[]).unwrap().runs().remove(0);
        assert_eq!(names(&run), ["down", "up"]);
        let (down, _) = run.instrumented_links().next().unwrap();
        let mut records = Records::default();
        // No terminal in a test, and no period is complete: nothing is printed.
        let mut shown = Shown::new(&run, Show::open(&names(&run)), &mut records);
        for tenth in 1..=3u64 {
            let counters = LinkCounters {
                sent_bytes: [1000, 0, 500, 0],
                dropped: [1, 0, 0, 0],
                marked: [0, 0, 2, 0],
                ..LinkCounters::default()
            };
            let (at, link) = (Time::ZERO + Span::from_millis(100 * tenth), down as u32);
            shown.link(&LinkSample {
                at,
                link,
                counters,
                backlog_packets: 2,
                backlog_bytes: Bytes::new(3000),
            });
            let mut delay = Histogram::new();
            delay.record(Span::from_millis(tenth));
            shown.delay(&DelaySample { at, link, class: Ecn::NotEct, delay });
        }
        let moment = shown.moment(down as u32).unwrap().clone();
        let sum = Moment {
            bytes: 4500,
            packets: 3,
            sojourn_ns: 6_000_000,
            backlog_bytes: 3000,
            drops: 3,
            marks: 6,
            ..Moment::default()
        };
        assert_eq!(moment, sum);
        assert_eq!((records.links.len(), records.delays.len()), (3, 3));
    }
}
