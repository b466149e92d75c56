//! The packets that one congestion controller has in flight, its window, its pacing and its phase. A connection may have several
//! controllers; each is told only of its own packets. If an aggregation point reports the rate, there is one flight without a controller.

mod control;
mod news;

pub(crate) use control::Reported;
pub(crate) use news::{Known, News};

use super::loss::Record;
use control::Control;
use weir_base::{Bytes, Ecn, Random, Rate, Span, Time};
use weir_control::{
    Ack, Congestion, Delivered, Phase, RateSample, Recovery, Restart, RttSample, Sent, Signal, Start, Timeout,
};
use weir_endpoint::Prr;

/// Pacing rate if the controller gives none, in percent of window over RTT: below half of the slow-start threshold, and above it (Linux
/// `tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`, as in the GNAT software).
const SLOW_START_PACE: u64 = 200;
const PACE: u64 = 120;
/// A packet may leave this much before the pacer's time. A sender that is late by at most the second span catches up; a later one counts
/// as idle (the GNAT software).
const EARLY: Span = Span::from_millis(1);
const LATE: Span = Span::from_millis(10);
/// Below this window, in packets, a controller that keeps queues short asks for fast retransmission timeouts (the GNAT software: Copa).
const FEW: u64 = 32;
/// The initial window, in packets.
const INITIAL_WINDOW: u32 = 3;

/// Whether a packet may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Now.
    Now,
    /// When the pacer allows it, at this time.
    At(Time),
    /// When the window has room again.
    Window,
}

/// A controller and its packets in flight.
pub(crate) struct Flight {
    controller: Control,
    /// Header bytes of a packet that the rate counts too; 0 if a controller gives the rate.
    around: u32,
    random: Random,
    mss: u64,
    in_flight: u64,
    packets: u32,
    /// Bytes sent so far, and the highest offset of these that is acknowledged.
    next_offset: u64,
    acknowledged: u64,
    phase: Phase,
    /// When the first timeout of the present loss phase was.
    timed_out: Time,
    /// Recovery ends when a packet of this number or later has arrived.
    recovery: u64,
    reduction: Prr,
    /// When the pacer allows the next packet.
    departure: Time,
    srtt: Option<Span>,
    /// Packets delivered and lost so far. As in Linux, the handshake counts as a delivered packet.
    delivered: u64,
    lost: u64,
    delivered_at: Time,
    first_sent_at: Time,
    last_sent: Time,
    /// The round trip ends when a packet is acknowledged that left with at least this many delivered.
    round: u64,
    /// Sending is limited by the application until more than this many packets are delivered; `None` if it is not.
    app_limited: Option<u64>,
    /// Whether the window limited sending since the last acknowledgement, and the maximum of bytes in flight in this round.
    held_back: bool,
    most_in_flight: u64,
    /// Maximum pacing rate while the application limits sending.
    cap: Option<Rate>,
    /// The flight sends nothing until this time, since a stream with a deadline needs a short queue.
    suspended: Time,
    /// How often recovery has begun.
    pub(crate) recoveries: u64,
    delivery_rate: Option<Rate>,
    /// The codepoint of its packets.
    pub(crate) codepoint: Ecn,
}

impl Flight {
    /// A flight with a controller, for packets with at most `mss` bytes of payload.
    pub(crate) fn new(
        config: &weir_control::Config,
        mss: u32,
        rtt: Option<Span>,
        random: Random,
        now: Time,
    ) -> Flight {
        let mss = u64::from(mss);
        let start = Start { now, mss: Bytes::new(mss), initial_window: INITIAL_WINDOW, paced: true, rtt };
        Flight::with(Control::Own(config.build(&start)), mss, rtt, random, now)
    }

    /// A flight at a reported rate, which counts `around` bytes of headers for each packet.
    pub(crate) fn reported(reported: Reported, mss: u32, around: u32, random: Random, now: Time) -> Flight {
        Flight { around, ..Flight::with(Control::Reported(reported), mss.into(), None, random, now) }
    }

