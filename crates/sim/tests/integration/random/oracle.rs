//! What a single bulk flow does on a plain link, whatever the rate, the round-trip time and the buffer: rules that need no kernel. The
//! labs are drawn by number over 1 to 1,000 Mbit/s. Their socket buffers hold two bandwidth-delay products, and have the default sizes,
//! which are the limit on long fat paths, unless a rule says otherwise.

use std::fmt::Write;
use std::path::Path;
use weir_base::{Random, Span, Time};
use weir_engine::premises::{
    LEAST_BDP_PACKETS, LEAST_BUFFER_BDP, LEAST_BUFFER_PACKETS, ROUND_TRIPS, SEEKING, SEGMENT_MEMORY,
};
use weir_engine::run_info;
use weir_plan::{Lab, Run};
use weir_record::{FlowEventKind, Records, RunSummary, Trip};

/// Largest bandwidth-delay product in packets: the default send buffer of 4 MiB holds 1,839 segments.
const MOST_BDP_PACKETS: f64 = 600.0;
/// A loss-based controller gains a packet each round trip, so that it needs a smaller product to fill it in the time of a run.
const MOST_BDP_OF_OTHERS: f64 = 150.0;
/// Largest buffer, in bandwidth-delay products and together with one of them in packets.
const MOST_BUFFER_BDP: f64 = 4.0;
const MOST_PACKETS: f64 = 1700.0;
/// A run is this much longer than a long one, since times are rounded to microseconds.
const SPARE_TIME: f64 = 1.001;
const PACKET_BITS: f64 = 12_000.0;

/// A lab of one flow over one link.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    seed: u64,
    cc: &'static str,
    /// Bits a second.
    rate: f64,
    /// Seconds.
    rtt: f64,
    /// The buffer in packets.
    packets: f64,
    /// Random loss of data packets, as a share.
    loss: f64,
    /// Largest size of both socket buffers in bytes; `None` for the default.
    memory: Option<f64>,
    /// Seconds; the second half is measured.
    duration: f64,
}

/// A value between two bounds, each of whose orders of magnitude is as likely.
fn between(random: &mut Random, (low, high): (f64, f64)) -> f64 {
    low * (high / low).powf(random.unit())
}

/// The lab of this number with this controller.
fn drawn(number: u64, random: &mut Random, cc: &'static str) -> Plain {
    let (most, round_trips) =
        if cc == "bbr" { (MOST_BDP_PACKETS, ROUND_TRIPS.0) } else { (MOST_BDP_OF_OTHERS, ROUND_TRIPS.1) };
    // The product and the rate give the round-trip time, of 1 to 300 ms.
    let bdp = between(random, (LEAST_BDP_PACKETS, most));
    let slowest = (bdp * PACKET_BITS / 0.3).max(1e6);
    let fastest = (bdp * PACKET_BITS / 0.001).min(1e9);
    let rate = between(random, (slowest, fastest));
    let rtt = bdp * PACKET_BITS / rate;
    let buffer = between(random, (LEAST_BUFFER_BDP, MOST_BUFFER_BDP)).min((MOST_PACKETS - bdp) / bdp);
    let packets = (buffer * bdp).ceil().max(LEAST_BUFFER_PACKETS);
    let duration = SPARE_TIME * round_trips * rtt * (1.0 + packets / bdp);
    Plain { seed: 1 + number, cc, rate, rtt, packets, loss: 0.0, memory: None, duration }
}

fn any_seeking(random: &mut Random) -> &'static str {
    SEEKING[random.below(SEEKING.len() as u64) as usize]
}

/// The lab of this number for the rules of [`Plain::broken`].
pub(crate) fn plain(number: u64) -> Plain {
    let mut random = Random::stream_of(1, "plain labs", number);
    let cc = any_seeking(&mut random);
    drawn(number, &mut random, cc)
}

/// The socket buffers of a STARTUP that nothing but the link limits, in products and buffers of the link. BBR sends up to 2.9 times what
/// it believes the product to be (`bbr_high_gain`), twice in a round trip, and Linux counts the memory of lost segments too.
const AMPLE: f64 = 8.0;
/// Round trips with a full buffer in which STARTUP must end, with some to spare.
const STARTUP_TIME: f64 = 40.0;

