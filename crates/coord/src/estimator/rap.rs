//! RAP's estimate (Rejaie, Handley and Estrin 1999; sections 2.3.3 and 4.2.2), on rates instead of gaps between packets.
//! A step lasts one smoothed round trip; a step without loss adds one packet a round trip. A loss halves the rate at once.
//! The losses of one cluster halve it once: consecutive losses, and losses within a round trip of the back-off, which is the
//! time at which the loss is declared. The fine-grain signal divides the rate by the ratio of a fast to a slow average of the
//! round trip time. The source gives no weights; those here are from ns-2's implementation (`kfrtt_`, `kxrtt_`), where the
//! signal is off by default.
//!
//! A step without arrivals adds nothing to the rate: the source gives no bound on the rate while senders are idle.

use super::{Conditions, Event};
use serde::{Deserialize, Serialize};
use weir_base::{Ewma, Time};

/// Parameters of the estimator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Factor by which a loss multiplies the rate.
    #[schemars(range(min = 0.1, max = 0.9))]
    pub decrease: f64,
    /// Whether the fine-grain signal adapts the rate to the round trip time.
    pub fine_grain: bool,
    /// Weight of a new sample in the fine-grain signal's fast average of the round trip time.
    #[schemars(range(min = 0.001, max = 1.0))]
    pub fast_weight: f64,
    /// Weight of a new sample in the fine-grain signal's slow average of the round trip time.
    #[schemars(range(min = 0.001, max = 1.0))]
    pub slow_weight: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { decrease: 0.5, fine_grain: false, fast_weight: 0.9, slow_weight: 0.01 }
    }
}

/// Smallest rate in packets a round trip: repeated losses do not halve the rate to zero.
const LEAST_PACKETS: f64 = 1.0 / 64.0;

/// The estimator.
#[derive(Debug, Clone)]
pub struct Rap {
    config: Config,
    /// The rate in bytes a second, before the fine-grain signal; `None` before the first event.
    rate: Option<f64>,
    step_ends: Time,
    backed_off: Option<Time>,
    /// The sequence number that would continue the last cluster of losses.
    cluster: u64,
    fast: Ewma,
    slow: Ewma,
}

impl Rap {
    /// An estimator without history.
    pub fn new(config: Config) -> Rap {
        let (fast, slow) = (Ewma::new(config.fast_weight), Ewma::new(config.slow_weight));
        Rap { config, rate: None, step_ends: Time::ZERO, backed_off: None, cluster: u64::MAX, fast, slow }
    }

    /// A packet has arrived.
    #[inline]
    pub fn arrived(&mut self, event: &Event, conditions: &Conditions) {
        if self.config.fine_grain {
            let rtt = conditions.latest_rtt.as_secs_f64();
            self.fast.update(rtt);
            self.slow.update(rtt);
        }
        let step = step(conditions);
        let rate = *self.rate.get_or_insert_with(|| {
            self.step_ends = event.at + conditions.rtt;
            step
        });
        if event.at >= self.step_ends {
            self.rate = Some(rate + step);
            self.step_ends = event.at + conditions.rtt;
        }
    }

    /// Packets were lost; the loss is detected at `now`.
    pub fn lost(&mut self, event: &Event, conditions: &Conditions, now: Time) {
        let continued = event.sequence == self.cluster;
        self.cluster = event.sequence + event.count;
        let damped = self.backed_off.is_some_and(|at| event.at.since(at) <= conditions.rtt);
        if continued || damped {
            return;
        }
        let step = step(conditions);
        let rate = self.rate.unwrap_or(step) * self.config.decrease;
        self.rate = Some(rate.max(step * LEAST_PACKETS));
        // Packets sent before the sender learns of the loss belong to the same cluster: a round trip from now, not from the loss.
        self.backed_off = Some(now);
        self.step_ends = now + conditions.rtt;
    }

