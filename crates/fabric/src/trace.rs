//! Recorded links: the capacity of a link over time, from a file. Two formats are read.
//!
//! **Opportunities**, as Mahimahi has them (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC
//! 2015, section 4; `src/frontend/link_queue.cc`): each line is a whole number of milliseconds, in order, at which 1504 bytes
//! may leave. A packet may need several opportunities. The rest of an opportunity goes to the packets that wait behind; if
//! none waits, it is lost. The trace lasts until its last line, and repeats from there.
//!
//! **Steps**: each line is `seconds,rate`: from that time on the link has that rate. The last line lasts as long as the one
//! before it, so that a trace in equal steps repeats without a gap.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use weir_base::{Bytes, Rate, Span};

/// Bytes that may leave at one opportunity: an Ethernet payload of 1500 bytes and the 4 bytes that a TUN device puts before
/// each packet (`PACKET_SIZE` in Mahimahi's `link_queue.hh`).
pub const OPPORTUNITY: Bytes = Bytes::new(1504);

/// Most lines of a trace.
const MOST_LINES: usize = 20_000_000;
/// Longest trace: 30 days, as the longest run.
const LONGEST: Span = Span::from_secs(30 * 24 * 3600);
/// Fastest rate of a step: 1000 Gbit/s, as the fastest link.
const FASTEST: u64 = 1_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// A recorded link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace(Shape);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Opportunities(Opportunities),
    Steps(Steps),
}

/// Times at which packets may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opportunities {
    /// In milliseconds, ascending; the last one is the length.
    at: Vec<u32>,
}

/// A rate that changes in steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Steps {
    steps: Vec<Step>,
    /// How long it lasts, in nanoseconds.
    length: u64,
    /// Capacity of that time, in bits times nanoseconds per second.
    total: u128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// From when, in nanoseconds.
    from: u64,
    /// Bits per second.
    rate: u64,
    /// Capacity before this step, in the unit of [`Steps::total`].
    before: u128,
}

/// A recording as a link plays it. Its digest identifies it, so that two networks are equal only if their recordings are; the
/// recording itself is shared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Playback {
    /// The file's own name.
    pub file: String,
    /// Digest of its bytes: XXH64, in hexadecimal.
    pub digest: String,
    /// Whether it repeats when it ends. If not, the last rate stays, and no further opportunities come.
    pub repeat: bool,
    /// The recording itself. `None` in a description that was read back from results.
    #[serde(skip)]
    pub recording: Option<Arc<Trace>>,
}

impl PartialEq for Playback {
    /// Compares name, digest and repetition, not whether the recording is loaded.
    fn eq(&self, other: &Playback) -> bool {
        (&self.file, &self.digest, self.repeat) == (&other.file, &other.digest, other.repeat)
    }
}

/// Why a file is not a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// The line, from 1; `None` if the error is about the whole file.
    pub line: Option<usize>,
    /// What is wrong, as a sentence without a full stop.
    pub what: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for TraceError {}

fn wrong<T>(line: usize, what: impl Into<String>) -> Result<T, TraceError> {
    Err(TraceError { line: Some(line), what: what.into() })
}

fn unfit<T>(what: &str) -> Result<T, TraceError> {
    Err(TraceError { line: None, what: what.into() })
}

impl Trace {
    /// Reads a trace of either format: a comma in the first line means steps.
    ///
    /// # Errors
    /// The first line that is wrong, and why.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let lines = || text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let content = || lines().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let Some((_, first)) = content().next() else { return unfit("the trace is empty") };
        if content().nth(MOST_LINES).is_some() {
            return unfit("the trace has more than 20000000 lines");
        }
        if first.contains(',') { parse_steps(content()) } else { parse_opportunities(content()) }
    }

    /// How long it lasts.
    pub fn length(&self) -> Span {
        match &self.0 {
            Shape::Opportunities(trace) => Span::from_nanos(trace.length()),
            Shape::Steps(trace) => Span::from_nanos(trace.length),
        }
    }

    /// Its mean rate over its whole length.
    pub fn mean_rate(&self) -> Rate {
        let (total, length) = match &self.0 {
            Shape::Opportunities(trace) => {
                (trace.count(trace.length(), false) * bits_of(OPPORTUNITY), trace.length())
            }
            Shape::Steps(trace) => (trace.total, trace.length),
        };
        Rate::from_bits_per_sec((total / u128::from(length)) as u64)
    }

    /// Whether it holds opportunities rather than rates.
    pub fn is_opportunities(&self) -> bool {
        matches!(self.0, Shape::Opportunities(_))
    }

    pub(crate) fn opportunities(&self) -> Option<&Opportunities> {
        match &self.0 {
            Shape::Opportunities(trace) => Some(trace),
            Shape::Steps(_) => None,
        }
    }

    pub(crate) fn steps(&self) -> Option<&Steps> {
        match &self.0 {
            Shape::Steps(trace) => Some(trace),
            Shape::Opportunities(_) => None,
        }
    }
}

