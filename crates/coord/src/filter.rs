//! Bandwidth-filtered loss detection (section 4.4.3). An estimator built for one flow is wrong for an aggregate that is
//! denser than one flow: more packets fall into the round trip that one loss event spans. The estimator therefore receives a
//! thinned stream, as dense as one flow: an event of the real stream, arrival or loss, becomes an event of the virtual stream
//! with probability `F = min(1, available / arriving)`. With `k` flowshares in use, `F` is about `1 / k`, and no one needs to
//! know `k`.

use crate::lag::Lag;
use serde::{Deserialize, Serialize};
use weir_base::{Random, Span, Time};

/// Parameters of the filter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether the filter thins the stream. If not, the estimator receives every packet, as in section 4.4.1.
    pub enabled: bool,
    /// Time constant of the average of the arriving rate, in round trips. The source does not give it.
    #[schemars(range(min = 0.01, max = 100.0))]
    pub averaging_rtts: f64,
    /// Whether the filter compares the arriving rate with the flowshare rate of a round trip ago, which the senders followed, averaged
    /// like the arriving rate. In the source it uses the newest flowshare rate, which is ahead of the arriving rate while it rises.
    pub aligned: bool,
    /// Whether the estimator learns of a loss when three later packets of the thinned stream have arrived, as one flow of its protocol
    /// does. In the source it learns of a loss when three later packets of the application have arrived, which is earlier.
    pub own_detection: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { enabled: true, averaging_rtts: 1.0, aligned: false, own_detection: false }
    }
}

/// Smallest time constant of the average, in seconds; also its value before the first round trip time.
const LEAST_AVERAGING: f64 = 0.01;

/// The filter of one application in one direction.
#[derive(Debug, Clone)]
pub struct Filter {
    config: Config,
    /// Average rate of arriving and lost packets, in bytes a second.
    arriving: f64,
    /// The rate of one flowshare that the arriving rate is compared with, in bytes a second; `None` before the first estimate.
    available: Option<f64>,
    lag: Lag,
    last: Option<Time>,
    random: Random,
}

impl Filter {
    /// A filter without traffic, which takes its random numbers from this stream.
    pub fn new(config: Config, random: Random) -> Filter {
        Filter { config, arriving: 0.0, available: None, lag: Lag::default(), last: None, random }
    }

    /// Takes `count` packets of the real stream, `bytes` long together, that arrived or should have arrived at `at`, and
    /// returns how many of them are in the virtual stream. `available` is the rate of one flowshare in bytes a second;
    /// if it is `None`, all packets pass.
    #[inline]
    pub fn thin(
        &mut self,
        count: u64,
        bytes: f64,
        at: Time,
        available: Option<f64>,
        rtt: Option<Span>,
    ) -> u64 {
        let averaging =
            rtt.map_or(0.0, |rtt| rtt.as_secs_f64() * self.config.averaging_rtts).max(LEAST_AVERAGING);
        // First-order low pass with implicit steps: exact for a steady stream with any step. A loss is declared after later
        // arrivals; its step has length zero.
        let step = self.last.map_or(averaging, |last| at.since(last).as_secs_f64());
        self.arriving = (self.arriving * averaging + bytes) / (averaging + step);
        self.available = match (available, rtt) {
            (Some(newest), Some(rtt)) if self.config.aligned => {
                let then = self.lag.update(newest, rtt, at);
                let average = self.available.unwrap_or(then);
                Some((average * averaging + then * step) / (averaging + step))
            }
            _ => available,
        };
        self.last = self.last.max(Some(at));
        match self.fraction() {
            1.0 => count,
            fraction => (fraction * count as f64 + self.random.unit()) as u64,
        }
    }

    /// The probability `F` that an event passes, 0 to 1.
    pub fn fraction(&self) -> f64 {
        match self.available {
            Some(available) if self.config.enabled && available < self.arriving => available / self.arriving,
            _ => 1.0,
        }
    }

