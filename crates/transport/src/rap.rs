//! The Rate Adaptation Protocol (Rejaie, Handley and Estrin, INFOCOM 1999) as a transport: the reference flows of the
//! coordination study. Every packet is acknowledged; a round trip without loss adds a packet a round trip to the rate, a loss
//! halves the rate. Losses of packets that had left before the back-off belong to the same cluster and do not halve it again.
//!
//! An acknowledgement covers the last 64 packets, so a lost acknowledgement has no effect. Round trip time and timeout follow
//! Jacobson (RFC 6298). The fine-grain signal, the ratio of a fast to a slow average of the round trip time, is off by default and
//! has the weights of ns-2's implementation (`kfrtt_`, `kxrtt_`).

use crate::paced::{Data, Flow, RateControl, Reporter, Writer, micros};
use crate::tfrc::packet_length;
use crate::{End, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::within;
use weir_base::{Bytes, Ewma, Span, Time};
use weir_endpoint::Sample;
use weir_endpoint::Setup;

/// Parameters of RAP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Length of an IP packet, at most the path's MTU, which is the default.
    pub packet: Option<Bytes>,
    /// Factor by which a loss multiplies the rate.
    #[serde(deserialize_with = "decrease")]
    #[schemars(range(min = 0.1, max = 0.9))]
    pub decrease: f64,
    /// Whether the fine-grain signal adapts the rate to the round trip time.
    pub fine_grain: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { packet: None, decrease: 0.5, fine_grain: false }
    }
}

fn decrease<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.1..=0.9)
}

impl Transport for Parameters {
    fn carries(&self, datagrams: bool) -> bool {
        !datagrams
    }
    fn keys(&self) -> &'static [&'static str] {
        &[]
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        let packet = packet_length(self.packet, setup);
        [(); 2].map(|()| {
            let sender = Sender::new(packet, self);
            let flow = Flow::new(sender, Receiver::default(), packet, setup.ip_header, setup.ecn);
            End::Other(Box::new(flow))
        })
    }
}

/// An acknowledgement, 16 bytes behind the kind: the timestamp of the packet that caused it, the highest sequence number that has
/// arrived, and a bit for each of the 64 numbers up to it, the lowest bit for the highest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ack {
    timestamp: u32,
    highest: u32,
    received: u64,
}

impl Ack {
    fn encoded(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.highest.to_be_bytes());
        bytes[8..].copy_from_slice(&self.received.to_be_bytes());
        bytes
    }

    fn decoded(bytes: &[u8]) -> Option<Ack> {
        let bytes: &[u8; 16] = bytes.first_chunk()?;
        let (numbers, received) = bytes.split_at(8);
        let (timestamp, highest) = numbers.split_at(4);
        Some(Ack {
            timestamp: u32::from_be_bytes(timestamp.try_into().ok()?),
            highest: u32::from_be_bytes(highest.try_into().ok()?),
            received: u64::from_be_bytes(received.try_into().ok()?),
        })
    }
}

/// The receiver's state, from which it acknowledges.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    highest: Option<u32>,
    received: u64,
    /// Timestamp and arrival time of the packet to be acknowledged.
    due: Option<(u32, Time)>,
}

impl Reporter for Receiver {
    fn arrived(&mut self, data: &Data, _: u32, now: Time) {
        let highest = self.highest.unwrap_or(data.sequence.wrapping_sub(1));
        let ahead = data.sequence.wrapping_sub(highest) as i32;
        if ahead > 0 {
            self.received = self.received.checked_shl(ahead as u32).unwrap_or(0) | 1;
            self.highest = Some(data.sequence);
        } else if ahead > -64 {
            self.received |= 1 << -ahead;
        }
        self.due = Some((data.timestamp, now));
    }

    fn report(&mut self, to: &mut Writer, _: Time) -> bool {
        let (Some((timestamp, _)), Some(highest)) = (self.due.take(), self.highest) else { return false };
        to.put(&Ack { timestamp, highest, received: self.received }.encoded());
        true
    }

    fn next_timer(&self) -> Time {
        self.due.map_or(Time::NEVER, |(_, at)| at)
    }
}

/// Weights of a new sample in the fast and the slow average of the fine-grain signal.
const FAST_WEIGHT: f64 = 0.9;
const SLOW_WEIGHT: f64 = 0.01;
/// Later packets after which a missing packet is lost.
const LATER: u64 = 3;
/// Packets a second before the first acknowledgement, and the longest gap between packets in seconds.
const FIRST_RATE: f64 = 1.0;
const LONGEST_GAP: f64 = 64.0;
/// Smallest timeout, and the timeout before the first round trip time, in seconds.
const LEAST_TIMEOUT: f64 = 0.2;
const FIRST_TIMEOUT: f64 = 3.0;

