//! TFRC's sender (RFC 5348, section 4): the rate from each report, and its reduction when no report comes.

use super::Report;
use crate::paced::{RateControl, micros};
use weir_base::{Bytes, Ewma, Rate, Span, Time};
use weir_control::tfrc::{LONGEST_GAP, initial_window, throughput};
use weir_endpoint::Sample;

/// Weight of a new round trip time (section 4.3, `1 - q`).
const RTT_WEIGHT: f64 = 0.1;
/// Packets a second before the first report (section 4.2).
const FIRST_RATE: f64 = 1.0;
/// Factor on the receive rate after a loss while the application limits the sender (section 4.3).
const LIMITED_LOSS: f64 = 0.85;
/// Number of receive rates that are kept, all from the last two round trips (section 4.3, `X_recv_set`).
const RATES: usize = 4;

/// The recent receive rates, the largest of which bounds the rate.
#[derive(Debug, Clone, Copy)]
struct Received {
    /// Time of the report and rate in bytes a second. While `unbounded`, there is no bound on the rate.
    rates: [Option<(Time, f64)>; RATES],
    unbounded: bool,
}

impl Received {
    fn largest(&self) -> f64 {
        if self.unbounded {
            return f64::INFINITY;
        }
        self.rates.iter().flatten().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    /// Adds a rate and removes rates older than two round trips.
    fn update(&mut self, now: Time, rate: f64, rtt: Span) {
        for kept in &mut self.rates {
            *kept = kept.filter(|(at, _)| now.since(*at) <= rtt * 2);
        }
        self.insert(now, rate);
    }

    /// Adds a rate and keeps the largest rate only.
    fn maximize(&mut self, now: Time, rate: f64) {
        self.unbounded = false;
        let largest = self.largest().max(rate);
        self.set(now, largest);
    }

    /// Replaces all rates by this one.
    fn set(&mut self, now: Time, rate: f64) {
        *self = Received { rates: [None; RATES], unbounded: false };
        self.rates[0] = Some((now, rate));
    }

    fn insert(&mut self, now: Time, rate: f64) {
        let oldest = (0..RATES).min_by_key(|n| self.rates[*n].map(|(at, _)| at)).unwrap_or(0);
        self.rates[oldest] = Some((now, rate));
        // The first report's rate is of one packet: the bound begins with the second (section 4.2, "Infinity").
        self.unbounded &= self.rates.iter().flatten().count() < 2;
    }
}

/// The sender's state.
#[derive(Debug)]
pub(crate) struct Sender {
    /// Bytes of a packet, `s`.
    size: f64,
    timeout_rtts: f64,
    /// The rate in bytes a second, `X`.
    rate: f64,
    rtt: Ewma,
    min_rtt: Option<Span>,
    loss_event_rate: f64,
    received: Received,
    /// The last reported receive rate.
    receive_rate: f64,
    /// When the rate was doubled last, `tld`.
    doubled: Time,
    /// When the nofeedback timer expires.
    no_feedback: Time,
    timeouts: u64,
    /// Whether packets have left since the nofeedback timer was set.
    sending: bool,
    /// Last time at which the application had more data than the rate allowed.
    backlogged: Time,
    /// Departure time of the newest packet covered by a report.
    covered: Time,
}

impl Sender {
    /// A sender of packets of this length.
    pub(crate) fn new(packet: u32, timeout_rtts: f64) -> Sender {
        let size = f64::from(packet);
        Sender {
            size,
            timeout_rtts,
            rate: FIRST_RATE * size,
            rtt: Ewma::new(RTT_WEIGHT),
            min_rtt: None,
            loss_event_rate: 0.0,
            received: Received { rates: [None; RATES], unbounded: true },
            receive_rate: 0.0,
            doubled: Time::ZERO,
            no_feedback: Time::NEVER,
            timeouts: 0,
            sending: false,
            backlogged: Time::ZERO,
            covered: Time::ZERO,
        }
    }