/// A lab of BBR whose STARTUP the socket buffers do not limit. With the default send buffer of 4 MiB and about one product of buffer at
/// the link, real Linux stays in STARTUP for tens of seconds: the send buffer is full whenever the window opens, each round begins with
/// a sample that the application limits (`tcp_rate_check_app_limited`), and BBR does not look for a full pipe in such a round.
pub(crate) fn startup(number: u64) -> Plain {
    let mut random = Random::stream_of(1, "startup labs", number);
    let lab = drawn(number, &mut random, "bbr");
    let full_rtt = lab.rtt + lab.packets * PACKET_BITS / lab.rate;
    Plain { memory: Some(AMPLE * lab.window() * SEGMENT_MEMORY), duration: STARTUP_TIME * full_rtt, ..lab }
}

/// A lab in which the default send buffer keeps BBR in STARTUP, in the simulator as in real Linux.
pub(crate) fn limited_by_the_send_buffer() -> Plain {
    let (rate, rtt) = (200e6, 0.06);
    Plain { seed: 1, cc: "bbr", rate, rtt, packets: 1000.0, loss: 0.0, memory: None, duration: 8.0 }
}

impl Plain {
    /// The product and the buffer in packets.
    fn window(&self) -> f64 {
        self.rate * self.rtt / PACKET_BITS + self.packets
    }

    /// The lab file.
    pub(crate) fn text(&self) -> String {
        let Plain { seed, cc, rate, rtt, packets, loss, memory, duration } = self;
        let micros = |seconds: f64| (seconds * 1e6).ceil();
        let mut text = String::new();
        writeln!(text, "format = 1\n[run]\nduration = '{} us'", micros(*duration)).unwrap();
        writeln!(text, "warmup = '{} us'\nsample = '{} us'", micros(duration / 2.0), micros(*rtt)).unwrap();
        writeln!(text, "seed = {seed}\nstart_jitter = '0 s'").unwrap();
        writeln!(text, "[dumbbell]\nrate = '{rate:.0} bit/s'\nrtt = '{} us'", micros(*rtt)).unwrap();
        writeln!(text, "queue = {{ kind = 'tail-drop', limit = '{packets} packets' }}").unwrap();
        if *loss > 0.0 {
            writeln!(text, "loss = '{:.4} %'", 100.0 * loss).unwrap();
        }
        writeln!(text, "[traffic.a]\ncc = '{cc}'").unwrap();
        if let Some(memory) = memory {
            writeln!(text, "send_buffer = '{memory:.0} B'\nreceive_buffer = '{memory:.0} B'").unwrap();
        }
        text
    }

    /// The lab's only run.
    pub(crate) fn run(&self, folder: &Path) -> Run {
        let text = self.text();
        let lab = Lab::from_str(&text, "plain.toml", folder, &[])
            .unwrap_or_else(|error| panic!("{text}\n{}", error.render(false, 100)));
        lab.runs().remove(0)
    }
}

/// The rule that a run of a plain lab breaks, in words; `None` if it breaks none. The bound on retransmissions is closer than that of
/// the oracle (`crates/record/src/oracle.rs`), which has to hold for any lab.
pub(crate) fn broken(run: &Run, records: &Records) -> Option<String> {
    let info = run_info("sim", run);
    if !(info.premises.fills && info.premises.spaced) {
        return Some("the oracles do not apply to it".into());
    }
    let oracles = RunSummary::new(&info, records, None).oracles;
    if let Some(trip) = oracles.iter().find(|trip| !is_startup(trip)) {
        return Some(format!("{trip:?}"));
    }
    let resent = records.transport.last().map_or(0, |last| last.retransmissions);
    let dropped: u64 = records.links.iter().map(|link| link.dropped.iter().sum::<u64>()).sum();
    let probes = records.transport.last().and_then(|last| last.timeouts).unwrap_or(0);
    (resent > dropped + dropped / 50 + 10 + 2 * probes)
        .then(|| format!("{resent} segments are retransmitted, but {dropped} packets dropped"))
}

fn is_startup(trip: &Trip) -> bool {
    matches!(trip, Trip::Startup { .. })
}

