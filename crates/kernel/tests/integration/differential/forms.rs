//! One connection in both forms: the Rust form runs through it at once, and its events are kept for the C form, which
//! `bpf/host/host.c` runs through the same events.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weir_base::{Bytes, Random, Rate, Span, Time};
use weir_control::{
    Ack, Config, Congestion, Controller, Delivered, NO_THRESHOLD, Phase, Restart, RttSample, Signal, Start,
    Timeout, Timestamps,
};

/// Microseconds when the connection begins, as in `host.c`.
pub(crate) const BEGIN: u64 = 1_000_000;
pub(crate) const INITIAL_WINDOW: u32 = 10;

/// The state of the Rust form after an event.
#[derive(Debug)]
struct Answer {
    cwnd: u64,
    ssthresh: u64,
    /// Pacing rates that are allowed in the C form, in bytes per second; 0 if it does not pace.
    pacing: RangeInclusive<u64>,
}

/// An acknowledgement, as the control sees it. Times are in microseconds.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) segments: u32,
    pub(crate) acked_segments: u32,
    pub(crate) rtt: Option<u64>,
    pub(crate) srtt: Option<u64>,
    pub(crate) ce_packets: u32,
    pub(crate) acknowledged: u64,
    pub(crate) next: u64,
    /// The peer's timestamp, and ours that it echoes, in ticks of a millisecond.
    pub(crate) ticks: Option<(u32, u32)>,
    /// Segments in flight afterwards.
    pub(crate) in_flight: u64,
    pub(crate) cwnd_limited: bool,
    /// Whether the kernel lets the window grow.
    pub(crate) grows: bool,
    pub(crate) phase: Phase,
    /// Segments acknowledged by SACK; below, whether the acknowledgement took the kernel's fast path (header prediction).
    pub(crate) sacked_out: u32,
    pub(crate) predicted: bool,
    /// Segments newly marked lost.
    pub(crate) lost_segments: u32,
}

/// The Rust form, and the events and expected answers of the C form.
pub(crate) struct Forms {
    rust: Box<dyn Controller>,
    mss: Bytes,
    pub(crate) random: Random,
    pub(crate) now: u64,
    pub(crate) phase: Phase,
    pub(crate) acknowledged: u64,
    pub(crate) next: u64,
    delivered: u64,
    lost: u64,
    /// Whether the last reduction can be undone.
    pub(crate) undoable: bool,
    /// Sequence number up to which a reduction of the controller's own lasts. The kernel does not know of such a reduction.
    pub(crate) own_until: Option<u64>,
    /// Window in segments and segments delivered when that reduction began; below, the segments delivered that the C form was
    /// told to act on.
    own_from: (u64, u64),
    own_delivered: u64,
    /// The smoothed RTT when the window could last be decided.
    decided_at: u64,
    events: String,
    answers: Vec<Answer>,
    /// Whether the connection has been handed over to another control: the C form no longer has it.
    pub(crate) left: bool,
}

pub(crate) fn reducing(phase: Phase) -> bool {
    matches!(phase, Phase::Cwr | Phase::Recovery)
}

/// The kernel's numbers of the phases are their indices.
pub(crate) const PHASES: [Phase; 5] =
    [Phase::Open, Phase::Disorder, Phase::Cwr, Phase::Recovery, Phase::Loss];

fn number(phase: Phase) -> usize {
    PHASES.iter().position(|&other| other == phase).unwrap()
}

impl Forms {
    pub(crate) fn new(config: &Config, seed: u64, mss: Bytes) -> Forms {
        let now = Time::ZERO + Span::from_micros(BEGIN);
        let start = Start { now, mss, initial_window: INITIAL_WINDOW, paced: false, rtt: None };
        let mut forms = Forms {
            rust: config.build(&start),
            mss,
            random: Random::stream(seed, config.name()),
            now: BEGIN,
            phase: Phase::Open,
            acknowledged: 0,
            next: 0,
            delivered: 1,
            lost: 0,
            undoable: false,
            own_until: None,
            own_from: (0, 0),
            own_delivered: 0,
            decided_at: 0,
            events: format!("mss {}\n", mss.get()),
            answers: vec![],
            left: false,
        };
        forms.left = forms.is_with_another();
        forms
    }

