//! The C form of each control, compiled for user space, against its Rust form: random connections of 10,000 events and more,
//! and equal windows and thresholds after every single one.
//!
//! `bpf/host/host.c` stands for the kernel around the control; here stands the other half, a connection that lives through what a
//! sender lives through. Where there is no C compiler the test says that it skipped, and with WEIR_REQUIRE_LIVE=1 it fails.

#![allow(clippy::unwrap_used)]

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

const MSS: Bytes = Bytes::new(1000);
const EVENTS: usize = 12_000;
/// Microseconds when the connection begins, as in `host.c`.
const BEGIN: u64 = 1_000_000;
const INITIAL_WINDOW: u32 = 10;

/// What a connection goes through.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// The peer's clock is this far ahead of ours, in milliseconds.
    apart: u32,
    /// What a segment takes of the sequence numbers.
    step: u64,
    /// Most that the queue grows or shrinks between two acknowledgements in milliseconds, and what else an RTT varies by in
    /// microseconds.
    queue_step: u64,
    noise: u64,
}

/// Clocks and sequence numbers that wrap and RTTs that jump, twice; and a connection as it might be.
const WAYS: [Way; 3] = [
    Way { apart: u32::MAX - 60_000, step: 300_000, queue_step: 10, noise: 5_000 },
    Way { apart: u32::MAX - 60_000, step: 300_000, queue_step: 3, noise: 1_000 },
    Way { apart: 5_000, step: MSS.get(), queue_step: 1, noise: 50 },
];

