//! TFRC's estimate (RFC 5348; sections 2.3 and 4.2.1): the throughput equation over the loss event rate, which is the
//! inverse of a weighted mean of the last eight loss intervals and the open one, with history discounting.
//!
//! Two variants differ where the equation has no answer or no bound. `rfc5348`: before the first loss the rate is twice the
//! arriving rate, at least an initial window a round trip, and later at most twice the arriving rate (sections 4.2 and 4.3 of
//! the RFC). `dissertation`: before the first loss the rate is `default_rate`, and the arriving rate is no bound; the text does
//! not give the default rate and calls it a minimum in 6.7.5 and a maximum in 6.10.1.

use super::{Conditions, Event};
use serde::{Deserialize, Serialize};
use weir_base::Rate;
use weir_control::tfrc::{
    LONGEST_GAP, LossIntervals, initial_window, loss_event_rate_of, recent_throughput, throughput,
};

/// The text that the estimator follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// RFC 5348.
    Rfc5348,
    /// The coordination dissertation.
    Dissertation,
}

/// The TCP whose throughput the equation gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tcp {
    /// Reno, which waits for a timeout if fewer than three later packets follow a lost one (RFC 5348, section 3.1).
    Reno,
    /// TCP with SACK and RACK, which waits for a timeout only if a whole recovery is lost (RFC 8985).
    Rack,
}

/// Values recommended by RFC 5348, section 3.1: `b` = 1 and `t_RTO` = 4 R.
const PACKETS_ACKED: u32 = 1;
const TIMEOUT_RTTS: f64 = 4.0;

/// Parameters of the estimator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The text that the estimator follows: RFC 5348 or the coordination dissertation.
    pub variant: Variant,
    /// The TCP whose throughput the equation gives.
    pub tcp: Tcp,
    /// Packets that one acknowledgement of Reno in the equation covers (`b`); 1 by default.
    #[schemars(range(min = 1, max = 2))]
    pub packets_acked: Option<u32>,
    /// Retransmission timeout of Reno in the equation, in round trips (`t_RTO / R`); 4 by default.
    #[schemars(range(min = 1.0, max = 100.0))]
    pub timeout_rtts: Option<f64>,
    /// Whether old loss intervals lose weight while the open interval is long (RFC 5348, section 5.5).
    pub discounting: bool,
    /// The rate before the first loss in the variant `dissertation`.
    pub default_rate: Rate,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            variant: Variant::Rfc5348,
            tcp: Tcp::Reno,
            packets_acked: None,
            timeout_rtts: None,
            discounting: true,
            default_rate: Rate::from_mbit_per_sec(1),
        }
    }
}

impl Config {
    /// The throughput of the equation in bytes a second at loss event rate `p`.
    fn throughput(&self, conditions: &Conditions, p: f64) -> f64 {
        let Conditions { size, rtt, .. } = *conditions;
        match self.tcp {
            Tcp::Reno => {
                let acked = self.packets_acked.unwrap_or(PACKETS_ACKED);
                throughput(size, rtt, p, acked.into(), self.timeout_rtts.unwrap_or(TIMEOUT_RTTS))
            }
            Tcp::Rack => recent_throughput(size, rtt, p),
        }
    }
}

/// The estimator.
#[derive(Debug, Clone)]
pub struct Tfrc {
    config: Config,
    history: LossIntervals,
}

impl Tfrc {
    /// An estimator without losses.
    pub fn new(config: Config) -> Tfrc {
        let history = LossIntervals::new(config.discounting);
        Tfrc { config, history }
    }

    /// A packet has arrived.
    #[inline]
    pub fn arrived(&mut self, event: &Event) {
        self.history.arrived(event.sequence);
    }

    /// Packets were lost.
    pub fn lost(&mut self, event: &Event, conditions: &Conditions) {
        // The interval before the first loss is the one at which the equation gives the rate so far (RFC 5348, section 6.3.1).
        let config = &self.config;
        let first = || 1.0 / loss_event_rate_of(conditions.receiving, |p| config.throughput(conditions, p));
        self.history.lost(event.sequence, event.count, event.at, conditions.rtt, first);
    }

    /// The rate in bytes a second.
    #[inline]
    pub fn rate(&self, conditions: &Conditions) -> f64 {
        let Conditions { rtt, size, receiving, .. } = *conditions;
        let equation = |p| self.config.throughput(conditions, p);
        let received = || (initial_window(size) / rtt.as_secs_f64()).max(2.0 * receiving);
        let rate = match (self.history.loss_event_rate(), self.config.variant) {
            (None, Variant::Rfc5348) => received(),
            (None, Variant::Dissertation) => self.config.default_rate.bits_per_sec() as f64 / 8.0,
            (Some(p), Variant::Rfc5348) => equation(p).min(received()),
            (Some(p), Variant::Dissertation) => equation(p),
        };
        rate.max(size / LONGEST_GAP)
    }

    /// Internal state for the records.
    pub fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("loss_event_rate", self.history.loss_event_rate().unwrap_or(0.0));
        report("loss_intervals", self.history.closed() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Span, Time};

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
    fn the_first_loss_interval_corresponds_to_the_rate_before_the_loss() {
        // 328,010 B/s at 50 ms corresponds to p = 0.01.
        let tfrc = after(Config::default(), &[500], 328_010.0);
        let p = tfrc.history.loss_event_rate().unwrap();
        assert!((p / 0.01 - 1.0).abs() < 0.002, "{p}");
    }

    #[test]
    fn the_equation_for_rack_gives_a_higher_rate_than_reno_where_windows_are_small() {
        let rate = |tcp, apart: u64| {
            let losses: Vec<u64> = (0..12).map(|n| n * apart).collect();
            let timeout_rtts = (tcp == Tcp::Reno).then_some(2.0);
            after(Config { tcp, timeout_rtts, ..Config::default() }, &losses, 1e9).rate(&conditions(50, 1e9))
        };
        // They are within 4 % of each other at one loss in 100 packets; at one in 6 the newer TCP has 1.66 times as much.
        assert!((rate(Tcp::Rack, 100) / rate(Tcp::Reno, 100) - 1.0).abs() < 0.05);
        assert!(rate(Tcp::Rack, 6) / rate(Tcp::Reno, 6) > 1.5);
    }

    #[test]
    fn the_rate_before_a_loss_is_twice_the_arrival_rate_or_the_default_rate() {
        let tfrc = Tfrc::new(Config::default());
        assert_eq!(tfrc.rate(&conditions(50, 1e6)), 2e6);
        assert_eq!(tfrc.rate(&conditions(50, 10.0)), 4380.0 / 0.05);
        let config = Config { variant: Variant::Dissertation, ..Config::default() };
        assert_eq!(Tfrc::new(config).rate(&conditions(50, 1e6)), 125_000.0);
    }

    #[test]
    fn only_the_variant_of_the_rfc_is_bounded_by_the_arrival_rate() {
        let losses: Vec<u64> = (0..12).map(|n| n * 100).collect();
        let idle = conditions(50, 100e3);
        assert_eq!(after(Config::default(), &losses, 1e5).rate(&idle), 200e3);
        let config = Config { variant: Variant::Dissertation, ..Config::default() };
        assert!((after(config, &losses, 1e5).rate(&idle) - 328_010.0).abs() < 1.0);
    }
}
