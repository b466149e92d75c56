//! Two captures of the same packets, before and after a queue: how long each packet took from one to the other, and which did not arrive.
//! Both are read side by side, and a packet waits in memory until the other capture has it or the longest time has passed.

mod merge;
mod pending;

use crate::Capture;
use crate::flow::Key;
use crate::times::Times;
use merge::{Outcome, difference, merge};
use pending::Seen;
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Read};
use weir_base::{Ecn, Histogram, Span, Time};

/// Packets at the start of each capture among which a common one is looked for.
const COMMON: usize = 100_000;

/// What is assumed of the clocks of two captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Clocks {
    /// What the second one's clock shows less that of the first, in nanoseconds.
    pub offset_ns: i64,
    /// How this is known.
    pub known_by: KnownBy,
}

/// How the offset of two clocks is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// It was given.
    Given,
    /// By packets in both directions: the least times there and back are taken as equal.
    BothDirections,
    /// By packets in one direction: the least time is taken as zero.
    OneDirection,
}

impl Clocks {
    /// Estimates the offset of two captures, which `open` opens anew; `None` if no packet is in both.
    ///
    /// # Errors
    /// Those of `open`, or the captures cannot be read.
    pub fn estimate<R: Read>(
        mut open: impl FnMut() -> io::Result<[Capture<R>; 2]>,
        longest: Span,
    ) -> io::Result<Option<Clocks>> {
        let Some(rough) = merge::common(open()?, COMMON)? else { return Ok(None) };
        let mut extremes = Extremes::default();
        merge(open()?, rough, longest, &mut extremes)?;
        Ok(extremes.clocks(rough))
    }
}

/// The shortest and the longest difference of times, by flow and direction, in nanoseconds.
#[derive(Debug, Default)]
struct Extremes(HashMap<(Key, bool), (i64, i64)>);

impl Outcome for Extremes {
    fn matched(&mut self, [first, second]: [&Seen; 2]) -> io::Result<()> {
        let took = difference(first.at, second.at);
        let (least, most) = self.0.entry((first.key, first.is_back)).or_insert((took, took));
        (*least, *most) = ((*least).min(took), (*most).max(took));
        Ok(())
    }
    fn unmatched(&mut self, _: usize, _: &Seen, _: bool) -> io::Result<()> {
        Ok(())
    }
}

impl Extremes {
    fn clocks(&self, rough: i64) -> Option<Clocks> {
        // Of a flow with packets both ways, those of one way are early at the second capture, and those of the other are late.
        let both = self.0.iter().filter(|((_, is_back), _)| !is_back).filter_map(|((key, _), there)| {
            let back = self.0.get(&(*key, true))?;
            let (late, early) = if there.0 >= back.0 { (there, back) } else { (back, there) };
            Some((late.0, early.1))
        });
        let both = both.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (offset, known_by) = match both {
            Some((late, early)) => (early + (late - early) / 2, KnownBy::BothDirections),
            None => (self.0.values().map(|(least, _)| *least).min()?, KnownBy::OneDirection),
        };
        Some(Clocks { offset_ns: rough.saturating_add(offset), known_by })
    }
}

/// What a packet did between the captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Its time at the capture that it reached first, by the clock of the first capture.
    pub at: Time,
    /// Whether it went from the first capture to the second.
    pub is_there: bool,
    /// Its length in bytes from the IP header on.
    pub ip_bytes: u32,
    /// The time to the other capture; `None` if it did not arrive.
    pub sojourn: Option<Span>,
}

/// What was found between two captures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CrossingReport {
    /// The clocks.
    pub clocks: Clocks,
    /// From the first capture to the second.
    pub there: WayReport,
    /// From the second capture to the first.
    pub back: WayReport,
    /// Packets of each capture that the other one never has in this direction of their flow: they take another way.
    pub elsewhere: [u64; 2],
    /// Packets of each capture at times when the other one was not running.
    pub outside: [u64; 2],
    /// Packets that were equal to another one that was waiting, so that either may have been meant.
    pub ambiguous: u64,
    /// Packets of each capture whose headers were not read.
    pub skipped: [u64; 2],
}

