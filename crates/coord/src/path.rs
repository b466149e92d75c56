//! An AP's measurements of the path between the two APs for one application, and its reports to the other AP.
//!
//! The AP that receives a direction's packets detects its losses and estimates its rate, because the loss history is there
//! (section 4.2), and reports both with the packets of the other direction.

use crate::config::Measurement;
use crate::header::{Probe, Version};
use crate::loss::{Detector, Outcome};
use crate::share::Share;
use crate::{Rtt, Series};
use weir_base::{Random, Span, Time};

/// Weight of a new sample in the smoothed values of loss and bandwidth, and in other averages whose weight the source omits.
pub(crate) const WEIGHT: f64 = 0.1;
/// Packets without an echo after a possible restart: a peer of version 1 learns of the restart even if two of them are lost.
const UNECHOED: u8 = 3;
/// Bytes in the unit of bandwidth on the wire and in cells.
pub(crate) const KIB: f64 = 1024.0;

/// The state of one application's path.
#[derive(Debug, Clone)]
pub struct Path {
    rtt: Rtt,
    detector: Detector,
    share: Share,
    /// Number of the next packet that leaves.
    next: u64,
    /// Packets that have yet to leave without an echo.
    unechoed: u8,
    /// Whether the last packet of the other AP echoed a timestamp.
    echoing: bool,
    loss_interval: Span,
    interval_ends: Time,
    /// Inbound packets of this interval that arrived, and those found lost.
    arrived: u64,
    lost: u64,
    /// Fraction lost in the last interval, in units of 2^-32.
    fraction: u32,
    total_arrived: u64,
    total_lost: u64,
    restarts: u64,
    /// The other AP's reports on the outbound direction: loss in units of 2^-16, bandwidth in KiB/s.
    pub(crate) loss: Series,
    pub(crate) bandwidth: Series,
    /// The same quantities of the inbound direction, as measured here.
    pub(crate) inbound_loss: Series,
    pub(crate) inbound_bandwidth: Series,
}

impl Path {
    /// A path without traffic. `first` is the number of the first packet that leaves; its upper 32 bits must grow with every
    /// restart. If they are not zero, the path may have restarted: its first packets echo nothing, which tells a peer of
    /// version 1.
    pub fn new(measurement: &Measurement, loss_interval: Span, first: u64, random: Random) -> Path {
        let series = || Series::new(WEIGHT);
        Path {
            rtt: Rtt::default(),
            detector: Detector::default(),
            share: Share::new(measurement, random),
            next: first,
            unechoed: if first >> 32 > 0 { UNECHOED } else { 0 },
            echoing: false,
            loss_interval,
            interval_ends: Time::ZERO,
            arrived: 0,
            lost: 0,
            fraction: 0,
            total_arrived: 0,
            total_lost: 0,
            restarts: 0,
            loss: series(),
            bandwidth: series(),
            inbound_loss: series(),
            inbound_bandwidth: series(),
        }
    }

    /// The probe of a packet that leaves now.
    #[inline]
    pub fn probe(&mut self, now: Time) -> Probe {
        let sequence = self.next;
        self.next = self.next.wrapping_add(1);
        let echo = if self.unechoed == 0 { self.rtt.echo(now) } else { None };
        self.unechoed = self.unechoed.saturating_sub(1);
        Probe {
            timestamp: Rtt::timestamp(now),
            echo,
            bandwidth: self.available().map_or(0, in_kib),
            loss: self.fraction,
            sequence,
        }
    }

    /// Takes the probe of a packet of `length` bytes that arrived.
    #[inline]
    pub fn arrived(&mut self, probe: &Probe, version: Version, length: u32, now: Time) -> Outcome {
        // A peer that no longer echoes has restarted; its numbers begin anew. In version 2 the epoch shows a restart.
        if version == Version::One && self.echoing && probe.echo.is_none() {
            self.detector.restart();
        }
        self.echoing = probe.echo.is_some();
        let rtt = self.rtt.smoothed();
        let (share, mut lost) = (&mut self.share, 0);
        let outcome = self.detector.arrived(probe.sequence, version, now, |losses| {
            lost += losses.count;
            share.lost(&losses, rtt, now);
        });
        self.lost += lost;
        self.total_lost += lost;
        if outcome == Outcome::Stale {
            return outcome;
        }
        self.restarts += u64::from(outcome == Outcome::Restart);
        self.arrived += 1;
        self.total_arrived += 1;
        let latest = self.rtt.arrived(probe, now);
        let rtt = self.rtt.smoothed();
        self.share.arrived(now, rtt, latest.or(rtt).unwrap_or_default(), length.into());
        if probe.bandwidth > 0 {
            self.bandwidth.add(probe.bandwidth.into());
        }
        self.loss.add(f64::from(probe.loss) / 65_536.0);
        outcome
    }

