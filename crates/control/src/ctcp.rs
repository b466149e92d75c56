//! Circuit TCP: the window is fixed at a multiple of the circuit's rate times its round trip. There is no slow start, and no
//! reduction for losses, marks, timeouts or refusals by the local queue; flow control and retransmission stay. Source: F. Alali,
//! "A Cross-Layer Design for Large Data Transfers" (University of Virginia, 2016), sections 3.2.1 and 3.5.1. It is not Compound
//! TCP, which has the same short name.
//!
//! Circuit TCP is for paths whose rate is reserved; it does not share a path fairly. Two things differ from the thesis. The
//! circuit is a parameter of the connection (the thesis has one window for the host). A connection without a circuit, or with so
//! many losses that its path cannot be a circuit, is under [H-TCP](crate::htcp); `fall_back = false` turns the second case off.

use crate::htcp::{self, Htcp};
use crate::ranges::within;
use crate::{Ack, Congestion, Controller, Delivered, Recovery, Restart, Start, Timeout};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Bytes, Random, Rate, Span, Time};

/// Parameters of Circuit TCP. Without a rate or a round trip there is no circuit, and the connection is under H-TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The circuit's rate, at most 1000 Gbit/s. With 0 there is no circuit.
    #[serde(deserialize_with = "rate")]
    pub rate: Rate,
    /// The circuit's round trip, at most 10 s. With 0 there is no circuit.
    #[serde(deserialize_with = "rtt")]
    pub rtt: Span,
    /// The window, in percent of rate times round trip (1 to 1000); 130 gave the highest throughput on every path of the thesis
    /// (3.5.1).
    #[serde(deserialize_with = "window_percent")]
    pub window_percent: u32,
    /// Bytes of each segment that the circuit's rate counts in addition to the payload (0 to 1000): 66 are the headers of Ethernet
    /// (14), IPv4 (20) and TCP with timestamps (32). Labs count 52, unless a link has an `overhead`.
    #[serde(deserialize_with = "header_bytes")]
    pub header_bytes: u32,
    /// Whether segments are paced at the circuit's rate. If not, the first window leaves at once and acknowledgements clock the rest.
    pub pace: bool,
    /// Whether a connection changes to H-TCP after it has lost more than 1 % in each of ten consecutive seconds.
    pub fall_back: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rate: Rate::default(),
            rtt: Span::ZERO,
            window_percent: 130,
            header_bytes: 66,
            pace: false,
            fall_back: true,
        }
    }
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
    within(deserializer, "rate", Rate::default()..=Rate::from_mbit_per_sec(1_000_000))
}
fn rtt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    within(deserializer, "rtt", Span::ZERO..=Span::from_secs(10))
}
fn window_percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "window_percent", 1..=1000)
}
fn header_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "header_bytes", 0..=1000)
}

/// The largest window that TCP can advertise (RFC 7323, section 2.3).
const MAX_WINDOW: u64 = 1 << 30;
/// The smallest window in segments: one alone would wait for the receiver's delayed acknowledgement.
const MIN_WINDOW: u32 = 2;
/// Losses are counted over periods of this length.
const PERIOD: Span = Span::from_secs(1);
/// A period is lossy if more than this share of its segments was lost, in percent.
const LOSSY_PERCENT: u64 = 1;
/// Number of consecutive lossy periods that end the circuit.
const LOSSY_PERIODS: u32 = 10;

/// The fixed window of a circuit in bytes, headers included: `percent` of rate times round trip (thesis, equation 3.1), at most
/// 1 GiB. The round trip counts in whole microseconds.
pub fn circuit_window(rate: Rate, rtt: Span, percent: u32) -> Bytes {
    let bytes_per_sec = u128::from(rate.bits_per_sec() / 8);
    let in_a_round_trip = bytes_per_sec * u128::from(rtt.as_micros()) / 1_000_000;
    let window = in_a_round_trip * u128::from(percent) / 100;
    Bytes::new(u64::try_from(window).unwrap_or(u64::MAX).min(MAX_WINDOW))
}

/// A connection under Circuit TCP.
#[derive(Debug)]
pub(crate) struct Ctcp {
    start: Start,
    /// The fixed window in segments.
    cwnd: u32,
    pacing: Option<Rate>,
    fall_back: bool,
    losses: Losses,
    /// The controller of a connection without a circuit; `None` on a circuit.
    htcp: Option<Htcp>,
    fell_back: bool,
}

/// Losses by period. Counting starts with the first acknowledgement.
#[derive(Debug, Default)]
struct Losses {
    since: Option<Time>,
    delivered: u64,
    lost: u64,
    /// Consecutive lossy periods.
    lossy: u32,
}