    /// The rate of the virtual stream, in bytes a second.
    pub fn virtual_rate(&self) -> f64 {
        self.arriving * self.fraction()
    }

    /// The rate of the real stream, lost packets included, in bytes a second.
    pub fn arriving(&self) -> f64 {
        self.arriving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Span> = Some(Span::from_millis(50));

    /// Feeds packets of 1,000 bytes, one each millisecond, which is 1 MB/s; each tenth is lost. Returns virtual arrivals
    /// and losses of the last `packets` after a second of settling.
    fn feed(filter: &mut Filter, available: Option<f64>, packets: u64) -> (u64, u64) {
        let (mut arrivals, mut losses) = (0, 0);
        for n in 0..1000 + packets {
            let passed = filter.thin(1, 1000.0, Time::from_nanos(n * 1_000_000), available, RTT);
            if n >= 1000 {
                if n % 10 == 0 { losses += passed } else { arrivals += passed }
            }
        }
        (arrivals, losses)
    }

    fn filter() -> Filter {
        Filter::new(Config::default(), Random::stream(1, "filter"))
    }

    #[test]
    fn a_steady_stream_is_averaged_exactly() {
        let mut filter = filter();
        feed(&mut filter, None, 1000);
        assert!((filter.arriving() / 1e6 - 1.0).abs() < 1e-9, "{}", filter.arriving());
    }

    #[test]
    fn a_stream_below_its_flowshare_passes_the_filter_whole() {
        assert_eq!(feed(&mut filter(), Some(2e6), 1000), (900, 100));
        assert_eq!(feed(&mut filter(), None, 1000), (900, 100));
    }

    #[test]
    fn a_quarter_of_four_flowshares_passes_with_the_same_loss_fraction() {
        let (arrivals, losses) = feed(&mut filter(), Some(0.25e6), 100_000);
        // 25,000 of 100,000 events pass, with three standard deviations of 411; for the 2,500 losses, 145.
        assert!((arrivals + losses).abs_diff(25_000) < 411, "{arrivals} + {losses}");
        assert!(losses.abs_diff(2_500) < 145, "{losses}");
    }

    #[test]
    fn a_long_run_of_losses_is_thinned_like_single_ones() {
        let mut filter = filter();
        feed(&mut filter, Some(0.25e6), 1000);
        let passed = filter.thin(1000, 1e6, Time::from_nanos(3_000_000_000), Some(0.25e6), RTT);
        // A second of outage counts as traffic: a megabyte in 1.001 s, of which a fraction of 0.25 or a little less passes.
        assert!((230..=270).contains(&passed), "{passed}");
    }

    #[test]
    fn an_aligned_filter_passes_a_quarter_while_four_flowshares_rise() {
        // The flowshare grows by 2.5 kB/s each millisecond; four flowshares arrive a round trip later.
        let passed = |aligned| {
            let config = Config { aligned, ..Config::default() };
            let mut filter = Filter::new(config, Random::stream(1, "filter"));
            let share = |n: u64| 250e3 + 2500.0 * n as f64;
            let mut fractions = 0.0;
            for n in 50..1050 {
                let (bytes, at) = (4.0 * share(n - 50) / 1e3, Time::from_nanos(n * 1_000_000));
                filter.thin(1, bytes, at, Some(share(n)), RTT);
                fractions += if n >= 250 { filter.fraction() / 800.0 } else { 0.0 };
            }
            fractions
        };
        assert!((passed(true) - 0.25).abs() < 0.005, "{}", passed(true));
        assert!(passed(false) > 0.27, "{}", passed(false));
    }

    #[test]
    fn without_the_filter_everything_passes() {
        let config = Config { enabled: false, ..Config::default() };
        let mut filter = Filter::new(config, Random::stream(1, "filter"));
        assert_eq!(feed(&mut filter, Some(0.25e6), 1000), (900, 100));
    }
}