impl Trace {
    /// Capacity from its start up to and including `at` nanoseconds, in bits times nanoseconds per second. With `repeat` it
    /// begins again when it ends.
    pub(crate) fn total(&self, at: u64, repeat: bool) -> u128 {
        match &self.0 {
            Shape::Opportunities(trace) => trace.count(at, repeat) * bits_of(OPPORTUNITY),
            Shape::Steps(trace) => trace.total_until(at, repeat),
        }
    }
}

/// Bytes in the unit of the sums here: bits times nanoseconds per second.
pub(crate) fn bits_of(bytes: Bytes) -> u128 {
    u128::from(bytes.get()) * 8_000_000_000
}

fn parse_opportunities<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, TraceError> {
    let mut at: Vec<u32> = Vec::new();
    for (number, line) in lines {
        let Ok(ms) = line.parse::<u32>() else {
            return wrong(number, format!("\"{}\" is not a whole number of milliseconds", shown(line)));
        };
        if at.last().is_some_and(|last| ms < *last) {
            return wrong(number, format!("{ms} ms follows a later time"));
        }
        if u64::from(ms) * MILLISECOND > LONGEST.as_nanos() {
            return wrong(number, format!("{ms} ms is beyond the longest run, 720 h"));
        }
        at.push(ms);
    }
    if at.last().is_none_or(|last| *last == 0) {
        return unfit("the trace has a length of 0: its last line is its length in milliseconds");
    }
    Ok(Trace(Shape::Opportunities(Opportunities { at })))
}

fn parse_steps<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, TraceError> {
    // Bare numbers are bits per second, unless a first line of words names another unit.
    let (mut unit, mut first) = (String::from("bit/s"), true);
    let mut steps: Vec<Step> = Vec::new();
    let mut total = 0u128;
    for (number, line) in lines {
        let heading = std::mem::take(&mut first);
        let Some((time, rate)) = line.split_once(',').map(|(time, rate)| (time.trim(), rate.trim())) else {
            return wrong(
                number,
                format!("\"{}\" is not a time in seconds, a comma and a rate", shown(line)),
            );
        };
        let Some(from) = nanoseconds(time) else {
            if heading && time.starts_with(|c: char| c.is_alphabetic()) {
                if format!("1 {rate}").parse::<Rate>().is_ok() {
                    unit = rate.into();
                }
                continue;
            }
            return wrong(number, format!("\"{}\" is not a time in seconds", shown(time)));
        };
        let spelled = if rate.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
            format!("{rate} {unit}")
        } else {
            rate.into()
        };
        let rate = match spelled.parse::<Rate>() {
            Ok(rate) if rate.bits_per_sec() > FASTEST => {
                return wrong(
                    number,
                    format!("{rate} is above the maximum, {}", Rate::from_bits_per_sec(FASTEST)),
                );
            }
            Ok(rate) => rate.bits_per_sec(),
            Err(error) => return wrong(number, error.message),
        };
        match steps.last() {
            None if from != 0 => return wrong(number, "the first line must be at 0 seconds"),
            Some(last) if from <= last.from => {
                return wrong(number, format!("{time} s is not later than the time before it"));
            }
            Some(last) => total += u128::from(last.rate) * u128::from(from - last.from),
            None => {}
        }
        if from > LONGEST.as_nanos() {
            return wrong(number, format!("{time} s is beyond the longest run, 720 h"));
        }
        steps.push(Step { from, rate, before: total });
    }
    let last_long = match steps.as_slice() {
        [.., before, last] => last.from - before.from,
        _ => Span::from_secs(1).as_nanos(),
    };
    let Some(last) = steps.last() else { return unfit("the trace has a heading but no lines below it") };
    total += u128::from(last.rate) * u128::from(last_long);
    if total == 0 {
        return unfit("no packet ever passes the trace: all its rates are 0");
    }
    let length = last.from + last_long;
    Ok(Trace(Shape::Steps(Steps { steps, length, total })))
}

/// The first characters of a text, as an error shows them.
fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Seconds in decimal digits as nanoseconds; finer digits are cut off. `None` if the text is not such a number, or too large.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let part = part.fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

impl Opportunities {
    /// Its length in nanoseconds.
    fn length(&self) -> u64 {
        self.at.last().map_or(0, |last| u64::from(*last) * MILLISECOND)
    }