/// A controller as a lab file has it, and the parameters of the C form that are not at their defaults.
type Case = (&'static str, &'static [(&'static str, i64)]);

const CASES: [Case; 40] = [
    (r#"{ "kind": "dctcp" }"#, &[]),
    (
        r#"{ "kind": "dctcp", "dctcp_shift_g": 1, "dctcp_alpha_on_init": 0 }"#,
        &[("dctcp_shift_g", 1), ("dctcp_alpha_on_init", 0)],
    ),
    (r#"{ "kind": "dctcp", "alpha_to_zero": false }"#, &[("alpha_to_zero", 0)]),
    (r#"{ "kind": "vegas" }"#, &[]),
    (
        r#"{ "kind": "vegas", "alpha": 10, "beta": 20, "gamma": 5 }"#,
        &[("alpha", 10), ("beta", 20), ("gamma", 5)],
    ),
    (r#"{ "kind": "ledbat" }"#, &[]),
    (
        r#"{ "kind": "ledbat", "target": "25 ms", "gain": 3, "base_history": 5, "current_filter": 4, "slow_start": false }"#,
        &[("target", 25_000), ("gain", 3), ("base_history", 5), ("current_filter", 4), ("slow_start", 0)],
    ),
    (r#"{ "kind": "yield" }"#, &[]),
    (r#"{ "kind": "yield", "reading": "paper" }"#, &[("reading", 0)]),
    (
        r#"{ "kind": "yield", "beta": 60, "trend_factor": 3, "min_cwnd": 1 }"#,
        &[("beta", 60), ("trend_factor", 3), ("min_cwnd", 1)],
    ),
    (r#"{ "kind": "htcp" }"#, &[]),
    (
        r#"{ "kind": "htcp", "use_rtt_scaling": false, "use_bandwidth_switch": false }"#,
        &[("use_rtt_scaling", 0), ("use_bandwidth_switch", 0)],
    ),
    (r#"{ "kind": "prague" }"#, &[]),
    (r#"{ "kind": "prague", "rtt_transition": 5 }"#, &[("rtt_transition", 5)]),
    (r#"{ "kind": "prague", "rtt_scaling": "none" }"#, &[("rtt_scaling", 0)]),
    (
        r#"{ "kind": "prague", "rtt_scaling": "scalable", "rtt_transition": 0 }"#,
        &[("rtt_scaling", 2), ("rtt_transition", 0)],
    ),
    (
        r#"{ "kind": "prague", "rtt_scaling": "additive", "rtt_transition": 3, "rtt_target": "100 ms" }"#,
        &[("rtt_scaling", 3), ("rtt_transition", 3), ("rtt_target", 100_000)],
    ),
    (r#"{ "kind": "nice" }"#, &[]),
    (r#"{ "kind": "nice", "reading": "paper" }"#, &[("reading", 0)]),
    (
        r#"{ "kind": "nice", "alpha": 2, "beta": 6, "gamma": 2, "threshold": 50, "fraction_divisor": 8, "max_fwnd": 20,
             "counter_bits": 32 }"#,
        &[
            ("alpha", 2),
            ("beta", 6),
            ("gamma", 2),
            ("threshold", 50),
            ("fraction_divisor", 8),
            ("max_fwnd", 20),
            ("counter_bits", 32),
        ],
    ),
    (r#"{ "kind": "lp" }"#, &[]),
    (r#"{ "kind": "lp", "reading": "paper" }"#, &[("reading", 1)]),
    (r#"{ "kind": "lp", "threshold": 40, "inference": 1 }"#, &[("threshold", 40), ("inference", 1)]),
    (r#"{ "kind": "westwood" }"#, &[]),
    (r#"{ "kind": "westwood", "hz": 1000 }"#, &[("hz", 1000)]),
    (r#"{ "kind": "westwood-lp" }"#, &[]),
    (r#"{ "kind": "westwood-lp", "hz": 1000, "beta": 20 }"#, &[("hz", 1000), ("beta", 20)]),
    (r#"{ "kind": "westwood-lp", "reading": "paper" }"#, &[("reading", 0)]),
    (r#"{ "kind": "westwood-lp", "threshold": "2004" }"#, &[("threshold", 0)]),
    (
        r#"{ "kind": "westwood-lp", "reading": "paper", "threshold": "2004", "beta": 12, "hz": 1000 }"#,
        &[("reading", 0), ("threshold", 0), ("beta", 12), ("hz", 1000)],
    ),
    (r#"{ "kind": "ledbat-plus-plus" }"#, &[]),
    (
        r#"{ "kind": "ledbat-plus-plus", "target": "150 ms", "constant": 2, "max_slower": 4, "initial_window": 20, "min_cwnd": 4,
             "base_history": 3, "current_filter": 2 }"#,
        &[
            ("target", 150_000),
            ("constant", 2),
            ("max_slower", 4),
            ("initial_window", 20),
            ("min_cwnd", 4),
            ("base_history", 3),
            ("current_filter", 2),
        ],
    ),
    (r#"{ "kind": "ledbat-plus-plus", "slowdowns": false }"#, &[("slowdowns", 0)]),
    (r#"{ "kind": "apple-ledbat" }"#, &[]),
    (
        r#"{ "kind": "apple-ledbat", "target": "50 ms", "decrease_shift": 1, "md_gate": "rtt", "allowed_increase": 1, "min_cwnd": 5,
             "base_history": 4, "current_filter": 3 }"#,
        &[
            ("target", 50_000),
            ("decrease_shift", 1),
            ("md_gate", 1),
            ("allowed_increase", 1),
            ("min_cwnd", 5),
            ("base_history", 4),
            ("current_filter", 3),
        ],
    ),
    (r#"{ "kind": "cdg" }"#, &[]),
    (
        r#"{ "kind": "cdg", "window": 2, "backoff_beta": 500, "backoff_factor": 3, "use_tolerance": true }"#,
        &[("window", 2), ("backoff_beta", 500), ("backoff_factor", 3), ("use_tolerance", 1)],
    ),
    (
        r#"{ "kind": "cdg", "hystart_detect": "delay", "use_ineff": 0, "use_shadow": false, "backoff_factor": 1 }"#,
        &[("hystart_detect", 1), ("use_ineff", 0), ("use_shadow", 0), ("backoff_factor", 1)],
    ),
    (
        r#"{ "kind": "cdg", "window": 256, "hystart_detect": "ack_train" }"#,
        &[("window", 256), ("hystart_detect", 0)],
    ),
    (r#"{ "kind": "cdg", "hystart": false }"#, &[("hystart", 0)]),
];

/// What the Rust form answers after an event.
#[derive(Debug)]
struct Answer {
    cwnd: u64,
    ssthresh: u64,
    /// What the C form may pace at, in bytes a second; 0 where it does not.
    pacing: RangeInclusive<u64>,
}

/// A connection: its Rust form, what has happened, and the same events for the C form.
struct Connection {
    way: Way,
    rust: Box<dyn Controller>,
    random: Random,
    now: u64,
    phase: Phase,
    acknowledged: u64,
    next: u64,
    delivered: u64,
    srtt: Option<u64>,
    /// Segments told by SACK, and whether the acknowledgement is the plainest there is.
    sacked_out: u32,
    predicted: bool,
    /// Queue in milliseconds: a random walk.
    queue: u64,
    /// Whether the last reduction may turn out to be a mistake.
    undoable: bool,
    /// Whether an acknowledgement has come since the reduction began.
    settled: bool,
    /// Until where the window is down because the controller asked for it. The kernel does not know of such a reduction.
    own_until: Option<u64>,
    /// The smoothed RTT when the window could last be decided.
    decided_at: u64,
    /// Whether acknowledgements come close together.
    dense: bool,
    events: String,
    answers: Vec<Answer>,
}

fn number(phase: Phase) -> u32 {
    match phase {
        Phase::Open => 0,
        Phase::Disorder => 1,
        Phase::Reduction => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    }
}

impl Connection {
    fn new(config: &Config, seed: u64, way: Way) -> Connection {
        let now = Time::ZERO + Span::from_micros(BEGIN);
        let start = Start { now, mss: MSS, initial_window: INITIAL_WINDOW, paced: false, rtt: None };
        Connection {
            way,
            rust: config.build(&start),
            random: Random::stream(seed, config.name()),
            now: BEGIN,
            phase: Phase::Open,
            acknowledged: 0,
            next: 0,
            delivered: 1,
            srtt: None,
            sacked_out: 0,
            predicted: false,
            queue: 0,
            undoable: false,
            settled: false,
            own_until: None,
            decided_at: 0,
            dense: false,
            events: String::new(),
            answers: vec![],
        }
    }

    fn time(&self) -> Time {
        Time::ZERO + Span::from_micros(self.now)
    }
    fn calm(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Disorder)
    }

    /// Whether everything that was sent has been acknowledged.
    fn idle(&self) -> bool {
        self.next == self.acknowledged
    }

    /// Notes an event for the C form, and what the Rust form answers.
    fn note(&mut self, event: &str, rest: &str) {
        writeln!(self.events, "{event} {} {rest}", self.now).unwrap();
        let threshold = self.rust.slow_start_threshold().unwrap().get();
        let ssthresh = if threshold == u64::MAX { NO_THRESHOLD.into() } else { threshold / MSS.get() };
        let below = self.rust.window() < MSS;
        let cwnd = if below { self.state("cwnd_segments") } else { self.rust.window().get() / MSS.get() };
        let pacing = match self.rust.pacing_rate() {
            Some(rate) => as_divided(rate),
            // The two segments that leave at once, each so many round trips.
            None if below => {
                let rate = 2 * MSS.get() * 1_000_000 / (self.state("round_trips_for_two") * self.decided_at);
                rate..=rate
            }
            None => 0..=0,
        };
        self.answers.push(Answer { cwnd, ssthresh, pacing });
    }

    /// A whole number that the Rust form knows.
    fn state(&self, wanted: &str) -> u64 {
        let mut found = None;
        self.rust.state(&mut |name, value| {
            if name == wanted {
                found = Some(value as u64);
            }
        });
        found.unwrap()
    }

    fn step(&mut self) {
        self.now += 1 + self.random.below(if self.dense { 3_000 } else { 40_000 });
        self.dense ^= self.random.chance(0.003);
        if self.random.chance(0.002) {
            self.now += self.random.below(30_000_000);
        }
        match self.random.below(600) {
            0..=2 if self.calm() => self.reduce(Signal::Loss),
            3..=6 if self.calm() => self.reduce(Signal::Ecn),
            7 => self.time_out(),
            8..=40 if self.undoable && matches!(self.phase, Phase::Recovery | Phase::Loss) => {
                self.rust.on_undo(self.time());
                self.undoable = false;
                self.note("undo", "");
                self.acknowledge(Some(Phase::Open));
            }
            41..=42 if self.phase == Phase::Open && self.idle() => self.restart_after_idleness(),
            43..=46 if self.idle() => {
                let (now, idle) = (self.time(), Span::from_millis(10));
                self.rust.on_restart(&Restart::Transmit { now, idle, app_limited: false });
                self.note("transmit", "");
            }
            47 if self.phase == Phase::Open => {
                let (now, used) = (self.time(), self.random.below(60) as u32);
                self.rust.on_restart(&Restart::Unused { now, used, initial_window: INITIAL_WINDOW });
                self.note("unused", &used.to_string());
            }
            _ => self.acknowledge(None),
        }
    }

    fn reduce(&mut self, signal: Signal) {
        self.rust.on_enter_recovery(&Congestion { now: self.time(), signal, in_flight: Bytes::ZERO });
        self.phase = if signal == Signal::Loss { Phase::Recovery } else { Phase::Reduction };
        (self.undoable, self.settled) = (signal == Signal::Loss, false);
        self.note("recovery", &number(self.phase).to_string());
    }

    fn time_out(&mut self) {
        let reduce = self.calm() || (self.own_until.is_none() && self.random.chance(0.3));
        let in_flight = self.random.below(20);
        self.rust.on_timeout(&Timeout {
            now: self.time(),
            in_flight: Bytes::new(in_flight * MSS.get()),
            next_sequence: self.next,
            reduce,
            delivered: self.delivered,
            lost: 0,
        });
        self.phase = Phase::Loss;
        self.undoable |= reduce;
        // The kernel knows of no reduction before it.
        let reduces = reduce || self.own_until.take().is_some();
        self.note("timeout", &format!("{in_flight} {}", u32::from(reduces)));
    }

    fn restart_after_idleness(&mut self) {
        let (idle, rto) = (self.random.below(3_000_000), 200_000 + self.random.below(300_000));
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

    /// What the sender does after the next acknowledgement.
    fn next_phase(&mut self) -> Phase {
        if let Some(until) = self.own_until {
            return if self.acknowledged > until { Phase::Open } else { Phase::Reduction };
        }
        match self.phase {
            Phase::Open if self.random.chance(0.03) => Phase::Disorder,
            Phase::Disorder if self.random.chance(0.3) => Phase::Open,
            Phase::Reduction if self.settled && self.random.chance(0.03) => {
                self.undoable = false;
                Phase::Recovery
            }
            Phase::Reduction | Phase::Recovery | Phase::Loss if self.random.chance(0.07) => Phase::Open,
            phase => phase,
        }
    }

    fn acknowledge(&mut self, becomes: Option<Phase>) {
        let before = self.phase;
        let segments = self.deliver();
        let phase = becomes.unwrap_or_else(|| self.next_phase());
        let random = &mut self.random;
        let reducing = matches!(phase, Phase::Reduction | Phase::Recovery);
        let acked_segments = if random.chance(0.9) { segments } else { random.below(6) as u32 };
        let ce_packets = if random.chance(0.1) { random.below(u64::from(segments) + 1) as u32 } else { 0 };
        let Way { apart, queue_step, noise, .. } = self.way;
        self.queue = (self.queue + random.below(2 * queue_step + 1)).saturating_sub(queue_step).min(250);
        let rtt = 20_000 + 1_000 * self.queue + random.below(noise);
        let sampled = random.chance(0.9);
        if sampled {
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (7 * srtt + rtt) / 8));
        }
        let may_grow = !reducing && segments > 0 && random.chance(0.97);
        let cwnd_limited = random.chance(0.85);
        let in_flight = u64::from(segments) + random.below(100);
        self.sacked_out = if random.chance(0.1) { random.below(4) as u32 } else { 0 };
        self.predicted = self.sacked_out == 0 && random.chance(0.7);
        let echoed_ticks = ((self.now - rtt.min(self.now)) / 1_000) as u32;
        let peer_ticks = apart.wrapping_add(echoed_ticks).wrapping_add(10 + self.queue as u32);
        let timestamps = random.chance(0.95).then_some(Timestamps {
            peer_ticks,
            echoed_ticks,
            own_ticks: (self.now / 1_000) as u32,
            tick: Span::from_millis(1),
        });
        let ack = Ack {
            now: self.time(),
            acked: Bytes::new(u64::from(segments) * MSS.get()),
            sacked: Bytes::ZERO,
            delivered_segments: segments,
            acked_segments,
            rtt: sampled.then_some(RttSample { rtt: Span::from_micros(rtt), delayed: false }),
            srtt: self.srtt.map(Span::from_micros),
            min_rtt: None,
            timestamps,
            rate: None,
            delivered: self.delivered,
            lost_segments: 0,
            lost: 0,
            departure: self.time(),
            ce_packets,
            ce_bytes: Bytes::new(u64::from(ce_packets) * MSS.get()),
            in_flight_before: Bytes::new((in_flight + u64::from(segments)) * MSS.get()),
            in_flight: Bytes::new(in_flight * MSS.get()),
            next_sequence: self.next,
            acknowledged: self.acknowledged,
            round_start: false,
            cwnd_limited,
            may_grow,
            phase,
        };
        if may_grow {
            self.decided_at = self.srtt.unwrap_or(0);
        }
        // What it will draw, if it draws.
        let drawn = (self.random.clone().bits() >> 32) as u32;
        self.answer(&ack, before);
        (self.phase, self.settled) = (phase, true);
        let line = self.line_of(&ack, drawn);
        self.begin_own_reduction();
        self.note("ack", &line);
    }

    /// Segments are acknowledged, and others leave: between none and about sixty are out.
    fn deliver(&mut self) -> u32 {
        let random = &mut self.random;
        let step = self.way.step;
        let out = (self.next - self.acknowledged) / step;
        let segments = match random.below(1_000) {
            0..50 => 0,
            50..55 => out,
            _ => 1 + random.below(3),
        };
        let sent = random.below(if out > 60 { 3 } else { 5 });
        self.acknowledged += segments * step;
        self.next = self.next.max(self.acknowledged) + sent * step;
        self.delivered += segments;
        segments as u32
    }

    /// Does what the transport does where a controller asks for a reduction.
    fn begin_own_reduction(&mut self) {
        if self.phase == Phase::Open {
            self.own_until = None;
        }
        if self.calm() && self.rust.wants_reduction() {
            let (now, signal) = (self.time(), Signal::Own);
            self.rust.on_enter_recovery(&Congestion { now, signal, in_flight: Bytes::ZERO });
            self.phase = Phase::Reduction;
            (self.undoable, self.own_until) = (false, Some(self.next));
        }
    }

    /// The Rust form's hooks, in the transport's order.
    fn answer(&mut self, ack: &Ack, before: Phase) {
        if self.rust.wants_delivered() {
            self.rust.on_delivered(&Delivered {
                now: ack.now,
                segments: ack.delivered_segments,
                acked_segments: ack.acked_segments,
                sacked_out: self.sacked_out,
                timestamps: ack.timestamps,
                ce_packets: ack.ce_packets,
                rtt: ack.rtt,
                next_sequence: ack.next_sequence,
                acknowledged: ack.acknowledged,
                phase: before,
                predicted: self.predicted,
            });
        }
        let reducing = |phase| matches!(phase, Phase::Reduction | Phase::Recovery);
        if reducing(before) && !reducing(ack.phase) {
            self.rust.on_exit_recovery(ack.now);
        }
        self.rust.on_ack(ack, &mut self.random);
    }

    /// The same acknowledgement for `host.c`.
    fn line_of(&self, ack: &Ack, drawn: u32) -> String {
        let micros = |span: Option<Span>| span.map_or(-1, |span| span.as_micros() as i64);
        let (peer, echoed) = ack.timestamps.map_or((0, 0), |t| (t.peer_ticks, t.echoed_ticks));
        // In a reduction of its own a controller is told by the kernel that all is well.
        let own = self.own_until.is_some();
        let phase = if own { Phase::Open } else { ack.phase };
        format!(
            "{} {} {} {} {} {} {} {peer} {echoed} {} {} {} {} {} {} {drawn}",
            ack.delivered_segments,
            ack.acked_segments,
            micros(ack.rtt.map(|sample| sample.rtt)),
            micros(ack.srtt),
            ack.ce_packets,
            ack.acknowledged as u32,
            ack.next_sequence as u32,
            ack.in_flight.get() / MSS.get(),
            u32::from(ack.cwnd_limited),
            u32::from(ack.may_grow || (own && ack.phase == Phase::Reduction && ack.delivered_segments > 0)),
            number(phase),
            self.sacked_out,
            u32::from(self.predicted),
        )
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf")
}

/// Compiles the C form of a control together with `host.c`.
fn compile(short: &str, folder: &Path) -> PathBuf {
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

/// What the C form answers to the events.
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

/// The C form divides before it scales (`pace` in `bpf/prague.c`): low by a part in 275,000 at most, and by two bytes a second.
fn as_divided(rate: Rate) -> RangeInclusive<u64> {
    let bits = rate.bits_per_sec();
    let low = bits - bits / 200_000;
    (low.saturating_sub(16) / 8)..=(bits / 8 + 1)
}

#[test]
fn the_c_form_answers_every_event_as_the_rust_form_does() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no C compiler");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (json, parameters) in CASES {
        let config: Config = serde_json::from_str(json).unwrap();
        let kernel = weir_kernel::control(config.name()).unwrap().kernel;
        let program = compile(kernel.strip_prefix("weir_").unwrap(), folder.path());
        for (seed, way) in (1..).zip(WAYS) {
            let mut connection = Connection::new(&config, seed, way);
            (0..EVENTS).for_each(|_| connection.step());
            let c = answers_of(&program, parameters, &connection.events);
            assert_eq!(c.len(), connection.answers.len());
            let events: Vec<&str> = connection.events.lines().collect();
            for (index, (rust, [cwnd, ssthresh, pacing])) in connection.answers.iter().zip(c).enumerate() {
                assert!(
                    (rust.cwnd, rust.ssthresh) == (cwnd, ssthresh) && rust.pacing.contains(&pacing),
                    "{json}, seed {seed}: Rust {rust:?}, C {cwnd} {ssthresh} {pacing} after {:#?}",
                    &events[index.saturating_sub(12)..=index]
                );
            }
        }
    }
}
