//! What is recorded at the end of each sampling period, and the outcome at the end of the run.

use super::{Driven, World, teller};
use weir_base::{Span, Time};
use weir_engine::{Audit, Outcome, record_endpoint};

impl World<'_> {
    pub(super) fn settle_messages(&mut self, now: Time) {
        for &index in &self.with_log {
            let Driven { application, flows } = &mut self.driven[index];
            let tell = &mut teller(&mut *self.recorder, &mut self.trouble, self.run, flows.start, now);
            application.settle(now, tell);
        }
    }

    pub(super) fn sample_transports(&mut self, now: Time) {
        for (number, flow) in self.flows.iter_mut().enumerate() {
            flow.rest();
            let Driven { application, flows } = &self.driven[flow.application as usize];
            if flow.random_arrivals && application.completed(number - flows.start) {
                continue;
            }
            if let Some(sender) = flow.sender() {
                record_endpoint(self.recorder, number, sender, flow.random_arrivals, now);
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
