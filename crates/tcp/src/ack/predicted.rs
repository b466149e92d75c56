//! The most frequent acknowledgement, which only advances the cumulative number while nothing is missing (header prediction,
//! `tcp_rcv_established`). The steps are those of [`Sender::on_ack`] without the ones that cannot matter then.

use super::super::sender::Sender;
use super::{Arrival, Effects, Report, Tally};
use weir_base::Time;
use weir_control::Phase;

impl Sender {
    /// Whether an acknowledgement up to this position is of the most frequent kind, if it has no SACK blocks and reports no marks: no
    /// segment is SACKed, lost or retransmitted, and no tail loss probe is out.
    #[inline(always)]
    pub(crate) fn predicts(&self, ack: u64) -> bool {
        ack > self.una
            && ack <= self.next
            && self.phase == Phase::Open
            && self.sack
            && self.board.is_plain()
            && self.probe_end == 0
    }

    /// Takes an acknowledgement that [`Sender::predicts`] expects, with the effects that [`Sender::on_ack`] would have.
    #[inline(always)]
    pub(crate) fn on_predicted_ack(&mut self, arrival: &Arrival<'_>, now: Time) {
        self.batch.end();
        self.waits = false;
        let before = self.before();
        let mut effects = Effects { una_advanced: true, echoed: arrival.tsecr, ..Effects::default() };
        let mut tally = Tally::default();
        let predicted = arrival.window == self.window;
        self.expirations = 0;
        self.window_probes = 0;
        effects.window_updated = self.update_window(arrival);
        let low = self.clean_plain(&mut effects, &mut tally, now);
        self.sample_rtt(before.una, 0, &mut effects, &mut tally, now);
        self.check_sack_reordering(low, before.una);
        self.rack.adapt(tally.sampling.prior_delivered, self.delivery.delivered);
        let report = Report { timestamps: self.timestamps_of(arrival), ce_packets: 0, predicted };
        self.tell_delivered(&effects, &tally, &report, now);
        self.conclude(&before, &effects, &tally, &report, 0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::written::Written;
    use weir_base::{Random, Span};

    const MSS: u64 = 1000;
    const START: Time = Time::from_nanos(1_000_000_000);

    fn sender(controller: &str) -> Sender {
        let config = Config { mss: MSS as u16, ..Config::new(controller.parse().expect("it is registered")) };
        let endless = Written { endless: true, ..Written::default() };
        Sender::new(&config, endless, START, 1 << 20, Some(20_000))
    }

    /// Sends all that may leave, and returns the state that acknowledgements change.
    fn answer(sender: &mut Sender, now: Time) -> String {
        while sender.poll(now).is_some() {}
        let Sender { una, next, window, rtt, min_rtt, delivery, rack, pending, deadline, .. } = sender;
        let first = format!(
            "{una} {next} {window} {rtt:?} {min_rtt:?} {delivery:?} {rack:?} {pending:?} {deadline:?}"
        );
        let Sender { board, usage, pacer, round_end, controller, .. } = sender;
        let (out, in_flight) = (board.out(), board.in_flight());
        let mut state =
            format!("{first} {out} {in_flight} {usage:?} {pacer:?} {round_end} {:?}", controller.window());
        controller.state(&mut |name, value| state += &format!(" {name} {value}"));
        state
    }

    #[test]
    fn a_predicted_acknowledgement_has_the_effects_of_any_other() {
        for controller in ["cubic", "newreno", "yield", "lp", "bbr"] {
            let (mut predicting, mut plain) = (sender(controller), sender(controller));
            let (mut random, mut now, mut predicted) = (Random::stream(1, controller), START, 0);
            assert_eq!(answer(&mut predicting, now), answer(&mut plain, now));
            for _ in 0..3_000 {
                now += random.within(Span::from_millis(8));
                // Mostly one or two segments; sometimes a part of one, or nothing.
                let bytes = if random.chance(0.9) { MSS * (1 + random.below(2)) } else { random.below(MSS) };
                let arrival = Arrival {
                    ack: (plain.una + bytes).min(plain.next),
                    seq: 1,
                    window: (1 << 20) - random.below(2) as u32 * 4096,
                    has_data: false,
                    ece: false,
                    feedback: None,
                    tsval: plain.clock.ticks(now),
                    tsecr: plain.clock.ticks(now - Span::from_millis(10)),
                    sack: &[],
                };
                if predicting.predicts(arrival.ack) {
                    predicting.on_predicted_ack(&arrival, now);
                    predicted += 1;
                } else {
                    predicting.on_ack(&arrival, now);
                }
                plain.on_ack(&arrival, now);
                assert_eq!(answer(&mut predicting, now), answer(&mut plain, now), "{controller} at {now:?}");
            }
            assert!(predicted > 1_000, "{controller}: {predicted} were predicted");
        }
    }
}