    /// When opportunity `number`, from 0, comes: nanoseconds from the start. `None` if the trace has ended before.
    pub(crate) fn time(&self, number: u64, repeat: bool) -> Option<u64> {
        let lines = self.at.len() as u64;
        let round = number / lines;
        let at = u64::from(self.at[(number % lines) as usize]) * MILLISECOND;
        (repeat || round == 0).then(|| round * self.length() + at)
    }

    /// The number of the first opportunity at `from` nanoseconds or later.
    pub(crate) fn first_from(&self, from: u64, repeat: bool) -> u64 {
        let length = self.length();
        // The last lines of one round come at the very moment at which the next round begins.
        let round = if repeat { from.saturating_sub(1) / length } else { 0 };
        let rest = from - round * length;
        let before = self.at.partition_point(|at| u64::from(*at) * MILLISECOND < rest);
        round * self.at.len() as u64 + before as u64
    }

    /// How many there are from the start up to and including `until` nanoseconds.
    fn count(&self, until: u64, repeat: bool) -> u128 {
        let round = if repeat { until / self.length() } else { 0 };
        let rest = until - round * self.length();
        let before = self.at.partition_point(|at| u64::from(*at) * MILLISECOND <= rest);
        u128::from(round) * self.at.len() as u128 + before as u128
    }
}

impl Steps {
    /// The step at this time of the first round.
    fn step(&self, at: u64) -> usize {
        self.steps.partition_point(|step| step.from <= at).saturating_sub(1)
    }

    /// Splits a time into the part that whole rounds fill and the rest. Without repetition, the last step never ends.
    fn split(&self, at: u64, repeat: bool) -> (u64, u64) {
        if repeat { (at / self.length, at % self.length) } else { (0, at) }
    }

    /// Capacity until `at` nanoseconds, in bits times nanoseconds per second.
    fn total_until(&self, at: u64, repeat: bool) -> u128 {
        let (rounds, rest) = self.split(at, repeat);
        let step = self.steps[self.step(rest)];
        u128::from(rounds) * self.total + step.before + u128::from(step.rate) * u128::from(rest - step.from)
    }

    /// The rate at a time, and until when it lasts; `None` if it never changes again.
    pub(crate) fn rate_at(&self, at: u64, repeat: bool) -> (Rate, Option<u64>) {
        let (rounds, rest) = self.split(at, repeat);
        let step = self.step(rest);
        let next = self.steps.get(step + 1).map(|next| next.from).or(repeat.then_some(self.length));
        (Rate::from_bits_per_sec(self.steps[step].rate), next.map(|next| rounds * self.length + next))
    }

