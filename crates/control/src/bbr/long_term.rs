//! The long-term rate: two intervals of heavy loss with the same throughput indicate a token-bucket policer, and BBR uses its rate
//! for some rounds (Linux `bbr_lt_bw_sampling`; Flach et al., "An Internet-Wide Analysis of Traffic Policing", 2016).

use super::{GAIN_SHIFT, ONE, RATE_SHIFT, pacing_rate};
use weir_base::Time;

/// Rounds of the shortest interval (Linux `bbr_lt_intvl_min_rtts`), and of the longest.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Ratio of lost to delivered segments from which on loss is heavy, in 1/256 (Linux `bbr_lt_loss_thresh`).
const HEAVY_LOSS: u64 = 50;
/// Rates are equal if they differ by at most this part, or by at most 4 kbit/s, here in bytes per second (Linux `bbr_lt_bw_ratio`,
/// `bbr_lt_bw_diff`).
const SAME_PART: u64 = ONE / 8;
const SAME_BYTES: u64 = 4_000 / 8;
/// Rounds for which the long-term rate is used (Linux `bbr_lt_bw_max_rtts`).
const KEPT_ROUNDS: u32 = 48;
/// Milliseconds beyond which an interval in microseconds does not fit into 32 bits.
const LONGEST_MILLIS: u64 = (u32::MAX / 1_000) as u64;

/// Totals of the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Segments delivered, and segments ever marked lost.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// When the last segment was delivered (Linux `delivered_mstamp`).
    pub(super) delivered_at: Time,
}

impl Progress {
    fn millis(&self) -> u64 {
        self.delivered_at.as_nanos() / 1_000_000
    }
}

/// The result of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No change.
    Unchanged,
    /// A policer was detected; its rate is used from now on.
    Policed,
    /// The policer's rate was used for `KEPT_ROUNDS` rounds, and no longer is.
    Expired,
}

/// The state of the estimator.
#[derive(Debug)]
pub(super) struct LongTerm {
    sampling: bool,
    rounds: u32,
    /// Rate of the last interval; 0 before the first.
    rate: u64,
    used: bool,
    begin: Progress,
}

impl LongTerm {
    pub(super) fn new(progress: &Progress) -> LongTerm {
        LongTerm { sampling: false, rounds: 0, rate: 0, used: false, begin: *progress }
    }

    /// The policer's rate; `None` while it is not used.
    pub(super) fn rate(&self) -> Option<u64> {
        self.used.then_some(self.rate)
    }

    /// Resets the estimator (Linux `bbr_reset_lt_bw_sampling`).
    pub(super) fn reset(&mut self, progress: &Progress) {
        *self = LongTerm::new(progress);
    }

    fn begin_interval(&mut self, progress: &Progress) {
        self.begin = *progress;
        self.rounds = 0;
    }

    /// Takes an acknowledgement or a timeout. `cycling` is true in ProbeBW.
    pub(super) fn sample(
        &mut self,
        progress: &Progress,
        losses: u32,
        app_limited: bool,
        round_start: bool,
        cycling: bool,
        mss: u64,
    ) -> Verdict {
        if self.used {
            if cycling && round_start {
                self.rounds += 1;
                if self.rounds >= KEPT_ROUNDS {
                    self.reset(progress);
                    return Verdict::Expired;
                }
            }
            return Verdict::Unchanged;
        }
        // An interval begins with a loss: tokens left in the bucket would make it too fast.
        if !self.sampling {
            if losses == 0 {
                return Verdict::Unchanged;
            }
            self.begin_interval(progress);
            self.sampling = true;
        }
        if app_limited {
            self.reset(progress);
            return Verdict::Unchanged;
        }
        self.rounds += u32::from(round_start);
        if self.rounds < LEAST_ROUNDS {
            return Verdict::Unchanged;
        }
        if self.rounds > MOST_ROUNDS {
            self.reset(progress);
            return Verdict::Unchanged;
        }
        // It also ends with a loss, when the bucket is empty again.
        if losses == 0 { Verdict::Unchanged } else { self.end_interval(progress, mss) }
    }

