//! TFRC's estimate (RFC 5348; sections 2.3 and 4.2.1): the throughput equation over the loss event rate, which is the
//! inverse of a weighted mean of the last eight loss intervals and the open one, with history discounting.
//!
//! Two variants differ where the equation has no answer or no bound. `rfc5348`: before the first loss the rate is twice what
//! arrives, from an initial window a round trip, and later never above twice what arrives (sections 4.2 and 4.3 there).
//! `dissertation`: before the first loss the rate is `default_rate`, and there is no bound by what arrives; the text does not
//! give the default rate and calls it once a minimum (6.7.5) and once a maximum (6.10.1).

use super::{Conditions, Event};
use serde::{Deserialize, Serialize};
use weir_base::{Rate, Span, Time, math};

/// Which reading of the estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// As RFC 5348 has it.
    Rfc5348,
    /// As the coordination dissertation has it.
    Dissertation,
}

/// Parameters of the estimator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which reading of the estimator.
    pub variant: Variant,
    /// Packets that one acknowledgement of the TCP in the equation covers (`b`).
    #[schemars(range(min = 1, max = 2))]
    pub packets_acked: u32,
    /// Retransmission timeout of the TCP in the equation, in round trips (`t_RTO / R`).
    #[schemars(range(min = 1.0, max = 100.0))]
    pub timeout_rtts: f64,
    /// Whether old intervals lose weight while the open one is long (RFC 5348, section 5.5).
    pub discounting: bool,
    /// The rate before the first loss of the variant `dissertation`.
    pub default_rate: Rate,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            variant: Variant::Rfc5348,
            packets_acked: 1,
            timeout_rtts: 4.0,
            discounting: true,
            default_rate: Rate::from_mbit_per_sec(1),
        }
    }
}

/// Loss intervals in the mean (RFC 5348, section 5.4).
const INTERVALS: usize = 8;
/// Their weights, newest first.
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Least discount of an old interval (RFC 5348, section 5.5).
const LEAST_DISCOUNT: f64 = 0.5;
/// A flow sends at least a packet in this many seconds (RFC 5348, section 4.3, `t_mbi`).
const LONGEST_GAP: f64 = 64.0;
/// Bytes of the initial window, at least two packets and at most four (RFC 5348, section 4.2).
const INITIAL_WINDOW: f64 = 4380.0;

/// The throughput equation (RFC 5348, section 3.1; equation 2.2): bytes a second for packets of `size` bytes, a loss event
/// rate `p` in (0, 1], `b` packets an acknowledgement and a timeout of `timeout_rtts` round trips.
pub fn throughput(size: f64, rtt: Span, p: f64, b: f64, timeout_rtts: f64) -> f64 {
    let root = math::sqrt(p);
    let congestion = math::sqrt(2.0 * b / 3.0) * root;
    let timeouts = timeout_rtts * 3.0 * math::sqrt(3.0 * b / 8.0) * root * p * (1.0 + 32.0 * p * p);
    size / (rtt.as_secs_f64() * (congestion + timeouts))
}

/// The estimator.
#[derive(Debug, Clone)]
pub struct Tfrc {
    config: Config,
    /// Start of the open loss interval: number and time of the loss that began the last loss event.
    open: Option<(u64, Time)>,
    /// The latest number of the virtual stream.
    latest: u64,
    /// Closed intervals in packets, newest first, and what discounting has left of their weights.
    intervals: [f64; INTERVALS],
    discounts: [f64; INTERVALS],
    closed: usize,
    /// Sums over the closed intervals, which change with a loss event only.
    sums: Sums,
}

/// Weighted sums of closed intervals and of the weights: with the open interval before them, and without.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    behind_open: (f64, f64),
    alone: (f64, f64),
}

impl Tfrc {
    /// An estimator that has seen no loss.
    pub fn new(config: Config) -> Tfrc {
        Tfrc {
            config,
            open: None,
            latest: 0,
            intervals: [0.0; INTERVALS],
            discounts: [1.0; INTERVALS],
            closed: 0,
            sums: Sums::default(),
        }
    }

    /// A packet has arrived.
    #[inline]
    pub fn arrived(&mut self, event: &Event) {
        self.latest = self.latest.max(event.sequence);
    }

    /// Packets were lost. Losses within a round trip of the first one are the same loss event.
    pub fn lost(&mut self, event: &Event, conditions: &Conditions) {
        self.latest = self.latest.max(event.sequence + event.count - 1);
        match self.open {
            Some((_, at)) if event.at.since(at) <= conditions.rtt => return,
            Some((sequence, _)) => {
                let interval = (event.sequence - sequence) as f64;
                self.close(interval, self.discount(interval));
            }
            // The interval before the first loss is the one that explains the rate until then (RFC 5348, section 6.3.1).
            None => self.close(self.interval_of(conditions), 1.0),
        }
        self.open = Some((event.sequence, event.at));
    }

