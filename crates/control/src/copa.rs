//! Copa: keeps 1/delta packets of its own in the queue, controlled by the delay, and ignores losses. Sources: Arun and Balakrishnan,
//! "Copa: Practical Delay-Based Congestion Control for the Internet" (NSDI 2018), sections 2 and 3; the GNAT report (BBN 2021),
//! section 3.1.1, and the software that it describes.
//!
//! Variant `gnat` paces at the window over the standing RTT, takes the smallest RTT of the last 28 smallest RTTs (at least 0.8 s),
//! leaves out what acknowledgements wait on their way back where the transport tells it, as SLIQ does, and has a [`damper`]. Two things
//! the software does not have: a [`probe`], and a window that is longer by what arrives while acknowledgements wait on their way
//! back. Without that, each of two flows in opposite directions halts the other.
//! Variant `nsdi` paces at twice that rate, takes the smallest RTT of the last 10 s, and competes with flows that fill buffers
//! ([`competition`]). Both have the same [`velocity`].
//!
//! Windows count packets of the connection's size; the GNAT software counts in units of 1,000 bytes.

mod competition;
mod damper;
mod probe;
mod velocity;

use self::competition::Competition;
use self::damper::Damper;
use self::probe::Probe;
use self::velocity::Velocity;
use crate::ranges::within;
use crate::{Ack, Congestion, Controller, Recovery, Signal, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Bytes, Random, Rate, Span, Time, WindowedMin};

/// Which description of Copa is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// As in the GNAT software.
    Gnat,
    /// As published at NSDI 2018.
    Nsdi,
}

/// Parameters of Copa.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which description of Copa is followed.
    pub variant: Variant,
    /// The reciprocal of the number of packets to keep in the queue (0.004 to 1). While `nsdi` competes with flows that fill
    /// buffers, delta is at most this.
    #[serde(deserialize_with = "delta")]
    #[schemars(range(min = 0.004, max = 1.0))]
    pub delta: f64,
    /// Variant `gnat`: whether the window is reduced for a round trip when the smallest RTT has risen, to find out whether the path
    /// or the flow's own queue is the cause. The GNAT software does not do so.
    pub probe: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { variant: Variant::Gnat, delta: 0.5, probe: true }
    }
}

fn delta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, "delta", 0.004..=1.0)
}

/// The smallest and the largest window, in packets (the GNAT software).
const LEAST: f64 = 2.0;
const MOST: f64 = 32_768.0;
/// Below this window, the window may grow although it is not used (the GNAT software).
const SMALL: f64 = 16.0;
/// Weight of a sample in the smoothed RTT (the GNAT software).
const SRTT_WEIGHT: f64 = 1.0 / 16.0;
/// Length of the filter of the smallest RTT: for `gnat` this many smallest RTTs, but at least `GNAT_LEAST`; for `nsdi` fixed.
const GNAT_RTTS: u64 = 28;
const GNAT_LEAST: Span = Span::from_millis(800);
const NSDI_SMALLEST: Span = Span::from_secs(10);
/// Without what acknowledgements wait on their way back, a round trip of variant `gnat` takes at least this long (digest A 4.2).
const LEAST_RTT: Span = Span::from_micros(20);
/// A delay below this, in seconds, counts as zero: clocks are no finer.
const NO_DELAY: f64 = 1e-6;

/// A connection under Copa.
#[derive(Debug)]
pub(crate) struct Copa {
    variant: Variant,
    mss: u64,
    /// The window in packets.
    cwnd: f64,
    slow_start: bool,
    srtt: Option<f64>,
    smallest: WindowedMin<Span>,
    standing: WindowedMin<Span>,
    velocity: Velocity,
    damper: Damper,
    probe: Option<Probe>,
    competition: Competition,
    /// The part of the round trip without queueing on the way back by which that queueing makes it longer.
    back: f64,
}

impl Copa {
    pub(crate) fn new(config: &Config, start: &Start) -> Copa {
        let (cwnd, mss) = (f64::from(start.initial_window).max(LEAST), start.mss.get());
        Copa {
            variant: config.variant,
            mss,
            cwnd,
            slow_start: true,
            srtt: None,
            smallest: WindowedMin::new(),
            standing: WindowedMin::new(),
            velocity: Velocity::new(cwnd),
            damper: Damper::new(cwnd, mss),
            probe: config.probe.then(Probe::default),
            competition: Competition::new(config.delta),
            back: 0.0,
        }
    }

    /// The window without what arrives while acknowledgements wait on their way back, in packets.
    fn own(&self) -> f64 {
        // A probe lowers the window and does not raise it.
        self.probed().map_or(self.cwnd, |window| window.clamp(LEAST, self.cwnd))
    }

    fn bytes(&self, packets: f64) -> u64 {
        (packets * self.mss as f64) as u64
    }