    /// Samples the inbound bandwidth, and computes the loss fraction at the end of each interval.
    pub fn tick(&mut self, now: Time) {
        if let Some(available) = self.available() {
            self.inbound_bandwidth.add(available / KIB);
        }
        if now < self.interval_ends {
            return;
        }
        self.interval_ends = now + self.loss_interval;
        let packets = self.arrived + self.lost;
        if packets > 0 {
            let fraction = self.lost as f64 / packets as f64;
            self.inbound_loss.add(fraction * 65_536.0);
            self.fraction = (fraction * 4_294_967_296.0) as u32;
            (self.arrived, self.lost) = (0, 0);
        }
    }

    /// The rate of one flowshare for inbound packets, in bytes a second; `None` before the first round trip time.
    pub fn available(&self) -> Option<f64> {
        self.share.available()
    }

    /// Round trip times.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The number of the next packet that leaves.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Internal state as names and values, for the records.
    pub fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("rtt_ms", self.rtt.smoothed().map_or(0.0, Span::as_millis_f64));
        report("flowshare_mbps", self.available().unwrap_or(0.0) * 8.0 / 1e6);
        let told = f64::from(self.bandwidth.value(crate::Statistic::Latest));
        report("outbound_flowshare_mbps", told * KIB * 8.0 / 1e6);
        report("loss_fraction", f64::from(self.fraction) / 4_294_967_296.0);
        report("packets_arrived", self.total_arrived as f64);
        report("packets_lost", self.total_lost as f64);
        report("peer_restarts", self.restarts.saturating_sub(1) as f64);
        self.share.state(report);
    }
}