/// What was found of one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WayReport {
    /// Packets that both captures have.
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Their IP bytes.
    pub lost_bytes: u64,
    /// Packets that were marked (CE) on the way.
    pub marked: u64,
    /// Packets that arrived before they left, by these clocks; they count as taking no time.
    pub negative: u64,
    /// Times from one capture to the other.
    pub sojourn_ms: Option<Times>,
}

/// Compares two captures to their ends, and hands out each packet that crosses, or does not. What takes more than `longest` is lost.
///
/// # Errors
/// The captures cannot be read, or `each` fails.
pub fn compare<R: Read>(
    captures: [Capture<R>; 2],
    clocks: Clocks,
    longest: Span,
    each: &mut dyn FnMut(&Passage) -> io::Result<()>,
) -> io::Result<CrossingReport> {
    let mut crossing = Crossing {
        each,
        ahead: Span::from_nanos(merge::behind(clocks.offset_ns)[0]),
        is_there: HashMap::new(),
        ways: Default::default(),
        elsewhere: [0; 2],
        outside: [0; 2],
    };
    let counts = merge(captures, clocks.offset_ns, longest, &mut crossing)?;
    let [there, back] = &crossing.ways;
    Ok(CrossingReport {
        clocks,
        there: there.report(),
        back: back.report(),
        elsewhere: crossing.elsewhere,
        outside: crossing.outside,
        ambiguous: counts.ambiguous,
        skipped: counts.skipped,
    })
}

/// The packets of one way.
#[derive(Debug, Default)]
struct Way {
    sojourns: Histogram,
    lost: u64,
    lost_bytes: u64,
    marked: u64,
    negative: u64,
}

impl Way {
    fn report(&self) -> WayReport {
        WayReport {
            packets: self.sojourns.count(),
            lost: self.lost,
            lost_bytes: self.lost_bytes,
            marked: self.marked,
            negative: self.negative,
            sojourn_ms: Times::of(&self.sojourns),
        }
    }
}

struct Crossing<'a> {
    each: &'a mut dyn FnMut(&Passage) -> io::Result<()>,
    /// What the times of packets are ahead of the first capture's clock.
    ahead: Span,
    /// By flow and direction, whether its packets go from the first capture to the second, as the first packet that both have tells.
    is_there: HashMap<(Key, bool), bool>,
    /// There and back.
    ways: [Way; 2],
    elsewhere: [u64; 2],
    outside: [u64; 2],
}

impl Crossing<'_> {
    fn pass(&mut self, seen: &Seen, is_there: bool, sojourn: Option<Span>) -> io::Result<()> {
        let at = Time::from_nanos(seen.at.as_nanos().saturating_sub(self.ahead.as_nanos()));
        (self.each)(&Passage { at, is_there, ip_bytes: seen.ip_bytes, sojourn })
    }
}

impl Outcome for Crossing<'_> {
    fn matched(&mut self, [first, second]: [&Seen; 2]) -> io::Result<()> {
        let took = difference(first.at, second.at);
        let is_there = *self.is_there.entry((first.key, first.is_back)).or_insert(took >= 0);
        let (way, took, from, to) = match is_there {
            true => (&mut self.ways[0], took, first, second),
            false => (&mut self.ways[1], took.saturating_neg(), second, first),
        };
        let sojourn = Span::from_nanos(took.max(0).unsigned_abs());
        way.negative += u64::from(took < 0);
        way.marked += u64::from(from.ecn != Ecn::Ce && to.ecn == Ecn::Ce);
        way.sojourns.record(sojourn);
        self.pass(from, is_there, Some(sojourn))
    }

    fn unmatched(&mut self, index: usize, seen: &Seen, outside: bool) -> io::Result<()> {
        let is_there = self.is_there.get(&(seen.key, seen.is_back)).copied();
        match is_there {
            _ if outside => self.outside[index] += 1,
            // Of those that cross, the capture that they reach first has them all.
            Some(is_there) if is_there == (index == 0) => {
                let way = &mut self.ways[usize::from(!is_there)];
                way.lost += 1;
                way.lost_bytes += u64::from(seen.ip_bytes);
                return self.pass(seen, is_there, None);
            }
            _ => self.elsewhere[index] += 1,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