    /// The packets of the connection's size that an acknowledgement has newly delivered, smaller ones by their bytes (digest A 4.2).
    fn delivered(&self, ack: &Ack) -> f64 {
        ack.delivered_bytes.get() as f64 / self.mss as f64
    }

    /// The window of a probe in packets; `None` if no probe is under way.
    fn probed(&self) -> Option<f64> {
        self.probe.as_ref().and_then(Probe::window)
    }

    /// The current delta.
    fn delta(&self) -> f64 {
        self.competition.delta()
    }

    /// Length of the filter of the smallest RTT; `rtt` is the newest sample.
    fn looked_for(&self, rtt: Span) -> Span {
        match self.variant {
            Variant::Gnat => (self.smallest.value().unwrap_or(rtt) * GNAT_RTTS).max(GNAT_LEAST),
            Variant::Nsdi => NSDI_SMALLEST,
        }
    }

    /// Takes an RTT sample; returns the standing RTT and the queuing delay, in seconds.
    fn take(&mut self, rtt: Span, now: Time) -> (f64, f64) {
        let sample = rtt.as_secs_f64();
        let srtt = self.srtt.map_or(sample, |srtt| srtt + SRTT_WEIGHT * (sample - srtt));
        self.srtt = Some(srtt);
        let smallest = self.smallest.update(self.looked_for(rtt), now, rtt);
        let standing = self.standing.update(Span::from_secs_f64(srtt / 2.0), now, rtt);
        let delay = standing.saturating_sub(smallest).as_secs_f64();
        if self.variant == Variant::Nsdi {
            self.competition.take(rtt, srtt, smallest, delay, now);
        }
        (standing.as_secs_f64().max(NO_DELAY), delay)
    }

