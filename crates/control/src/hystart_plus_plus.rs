//! HyStart++ (RFC 9406): when the RTTs of a round have grown, slow start continues four times slower, in Conservative Slow Start
//! (CSS). If the growth is transient, slow start resumes; after five rounds of CSS it ends. Used in the first slow start only, as
//! section 4.3 recommends.
//!
//! Windows are counted in segments here, where the RFC counts bytes.

use crate::{Ack, Start, Window};
use weir_base::Span;

/// Bounds of the RTT growth that starts CSS (section 4.3).
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
/// Between the bounds, the growth is the last round's smallest RTT divided by this.
const MIN_RTT_DIVISOR: u64 = 8;
/// Number of RTT samples before a round's RTT counts.
const N_RTT_SAMPLE: u32 = 8;
/// Factor by which the window grows slower in CSS.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// Rounds of CSS after which slow start ends.
const CSS_ROUNDS: u32 = 5;
/// Segments that one acknowledgement may add without pacing (`L`).
const UNPACED_LIMIT: u32 = 8;

/// Conservative slow start.
#[derive(Debug, Clone, Copy)]
struct Conservative {
    /// Smallest RTT of the round in which CSS was entered; a smaller one resumes slow start.
    baseline: Span,
    /// Rounds of CSS, including the one in which it was entered.
    rounds: u32,
    /// Acknowledged segments for which the window has not yet grown.
    credit: u32,
}

/// A slow start under HyStart++.
#[derive(Debug)]
pub(crate) struct HyStartPlusPlus {
    /// Segments that one acknowledgement may add.
    limit: u32,
    /// The round ends when this offset is acknowledged.
    window_end: u64,
    last_round: Option<Span>,
    this_round: Option<Span>,
    samples: u32,
    conservative: Option<Conservative>,
}

impl HyStartPlusPlus {
    pub(crate) fn new(start: &Start) -> HyStartPlusPlus {
        HyStartPlusPlus {
            limit: if start.paced { u32::MAX } else { UNPACED_LIMIT },
            window_end: 0,
            last_round: None,
            this_round: None,
            samples: 0,
            conservative: None,
        }
    }

    /// Grows the window for `delivered` segments; returns how many are left for congestion avoidance.
    pub(crate) fn slow_start(&mut self, window: &mut Window, delivered: u32) -> u32 {
        let counted = delivered.min(self.limit);
        match &mut self.conservative {
            None => window.slow_start(counted),
            Some(css) => {
                css.credit += counted;
                let grown = css.credit / CSS_GROWTH_DIVISOR;
                css.credit %= CSS_GROWTH_DIVISOR;
                window.slow_start(grown)
            }
        }
    }

    /// Takes the RTT sample of an acknowledgement; sets the threshold to the window when slow start ends.
    pub(crate) fn watch(&mut self, ack: &Ack, window: &mut Window) {
        if !window.in_slow_start() {
            return;
        }
        if ack.acknowledged >= self.window_end {
            self.begin_round(ack.next_sequence);
            if self.conservative.is_some_and(|css| css.rounds > CSS_ROUNDS) {
                window.ssthresh = window.cwnd;
                return;
            }
        }
        let Some(sample) = ack.rtt else { return };
        let least = self.this_round.map_or(sample.rtt, |least| least.min(sample.rtt));
        self.this_round = Some(least);
        self.samples += 1;
        if self.samples >= N_RTT_SAMPLE {
            self.judge(least);
        }
    }

    fn begin_round(&mut self, next_sequence: u64) {
        self.window_end = next_sequence;
        self.last_round = self.this_round.take();
        self.samples = 0;
        if let Some(css) = &mut self.conservative {
            css.rounds += 1;
        }
    }

    /// Decides on a round with enough samples: enters CSS if its smallest RTT has grown, or leaves CSS if the growth was transient.
    fn judge(&mut self, least: Span) {
        match (self.conservative, self.last_round) {
            (Some(css), _) if least < css.baseline => self.conservative = None,
            (None, Some(last)) => {
                let growth = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if least >= last + growth {
                    self.conservative = Some(Conservative { baseline: least, rounds: 1, credit: 0 });
                }
            }
            _ => {}
        }
    }