/// The sender's state.
#[derive(Debug)]
pub(crate) struct Sender {
    size: f64,
    decrease: f64,
    fine_grain: bool,
    /// The rate in bytes a second, before the fine-grain signal.
    rate: f64,
    /// Smoothed round trip time and its mean deviation, in seconds.
    srtt: Option<(f64, f64)>,
    min_rtt: Option<Span>,
    fast: Ewma,
    slow: Ewma,
    step_ends: Time,
    /// Packets below this number are known to have arrived or to be lost.
    decided: u64,
    /// Number of the next packet, and the time of the timeout of outstanding packets.
    next: u64,
    timeout: Time,
    /// Losses below this number belong to the last cluster.
    cluster_ends: u64,
    acknowledged: u64,
    losses: u64,
    timeouts: u64,
}

impl Sender {
    fn new(packet: u32, parameters: &Parameters) -> Sender {
        let size = f64::from(packet);
        Sender {
            size,
            decrease: parameters.decrease,
            fine_grain: parameters.fine_grain,
            rate: FIRST_RATE * size,
            srtt: None,
            min_rtt: None,
            fast: Ewma::new(FAST_WEIGHT),
            slow: Ewma::new(SLOW_WEIGHT),
            step_ends: Time::ZERO,
            decided: 0,
            next: 0,
            timeout: Time::NEVER,
            cluster_ends: 0,
            acknowledged: 0,
            losses: 0,
            timeouts: 0,
        }
    }

    fn patience(&self) -> Span {
        let seconds = self.srtt.map_or(FIRST_TIMEOUT, |(srtt, deviation)| srtt + 4.0 * deviation);
        // A gap between packets at a low rate must not cause a timeout.
        Span::from_secs_f64(seconds.max(LEAST_TIMEOUT).max(2.0 * self.size / self.rate))
    }

    fn back_off(&mut self, now: Time) {
        self.rate = (self.rate * self.decrease).max(self.size / LONGEST_GAP);
        self.cluster_ends = self.next;
        if let Some(rtt) = self.rtt() {
            self.step_ends = now + rtt;
        }
    }

    fn take_rtt(&mut self, sample: Span, now: Time) {
        let seconds = sample.as_secs_f64();
        self.min_rtt = Some(self.min_rtt.map_or(sample, |least| least.min(sample)));
        self.fast.update(seconds);
        self.slow.update(seconds);
        match &mut self.srtt {
            // RFC 6298, section 2.
            Some((srtt, deviation)) => {
                *deviation += ((*srtt - seconds).abs() - *deviation) / 4.0;
                *srtt += (seconds - *srtt) / 8.0;
            }
            None => {
                self.srtt = Some((seconds, seconds / 2.0));
                // From now on, one packet a round trip is the step and the first rate.
                self.rate = self.size / seconds;
                self.step_ends = now + sample;
            }
        }
    }
}

impl RateControl for Sender {
    fn rate(&self) -> f64 {
        match (self.fine_grain, self.fast.value(), self.slow.value()) {
            (true, Some(fast), Some(slow)) => self.rate * slow / fast,
            _ => self.rate,
        }
    }

    fn rtt(&self) -> Option<Span> {
        self.srtt.map(|(srtt, _)| Span::from_secs_f64(srtt))
    }

    fn sent(&mut self, sequence: u64, _: bool, now: Time) {
        self.next = sequence + 1;
        if self.timeout == Time::NEVER {
            self.timeout = now + self.patience();
        }
    }

    fn reported(&mut self, report: &[u8], now: Time) {
        let Some(ack) = Ack::decoded(report) else { return };
        let sample = micros(now).wrapping_sub(ack.timestamp);
        let behind = (self.next as u32).wrapping_sub(ack.highest);
        if sample > u32::MAX / 2 || behind == 0 || u64::from(behind) > self.next {
            return;
        }
        self.take_rtt(Span::from_micros(sample.max(1).into()), now);
        let highest = self.next - u64::from(behind);
        // A missing packet is lost once three later ones have arrived. Packets too old for the 64 bits are not judged.
        let (mut back_off, decidable) = (false, (highest + 1).saturating_sub(LATER));
        for sequence in self.decided.max(highest.saturating_sub(63))..decidable {
            let arrived = ack.received >> (highest - sequence) & 1 == 1;
            self.losses += u64::from(!arrived);
            back_off |= !arrived && sequence >= self.cluster_ends;
        }
        self.acknowledged = self.acknowledged.max(highest + 1);
        self.decided = self.decided.max(decidable);
        if back_off {
            self.back_off(now);
        } else if now >= self.step_ends
            && let Some(rtt) = self.rtt()
        {
            self.rate += self.size / rtt.as_secs_f64();
            self.step_ends = now + rtt;
        }
        self.timeout = if self.acknowledged < self.next { now + self.patience() } else { Time::NEVER };
    }

