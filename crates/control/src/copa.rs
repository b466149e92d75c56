//! Copa: keeps 1/delta packets of its own in the queue, by the delay, and takes no notice of losses. Sources: Arun and Balakrishnan,
//! "Copa: Practical Delay-Based Congestion Control for the Internet" (NSDI 2018), sections 2 and 3; the GNAT report (BBN 2021),
//! section 3.1.1, and the software that it describes.
//!
//! Variant `gnat` paces at the window over the standing RTT, looks for the smallest RTT over 28 of them or 0.8 s, and damps what is
//! left of a large queue: when more than 40 packets waited and the queue has emptied, the window goes back to what it was when
//! the packet that tells so was sent, for a round trip. Variant `nsdi` paces at twice that rate, looks for the smallest RTT over 10 s, and competes
//! with flows that fill buffers: while the queue does not empty for five round trips, delta follows the losses.
//!
//! Windows count packets of the connection's size; the GNAT software counts in units of 1,000 bytes.

use crate::ranges::within;
use crate::{Ack, Congestion, Controller, Recovery, Signal, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Bytes, Random, Rate, Span, Time, WindowedMax, WindowedMin};

/// Which Copa.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// As the GNAT software has it.
    Gnat,
    /// As published at NSDI 2018.
    Nsdi,
}

/// Parameters of Copa.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which Copa.
    pub variant: Variant,
    /// One over the packets that are to wait in the queue (0.004 to 1); in competition it is at most this.
    #[serde(deserialize_with = "delta")]
    #[schemars(range(min = 0.004, max = 1.0))]
    pub delta: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { variant: Variant::Gnat, delta: 0.5 }
    }
}

fn delta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, "delta", 0.004..=1.0)
}

/// The smallest and the largest window, in packets (the GNAT software).
const LEAST: f64 = 2.0;
const MOST: f64 = 32_768.0;
/// Below this window growth does not ask whether the window is used (the GNAT software).
const SMALL: f64 = 16.0;
/// Weight of a sample in the smoothed RTT (the GNAT software).
const SRTT_WEIGHT: f64 = 1.0 / 16.0;
/// Over how long the smallest RTT is looked for: `gnat` so many of them, at least so long; `nsdi` so long.
const GNAT_RTTS: u64 = 28;
const GNAT_LEAST: Span = Span::from_millis(800);
const NSDI_SMALLEST: Span = Span::from_secs(10);
/// Packets that wait before the damper is armed (the GNAT software).
const DAMPER: f64 = 40.0;
/// Round trips in one direction after which velocity doubles (NSDI 2018, section 2.1).
const STEADY: u32 = 3;
/// Competition: the queue empties when less waits than a tenth of what waited at most in four round trips, and is looked for over five
/// (NSDI 2018, section 2.2).
const NEARLY_EMPTY: f64 = 0.1;
const LARGEST_RTTS: u64 = 4;
const EMPTY_RTTS: u32 = 5;
/// A delay below this is none: clocks are no finer.
const NO_DELAY: f64 = 1e-6;

/// What the damper does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damper {
    /// Looks for a large queue.
    Watching,
    /// Waits for it to empty.
    Armed,
    /// Holds the window, and then waits, for so many round trips in all.
    Holding(u32),
}

/// A connection under Copa.
#[derive(Debug)]
pub(crate) struct Copa {
    config: Config,
    mss: u64,
    /// The window in packets.
    cwnd: f64,
    slow_start: bool,
    srtt: Option<f64>,
    smallest: WindowedMin<Span>,
    standing: WindowedMin<Span>,
    largest: WindowedMax<Span>,
    /// Packets gained or lost by in a round trip, in units of 1/delta.
    velocity: f64,
    rises: bool,
    /// Round trips in this direction.
    steady: u32,
    /// The window when this round trip and the one before began.
    at_start: [f64; 2],
    damper: Damper,
    /// Round trips since the queue was last nearly empty, and delta in competition.
    not_empty: u32,
    competing: f64,
    lost: bool,
    /// Whether the queue was nearly empty in this round trip.
    emptied: bool,
}