    pub(crate) fn describe(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("css_rounds", self.conservative.map_or(0.0, |css| f64::from(css.rounds)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack_with_rtt, ms, start};

    const SEGMENT: u64 = 1000;

    /// A slow start that is driven round by round.
    struct Rounds {
        hystart: HyStartPlusPlus,
        window: Window,
        acknowledged: u64,
    }

    impl Rounds {
        fn new(initial_window: u32) -> Rounds {
            let start = crate::Start { initial_window, ..start() };
            Rounds { hystart: HyStartPlusPlus::new(&start), window: Window::new(&start), acknowledged: 0 }
        }

        /// Acknowledges a whole window segment by segment with this RTT in milliseconds; returns the window after it.
        fn round(&mut self, rtt: u64) -> u32 {
            let sent = u64::from(self.window.cwnd);
            let next_sequence = (self.acknowledged + 2 * sent) * SEGMENT;
            for _ in 0..sent {
                self.acknowledged += 1;
                let acknowledged = self.acknowledged * SEGMENT;
                let ack =
                    Ack { acknowledged, next_sequence, ..ack_with_rtt(ms(0), 1, Span::from_millis(rtt)) };
                self.hystart.watch(&ack, &mut self.window);
                if self.window.in_slow_start() {
                    self.hystart.slow_start(&mut self.window, 1);
                }
            }
            // The next round begins with the segments that the first acknowledgement of this one released.
            self.hystart.window_end = (self.acknowledged + 1) * SEGMENT;
            self.window.cwnd
        }
    }

    #[test]
    fn the_window_doubles_while_the_delay_does_not_grow() {
        let mut rounds = Rounds::new(16);
        assert_eq!([rounds.round(40), rounds.round(40), rounds.round(44)], [32, 64, 128]);
        assert!(rounds.hystart.conservative.is_none());
    }

    #[test]
    fn an_increase_of_the_delay_by_an_eighth_begins_css_and_five_rounds_of_css_end_slow_start() {
        let mut rounds = Rounds::new(16);
        rounds.round(40);
        // 45 ms are an eighth more. The first seven of 32 samples still add one each. The eighth begins CSS; from it on 25 samples
        // add six, and one is left over.
        assert_eq!(rounds.round(45), 32 + 7 + 6);
        // 46 segments, including the one left over, add 11; then each round adds a quarter.
        assert_eq!(rounds.round(45), 45 + 11);
        assert_eq!(rounds.round(45), 56 + 14);
        assert_eq!(rounds.round(45), 70 + 18);
        assert_eq!(rounds.round(45), 88 + 22);
        assert!(rounds.window.in_slow_start());
        // The round in which CSS began counts: the sixth round's first acknowledgement ends slow start.
        assert_eq!(rounds.round(45), 110);
        assert_eq!(rounds.window.ssthresh, 110);
    }

    #[test]
    fn a_transient_increase_of_the_delay_resumes_slow_start() {
        let mut rounds = Rounds::new(16);
        rounds.round(40);
        assert_eq!(rounds.round(45), 45);
        // Seven samples add two segments in CSS; from the eighth on each sample adds one.
        let resumed = rounds.round(44);
        assert!(rounds.hystart.conservative.is_none());
        assert_eq!(resumed, 45 + 2 + 38);
    }

    #[test]
    fn the_delay_threshold_of_css_is_at_least_4_ms_and_at_most_16_ms() {
        for (before, after, slowed) in [(8, 11, false), (8, 12, true), (400, 415, false), (400, 416, true)] {
            let mut rounds = Rounds::new(16);
            rounds.round(before);
            rounds.round(after);
            assert_eq!(rounds.hystart.conservative.is_some(), slowed, "{before} ms to {after} ms");
        }
    }

    #[test]
    fn one_acknowledgement_adds_at_most_eight_segments_unless_segments_are_paced() {
        for (paced, expected) in [(false, 18), (true, 30)] {
            let start = crate::Start { paced, ..start() };
            let mut window = Window::new(&start);
            HyStartPlusPlus::new(&start).slow_start(&mut window, 20);
            assert_eq!(window.cwnd, expected);
        }
    }
}