    /// The loss event rate, in (0, 1]; none before the first loss.
    pub fn loss_event_rate(&self) -> Option<f64> {
        let (sequence, _) = self.open?;
        let open = (self.latest - sequence) as f64;
        let discount = self.discount(open);
        let Sums { behind_open, alone } = self.sums;
        let with_open = (open + discount * behind_open.0) / (1.0 + discount * behind_open.1);
        Some((1.0 / with_open.max(alone.0 / alone.1)).min(1.0))
    }

    /// The rate in bytes a second.
    #[inline]
    pub fn rate(&self, conditions: &Conditions) -> f64 {
        let Conditions { rtt, size, receiving, .. } = *conditions;
        let initial = INITIAL_WINDOW.clamp(2.0 * size, 4.0 * size) / rtt.as_secs_f64();
        let received = initial.max(2.0 * receiving);
        let rate = match (self.loss_event_rate(), self.config.variant) {
            (None, Variant::Rfc5348) => received,
            (None, Variant::Dissertation) => self.config.default_rate.bits_per_sec() as f64 / 8.0,
            (Some(p), Variant::Rfc5348) => self.equation(p, conditions).min(received),
            (Some(p), Variant::Dissertation) => self.equation(p, conditions),
        };
        rate.max(size / LONGEST_GAP)
    }

