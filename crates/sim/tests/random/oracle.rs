//! What a single bulk flow does on a plain link, whatever the rate, the round-trip time and the buffer: rules that need no kernel. The
//! labs are drawn by number over 1 to 1,000 Mbit/s. Their socket buffers have the default sizes, which are the limit on long fat paths,
//! and hold two bandwidth-delay products.

use std::fmt::Write;
use std::path::Path;
use weir_base::{Random, Span, Time};
use weir_plan::{Lab, Run};
use weir_record::{Component, Records, RunSummary};

/// Controllers that look for all of a link's capacity.
const SEEKING: [&str; 6] = ["bbr", "cubic", "newreno", "htcp", "dctcp", "westwood"];
/// A flow uses at least this much of the link in the second half of its run, in percent.
const LEAST_USED: f64 = 80.0;
/// No estimate exceeds the link's rate by more than this factor for [`MOST_ROUNDS_ABOVE`] round trips.
const MOST_ESTIMATE: f64 = 1.25;
const MOST_ROUNDS_ABOVE: f64 = 10.0;
/// Bandwidth-delay products in packets: the default send buffer of 4 MiB holds 1,839 segments.
const BDP_PACKETS: (f64, f64) = (10.0, 600.0);
/// A loss-based controller gains a packet each round trip, so that it needs a smaller product to fill it in the time of a run.
const MOST_BDP_OF_OTHERS: f64 = 150.0;
/// Round trips with a full buffer, in a run of BBR and of any other.
const ROUND_TRIPS: (f64, f64) = (60.0, 160.0);
const PACKET_BITS: f64 = 12_000.0;

/// A lab, and the values of it that the rules refer to.
pub(crate) struct Plain {
    pub(crate) text: String,
    rate: f64,
    rtt: f64,
}

/// A value between two bounds, each of whose orders of magnitude is as likely.
fn between(random: &mut Random, (low, high): (f64, f64)) -> f64 {
    low * (high / low).powf(random.unit())
}

/// The lab of this number.
pub(crate) fn plain(number: u64) -> Plain {
    let mut random = Random::stream_of(1, "plain labs", number);
    let cc = SEEKING[random.below(SEEKING.len() as u64) as usize];
    let (most, round_trips) =
        if cc == "bbr" { (BDP_PACKETS.1, ROUND_TRIPS.0) } else { (MOST_BDP_OF_OTHERS, ROUND_TRIPS.1) };
    // The product and the rate give the round-trip time, of 1 to 300 ms.
    let bdp = between(&mut random, (BDP_PACKETS.0, most));
    let slowest = (bdp * PACKET_BITS / 0.3).max(1e6);
    let fastest = (bdp * PACKET_BITS / 0.001).min(1e9);
    let rate = between(&mut random, (slowest, fastest));
    let rtt = bdp * PACKET_BITS / rate;
    let buffer = between(&mut random, (0.5, 4.0)).min((1700.0 - bdp) / bdp);
    let packets = (buffer * bdp).round().max(5.0);
    let duration = round_trips * rtt * (1.0 + buffer);
    let mut text = String::new();
    writeln!(text, "format = 1\n[run]\nduration = '{:.0} us'", duration * 1e6).unwrap();
    writeln!(text, "warmup = '{:.0} us'\nsample = '{:.0} us'", duration * 5e5, rtt * 1e6).unwrap();
    writeln!(text, "seed = {}\nstart_jitter = '0 s'", 1 + number).unwrap();
    writeln!(text, "[dumbbell]\nrate = '{rate:.0} bit/s'\nrtt = '{:.0} us'", rtt * 1e6).unwrap();
    writeln!(text, "queue = {{ kind = 'tail-drop', limit = '{packets:.0} packets' }}").unwrap();
    writeln!(text, "[traffic.a]\ncc = '{cc}'").unwrap();
    Plain { text, rate, rtt }
}

impl Plain {
    /// The lab's only run.
    pub(crate) fn run(&self, folder: &Path) -> Run {
        let lab = Lab::from_str(&self.text, "plain.toml", folder, &[])
            .unwrap_or_else(|error| panic!("{}\n{}", self.text, error.render(false, 100)));
        lab.runs().remove(0)
    }

    /// The rule that a run breaks, in words; `None` if it breaks none.
    pub(crate) fn broken(&self, summary: &RunSummary, records: &Records) -> Option<String> {
        let used = summary.metrics.get("utilisation_percent").scalar().unwrap_or(0.0);
        if used < LEAST_USED {
            return Some(format!("it uses {used:.1} % of the link"));
        }
        let most = MOST_ESTIMATE * self.rate / 1e6;
        let long = Span::from_secs_f64(MOST_ROUNDS_ABOVE * self.rtt);
        if let Some(excess) = longest_above(records, most)
            && excess.length() >= long
        {
            let (largest, length) = (excess.largest, excess.length());
            return Some(format!("its estimate is {largest:.1} Mbit/s, above {most:.1} for {length}"));
        }
        let resent = records.transport.last().map_or(0, |last| last.retransmissions);
        let dropped: u64 = records.links.iter().map(|link| link.dropped.iter().sum::<u64>()).sum();
        let probes = records.transport.last().and_then(|last| last.timeouts).unwrap_or(0);
        (resent > dropped + dropped / 50 + 10 + 2 * probes)
            .then(|| format!("{resent} segments are retransmitted, but {dropped} packets dropped"))
    }
}

/// A time in which an estimate was too high in each sample, and its largest value.
#[derive(Debug, Clone, Copy)]
struct Excess {
    from: Time,
    to: Time,
    largest: f64,
}

impl Excess {
    fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

/// The longest time in which the controller's estimate of the bandwidth is above `most` Mbit/s; `None` if it never is.
fn longest_above(records: &Records, most: f64) -> Option<Excess> {
    let estimates = records
        .states
        .iter()
        .filter(|state| state.of == Component::Controller(0) && *state.name == *"bandwidth_mbps");
    let (mut longest, mut present): (Option<Excess>, Option<Excess>) = (None, None);
    for state in estimates {
        present = (state.value > most).then(|| {
            let begun = present.unwrap_or(Excess { from: state.at, to: state.at, largest: 0.0 });
            Excess { to: state.at, largest: begun.largest.max(state.value), ..begun }
        });
        if present.is_some_and(|now| longest.is_none_or(|before| now.length() >= before.length())) {
            longest = present;
        }
    }
    longest
}