    fn least(&self) -> f64 {
        self.size / LONGEST_GAP
    }

    /// Length of the nofeedback timer, `max(4 R, 2 s / X)`; 2 s before the first report (section 4.2).
    fn patience(&self) -> Span {
        let two_packets = Span::from_secs_f64(2.0 * self.size / self.rate);
        self.rtt().map_or(Span::from_secs(2), |rtt| (rtt * 4).max(two_packets))
    }

    /// Computes the rate, bounded by `bound` in bytes a second (section 4.3, step 4).
    fn compute(&mut self, bound: f64, now: Time) {
        let Some(rtt) = self.rtt() else { return };
        if self.loss_event_rate > 0.0 {
            let equation = throughput(self.size, rtt, self.loss_event_rate, 1.0, self.timeout_rtts);
            self.rate = equation.min(bound).max(self.least());
        } else if now.since(self.doubled) >= rtt {
            let initial = initial_window(self.size) / rtt.as_secs_f64();
            self.rate = (2.0 * self.rate).min(bound).max(initial);
            self.doubled = now;
        }
    }
}

impl RateControl for Sender {
    fn rate(&self) -> f64 {
        self.rate
    }

    fn rtt(&self) -> Option<Span> {
        self.rtt.value().map(Span::from_secs_f64)
    }

    fn sent(&mut self, _: u64, backlogged: bool, now: Time) {
        self.sending = true;
        if backlogged {
            self.backlogged = now;
        }
        if self.no_feedback == Time::NEVER {
            self.no_feedback = now + self.patience();
        }
    }

    fn reported(&mut self, report: &[u8], now: Time) {
        let Some(report) = Report::decoded(report) else { return };
        // Round trip times above half the clock's range do not belong to a packet of this sender.
        let age = micros(now).wrapping_sub(report.timestamp);
        let sample = age.wrapping_sub(report.delay);
        if sample > u32::MAX / 2 || age > u32::MAX / 2 {
            return;
        }
        let sample = Span::from_micros(sample.max(1).into());
        let first = self.rtt.value().is_none();
        let rtt = Span::from_secs_f64(self.rtt.update(sample.as_secs_f64()));
        self.min_rtt = Some(self.min_rtt.map_or(sample, |least| least.min(sample)));
        let limited = self.backlogged < self.covered;
        self.covered = now - Span::from_micros(age.into());
        let (receive_rate, loss) = (f64::from(report.received), report.loss_event_rate());
        let bound = if limited && loss > self.loss_event_rate {
            for (_, rate) in self.received.rates.iter_mut().flatten() {
                *rate /= 2.0;
            }
            self.received.maximize(now, LIMITED_LOSS * receive_rate);
            self.received.largest()
        } else if limited {
            self.received.maximize(now, receive_rate);
            2.0 * self.received.largest()
        } else {
            self.received.update(now, receive_rate, rtt);
            2.0 * self.received.largest()
        };
        (self.receive_rate, self.loss_event_rate) = (receive_rate, loss);
        if first {
            self.rate = initial_window(self.size) / rtt.as_secs_f64();
            self.doubled = now;
        }
        self.compute(bound, now);
        self.sending = false;
        self.no_feedback = now + self.patience();
    }

    fn next_timer(&self) -> Time {
        self.no_feedback
    }

    /// The nofeedback timer (section 4.4).
    fn on_timer(&mut self, now: Time) {
        let rtt = self.rtt();
        let idle = !self.sending;
        let recover = rtt.map_or(0.0, |rtt| initial_window(self.size) / rtt.as_secs_f64());
        let slow =
            if self.loss_event_rate > 0.0 { self.receive_rate < recover } else { self.rate < 2.0 * recover };
        if !(idle && (slow || rtt.is_none())) {
            if self.loss_event_rate > 0.0 {
                let limit = (2.0 * self.receive_rate).min(self.rate) / 2.0;
                self.received.set(now, limit.max(self.least()) / 2.0);
                let bound = 2.0 * self.received.largest();
                self.compute(bound, now);
            } else {
                self.rate = (self.rate / 2.0).max(self.least());
            }
            self.timeouts += u64::from(!idle);
        }
        self.sending = false;
        // An idle sender's rate falls to an initial window a round trip; then the timer stops until packets leave.
        self.no_feedback = if idle && slow { Time::NEVER } else { now + self.patience() };
    }

