//! What is written down at the end of each sampling period, and at the end of the run.

use super::{Driven, FLOWS_WITH_STATE, NO_THRESHOLD, World, teller};
use weir_base::{Span, Time};
use weir_engine::{Audit, Outcome};
use weir_record::{Component, StateSample, TransportSample};
use weir_transport::Endpoint;

impl World<'_> {
    pub(super) fn settle_messages(&mut self, now: Time) {
        for &index in &self.with_log {
            let Driven { application, flows } = &mut self.driven[index];
            let tell = &mut teller(&mut *self.recorder, &mut self.trouble, self.run, flows.start, now);
            application.settle(now, tell);
        }
    }

    pub(super) fn sample_transports(&mut self, now: Time) {
        for (number, flow) in self.flows.iter().enumerate() {
            let Driven { application, flows } = &self.driven[flow.application as usize];
            if flow.drawn && application.completed(number - flows.start) {
                continue;
            }
            let Some((sender, sample)) = flow.sender().and_then(|sender| Some((sender, sender.sample()?)))
            else {
                continue;
            };
            let id = number as u32;
            self.recorder.transport(&TransportSample {
                at: now,
                flow: id,
                cwnd: sample.cwnd.into(),
                ssthresh: sample
                    .ssthresh
                    .filter(|segments| *segments < NO_THRESHOLD)
                    .map(|segments| segments as f64),
                in_flight: sample.in_flight.into(),
                srtt: sample.srtt.unwrap_or_default(),
                min_rtt: sample.min_rtt.unwrap_or_default(),
                rto: sample.rto,
                pacing_rate: sample.pacing_rate,
                delivery_rate: sample.delivery_rate,
                retransmissions: sample.retransmitted,
                timeouts: Some(sample.timeouts),
            });
            if number < FLOWS_WITH_STATE && !flow.drawn {
                let recorder = &mut *self.recorder;
                sender.state(&mut |_, name, value| {
                    recorder.state(&StateSample { at: now, of: Component::Controller(id), name, value });
                });
            }
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        let totals = self.fabric.totals();
        let audit = Audit::new(&totals, totals.unroutable);
        let mut outcome = Outcome { audit, ..Outcome::default() };
        if !audit.balances() {
            outcome.invalid.push(format!("packets do not add up: {audit:?}"));
        }
        if self.run.duration < self.run.warmup + Span::from_secs(1) {
            outcome.warnings.push("less than a second is left after the warm-up".into());
        }
        outcome
    }
}