    /// When a transmission of `bytes` that begins at `from` ends, to the nearest nanosecond; `None` if never.
    pub(crate) fn finish(&self, from: u64, bytes: Bytes, repeat: bool) -> Option<u64> {
        let target = self.total_until(from, repeat) + bits_of(bytes);
        let (rounds, rest) = if repeat {
            // Bytes that fill a round to the last bit are sent at its end, not at the end of a later one.
            let rounds = (target - 1) / self.total;
            (rounds as u64, target - rounds * self.total)
        } else {
            (0, target)
        };
        // The last step before which less than this has been sent: it sends the rest.
        let step = self.steps[self.steps.partition_point(|step| step.before < rest).saturating_sub(1)];
        let (rate, left) = (u128::from(step.rate), rest - step.before);
        (rate > 0).then(|| {
            let offset = step.from + ((left + rate / 2) / rate) as u64;
            (rounds * self.length + offset).max(from)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = MILLISECOND;
    const SECOND: u64 = 1_000_000_000;

    fn opportunities(text: &str) -> Opportunities {
        Trace::parse(text).unwrap().opportunities().unwrap().clone()
    }

    fn steps(text: &str) -> Steps {
        Trace::parse(text).unwrap().steps().unwrap().clone()
    }

    #[test]
    fn a_trace_of_opportunities_repeats_from_its_last_line_on() {
        let trace = opportunities("0\n5\n5\n10\n");
        let times: Vec<_> = (0..10).map(|number| trace.time(number, true).unwrap() / MS).collect();
        assert_eq!(times, [0, 5, 5, 10, 10, 15, 15, 20, 20, 25]);
        assert_eq!((trace.time(3, false), trace.time(4, false)), (Some(10 * MS), None));
        for from in [0, 1, 4 * MS, 5 * MS, 5 * MS + 1, 10 * MS, 10 * MS + 1, 20 * MS] {
            let first = (0..).find(|number| trace.time(*number, true).unwrap() >= from).unwrap();
            assert_eq!(trace.first_from(from, true), first, "{from}");
        }
        // 0, 5, 5, 10 and the 0 of the second round.
        assert_eq!(
            (trace.count(0, true), trace.count(10 * MS, true), trace.count(10 * MS, false)),
            (1, 5, 4)
        );
        // 4 x 1504 bytes in 10 ms.
        assert_eq!(Trace::parse("0\n5\n5\n10").unwrap().mean_rate(), Rate::from_bits_per_sec(4_812_800));
    }

    #[test]
    fn bytes_are_sent_across_steps_and_rounds() {
        // 1 Mbit/s, then zero, then 2 Mbit/s, for a second each.
        let trace = steps("0,1 Mbit/s\n1,0 bit/s\n2,2 Mbit/s\n");
        assert_eq!((trace.length, trace.total), (3 * SECOND, 3_000_000 * u128::from(SECOND)));
        let finish = |from, bytes| trace.finish(from, Bytes::new(bytes), true);
        assert_eq!(finish(0, 125), Some(MS), "1000 bits at 1 Mbit/s");
        assert_eq!(
            finish(SECOND - MS, 375),
            Some(2 * SECOND + MS),
            "a third before the pause, the rest behind it"
        );
        assert_eq!(finish(SECOND + 7, 250), Some(2 * SECOND + MS));
        assert_eq!(finish(3 * SECOND - MS, 250), Some(3 * SECOND), "to the last bit of the round");
        assert_eq!(finish(3 * SECOND - MS, 375), Some(3 * SECOND + MS), "round the end");
        assert_eq!(finish(30 * SECOND, 3 * 375_000), Some(39 * SECOND));
        assert_eq!(
            trace.finish(9 * SECOND, Bytes::new(250), false),
            Some(9 * SECOND + MS),
            "the last rate holds"
        );
        assert_eq!(trace.rate_at(4 * SECOND + 5, true), (Rate::from_bits_per_sec(0), Some(5 * SECOND)));
        assert_eq!(trace.rate_at(9 * SECOND, false), (Rate::from_mbit_per_sec(2), None));
    }

    #[test]
    fn a_trace_that_ends_at_a_rate_of_zero_without_repetition_never_finishes() {
        let trace = steps("0,1 Mbit/s\n1,0\n");
        assert_eq!(trace.finish(0, Bytes::new(125_000), false), Some(SECOND));
        assert_eq!(trace.finish(0, Bytes::new(125_001), false), None);
        assert_eq!(trace.finish(0, Bytes::new(125_001), true), Some(2 * SECOND + 8_000));
    }

    #[test]
    fn the_heading_gives_the_unit_of_numbers_without_one() {
        let rate = |text: &str| steps(text).steps[0].rate;
        assert_eq!(rate("0,1500000"), 1_500_000);
        assert_eq!(rate("seconds,rate\n0,1500000"), 1_500_000);
        assert_eq!(rate("seconds,Mbit/s\n# a remark\n0,1.5\n"), 1_500_000);
        assert_eq!(rate("t , kbit/s\n0 , 1.5 Mbit/s\n"), 1_500_000);
    }

    #[test]
    fn an_invalid_trace_is_refused_with_its_line_and_the_reason() {
        let error = |text: &str| Trace::parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "the trace is empty");
        assert_eq!(
            error("0\n0\n"),
            "the trace has a length of 0: its last line is its length in milliseconds"
        );
        assert_eq!(error("1\n\n3\n2\n"), "line 4: 2 ms follows a later time");
        assert_eq!(error("1\n-2\n"), "line 2: \"-2\" is not a whole number of milliseconds");
        assert_eq!(error("1\n2.5\n"), "line 2: \"2.5\" is not a whole number of milliseconds");
        assert_eq!(error("4294967295\n"), "line 1: 4294967295 ms is beyond the longest run, 720 h");
        assert_eq!(error("0,1 Mbps\n"), "line 1: \"Mbps\" is not a unit of rate");
        assert_eq!(error("1,5\n"), "line 1: the first line must be at 0 seconds");
        assert_eq!(error("0,5\n1,5\n1,6"), "line 3: 1 s is not later than the time before it");
        assert_eq!(error("0,5\n1\n"), "line 2: \"1\" is not a time in seconds, a comma and a rate");
        assert_eq!(error("seconds,rate\n"), "the trace has a heading but no lines below it");
        assert_eq!(error("0,0\n1,0\n"), "no packet ever passes the trace: all its rates are 0");
        assert_eq!(error("0,2000 Gbit/s\n"), "line 1: 2000 Gbit/s is above the maximum, 1000 Gbit/s");
    }
}