    fn time(&self) -> Time {
        Time::ZERO + Span::from_micros(self.now)
    }
    pub(crate) fn calm(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Disorder)
    }

    /// Notes an event for the C form, and the Rust form's answer.
    fn note(&mut self, event: &str, rest: &str) {
        writeln!(self.events, "{event} {} {rest}", self.now).unwrap();
        if self.left {
            self.answers.push(Answer { cwnd: 0, ssthresh: 0, pacing: 0..=0 });
            return;
        }
        self.left = self.is_with_another();
        let (mss, window) = (self.mss, self.rust.window());
        let threshold = self.rust.slow_start_threshold().unwrap().get();
        let ssthresh = if threshold == u64::MAX { NO_THRESHOLD.into() } else { threshold / mss.get() };
        let below = window < mss;
        let cwnd = match self.own_until {
            _ if below => self.state("cwnd_segments").unwrap(),
            Some(_) => self.walked_down(window.get() / mss.get()),
            None => window.get() / mss.get(),
        };
        let pacing = match self.rust.pacing_rate() {
            Some(rate) => as_divided(rate),
            // Two segments leave at once, every `round_trips_for_two` round trips.
            None if below => {
                let rate = 2 * mss.get() * 1_000_000
                    / (self.state("round_trips_for_two").unwrap() * self.decided_at);
                rate..=rate
            }
            None => 0..=0,
        };
        self.answers.push(Answer { cwnd, ssthresh, pacing });
    }

    /// The window on its way to `threshold` segments in a reduction of the controller's own: the C form reduces it step by step,
    /// while for the Rust form the transport does (RFC 6937: proportional rate reduction).
    fn walked_down(&self, threshold: u64) -> u64 {
        let (from, before) = self.own_from;
        let delivered = (self.own_delivered - before).min(from);
        (from - delivered + (threshold * delivered).div_ceil(from)).max(threshold)
    }

    /// Whether Circuit TCP has no circuit, or no longer has one.
    fn is_with_another(&self) -> bool {
        self.state("on_circuit") == Some(0)
    }

    /// A whole number of the Rust form's state; `None` if it has none of this name.
    fn state(&self, wanted: &str) -> Option<u64> {
        let mut found = None;
        self.rust.state(&mut |name, value| {
            if name == wanted {
                found = Some(value as u64);
            }
        });
        found
    }

    pub(crate) fn reduce(&mut self, signal: Signal) {
        self.phase = if signal == Signal::Loss { Phase::Recovery } else { Phase::Cwr };
        // If the controller itself has begun a reduction before, this one only continues it.
        if self.own_until.take().is_none() {
            self.rust.on_enter_recovery(&Congestion { now: self.time(), signal, in_flight: Bytes::ZERO });
            self.undoable = signal == Signal::Loss;
        }
        self.note("recovery", &number(self.phase).to_string());
    }

    pub(crate) fn undo(&mut self) {
        self.rust.on_undo(self.time());
        self.undoable = false;
        self.note("undo", "");
    }

    /// `reduce` is true if no reduction is under way, not even one of the controller's own.
    pub(crate) fn time_out(&mut self, in_flight: u64, reduce: bool) {
        self.rust.on_timeout(&Timeout {
            now: self.time(),
            in_flight: Bytes::new(in_flight * self.mss.get()),
            next_sequence: self.next,
            reduce,
            delivered: self.delivered,
            lost: self.lost,
        });
        self.phase = Phase::Loss;
        self.undoable |= reduce;
        // The kernel does not know of the controller's own reduction.
        let reduces = reduce || self.own_until.take().is_some();
        self.note("timeout", &format!("{in_flight} {}", u32::from(reduces)));
    }

    pub(crate) fn restart_after_idleness(&mut self, idle: u64, rto: u64) {
        let now = self.time();
        let (idle_span, rto_span) = (Span::from_micros(idle), Span::from_micros(rto));
        self.rust.on_restart(&Restart::Idle {
            now,
            idle: idle_span,
            rto: rto_span,
            initial_window: INITIAL_WINDOW,
        });
        self.note("idle", &format!("{idle} {rto}"));
    }

    pub(crate) fn transmit(&mut self) {
        let (now, idle) = (self.time(), Span::from_millis(10));
        self.rust.on_restart(&Restart::Transmit { now, idle, app_limited: false });
        self.note("transmit", "");
    }

    pub(crate) fn leave_unused(&mut self, used: u32) {
        let now = self.time();
        self.rust.on_restart(&Restart::Unused { now, used, initial_window: INITIAL_WINDOW });
        self.note("unused", &used.to_string());
    }

    pub(crate) fn acknowledge(&mut self, seen: &Seen) {
        let mss = self.mss.get();
        self.delivered += u64::from(seen.segments);
        self.lost += u64::from(seen.lost_segments);
        (self.acknowledged, self.next) = (seen.acknowledged, seen.next);
        let timestamps = seen.ticks.map(|(peer_ticks, echoed_ticks)| Timestamps {
            peer_ticks,
            echoed_ticks,
            tick: Span::from_millis(1),
        });
        let ack = Ack {
            now: self.time(),
            delivered_segments: seen.segments,
            delivered_bytes: Bytes::new(u64::from(seen.segments) * mss),
            rtt: seen.rtt.map(|rtt| RttSample {
                rtt: Span::from_micros(rtt),
                delayed: false,
                queued_back: Span::ZERO,
            }),
            srtt: seen.srtt.map(Span::from_micros),
            timestamps,
            rate: None,
            delivered: self.delivered,
            lost_segments: seen.lost_segments,
            lost: self.lost,
            departure: self.time(),
            ce_packets: seen.ce_packets,
            in_flight_before: Bytes::new((seen.in_flight + u64::from(seen.segments)) * mss),
            in_flight: Bytes::new(seen.in_flight * mss),
            next_sequence: self.next,
            acknowledged: self.acknowledged,
            round_start: false,
            cwnd_limited: seen.cwnd_limited,
            may_grow: seen.grows && !reducing(seen.phase),
            phase: seen.phase,
        };
        if ack.may_grow {
            self.decided_at = seen.srtt.unwrap_or(0);
        }
        // The random number that the controller draws next, if it draws one.
        let drawn = (self.random.clone().bits() >> 32) as u32;
        self.answer(&ack, seen);
        self.phase = seen.phase;
        if seen.grows {
            self.own_delivered = self.delivered;
        }
        let line = self.line_of(seen, drawn);
        self.begin_own_reduction();
        self.note("ack", &line);
    }

    /// The Rust form's hooks, in the transport's order.
    fn answer(&mut self, ack: &Ack, seen: &Seen) {
        let before = self.phase;
        if self.rust.wants_delivered() {
            self.rust.on_delivered(&Delivered {
                now: ack.now,
                segments: ack.delivered_segments,
                acked_segments: seen.acked_segments,
                sacked_out: seen.sacked_out,
                timestamps: ack.timestamps,
                own_ticks: (self.now / 1_000) as u32,
                ce_packets: ack.ce_packets,
                rtt: ack.rtt,
                next_sequence: ack.next_sequence,
                acknowledged: ack.acknowledged,
                phase: before,
                predicted: seen.predicted,
            });
        }
        if reducing(before) && !reducing(ack.phase) {
            self.rust.on_exit_recovery(ack.now);
        }
        self.rust.on_ack(ack, &mut self.random);
    }

    /// Begins a reduction if the controller asks for one, as the transport does.
    fn begin_own_reduction(&mut self) {
        if self.phase == Phase::Open {
            self.own_until = None;
        }
        if self.calm() && self.rust.wants_reduction() {
            self.own_from = (self.rust.window().get() / self.mss.get(), self.delivered);
            self.own_delivered = self.delivered;
            let (now, signal) = (self.time(), Signal::Own);
            self.rust.on_enter_recovery(&Congestion { now, signal, in_flight: Bytes::ZERO });
            self.phase = Phase::Cwr;
            (self.undoable, self.own_until) = (false, Some(self.next));
        }
    }

    /// The acknowledgement as a line for `host.c`.
    fn line_of(&self, seen: &Seen, drawn: u32) -> String {
        let or_none = |micros: Option<u64>| micros.map_or(-1, |micros| micros as i64);
        let (peer, echoed) = seen.ticks.unwrap_or((0, 0));
        // In a reduction of the controller's own, the kernel's phase is Open.
        let phase = if self.own_until.is_some() { Phase::Open } else { seen.phase };
        format!(
            "{} {} {} {} {} {} {} {peer} {echoed} {} {} {} {} {} {} {drawn} {}",
            seen.segments,
            seen.acked_segments,
            or_none(seen.rtt),
            or_none(seen.srtt),
            seen.ce_packets,
            seen.acknowledged as u32,
            seen.next as u32,
            seen.in_flight,
            u32::from(seen.cwnd_limited),
            u32::from(seen.grows),
            number(phase),
            seen.sacked_out,
            u32::from(seen.predicted),
            seen.lost_segments,
        )
    }

    /// Runs the C form through all events: its answers must be the Rust form's. `what` names the connection.
    pub(crate) fn compare(&self, program: &Path, parameters: &[(&str, i64)], what: &str) {
        let c = answers_of(program, parameters, &self.events);
        assert_eq!(c.len(), self.answers.len(), "{what}");
        // The first line is not an event.
        let events: Vec<&str> = self.events.lines().skip(1).collect();
        for (index, (rust, [cwnd, ssthresh, pacing])) in self.answers.iter().zip(c).enumerate() {
            assert!(
                (rust.cwnd, rust.ssthresh) == (cwnd, ssthresh) && rust.pacing.contains(&pacing),
                "{what}: Rust {rust:?}, C {cwnd} {ssthresh} {pacing} after {:#?}",
                &events[index.saturating_sub(12)..=index]
            );
        }
    }

    /// Number of different windows of the Rust form.
    pub(crate) fn windows(&self) -> usize {
        let mut windows: Vec<u64> = self.answers.iter().map(|answer| answer.cwnd).collect();
        windows.sort_unstable();
        windows.dedup();
        windows.len()
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf")
}