/// A rate in bytes a second in the unit of the wire and the cells: KiB/s, from 1 to 2^24 - 1.
fn in_kib(bytes_per_second: f64) -> u32 {
    ((bytes_per_second / KIB + 0.5) as u32).clamp(1, crate::header::VALUE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> Path {
        Path::new(&Measurement::default(), Span::from_secs(1), 1 << 32, Random::stream(1, "path"))
    }

    /// Two paths that face each other over 25 ms each way. `a` sends `packets` packets of 1,000 bytes, one each `gap`
    /// microseconds, and `lost` says which of them are lost; `b` answers each tenth with 40 bytes.
    fn exchange(a: &mut Path, b: &mut Path, from: Time, packets: u64, gap: u64, lost: impl Fn(u64) -> bool) {
        let delay = Span::from_millis(25);
        let mut back = std::collections::VecDeque::new();
        for n in 0..packets {
            let sent = from + Span::from_micros(gap) * n;
            while back.front().is_some_and(|(at, _): &(Time, Probe)| *at <= sent) {
                let (at, probe) = back.pop_front().unwrap();
                a.arrived(&probe, Version::Two, 40, at);
            }
            let probe = a.probe(sent);
            if !lost(n) {
                b.arrived(&probe, Version::Two, 1000, sent + delay);
                if n % 10 == 0 {
                    back.push_back((sent + delay + delay, b.probe(sent + delay)));
                }
            }
            a.tick(sent);
            b.tick(sent);
        }
    }

    #[test]
    fn the_sender_learns_round_trip_loss_and_flowshare_from_the_receiver() {
        let (mut a, mut b) = (path(), path());
        // 1,000 packets a second, each hundredth lost: at p = 0.01 and 50 ms, a flowshare with packets of 1,000 bytes is 224,664 B/s.
        exchange(&mut a, &mut b, Time::ZERO, 20_000, 1000, |n| n % 100 == 99);
        let rtt = a.rtt().smoothed().unwrap();
        assert!(rtt.as_nanos().abs_diff(50_000_000) < 20_000, "{rtt}");
        let share = weir_control::tfrc::throughput(1000.0, rtt, 0.01, 1.0, 4.0) / KIB;
        let reported = f64::from(a.bandwidth.value(crate::Statistic::Latest));
        // One sender of a megabyte a second is 4.45 flowshares: the filter makes the estimate a noisy one.
        assert!((reported / share - 1.0).abs() < 0.35, "{reported} {share}");
        let loss = f64::from(a.loss.value(crate::Statistic::Smoothed)) / 65_536.0;
        assert!((loss - 0.01).abs() < 0.0005, "{loss}");
    }

    #[test]
    fn an_aggregation_point_that_restarts_causes_no_loss() {
        let (mut a, mut b) = (path(), path());
        exchange(&mut a, &mut b, Time::ZERO, 5_000, 1000, |_| false);
        let (before, share) = (b.total_arrived, b.available());
        let mut restarted =
            Path::new(&Measurement::default(), Span::from_secs(1), 7 << 32, Random::stream(2, "path"));
        exchange(&mut restarted, &mut b, Time::from_nanos(6_000_000_000), 500, 1000, |_| false);
        assert_eq!((b.total_lost, b.total_arrived, b.restarts), (0, before + 500, 2));
        assert!(share.is_some() && restarted.rtt().smoothed().is_some());
    }

    #[test]
    fn either_aggregation_point_recovers_the_bandwidth_ten_round_trips_after_a_restart() {
        let (mut a, mut b) = (path(), path());
        let lost = |n: u64| n % 100 == 99;
        exchange(&mut a, &mut b, Time::ZERO, 20_000, 1000, lost);
        let (share, told) = (b.available().unwrap(), a.bandwidth.value(crate::Statistic::Smoothed));
        let anew = |epoch: u64| {
            Path::new(&Measurement::default(), Span::from_secs(1), epoch << 32, Random::stream(2, "path"))
        };
        // The AP at the senders learns the bandwidth from the first packets that return: ten round trips of 50 ms are 500 packets.
        let mut senders = anew(7);
        exchange(&mut senders, &mut b, Time::from_nanos(21_000_000_000), 500, 1000, lost);
        let again = senders.bandwidth.value(crate::Statistic::Latest);
        assert!(again > told / 2, "{again} after {told}");
        // The last loss before the restart and the very last loss are not yet detected.
        assert_eq!(b.total_lost, 199 + 4);
        // The AP at the receivers begins with the arriving rate and approaches the share from above.
        let mut receivers = anew(8);
        exchange(&mut senders, &mut receivers, Time::from_nanos(22_000_000_000), 500, 1000, lost);
        assert!(receivers.available().unwrap() > 0.9 * share, "{:?} after {share}", receivers.available());
        assert_eq!(receivers.total_lost, 4);
    }

    #[test]
    fn a_version_1_peer_that_stops_echoing_counts_as_restarted() {
        let mut b = path();
        let echo = Some(crate::header::Echo { timestamp: crate::Ticks::new(9), delay: crate::Ticks::new(1) });
        let mut arrive = |sequence, echo| {
            let probe = Probe { sequence, echo, ..Probe::default() };
            b.arrived(&probe, Version::One, 1000, Time::from_nanos(5_000_000_000))
        };
        assert_eq!(arrive(100, echo), Outcome::Restart);
        assert_eq!(arrive(101, echo), Outcome::New);
        assert_eq!(arrive(2000, None), Outcome::Restart);
        assert_eq!(arrive(2001, None), Outcome::New);
        assert_eq!(arrive(2002, echo), Outcome::New);
        assert_eq!(b.total_lost, 0);
    }

    #[test]
    fn a_restarted_version_1_aggregation_point_that_hears_its_peer_first_causes_no_loss() {
        // The numbers before the restart end at 65,500, those after it begin at 65,536: without the missing echoes, 36 losses.
        let from =
            |first| Path::new(&Measurement::default(), Span::from_secs(1), first, Random::stream(1, "path"));
        let (mut a, mut b) = (from(65_400), path());
        let mut now = Time::from_nanos(1_000_000_000);
        let mut round = |a: &mut Path, b: &mut Path| {
            now += Span::from_millis(1);
            let probe = b.probe(now);
            a.arrived(&probe, Version::One, 1000, now);
            let probe = a.probe(now);
            b.arrived(&probe, Version::One, 1000, now)
        };
        (0..100).for_each(|n| assert_eq!(round(&mut a, &mut b) == Outcome::Restart, n == 0));
        let mut restarted = from(1 << 32);
        assert_eq!(round(&mut restarted, &mut b), Outcome::Restart);
        (0..100).for_each(|_| assert_eq!(round(&mut restarted, &mut b), Outcome::New));
        assert_eq!((b.total_lost, restarted.total_lost, b.restarts), (0, 0, 2));
        assert!(b.rtt().smoothed().is_some() && restarted.rtt().smoothed().is_some());
    }

    #[test]
    fn a_long_run_of_losses_is_counted_in_full() {
        let (mut a, mut b) = (path(), path());
        exchange(&mut a, &mut b, Time::ZERO, 20_000, 1000, |n| (5_000..15_000).contains(&n));
        assert_eq!(b.total_lost, 10_000);
    }
}
