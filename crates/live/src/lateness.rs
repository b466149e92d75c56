//! How late packets were released, and whether that makes a run invalid.

use weir_base::{Histogram, Span, Time};

/// A release later than this is a stall of the pump.
const STALL: Span = Span::from_millis(1);
/// Share of the run that stalls may cover.
const STALL_SHARE: f64 = 0.005;
/// Lateness p99 may be this share of the base RTT ...
const RTT_SHARE: f64 = 0.01;
/// ... or this, whichever is more.
const RTT_FLOOR: Span = Span::from_micros(200);
/// It may not be above this share of the smallest AQM target ...
const TARGET_SHARE: f64 = 0.1;
/// ... but never needs to be below this.
const TARGET_FLOOR: Span = Span::from_micros(100);

/// Lateness of every release: from the time at which the fabric says that a packet reaches its host to the return of the
/// call that handed it to the kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lateness {
    pub(crate) releases: Histogram,
    stalled: Span,
    stalls: u64,
    /// The end of the time that has been searched for stalls.
    seen: Time,
}

impl Lateness {
    /// Counts one round of releases that ended together; `due` are the times at which they should have been made.
    pub(crate) fn round(&mut self, due: impl Iterator<Item = Time>, now: Time) {
        let mut first = now;
        for due in due {
            self.releases.record(now.since(due));
            first = first.min(due);
        }
        // Packets due during a stall are released late, in one round or several: the stalled time is counted once.
        if now.since(first) > STALL {
            self.stalled += now.since(first.max(self.seen));
            self.stalls += 1;
        }
        self.seen = now;
    }

    /// The time covered by stalls of more than a millisecond.
    pub(crate) fn stalled(&self) -> Span {
        self.stalled
    }

    /// The number of stalls of more than a millisecond.
    pub(crate) fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Why lateness makes the run invalid; empty when it does not.
    pub(crate) fn verdict(&self, limits: &Limits) -> Vec<String> {
        let mut reasons = vec![];
        let p99 = self.releases.percentile(0.99).unwrap_or(Span::ZERO);
        if p99 > limits.p99 {
            reasons.push(format!(
                "packets were released late: 99th percentile {:.0} us, allowed {:.0} us ({})",
                micros(p99),
                micros(limits.p99),
                limits.why
            ));
        }
        let share = self.stalled.as_secs_f64() / limits.duration.as_secs_f64().max(1e-9);
        if share > STALL_SHARE {
            reasons.push(format!(
                "stalls of over 1 ms cover {:.2} % of the run, allowed {:.1} %",
                share * 100.0,
                STALL_SHARE * 100.0
            ));
        }
        reasons
    }
}

/// The lateness that a run allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    pub(crate) p99: Span,
    why: &'static str,
    duration: Span,
}

impl Limits {
    /// The limits of a run of this length, base RTT and smallest AQM target (`None` without an AQM).
    pub(crate) fn new(duration: Span, base_rtt: Span, target: Option<Span>) -> Limits {
        let by_rtt = base_rtt.scale(RTT_SHARE).max(RTT_FLOOR);
        match target.map(|target| target.scale(TARGET_SHARE).max(TARGET_FLOOR)) {
            Some(by_target) if by_target < by_rtt => {
                Limits { p99: by_target, why: "a tenth of the smallest AQM target", duration }
            }
            _ => Limits { p99: by_rtt, why: "1 % of the base RTT, or 200 us", duration },
        }
    }
}

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Span {
        Span::from_micros(us)
    }
    fn second() -> Span {
        Span::from_secs(1)
    }

    #[test]
    fn the_limit_is_the_larger_of_rtt_share_and_floor_unless_an_aqm_needs_a_lower_one() {
        assert_eq!(Limits::new(second(), Span::from_millis(20), None).p99, us(200));
        assert_eq!(Limits::new(second(), Span::from_millis(100), None).p99, us(1000));
        assert_eq!(Limits::new(second(), Span::from_millis(100), Some(Span::from_millis(5))).p99, us(500));
        assert_eq!(Limits::new(second(), Span::from_millis(20), Some(Span::from_millis(15))).p99, us(200));
        assert_eq!(Limits::new(second(), Span::from_millis(20), Some(us(100))).p99, us(100));
    }

    /// Rounds that end one after another, with these delays, a hundred microseconds apart.
    fn rounds(lateness: &mut Lateness, from: Time, rounds: &[&[Span]]) -> Time {
        let mut now = from;
        for round in rounds {
            now += us(100);
            lateness.round(round.iter().map(|late| now - *late), now);
        }
        now
    }

    #[test]
    fn a_late_run_is_invalid_and_a_punctual_one_is_not() {
        let limits = Limits::new(second(), Span::from_millis(20), None);
        let mut lateness = Lateness::default();
        let now = rounds(&mut lateness, Time::ZERO + second(), &[&[us(20)] as &[_]; 1000]);
        assert!(lateness.verdict(&limits).is_empty());
        rounds(&mut lateness, now, &[&[us(300), us(250)] as &[_]; 20]);
        assert_eq!(lateness.verdict(&limits).len(), 1);
    }

    #[test]
    fn time_in_which_the_pump_stalled_is_counted_once() {
        let limits = Limits::new(second(), Span::from_millis(20), None);
        let mut lateness = Lateness::default();
        let now = rounds(&mut lateness, Time::ZERO + second(), &[&[us(10)] as &[_]; 10_000]);
        // A stall of 3 ms, released in two rounds.
        let now = now + us(3000);
        lateness.round([us(3000), us(2000)].into_iter().map(|late| now - late), now);
        let now = rounds(&mut lateness, now, &[&[us(1500)]]);
        assert_eq!((lateness.stalled(), lateness.stalls()), (us(3100), 2));
        assert!(lateness.verdict(&limits).is_empty());
        let now = now + us(2500);
        lateness.round([now - us(2500)].into_iter(), now);
        assert_eq!(lateness.verdict(&limits).len(), 1);
    }
}