    fn with(controller: Control, mss: u64, rtt: Option<Span>, random: Random, now: Time) -> Flight {
        Flight {
            controller,
            around: 0,
            random,
            mss,
            in_flight: 0,
            packets: 0,
            next_offset: 0,
            acknowledged: 0,
            phase: Phase::Open,
            timed_out: Time::ZERO,
            recovery: 0,
            reduction: Prr::default(),
            departure: now,
            srtt: rtt,
            delivered: 1,
            lost: 0,
            delivered_at: now,
            first_sent_at: now,
            last_sent: now,
            round: 1,
            app_limited: None,
            held_back: false,
            most_in_flight: 0,
            cap: None,
            suspended: Time::ZERO,
            recoveries: 0,
            delivery_rate: None,
            codepoint: Ecn::NotEct,
        }
    }

    /// Takes a new reported rate and window.
    pub(crate) fn follow(&mut self, reported: Reported) {
        if let Control::Reported(before) = &mut self.controller {
            *before = reported;
        }
    }

    /// Opens the window to this many bytes, after a measurement of the path's rate.
    pub(crate) fn open_to(&mut self, window: u64) {
        self.controller.open_to(Bytes::new(window));
    }

    /// Sets the payload of full packets, in bytes.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = mss.into();
        self.controller.set_mss(Bytes::new(self.mss));
    }

    fn segments(&self, bytes: u64) -> u32 {
        (bytes / self.mss) as u32
    }

    /// The congestion window in bytes.
    pub(crate) fn window(&self) -> u64 {
        let reducing = matches!(self.phase, Phase::Recovery | Phase::Cwr);
        if reducing && self.controller.recovery() == Recovery::Proportional {
            u64::from(self.reduction.cwnd()) * self.mss
        } else {
            self.controller.window().get()
        }
    }

    /// The pacing rate; `None` if there is no RTT to pace by.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.wanted_rate()?;
        Some(self.cap.filter(|_| self.app_limited.is_some()).map_or(rate, |cap| rate.min(cap)))
    }

    /// Limits the pacing rate while the application has less to send than the path carries: an unused window says nothing about the path's
    /// rate, and packets that leave faster than that rate only queue.
    pub(crate) fn set_cap(&mut self, cap: Option<Rate>) {
        self.cap = cap;
    }

    fn wanted_rate(&self) -> Option<Rate> {
        self.controller.pacing_rate().or_else(|| {
            let window = self.window();
            let threshold = self.controller.slow_start_threshold().map_or(u64::MAX, Bytes::get);
            let percent = if window < threshold / 2 { SLOW_START_PACE } else { PACE };
            let srtt = self.srtt.filter(|srtt| !srtt.is_zero())?;
            Some(Rate::from_bytes_in(Bytes::new(window * percent / 100), srtt))
        })
    }

    /// Whether the controller keeps queues short, so that a deadline needs no other controller.
    pub(crate) fn keeps_queues_short(&self) -> bool {
        self.controller.keeps_queues_short()
    }

    /// Whether the retransmission timeout should be the fast one.
    pub(crate) fn wants_fast_timeout(&self) -> bool {
        self.keeps_queues_short() && self.controller.window().get() < FEW * self.mss
    }

    /// Stops sending until this time.
    pub(crate) fn suspend(&mut self, until: Time) {
        self.suspended = until;
    }

    /// Whether it sends nothing for now.
    pub(crate) fn is_suspended(&self, now: Time) -> bool {
        now < self.suspended
    }

    /// Whether a full packet may leave.
    pub(crate) fn leave(&mut self, now: Time) -> Leave {
        if self.is_suspended(now) {
            return Leave::At(self.suspended);
        }
        // The last packet may exceed the window, as in the GNAT software: a window of two and a half packets lets three go.
        if self.in_flight >= self.window() {
            self.held_back = true;
            return Leave::Window;
        }
        let wait = self.departure.since(now).saturating_sub(EARLY);
        if wait.is_zero() { Leave::Now } else { Leave::At(now + wait) }
    }

    /// There was no data to send although a packet might have left.
    pub(crate) fn is_idle(&mut self) {
        self.app_limited = Some(self.delivered + u64::from(self.packets));
    }

    /// A packet leaves: fills in the controller's part of its record.
    pub(crate) fn on_sent(&mut self, record: &mut Record, retransmission: bool, now: Time) {
        let bytes = u64::from(record.bytes);
        if self.packets == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
            let (idle, app_limited) = (now.since(self.last_sent), self.app_limited.is_some());
            self.controller.on_restart(&Restart::Transmit { now, idle, app_limited });
        }
        if self.controller.wants_sent() {
            let in_flight_before = Bytes::new(self.in_flight);
            self.controller.on_sent(&Sent {
                now,
                bytes: Bytes::new(bytes),
                in_flight_before,
                retransmission,
            });
        }
        self.in_flight += bytes;
        self.packets += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        self.next_offset += bytes;
        self.last_sent = now;
        self.reduction.on_sent();
        if let Some(rate) = self.pacing_rate() {
            let begin = if now.since(self.departure) <= LATE { self.departure } else { now };
            self.departure = begin + rate.time_to_send(Bytes::new(bytes + u64::from(self.around)));
        }
        record.end = self.next_offset;
        record.delivered = self.delivered;
        record.delivered_at = self.delivered_at;
        record.first_sent_at = self.first_sent_at;
        record.app_limited = self.app_limited.is_some();
    }

    /// An acknowledgement has arrived, with this news.
    pub(crate) fn on_news(&mut self, news: &News, known: &Known) {
        let now = known.now;
        if news.packets == 0 && news.lost == 0 {
            return;
        }
        let before = self.in_flight;
        self.in_flight -= (news.bytes + news.lost_bytes).min(self.in_flight);
        self.packets -= (news.packets + news.lost).min(self.packets);
        self.srtt = known.srtt;
        self.acknowledged = self.acknowledged.max(news.end);
        self.delivered += u64::from(news.packets);
        self.lost += u64::from(news.lost);
        if news.packets > 0 {
            self.delivered_at = now;
        }
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        // The receiver reports how long it has held the acknowledgement back.
        let rtt = news.sent_at.map(|at| RttSample {
            rtt: now.since(at).saturating_sub(known.held),
            delayed: false,
            queued_back: known.queued_back,
        });
        if self.controller.wants_delivered() && news.packets > 0 {
            self.controller.on_delivered(&Delivered {
                now,
                segments: news.packets,
                acked_segments: news.packets,
                sacked_out: 0,
                ce_packets: news.marked,
                rtt,
                timestamps: None,
                own_ticks: 0,
                next_sequence: self.next_offset,
                acknowledged: self.acknowledged,
                phase: self.phase,
                predicted: false,
            });
        }
        self.change_phase(news, known);
        if news.marked > 0 && matches!(self.phase, Phase::Open | Phase::Disorder) {
            self.reduce(Signal::Ecn, known);
        }
        let ack = self.ack(news, known, before, rtt);
        if news.packets > 0 {
            self.controller.on_ack(&ack, &mut self.random);
        }
        if self.controller.wants_reduction() && matches!(self.phase, Phase::Open | Phase::Disorder) {
            self.reduce(Signal::Own, known);
        }
    }

    /// Enters and leaves recovery.
    fn change_phase(&mut self, news: &News, known: &Known) {
        if self.phase != Phase::Open && news.packets > 0 && news.number >= self.recovery {
            let was = std::mem::replace(&mut self.phase, Phase::Open);
            if was != Phase::Cwr {
                self.controller.on_exit_recovery(known.now);
            }
        }
        // A reported rate has taken losses into account at the aggregation point.
        let answers = matches!(self.controller, Control::Own(_));
        if news.lost > 0 && self.phase == Phase::Open && answers {
            self.recoveries += 1;
            self.reduce(Signal::Loss, known);
        }
        if matches!(self.phase, Phase::Recovery | Phase::Cwr) {
            let (window, in_flight) =
                (self.segments(self.controller.window().get()), self.segments(self.in_flight));
            self.reduction.on_ack(news.packets, window, in_flight, news.lost == 0);
        }
    }

    fn reduce(&mut self, signal: Signal, known: &Known) {
        self.phase = if signal == Signal::Loss { Phase::Recovery } else { Phase::Cwr };
        self.recovery = known.next;
        self.reduction.begin(self.segments(self.controller.window().get()));
        let in_flight = Bytes::new(self.in_flight);
        self.controller.on_enter_recovery(&Congestion { now: known.now, signal, in_flight });
    }

    /// The acknowledgement as the controller sees it.
    fn ack(&mut self, news: &News, known: &Known, before: u64, rtt: Option<RttSample>) -> Ack {
        let now = known.now;
        let round_start = news.prior.is_some_and(|(delivered, ..)| delivered >= self.round);
        let slow_start = self
            .controller
            .slow_start_threshold()
            .is_some_and(|threshold| self.controller.window() < threshold);
        // As in Linux, half of a window in use is enough in slow start.
        let used = slow_start && self.controller.window().get() < 2 * self.most_in_flight;
        let cwnd_limited = std::mem::take(&mut self.held_back) || used;
        if round_start {
            (self.round, self.most_in_flight) = (self.delivered, self.in_flight);
        }
        let rate = news.prior.map(|(delivered, at, sending, app_limited)| {
            let (interval, delivered_now) = (sending.max(now.since(at)), self.delivered - delivered);
            RateSample {
                delivered: delivered_now as u32,
                interval,
                prior_delivered: delivered,
                losses: news.lost,
                app_limited,
            }
        });
        if let Some(rate) = rate.filter(|rate| !rate.interval.is_zero()) {
            let bytes = Bytes::new(u64::from(rate.delivered) * self.mss);
            self.delivery_rate = Some(Rate::from_bytes_in(bytes, rate.interval));
        }
        if let Some(at) = news.sent_at {
            self.first_sent_at = at;
        }
        Ack {
            now,
            delivered_segments: news.packets,
            delivered_bytes: Bytes::new(news.bytes),
            rtt,
            srtt: known.srtt,
            timestamps: None,
            rate,
            delivered: self.delivered,
            lost_segments: news.lost,
            lost: self.lost,
            departure: self.departure.max(now),
            ce_packets: news.marked,
            in_flight_before: Bytes::new(before),
            in_flight: Bytes::new(self.in_flight),
            next_sequence: self.next_offset,
            acknowledged: self.acknowledged,
            round_start,
            cwnd_limited,
            may_grow: !matches!(self.phase, Phase::Recovery | Phase::Cwr),
            phase: self.phase,
        }
    }

    /// The retransmission timer has fired; all packets in flight count as lost.
    pub(crate) fn on_timeout(&mut self, news: &News, known: &Known) {
        if news.lost == 0 {
            return;
        }
        self.in_flight -= news.lost_bytes.min(self.in_flight);
        self.packets -= news.lost.min(self.packets);
        self.lost += u64::from(news.lost);
        let reduce = matches!(self.phase, Phase::Open | Phase::Disorder);
        let again = self.phase == Phase::Loss;
        (self.phase, self.recovery) = (Phase::Loss, known.next);
        self.timed_out = if again { self.timed_out } else { known.now };
        self.controller.on_timeout(&Timeout {
            now: known.now,
            in_flight: Bytes::new(self.in_flight),
            next_sequence: self.next_offset,
            reduce,
            delivered: self.delivered,
            lost: self.lost,
        });
    }

    /// Takes losses during an outage that began at `heard`. The controller is not told of them and keeps its window; a timeout since
    /// `heard` is undone.
    pub(crate) fn on_outage(&mut self, news: &News, heard: Time, now: Time) {
        self.in_flight -= news.lost_bytes.min(self.in_flight);
        self.packets -= news.lost.min(self.packets);
        if self.phase == Phase::Loss && self.timed_out > heard {
            self.phase = Phase::Open;
            self.controller.on_undo(now);
        }
    }

    /// Whether the window, not the application, limits sending.
    pub(crate) fn is_limited(&self) -> bool {
        self.app_limited.is_none()
    }

    /// Packets in flight.
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// Packets delivered so far, without the handshake.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered - 1
    }

    /// The newest sample of the delivery rate.
    pub(crate) fn delivery_rate(&self) -> Option<Rate> {
        self.delivery_rate
    }

    /// The window and the slow-start threshold, in packets; the threshold is `None` if the controller has none.
    pub(crate) fn in_packets(&self) -> (u32, Option<u64>) {
        let threshold =
            self.controller.slow_start_threshold().map(Bytes::get).filter(|bytes| *bytes < u64::MAX);
        (self.window().div_ceil(self.mss) as u32, threshold.map(|bytes| bytes / self.mss))
    }

    /// The controller's state.
    pub(crate) fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        self.controller.state(report);
    }
}