    /// The rate in bytes a second.
    #[inline]
    pub fn rate(&self, conditions: &Conditions) -> f64 {
        let rate = self.rate.unwrap_or_else(|| step(conditions));
        match (self.config.fine_grain, self.fast.value(), self.slow.value()) {
            (true, Some(fast), Some(slow)) if fast > 0.0 => rate * slow / fast,
            _ => rate,
        }
    }

    /// Internal state for the records.
    pub fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("rap_rate_mbps", self.rate.unwrap_or(0.0) * 8.0 / 1e6);
    }
}

/// One packet a round trip, in bytes a second.
fn step(conditions: &Conditions) -> f64 {
    conditions.size / conditions.rtt.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Span;

    /// Packets of 1,000 bytes and 100 ms: a step is 10,000 B/s.
    fn conditions(latest_ms: u64) -> Conditions {
        let rtt = Span::from_millis(100);
        Conditions { rtt, latest_rtt: Span::from_millis(latest_ms), size: 1000.0, receiving: 0.0 }
    }

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn event(sequence: u64, at: u64) -> Event {
        Event { sequence, count: 1, at: ms(at) }
    }

    /// An estimator after nine packets, one each 50 ms: a step ends at 100, 200, 300 and 400 ms.
    fn grown() -> Rap {
        let mut rap = Rap::new(Config::default());
        for n in 0..9 {
            rap.arrived(&event(n, n * 50), &conditions(100));
        }
        rap
    }

    #[test]
    fn a_step_without_loss_adds_a_packet_a_round_trip() {
        assert_eq!(grown().rate(&conditions(100)), 50_000.0);
    }

    #[test]
    fn a_cluster_of_losses_halves_the_rate_once() {
        let mut rap = grown();
        rap.lost(&event(9, 410), &conditions(100), ms(410));
        assert_eq!(rap.rate(&conditions(100)), 25_000.0);
        rap.lost(&event(12, 500), &conditions(100), ms(500));
        assert_eq!(rap.rate(&conditions(100)), 25_000.0, "within a round trip of the back-off");
        rap.lost(&event(13, 511), &conditions(100), ms(511));
        assert_eq!(rap.rate(&conditions(100)), 25_000.0, "13 continues the cluster of 12");
        rap.lost(&event(20, 512), &conditions(100), ms(512));
        assert_eq!(rap.rate(&conditions(100)), 12_500.0);
        rap.arrived(&event(21, 600), &conditions(100));
        assert_eq!(rap.rate(&conditions(100)), 12_500.0, "the step began with the loss");
        rap.arrived(&event(22, 612), &conditions(100));
        assert_eq!(rap.rate(&conditions(100)), 22_500.0);
    }

    #[test]
    fn losses_of_packets_sent_before_a_back_off_takes_effect_cause_no_second_one() {
        let mut rap = grown();
        // The loss at 400 ms is declared at 440 ms. Packets due until 540 ms had left before the sender learned of the loss.
        rap.lost(&event(9, 400), &conditions(100), ms(440));
        rap.lost(&event(12, 530), &conditions(100), ms(560));
        assert_eq!(rap.rate(&conditions(100)), 25_000.0);
        rap.lost(&event(14, 545), &conditions(100), ms(560));
        assert_eq!(rap.rate(&conditions(100)), 12_500.0);
    }

    #[test]
    fn an_idle_second_adds_one_step() {
        let mut rap = grown();
        rap.arrived(&event(9, 1400), &conditions(100));
        assert_eq!(rap.rate(&conditions(100)), 60_000.0);
    }

    #[test]
    fn the_fine_grain_signal_lowers_the_rate_while_the_round_trip_grows() {
        let mut rap = Rap::new(Config { fine_grain: true, ..Config::default() });
        rap.arrived(&event(0, 0), &conditions(100));
        assert_eq!(rap.rate(&conditions(100)), 10_000.0);
        // Fast average 190 ms, slow 101 ms.
        rap.arrived(&event(1, 10), &conditions(200));
        assert!((rap.rate(&conditions(200)) - 10_000.0 * 101.0 / 190.0).abs() < 1e-6);
    }
}