/// Compiles the C form of a control together with `host.c`.
pub(crate) fn compile(short: &str, folder: &Path) -> PathBuf {
    let (sources, program) = (sources(), folder.join(short));
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fno-builtin"]);
    cc.args([
        "-fsanitize=undefined",
        "-fsanitize-undefined-trap-on-error",
        &format!("-DCONTROL_FILE=\"{short}.c\""),
    ]);
    cc.arg("-I").arg(sources.join("host")).arg("-I").arg(&sources).arg(sources.join("host/host.c"));
    let status = cc.arg("-o").arg(&program).status().unwrap();
    assert!(status.success(), "{short}.c does not compile for user space");
    program
}

/// The C form's answers to the events.
fn answers_of(program: &Path, parameters: &[(&str, i64)], events: &str) -> Vec<[u64; 3]> {
    let mut input: String =
        parameters.iter().map(|(name, value)| format!("parameter {name} {value}\n")).collect();
    input += events;
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let written = writing.join().unwrap();
    assert!(
        output.status.success() && written.is_ok(),
        "{}: {}, {written:?}",
        program.display(),
        output.status
    );
    let numbers = |line: &str| -> [u64; 3] {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    String::from_utf8(output.stdout).unwrap().lines().map(numbers).collect()
}

/// The C form divides before it scales (`pace` in `bpf/prague.c`): its rate is too low by at most one part in 275,000 and two
/// bytes per second.
fn as_divided(rate: Rate) -> RangeInclusive<u64> {
    let bits = rate.bits_per_sec();
    let low = bits - bits / 200_000;
    (low.saturating_sub(16) / 8)..=(bits / 8 + 1)
}