    fn next_timer(&self) -> Time {
        self.timeout
    }

    fn on_timer(&mut self, now: Time) {
        self.timeouts += 1;
        self.back_off(now);
        self.timeout = now + self.patience();
    }

    fn sample(&self, sample: &mut Sample) {
        sample.min_rtt = self.min_rtt;
        sample.rto = self.patience();
        sample.in_flight = self.next.saturating_sub(self.acknowledged) as u32;
        sample.timeouts = self.timeouts;
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("losses", self.losses as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Acknowledges `sequence` after 100 ms, with the bits of all but `lost` received.
    fn acknowledge(sender: &mut Sender, sequence: u32, at: u64, lost: &[u32]) {
        let bit = |n: u32| if lost.contains(&n) { 0 } else { 1u64 << (sequence - n) };
        let received = (sequence.saturating_sub(63)..=sequence).map(bit).sum();
        let ack = Ack { timestamp: micros(ms(at - 100)), highest: sequence, received };
        sender.reported(&ack.encoded(), ms(at));
    }

    /// A sender of 1,000-byte packets that has sent 20 and received a first acknowledgement at 100 ms.
    fn sender() -> Sender {
        let mut sender = Sender::new(1000, &Parameters::default());
        for sequence in 0..20 {
            sender.sent(sequence, true, ms(0));
        }
        acknowledge(&mut sender, 0, 100, &[]);
        sender
    }

    #[test]
    fn each_round_trip_without_loss_raises_the_rate_by_one_packet_per_round_trip() {
        let mut sender = sender();
        assert_eq!(sender.rate(), 10_000.0);
        for (sequence, at, rate) in
            [(1, 150, 10_000.0), (2, 200, 20_000.0), (3, 299, 20_000.0), (4, 300, 30_000.0)]
        {
            acknowledge(&mut sender, sequence, at, &[]);
            assert!((sender.rate() - rate).abs() < 1e-6, "{at} {}", sender.rate());
        }
    }

    #[test]
    fn a_cluster_of_losses_halves_the_rate_once() {
        let mut sender = sender();
        for (sequence, at) in [(3, 200), (4, 300), (5, 400)] {
            acknowledge(&mut sender, sequence, at, &[]);
        }
        assert!((sender.rate() - 40_000.0).abs() < 1e-6);
        acknowledge(&mut sender, 8, 410, &[6]);
        assert!((sender.rate() - 40_000.0).abs() < 1e-6, "two later packets are not enough");
        acknowledge(&mut sender, 9, 420, &[6]);
        assert!((sender.rate() - 20_000.0).abs() < 1e-6);
        // 10 and 12 had left before the back-off, 20 leaves after it.
        acknowledge(&mut sender, 15, 430, &[6, 10, 12]);
        assert!((sender.rate() - 20_000.0).abs() < 1e-6);
        assert_eq!(sender.losses, 3);
        for sequence in 20..30 {
            sender.sent(sequence, true, ms(440));
        }
        acknowledge(&mut sender, 23, 450, &[20]);
        assert!((sender.rate() - 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn silence_halves_the_rate() {
        let mut sender = sender();
        assert_eq!(sender.next_timer(), ms(400), "srtt 100 ms, deviation 50 ms");
        sender.on_timer(ms(400));
        assert!((sender.rate() - 5_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_lost_acknowledgement_causes_no_loss_and_a_forged_one_is_ignored() {
        let mut sender = sender();
        acknowledge(&mut sender, 12, 150, &[]);
        assert_eq!((sender.losses, sender.decided), (0, 10));
        let before = sender.acknowledged;
        let ack = Ack { timestamp: micros(ms(100)), highest: 500, received: 1 };
        sender.reported(&ack.encoded(), ms(200));
        assert_eq!((sender.acknowledged, sender.losses), (before, 0));
    }

    #[test]
    fn a_receiver_reports_which_of_the_last_64_packets_arrived() {
        let mut receiver = Receiver::default();
        for sequence in [7u32, 8, 10, 9, 12] {
            receiver.arrived(&Data { sequence, ..Data::default() }, 1000, ms(1));
        }
        assert_eq!((receiver.highest, receiver.received), (Some(12), 0b111101));
        receiver.arrived(&Data { sequence: 200, ..Data::default() }, 1000, ms(1));
        assert_eq!((receiver.highest, receiver.received), (Some(200), 1));
    }
}