    fn end_interval(&mut self, progress: &Progress, mss: u64) -> Verdict {
        let lost = progress.lost.saturating_sub(self.begin.lost);
        let delivered = progress.delivered.saturating_sub(self.begin.delivered);
        if delivered == 0 || lost << GAIN_SHIFT < HEAVY_LOSS * delivered {
            return Verdict::Unchanged;
        }
        let millis = progress.millis().saturating_sub(self.begin.millis());
        if millis < 1 {
            return Verdict::Unchanged;
        }
        if millis >= LONGEST_MILLIS {
            self.reset(progress);
            return Verdict::Unchanged;
        }
        let rate = (delivered << RATE_SHIFT) / (millis * 1_000);
        if self.rate > 0 {
            let difference = rate.abs_diff(self.rate);
            if difference << GAIN_SHIFT <= SAME_PART * self.rate
                || pacing_rate(difference, mss, ONE) <= SAME_BYTES
            {
                self.rate = u64::midpoint(rate, self.rate);
                self.used = true;
                self.rounds = 0;
                return Verdict::Policed;
            }
        }
        self.rate = rate;
        self.begin_interval(progress);
        Verdict::Unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Span;

    const MSS: u64 = 1000;

    /// An interval of five rounds of 40 ms for each element of `delivered`, the number of segments delivered in each round; `lost` are
    /// lost in each round.
    fn intervals(long_term: &mut LongTerm, progress: &mut Progress, delivered: &[u64], lost: u64) -> Verdict {
        let mut verdict = Verdict::Unchanged;
        for &delivered in delivered {
            for _ in 0..5 {
                progress.delivered += delivered;
                progress.lost += lost;
                progress.delivered_at += Span::from_millis(40);
                verdict = long_term.sample(progress, lost as u32, false, true, true, MSS);
                if verdict != Verdict::Unchanged {
                    return verdict;
                }
            }
        }
        verdict
    }

    fn begin() -> (LongTerm, Progress) {
        let mut progress = Progress { delivered: 1, lost: 0, delivered_at: Time::ZERO };
        let mut long_term = LongTerm::new(&progress);
        // The first loss begins the first interval.
        progress.lost += 1;
        assert_eq!(long_term.sample(&progress, 1, false, false, true, MSS), Verdict::Unchanged);
        (long_term, progress)
    }

    #[test]
    fn two_lossy_intervals_of_the_same_rate_are_a_policer() {
        let (mut long_term, mut progress) = begin();
        // 25 lost for 100 delivered are more than 50/256; 100 segments each 40 ms are 0.0025 per microsecond.
        assert_eq!(intervals(&mut long_term, &mut progress, &[100, 100], 25), Verdict::Policed);
        assert_eq!(long_term.rate(), Some((100 << RATE_SHIFT) / 40_000));
    }

    #[test]
    fn intervals_with_less_loss_or_another_rate_are_no_policer() {
        let (mut long_term, mut progress) = begin();
        // 19 of 100 are less than 50/256.
        assert_eq!(intervals(&mut long_term, &mut progress, &[100, 100, 100], 19), Verdict::Unchanged);
        assert_eq!(long_term.rate(), None);
        let (mut long_term, mut progress) = begin();
        // A quarter more is not within an eighth.
        assert_eq!(intervals(&mut long_term, &mut progress, &[100, 125], 40), Verdict::Unchanged);
        assert_eq!(long_term.rate(), None);
    }

    #[test]
    fn the_rate_of_the_policer_is_kept_for_48_rounds() {
        let (mut long_term, mut progress) = begin();
        intervals(&mut long_term, &mut progress, &[100, 100], 25);
        let kept =
            (1..100).find(|_| long_term.sample(&progress, 0, false, true, true, MSS) == Verdict::Expired);
        assert_eq!((kept, long_term.rate()), (Some(48), None));
    }

    #[test]
    fn an_application_limited_sample_restarts_the_detection() {
        let (mut long_term, mut progress) = begin();
        intervals(&mut long_term, &mut progress, &[100], 25);
        long_term.sample(&progress, 0, true, true, true, MSS);
        assert_eq!(intervals(&mut long_term, &mut progress, &[100], 25), Verdict::Unchanged);
        assert_eq!(long_term.rate(), None);
    }
}