impl Losses {
    /// Ends the period once it has lasted `PERIOD`.
    fn watch(&mut self, ack: &Ack) {
        if let Some(since) = self.since {
            if ack.now.since(since) < PERIOD {
                return;
            }
            let (lost, delivered) = (ack.lost - self.lost, ack.delivered - self.delivered);
            let lossy = lost * 100 > (lost + delivered) * LOSSY_PERCENT;
            self.lossy = if lossy { self.lossy + 1 } else { 0 };
        }
        (self.since, self.delivered, self.lost) = (Some(ack.now), ack.delivered, ack.lost);
    }
}

impl Ctcp {
    pub(crate) fn new(config: &Config, start: &Start) -> Ctcp {
        let (mss, headers) = (start.mss.get().max(1), u64::from(config.header_bytes));
        let window = circuit_window(config.rate, config.rtt, config.window_percent).get();
        let cwnd = u32::try_from(window.div_ceil(mss + headers)).unwrap_or(u32::MAX).max(MIN_WINDOW);
        // The payload's part of the rate, in whole bytes per second, as the kernel paces.
        let payload =
            u128::from(config.rate.bits_per_sec() / 8) * u128::from(mss) / u128::from(mss + headers);
        let pacing = Rate::from_bits_per_sec((payload as u64 * 8).max(8));
        let htcp = (window == 0).then(|| Htcp::new(&htcp::Config::default(), start));
        Ctcp {
            start: *start,
            cwnd,
            pacing: config.pace.then_some(pacing),
            fall_back: config.fall_back,
            losses: Losses::default(),
            htcp,
            fell_back: false,
        }
    }

    /// Changes to H-TCP, which begins with half of the window, as after a loss.
    fn begin_htcp(&mut self, now: Time) {
        let mut htcp = Htcp::new(&htcp::Config::default(), &Start { now, ..self.start });
        let half = (self.cwnd / 2).max(MIN_WINDOW);
        let window = crate::windowed::Windowed::base_mut(&mut htcp);
        (window.cwnd, window.ssthresh) = (half, half);
        self.htcp = Some(htcp);
        self.fell_back = true;
    }
}

impl Controller for Ctcp {
    fn on_ack(&mut self, ack: &Ack, random: &mut Random) {
        if let Some(htcp) = &mut self.htcp {
            htcp.on_ack(ack, random);
            return;
        }
        self.losses.watch(ack);
        if self.fall_back && self.losses.lossy >= LOSSY_PERIODS {
            self.begin_htcp(ack.now);
        }
    }
    fn on_delivered(&mut self, delivered: &Delivered) {
        if let Some(htcp) = &mut self.htcp {
            htcp.on_delivered(delivered);
        }
    }
    fn wants_delivered(&self) -> bool {
        true
    }
    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        if let Some(htcp) = &mut self.htcp {
            htcp.on_enter_recovery(congestion);
        }
    }
    fn on_exit_recovery(&mut self, now: Time) {
        if let Some(htcp) = &mut self.htcp {
            htcp.on_exit_recovery(now);
        }
    }
    fn on_undo(&mut self, now: Time) {
        if let Some(htcp) = &mut self.htcp {
            htcp.on_undo(now);
        }
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        if let Some(htcp) = &mut self.htcp {
            htcp.on_timeout(timeout);
        }
    }
    fn on_restart(&mut self, restart: &Restart) {
        if let Some(htcp) = &mut self.htcp {
            htcp.on_restart(restart);
        }
    }

    fn set_mss(&mut self, mss: Bytes) {
        // A circuit's window keeps its size in bytes.
        let window = u64::from(self.cwnd) * self.start.mss.get();
        self.start.mss = mss.max(Bytes::new(1));
        self.cwnd = (window.div_ceil(self.start.mss.get()) as u32).max(MIN_WINDOW);
        if let Some(htcp) = &mut self.htcp {
            htcp.set_mss(mss);
        }
    }

    fn window(&self) -> Bytes {
        match &self.htcp {
            Some(htcp) => htcp.window(),
            None => Bytes::new(u64::from(self.cwnd) * self.start.mss.get().max(1)),
        }
    }
    fn slow_start_threshold(&self) -> Option<Bytes> {
        match &self.htcp {
            Some(htcp) => htcp.slow_start_threshold(),
            None => Some(Bytes::new(u64::MAX)),
        }
    }
    fn pacing_rate(&self) -> Option<Rate> {
        if self.htcp.is_some() { None } else { self.pacing }
    }
    fn recovery(&self) -> Recovery {
        if self.htcp.is_some() { Recovery::Proportional } else { Recovery::Own }
    }
    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("on_circuit", f64::from(u8::from(self.htcp.is_none())));
        report("fell_back", f64::from(u8::from(self.fell_back)));
        report("lossy_seconds", f64::from(self.losses.lossy));
        match &self.htcp {
            Some(htcp) => htcp.state(report),
            None => report("cwnd_segments", f64::from(self.cwnd)),
        }
    }
}

#[cfg(test)]
mod tests;
