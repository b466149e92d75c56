//! Labs at random, as text: labs that a person could write, and many that no person would. The same number gives the same
//! lab. They are small, a few thousand packets each, and small in every other respect too: times and rates go together.

mod network;
mod traffic;
mod transport;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use weir_base::Random;

/// Most packets that the slowest link of a lab carries, about.
const PACKETS: f64 = 1500.0;

/// Files beside the labs: recorded links.
pub(crate) fn write_traces(folder: &Path) {
    let mut random = Random::stream(0, "traces");
    let mut at = 0;
    let opportunities: String = (0..200)
        .map(|_| {
            at += random.below(4);
            format!("{at}\n")
        })
        .collect();
    std::fs::write(folder.join("opportunities"), opportunities + "900\n").unwrap();
    let steps: String =
        (0..40).map(|step| format!("0.0{step:02},{} kbit/s\n", random.below(20_000))).collect();
    std::fs::write(folder.join("steps"), steps).unwrap();
}

/// A lab while it is being written.
pub(crate) struct Writer {
    random: Random,
    text: String,
    /// Rate of the slowest link, in bit/s.
    rate: f64,
    /// How long the run lasts, in microseconds.
    duration: u64,
    /// Round trip of the whole network, and a sample period, in microseconds.
    rtt: u64,
    sample: u64,
    /// The sending hosts that groups share.
    hosts: BTreeSet<String>,
}

/// The lab of this number.
pub(crate) fn lab(number: u64) -> String {
    let mut random = Random::stream_of(20, "labs", number);
    // From 1 kbit/s to 10 Gbit/s, mostly in the middle: a sample period has at least a millisecond.
    let exponent = if random.chance(0.15) { 3.0 + 7.0 * random.unit() } else { 5.0 + 3.0 * random.unit() };
    let rate = 10f64.powf(exponent);
    let longest = PACKETS * 12_000.0 / rate * 1e6;
    let duration = (longest * (0.1 + random.unit())).clamp(1000.0, 2.5e6) as u64;
    // From far below a packet's time to beyond the end of the run.
    let rtt = (duration as f64 * 10f64.powf(-4.0 + 4.3 * random.unit())) as u64;
    let mut writer = Writer {
        random,
        text: String::from("format = 1\n"),
        rate,
        duration,
        rtt,
        sample: 0,
        hosts: BTreeSet::new(),
    };
    writer.run(number);
    writer.network();
    writer.cards();
    writer.text
}

impl Writer {
    fn chance(&mut self, probability: f64) -> bool {
        self.random.chance(probability)
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn line(&mut self, line: impl std::fmt::Display) {
        writeln!(self.text, "{line}").unwrap();
    }

    /// With this probability, a line.
    fn maybe(&mut self, probability: f64, line: impl FnOnce(&mut Writer) -> String) {
        if self.chance(probability) {
            let line = line(self);
            self.line(line);
        }
    }

    /// Two to four values of this kind as a list.
    fn list(&mut self, mut value: impl FnMut(&mut Writer) -> String) -> String {
        let values: Vec<String> = (0..2 + self.random.below(3)).map(|_| value(self)).collect();
        format!("[{}]", values.join(", "))
    }

    /// A time up to this many microseconds, quoted.
    fn time(&mut self, most: u64) -> String {
        format!("'{} us'", self.random.below(most.max(1)))
    }

    /// The same, but never zero.
    fn some_time(&mut self, most: u64) -> String {
        format!("'{} us'", 1 + self.random.below(most.max(1)))
    }

    /// A rate of this many times the lab's, quoted.
    fn rate_of(&mut self, least: f64, most: f64) -> String {
        let rate = self.rate * (least + (most - least) * self.random.unit());
        format!("'{} bit/s'", (rate as u64).clamp(100, 1_000_000_000_000))
    }

    fn share(&mut self) -> String {
        let most = if self.chance(0.1) { 1.0 } else { 0.1 };
        format!("{:.4}", self.random.unit() * most)
    }

    fn run(&mut self, number: u64) {
        let duration = self.duration;
        self.line(format!("[run]\nduration = '{duration} us'\nseed = {number}"));
        let periods = 1 + self.random.below(30);
        self.sample = (duration / periods).max(1000).min(duration);
        self.line(format!("sample = '{} us'", self.sample));
        self.maybe(0.5, |w| format!("warmup = {}", w.time(duration * 3 / 4)));
        let jitter = if self.chance(0.5) { "'0 us'".into() } else { self.time(duration / 20) };
        self.line(format!("start_jitter = {jitter}"));
        self.maybe(0.5, |w| {
            format!("host_jitter = {}", if w.chance(0.5) { "'0 s'".into() } else { w.time(duration / 100) })
        });
        self.maybe(0.2, |w| {
            let at = w.random.below(duration);
            format!("host_pauses = [{{ at = '{at} us', for = {} }}]", w.some_time(duration / 10))
        });
        self.maybe(0.2, |_| "ip = 6".into());
        self.maybe(0.2, |_| "round_trips = 'acknowledgements'".into());
        self.maybe(0.1, |_| "packets = true".into());
        self.windows();
    }

    /// Named parts of the run, which may overlap.
    fn windows(&mut self) {
        let (sample, periods) = (self.sample, self.duration / self.sample);
        let count = if self.chance(0.3) { 1 + self.random.below(3) } else { 0 };
        for window in 0..count {
            if window == 0 {
                self.line("[run.windows]");
            }
            let from = self.random.below(periods);
            let to = from + 1 + self.random.below(periods - from);
            let (from, to) = (from * sample, to * sample);
            self.line(format!("w{window} = {{ from = '{from} us', to = '{to} us' }}"));
        }
    }

    fn size(&mut self, most: u64) -> String {
        format!("'{} B'", 1 + self.random.below(most))
    }
}