    fn sample(&self, sample: &mut Sample) {
        sample.min_rtt = self.min_rtt;
        sample.rto = self.patience();
        sample.timeouts = self.timeouts;
        sample.delivery_rate = Some(Rate::from_bits_per_sec((self.receive_rate * 8.0) as u64));
        sample.acknowledged = Bytes::ZERO;
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("loss_event_rate", self.loss_event_rate);
        report("receive_rate_mbps", self.receive_rate * 8.0 / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn report(sender: &mut Sender, at: u64, rtt_ms: u64, received: u32, loss: f64) {
        let timestamp = micros(ms(at - rtt_ms));
        let report = Report { timestamp, delay: 0, received, loss: (loss * super::super::WHOLE) as u32 };
        sender.reported(&report.encoded(), ms(at));
    }

    /// A sender with data at all times, sending at each call.
    fn busy() -> Sender {
        let mut sender = Sender::new(1500, 4.0);
        sender.sent(0, true, ms(0));
        sender
    }

    #[test]
    fn the_first_report_gives_an_initial_window_a_round_trip() {
        let mut sender = busy();
        assert_eq!(sender.rate(), 1500.0);
        report(&mut sender, 100, 100, 0, 0.0);
        assert!((sender.rate() - 43_800.0).abs() < 1e-6, "4,380 bytes in 100 ms");
    }

    #[test]
    fn without_loss_the_rate_doubles_each_round_trip_up_to_twice_the_receive_rate() {
        let mut sender = busy();
        report(&mut sender, 100, 100, 0, 0.0);
        sender.sent(1, true, ms(150));
        report(&mut sender, 200, 100, 43_800, 0.0);
        assert!((sender.rate() - 87_600.0).abs() < 1.0);
        sender.sent(2, true, ms(250));
        report(&mut sender, 300, 100, 50_000, 0.0);
        assert!((sender.rate() - 100_000.0).abs() < 1.0, "{}", sender.rate());
    }

    #[test]
    fn the_rate_after_a_loss_is_that_of_the_tcp_equation() {
        let mut sender = busy();
        report(&mut sender, 50, 50, 0, 0.0);
        sender.sent(1, true, ms(90));
        report(&mut sender, 100, 50, 1_000_000, 0.01);
        // 328,010 B/s for 1,460 bytes.
        assert!((sender.rate() - 328_010.0 * 1500.0 / 1460.0).abs() < 5.0, "{}", sender.rate());
    }

    #[test]
    fn without_reports_the_rate_halves_each_time_the_timer_expires() {
        let mut sender = busy();
        report(&mut sender, 100, 100, 0, 0.0);
        sender.sent(1, true, ms(110));
        assert_eq!(sender.next_timer(), ms(500), "four round trips");
        sender.on_timer(ms(500));
        assert!((sender.rate() - 21_900.0).abs() < 1e-6);
        sender.sent(2, true, ms(510));
        sender.on_timer(sender.next_timer());
        assert!((sender.rate() - 10_950.0).abs() < 1e-6);
        assert_eq!(sender.timeouts, 2);
    }

    #[test]
    fn an_idle_sender_keeps_an_initial_window() {
        let mut sender = busy();
        report(&mut sender, 100, 100, 0, 0.0);
        sender.on_timer(ms(500));
        assert!((sender.rate() - 43_800.0).abs() < 1e-6);
        assert_eq!((sender.next_timer(), sender.timeouts), (Time::NEVER, 0));
    }
}