    /// Sets the window, within its bounds.
    fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(LEAST, MOST);
    }

    /// Moves the window after slow start, up if `rises`; `used` says whether the window may grow.
    fn steer(&mut self, ack: &Ack, rises: bool, used: bool) {
        let delta = self.delta();
        // The velocity is limited so that a round trip at most doubles the window (the GNAT software).
        self.velocity.on_ack(ack, self.cwnd, rises, delta * self.cwnd);
        let step = self.velocity.get() * self.delivered(ack) / (delta * self.cwnd);
        match rises {
            true if used => self.set(self.cwnd + step),
            true => {}
            false => self.set(self.cwnd - step),
        }
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        let Some(sample) = ack.rtt else { return };
        let rtt = match self.variant {
            Variant::Gnat => sample.rtt.saturating_sub(sample.queued_back).max(LEAST_RTT),
            Variant::Nsdi => sample.rtt,
        };
        let (standing, delay) = self.take(rtt, ack.now);
        if self.variant == Variant::Gnat {
            self.back = sample.queued_back.as_secs_f64() / standing;
        }
        if self.variant == Variant::Nsdi && ack.round_start {
            self.competition.round();
        }
        // The target and the current rate, in packets per second.
        let target = if delay > NO_DELAY { 1.0 / (self.delta() * delay) } else { f64::INFINITY };
        let rises = self.cwnd / standing <= target;
        let used =
            self.cwnd < SMALL || 2.0 * ack.in_flight_before.get() as f64 >= self.cwnd * self.mss as f64;
        if self.slow_start {
            if used {
                self.set(self.cwnd + self.delivered(ack));
            }
            self.slow_start = rises;
        } else if self.variant == Variant::Nsdi {
            self.steer(ack, rises, used);
        } else {
            let waiting = delay * self.cwnd / standing;
            if let Some(cwnd) = self.damper.on_ack(ack, waiting, 1.0 / self.delta()) {
                self.set(cwnd);
                self.velocity.reset(ack, self.cwnd, rises);
            }
            let over = self.looked_for(rtt);
            if let Some((probe, smallest)) = self.probe.as_mut().zip(self.smallest.value()) {
                probe.on_ack(ack, smallest, over, standing, self.cwnd, 1.0 / self.competition.delta());
            }
            if !self.damper.holds() && self.probed().is_none() {
                self.steer(ack, rises, used);
            }
        }
        if self.variant == Variant::Gnat {
            self.damper.note(ack, self.cwnd);
        }
    }

    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        if congestion.signal == Signal::Loss {
            self.competition.on_loss();
        }
    }

    fn open_to(&mut self, window: Bytes) {
        let cwnd = window.get() as f64 / self.mss as f64;
        if self.slow_start && cwnd > self.cwnd {
            (self.cwnd, self.slow_start) = (cwnd, false);
        }
    }
    fn set_mss(&mut self, mss: Bytes) {
        self.mss = mss.get().max(1);
        self.damper.set_mss(mss);
    }
    fn window(&self) -> Bytes {
        Bytes::new(self.bytes(self.own() * (1.0 + self.back)))
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let standing = self.standing.value().filter(|standing| !standing.is_zero())?;
        let windows = if self.variant == Variant::Nsdi { 2 } else { 1 };
        let bytes = self.bytes(self.own()).saturating_mul(windows);
        let rate = Rate::from_bytes_in(Bytes::new(bytes), standing);
        (rate.bits_per_sec() > 0).then_some(rate)
    }

    fn keeps_queues_short(&self) -> bool {
        true
    }
    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("velocity", self.velocity.get());
        report("delta", self.delta());
        if let (Some(smallest), Some(standing)) = (self.smallest.value(), self.standing.value()) {
            report("queue_ms", standing.saturating_sub(smallest).as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RttSample;
    use crate::testing::{Link, MSS, Path, ack_with_rtt, ms, start};

    fn path(variant: &str, buffer: u32) -> Path {
        let config: crate::Config =
            serde_json::from_str(&format!(r#"{{ "kind": "copa", "variant": "{variant}" }}"#)).unwrap();
        let link = Link { rate: Rate::from_mbit_per_sec(20), rtt: Span::from_millis(40), buffer, mark: None };
        Path::of(&config, link)
    }

    /// A Copa that has left slow start with a window of 100 packets, and an acknowledgement of so many after 40 ms.
    fn with_100_packets(acknowledged: u32) -> (Copa, Ack) {
        let mut copa = Copa::new(&Config::default(), &start());
        (copa.slow_start, copa.cwnd) = (false, 100.0);
        let mut ack = ack_with_rtt(ms(0), acknowledged, Span::from_millis(40));
        ack.in_flight_before = Bytes::new(100 * MSS.get());
        (copa, ack)
    }

    #[test]
    fn the_window_changes_by_velocity_over_delta_per_round_trip() {
        let ((mut copa, mut ack), mut random) = (with_100_packets(1), Random::stream(1, "test"));
        // Without delay each delivered packet adds 1 / (0.5 * 100).
        copa.on_ack(&ack, &mut random);
        assert!((copa.cwnd - 100.02).abs() < 1e-9, "{}", copa.cwnd);
        // A delay of 10 ms: the target is 1 / (0.5 * 0.01) = 200 packets per second, the rate 100 / 0.05 = 2,000.
        ack = ack_with_rtt(ms(60), 1, Span::from_millis(50));
        ack.in_flight_before = Bytes::new(100 * MSS.get());
        copa.on_ack(&ack, &mut random);
        assert!((copa.cwnd - (100.02 - 1.0 / (0.5 * 100.02))).abs() < 1e-9, "{}", copa.cwnd);
    }

    #[test]
    fn the_window_counts_small_packets_by_their_bytes() {
        let (mut copa, mut ack) = with_100_packets(2);
        ack.delivered_bytes = MSS;
        copa.on_ack(&ack, &mut Random::stream(1, "test"));
        assert!((copa.cwnd - 100.02).abs() < 1e-9, "{}", copa.cwnd);
    }

    #[test]
    fn queueing_on_the_way_back_lengthens_the_window_and_is_no_sign_of_a_queue() {
        let ((mut copa, mut ack), mut random) = (with_100_packets(1), Random::stream(1, "test"));
        copa.on_ack(&ack, &mut random);
        assert_eq!(copa.window(), Bytes::new((100.02 * MSS.get() as f64) as u64));
        // 10 ms of 50 are spent on the way back: a quarter of the other 40.
        ack = ack_with_rtt(ms(60), 1, Span::from_millis(50));
        ack.in_flight_before = Bytes::new(125 * MSS.get());
        ack.rtt = ack.rtt.map(|sample| RttSample { queued_back: Span::from_millis(10), ..sample });
        copa.on_ack(&ack, &mut random);
        let cwnd = 100.02 + 1.0 / (0.5 * 100.02);
        assert!((copa.cwnd - cwnd).abs() < 1e-9, "{}", copa.cwnd);
        assert_eq!(copa.window(), Bytes::new((cwnd * 1.25 * MSS.get() as f64) as u64));
    }

    #[test]
    fn losses_and_timeouts_do_not_change_the_window_of_copa() {
        let mut copa = Copa::new(&Config::default(), &start());
        copa.cwnd = 50.0;
        copa.on_enter_recovery(&crate::testing::loss(ms(1)));
        copa.on_timeout(&crate::testing::timeout(ms(2)));
        assert_eq!(copa.window(), Bytes::new(50 * MSS.get()));
    }

    #[test]
    fn both_variants_of_copa_fill_a_link_and_keep_its_queue_short() {
        for variant in ["gnat", "nsdi"] {
            let mut path = path(variant, 400);
            path.trace(Span::from_secs(5), 1);
            let before = path.delivered;
            path.trace(Span::from_secs(1), 10);
            let (carried, cwnd) = (path.delivered - before, path.cwnd());
            // 20 Mbit/s are 2,500 packets a second. The path holds 100 of them; a few more may wait.
            assert!(carried >= 24_500, "{variant}: {carried}");
            assert!((95..130).contains(&cwnd), "{variant}: {cwnd}");
            assert_eq!(path.drops, 0);
        }
    }
}