    /// Internal state for the records.
    pub fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("loss_event_rate", self.loss_event_rate().unwrap_or(0.0));
        report("loss_intervals", self.closed as f64);
    }

    fn equation(&self, p: f64, conditions: &Conditions) -> f64 {
        let Config { packets_acked, timeout_rtts, .. } = self.config;
        throughput(conditions.size, conditions.rtt, p, packets_acked.into(), timeout_rtts)
    }

    /// How much weight old intervals keep beside an open one that is long.
    fn discount(&self, open: f64) -> f64 {
        let mean = self.sums.alone.0 / self.sums.alone.1;
        if self.config.discounting && self.closed > 0 && open > 2.0 * mean {
            (2.0 * mean / open).max(LEAST_DISCOUNT)
        } else {
            1.0
        }
    }

    /// Closes an interval; older ones keep `discount` of their weight.
    fn close(&mut self, interval: f64, discount: f64) {
        self.intervals.copy_within(..INTERVALS - 1, 1);
        self.discounts.copy_within(..INTERVALS - 1, 1);
        for old in &mut self.discounts[1..] {
            *old *= discount;
        }
        (self.intervals[0], self.discounts[0]) = (interval.max(1.0), 1.0);
        self.closed = (self.closed + 1).min(INTERVALS);
        self.sums = Sums::default();
        let kept = self.intervals.iter().zip(&self.discounts).take(self.closed);
        for (i, (interval, discount)) in kept.enumerate() {
            let add = |sums: &mut (f64, f64), weight: f64| {
                sums.0 += weight * discount * interval;
                sums.1 += weight * discount;
            };
            add(&mut self.sums.alone, WEIGHTS[i]);
            if let Some(weight) = WEIGHTS.get(i + 1) {
                add(&mut self.sums.behind_open, *weight);
            }
        }
    }

    /// The loss interval at which the equation gives the rate that arrives now.
    fn interval_of(&self, conditions: &Conditions) -> f64 {
        let (mut low, mut high) = (1e-8f64, 1.0f64);
        // The rate falls with p: bisection of the exponent, to a thousandth.
        while high / low > 1.001 {
            let middle = math::sqrt(low * high);
            if self.equation(middle, conditions) > conditions.receiving {
                low = middle
            } else {
                high = middle
            }
        }
        1.0 / high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(rtt_ms: u64, receiving: f64) -> Conditions {
        let rtt = Span::from_millis(rtt_ms);
        Conditions { rtt, latest_rtt: rtt, size: 1460.0, receiving }
    }

    /// An estimator after losses at these numbers, ten round trips apart; a packet arrives for each number between.
    fn after(config: Config, losses: &[u64], receiving: f64) -> Tfrc {
        let mut tfrc = Tfrc::new(config);
        for (n, sequence) in losses.iter().enumerate() {
            let at = Time::from_nanos(n as u64 * 500_000_000);
            tfrc.lost(&Event { sequence: *sequence, count: 1, at }, &conditions(50, receiving));
        }
        tfrc
    }

    #[test]
    fn the_equation_gives_the_values_worked_out_by_hand() {
        // size, round trip in ms, p and bytes a second.
        for (size, rtt, p, expected) in [
            (1460.0, 50, 0.005, 483_963.0),
            (1460.0, 50, 0.01, 328_010.0),
            (1460.0, 50, 0.02, 213_887.0),
            (1460.0, 50, 0.03, 161_590.0),
            (1460.0, 50, 0.04, 129_722.0),
            (1460.0, 4, 0.01, 4_100_127.0),
            (1460.0, 120, 0.01, 136_671.0),
            (1000.0, 108, 0.01, 104_011.0),
            (1000.0, 108, 0.02, 67_823.0),
            (1460.0, 40, 0.05, 134_535.0),
        ] {
            let rate = throughput(size, Span::from_millis(rtt), p, 1.0, 4.0);
            assert!((rate - expected).abs() <= 1.0, "{size} {rtt} {p}: {rate}");
        }
    }

    #[test]
    fn equal_intervals_give_their_inverse() {
        let losses: Vec<u64> = (0..12).map(|n| 50 + n * 50).collect();
        let tfrc = after(Config::default(), &losses, 1e5);
        let p = tfrc.loss_event_rate().unwrap();
        assert!((p - 0.02).abs() < 1e-12, "{p}");
        assert_eq!(WEIGHTS.iter().sum::<f64>(), 6.0);
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut tfrc = after(Config::default(), &(0..12).map(|n| n * 50).collect::<Vec<_>>(), 1e5);
        let before = tfrc.clone();
        let last = Time::from_nanos(11 * 500_000_000);
        tfrc.lost(&Event { sequence: 560, count: 3, at: last + Span::from_millis(50) }, &conditions(50, 1e5));
        assert_eq!(tfrc.intervals, before.intervals);
        tfrc.lost(&Event { sequence: 570, count: 1, at: last + Span::from_millis(51) }, &conditions(50, 1e5));
        assert_eq!(tfrc.intervals[0], 20.0);
    }

    #[test]
    fn an_open_interval_counts_only_once_it_raises_the_mean() {
        let losses: Vec<u64> = (0..12).map(|n| n * 60).collect();
        let mut tfrc = after(Config { discounting: false, ..Config::default() }, &losses, 1e5);
        let mut arrive = |sequence| {
            tfrc.arrived(&Event { sequence, count: 1, at: Time::ZERO });
            1.0 / tfrc.loss_event_rate().unwrap()
        };
        assert!((arrive(11 * 60 + 59) - 60.0).abs() < 1e-9);
        // The open interval of 120 takes the place of an old one: (120 + 5 * 60) / 6, with weights 1, 1, 1, 1, .8, .6, .4, .2.
        assert!((arrive(11 * 60 + 120) - (120.0 + 5.0 * 60.0) / 6.0).abs() < 1e-9);
    }

    #[test]
    fn old_intervals_lose_weight_while_the_open_one_is_long() {
        let losses: Vec<u64> = (0..12).map(|n| n * 60).collect();
        let mut tfrc = after(Config::default(), &losses, 1e5);
        tfrc.arrived(&Event { sequence: 11 * 60 + 180, count: 1, at: Time::ZERO });
        // 180 is three times the mean: the others keep 2/3 of their weight.
        let expected = (180.0 + 2.0 / 3.0 * 300.0) / (1.0 + 2.0 / 3.0 * 5.0);
        assert!((1.0 / tfrc.loss_event_rate().unwrap() - expected).abs() < 1e-9);
        // Ten times the mean: they keep a half, no less.
        tfrc.arrived(&Event { sequence: 11 * 60 + 600, count: 1, at: Time::ZERO });
        let expected = (600.0 + 0.5 * 300.0) / (1.0 + 0.5 * 5.0);
        assert!((1.0 / tfrc.loss_event_rate().unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn the_first_interval_explains_the_rate_before_the_loss() {
        // 328,010 B/s at 50 ms is p = 0.01.
        let tfrc = after(Config::default(), &[500], 328_010.0);
        let p = tfrc.loss_event_rate().unwrap();
        assert!((p / 0.01 - 1.0).abs() < 0.002, "{p}");
    }

    #[test]
    fn before_a_loss_the_rate_is_twice_what_arrives_or_the_default_one() {
        let tfrc = Tfrc::new(Config::default());
        assert_eq!(tfrc.rate(&conditions(50, 1e6)), 2e6);
        assert_eq!(tfrc.rate(&conditions(50, 10.0)), 4380.0 / 0.05);
        let config = Config { variant: Variant::Dissertation, ..Config::default() };
        assert_eq!(Tfrc::new(config).rate(&conditions(50, 1e6)), 125_000.0);
    }

    #[test]
    fn the_variant_of_the_rfc_is_bounded_by_what_arrives() {
        let losses: Vec<u64> = (0..12).map(|n| n * 100).collect();
        let idle = conditions(50, 100e3);
        assert_eq!(after(Config::default(), &losses, 1e5).rate(&idle), 200e3);
        let config = Config { variant: Variant::Dissertation, ..Config::default() };
        assert!((after(config, &losses, 1e5).rate(&idle) - 328_010.0).abs() < 1.0);
    }
}