/// Whether a run is in STARTUP for too long, in words.
pub(crate) fn stays_in_startup(run: &Run, records: &Records) -> Option<String> {
    let oracles = RunSummary::new(&run_info("sim", run), records, None).oracles;
    oracles.iter().find(|trip| is_startup(trip)).map(|trip| format!("{trip:?}"))
}

/// Whether the records have the controller's states that the oracles read.
pub(crate) fn is_observed(records: &Records) -> bool {
    let has = |name: &str| records.states.iter().any(|state| *state.name == *name);
    ["bandwidth_mbps", "full_pipe", "rounds"].into_iter().all(has)
}

/// Two labs that differ in one respect, in which the second is better off.
#[derive(Debug)]
pub(crate) struct Pair {
    what: &'static str,
    pub(crate) base: Plain,
    pub(crate) better: Plain,
    /// The least goodput of the second, as a share of that of the first.
    least: f64,
}

/// Half as much capacity again, with the same buffer in products, brings a fifth more at least; over 1,334 pairs the least was 1.25, and
/// 1.5 is usual. Westwood's window after slow start follows its estimate, which may be far below the product; BBR's PROBE_RTT takes
/// 200 ms of a run whatever its rate.
const MORE_RATE: (f64, f64) = (1.5, 1.2);
/// A quarter of the random loss costs a twentieth at most; over 1,334 pairs the least was 0.98. With more loss BBR's window is
/// smaller, so that it drains its queue sooner and loses less of a cycle to it.
const LESS_LOSS: (f64, f64) = (0.25, 0.95);
/// Twice the buffer costs a tenth at most; over 1,334 pairs the least was 0.936. The start lasts longer: a flow loses more packets
/// at once when a larger buffer overflows, and Westwood's estimate after that is lower. BBR's last PROBE_RTT may fall into one run
/// and after the end of the other.
const MORE_BUFFER: (f64, f64) = (2.0, 0.9);
/// The random loss of the first lab of a pair that differs in it, as a share.
const LOSS: (f64, f64) = (0.001, 0.02);

/// The pair of this number.
pub(crate) fn pair(number: u64) -> Pair {
    let mut random = Random::stream_of(1, "pairs of labs", number);
    let cc = any_seeking(&mut random);
    let base = drawn(number, &mut random, cc);
    match number % 3 {
        0 => {
            let packets = (MORE_RATE.0 * base.packets).ceil();
            let better = Plain { rate: MORE_RATE.0 * base.rate, packets, ..base.clone() };
            Pair { what: "more capacity", base, better, least: MORE_RATE.1 }
        }
        1 => {
            let base = Plain { loss: between(&mut random, LOSS), ..base };
            let better = Plain { loss: LESS_LOSS.0 * base.loss, ..base.clone() };
            Pair { what: "less loss", base, better, least: LESS_LOSS.1 }
        }
        _ => {
            let better = Plain { packets: MORE_BUFFER.0 * base.packets, ..base.clone() };
            Pair { what: "more buffer", base, better, least: MORE_BUFFER.1 }
        }
    }
}

/// What a run delivers, slow start included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivered {
    mbps: f64,
    /// Whether the link lost a packet of the handshake, which costs a second or more.
    opened_late: bool,
}

impl Delivered {
    pub(crate) fn of(run: &Run, records: &Records) -> Delivered {
        let metrics = RunSummary::new(&run_info("sim", run), records, Some(Span::ZERO)).metrics;
        let opened = records.events.iter().find(|event| event.kind == FlowEventKind::Opened);
        let late = Time::ZERO + Span::from_secs(1);
        Delivered {
            mbps: metrics.get("goodput_mbps").scalar().unwrap_or(0.0),
            opened_late: opened.is_none_or(|event| event.at >= late),
        }
    }
}

impl Pair {
    /// Why the second lab is not better off, in words; `None` if it is.
    pub(crate) fn broken(&self, base: Delivered, better: Delivered) -> Option<String> {
        let Pair { what, least, .. } = self;
        let cost = !better.opened_late && better.mbps < least * base.mbps;
        cost.then(|| format!("with {what}, {:.2} Mbit/s instead of {:.2}", better.mbps, base.mbps))
    }
}