impl Copa {
    pub(crate) fn new(config: &Config, start: &Start) -> Copa {
        let cwnd = f64::from(start.initial_window).max(LEAST);
        Copa {
            config: config.clone(),
            mss: start.mss.get(),
            cwnd,
            slow_start: true,
            srtt: None,
            smallest: WindowedMin::new(),
            standing: WindowedMin::new(),
            largest: WindowedMax::new(),
            velocity: 1.0,
            rises: true,
            steady: 0,
            at_start: [cwnd; 2],
            damper: Damper::Watching,
            not_empty: 0,
            competing: config.delta,
            lost: false,
            emptied: false,
        }
    }

    /// Delta as it is now.
    fn delta(&self) -> f64 {
        let competes = self.config.variant == Variant::Nsdi && self.not_empty >= EMPTY_RTTS;
        if competes { self.competing } else { self.config.delta }
    }

    /// Takes an RTT; answers the standing one and the delay of the queue, in seconds.
    fn take(&mut self, rtt: Span, now: Time) -> (f64, f64) {
        let sample = rtt.as_secs_f64();
        let srtt = self.srtt.map_or(sample, |srtt| srtt + SRTT_WEIGHT * (sample - srtt));
        self.srtt = Some(srtt);
        let window = match self.config.variant {
            Variant::Gnat => (self.smallest.value().unwrap_or(rtt) * GNAT_RTTS).max(GNAT_LEAST),
            Variant::Nsdi => NSDI_SMALLEST,
        };
        let smallest = self.smallest.update(window, now, rtt).as_secs_f64();
        self.largest.update(Span::from_secs_f64(srtt) * LARGEST_RTTS, now, rtt);
        let standing = self.standing.update(Span::from_secs_f64(srtt / 2.0), now, rtt).as_secs_f64();
        (standing, (standing - smallest).max(0.0))
    }

    /// The longest delay of the queue in four round trips, in seconds.
    fn most_waiting(&self) -> f64 {
        let (Some(most), Some(least)) = (self.largest.value(), self.smallest.value()) else { return 0.0 };
        most.saturating_sub(least).as_secs_f64()
    }

    /// A round trip has ended.
    fn round(&mut self, rises: bool) {
        self.at_start = [self.cwnd, self.at_start[0]];
        if rises == self.rises {
            self.steady += 1;
            if self.steady > STEADY {
                self.velocity *= 2.0;
            }
        }
        // Velocity takes the window no further than a round trip's worth (the GNAT software).
        self.velocity = self.velocity.min((self.delta() * self.cwnd).max(1.0));
        if let Damper::Holding(rounds) = self.damper {
            self.damper = if rounds > 1 { Damper::Holding(rounds - 1) } else { Damper::Watching };
        }
        self.not_empty = if std::mem::take(&mut self.emptied) { 0 } else { self.not_empty + 1 };
        // Additive increase of 1/delta, and half of it after a loss (NSDI 2018, section 2.2).
        let packets = 1.0 / self.competing;
        let packets = if std::mem::take(&mut self.lost) { packets / 2.0 } else { packets + 1.0 };
        self.competing = (1.0 / packets).min(self.config.delta);
        if self.not_empty < EMPTY_RTTS {
            self.competing = self.config.delta;
        }
    }

    /// The damper of the GNAT software; answers whether the window is held.
    fn damp(&mut self, waiting: f64) -> bool {
        if self.config.variant == Variant::Nsdi {
            return false;
        }
        match self.damper {
            Damper::Watching if waiting > DAMPER => self.damper = Damper::Armed,
            Damper::Armed if waiting < 1.0 / self.config.delta => {
                self.cwnd = self.at_start[1];
                (self.velocity, self.steady) = (1.0, 0);
                self.damper = Damper::Holding(2);
            }
            _ => {}
        }
        self.damper == Damper::Holding(2)
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        let Some(sample) = ack.rtt else { return };
        let (standing, delay) = self.take(sample.rtt, ack.now);
        let standing = standing.max(NO_DELAY);
        self.emptied |= delay <= NEARLY_EMPTY * self.most_waiting();
        // The target and the present rate, in packets a second.
        let target = if delay > NO_DELAY { 1.0 / (self.delta() * delay) } else { f64::INFINITY };
        let rises = self.cwnd / standing <= target;
        let packets = f64::from(ack.delivered_segments);
        let used =
            self.cwnd < SMALL || 2.0 * ack.in_flight_before.get() as f64 >= self.cwnd * self.mss as f64;
        if self.slow_start {
            if rises {
                self.cwnd = if used { (self.cwnd + packets).min(MOST) } else { self.cwnd };
                return;
            }
            self.slow_start = false;
        }
        if rises != self.rises {
            (self.rises, self.velocity, self.steady) = (rises, 1.0, 0);
        }
        if ack.round_start {
            self.round(rises);
        }
        if self.damp(delay * self.cwnd / standing) || (rises && !used) {
            return;
        }
        let step = self.velocity * packets / (self.delta() * self.cwnd);
        self.cwnd = (self.cwnd + if rises { step } else { -step }).clamp(LEAST, MOST);
    }

    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        self.lost |= congestion.signal == Signal::Loss;
    }

    fn window(&self) -> Bytes {
        Bytes::new((self.cwnd * self.mss as f64) as u64)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let standing = self.standing.value().filter(|standing| !standing.is_zero())?;
        let windows = if self.config.variant == Variant::Nsdi || self.slow_start { 2 } else { 1 };
        let bytes = self.window().get().saturating_mul(windows);
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
        report("velocity", self.velocity);
        report("delta", self.delta());
        if let (Some(smallest), Some(standing)) = (self.smallest.value(), self.standing.value()) {
            report("queue_ms", standing.saturating_sub(smallest).as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, MSS, Path, ack_with_rtt, ms, start};

    fn path(variant: &str, buffer: u32) -> Path {
        let config: crate::Config =
            serde_json::from_str(&format!(r#"{{ "kind": "copa", "variant": "{variant}" }}"#)).unwrap();
        let link = Link { rate: Rate::from_mbit_per_sec(20), rtt: Span::from_millis(40), buffer, mark: None };
        Path::of(&config, link)
    }

    #[test]
    fn a_window_steps_by_velocity_over_delta_a_round_trip() {
        let mut copa = Copa::new(&Config::default(), &start());
        let mut random = Random::stream(1, "test");
        (copa.slow_start, copa.cwnd) = (false, 100.0);
        // No delay: 1 packet up by 1 / (0.5 * 100) for each packet delivered.
        let mut ack = ack_with_rtt(ms(0), 1, Span::from_millis(40));
        ack.in_flight_before = Bytes::new(100 * MSS.get());
        copa.on_ack(&ack, &mut random);
        assert!((copa.cwnd - 100.02).abs() < 1e-9, "{}", copa.cwnd);
        // 10 ms wait: the target is 1 / (0.5 * 0.01) = 200 packets a second, the rate 100 / 0.05 = 2,000.
        ack = ack_with_rtt(ms(60), 1, Span::from_millis(50));
        ack.in_flight_before = Bytes::new(100 * MSS.get());
        copa.on_ack(&ack, &mut random);
        assert!((copa.cwnd - (100.02 - 1.0 / (0.5 * 100.02))).abs() < 1e-9, "{}", copa.cwnd);
    }

    #[test]
    fn losses_are_no_news_to_it() {
        let mut copa = Copa::new(&Config::default(), &start());
        copa.cwnd = 50.0;
        copa.on_enter_recovery(&crate::testing::loss(ms(1)));
        copa.on_timeout(&crate::testing::timeout(ms(2)));
        assert_eq!(copa.window(), Bytes::new(50 * MSS.get()));
    }

    #[test]
    fn both_fill_a_link_and_keep_its_queue_short() {
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
