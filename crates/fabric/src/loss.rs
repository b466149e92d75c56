//! Random loss: independent for each packet, in bursts of packets, or by bit errors, always or in bursts of time.
//!
//! Bursts of packets are those of a chain (Gilbert, "Capacity of a Burst-Noise Channel", BSTJ 39, 1960; Elliott, "Estimates of
//! Error Rates for Codes on Burst-Noise Channels", BSTJ 42, 1963). The chain has a good and a bad state and moves before each
//! packet; each state has its own probability of loss. Bit errors, and bursts whose good and bad times are exponential, are the error
//! models of the GNAT study's link emulator (digest A 10).

use serde::{Deserialize, Serialize};
use weir_base::{Random, Span, Time, math};

/// The packet whose loss by bit errors stands for that of all packets where one number is asked for, in bytes.
const TYPICAL: u64 = 1500;

/// Which packets a link loses. In records of runs, a number is the probability of independent loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Loss {
    /// Each packet with this probability, whatever happened to others.
    Independent(f64),
    /// In bursts.
    Bursts(GilbertElliott),
    /// Each packet in which a bit is wrong.
    Errors(BitErrors),
}

/// Independent bit errors. A packet of n bits passes with probability (1 - ber)^n.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BitErrors {
    /// Probability that a bit is wrong, while there are errors.
    pub ber: f64,
    /// The times with and without errors, if there are not always errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
}

/// A link that is good and bad in turn, each for an exponential time. It begins good.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Mean time without errors.
    pub good: Span,
    /// Mean time with errors.
    pub bad: Span,
}

impl BitErrors {
    /// The probability that a packet of so many bytes is lost while there are errors. Exact for rates far below 1e-16 too.
    fn of_packet(self, bytes: u64) -> f64 {
        -math::exp_m1(8.0 * bytes as f64 * math::ln_1p(-self.ber))
    }

    fn mean(self) -> f64 {
        let bad =
            self.times.map_or(1.0, |Times { good, bad }| bad.as_secs_f64() / (good + bad).as_secs_f64());
        bad * self.of_packet(TYPICAL)
    }
}

/// The chain of two states, with the letters of its literature.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GilbertElliott {
    /// Probability that the good state turns bad before a packet.
    pub p: f64,
    /// Probability that the bad state turns good before a packet.
    pub r: f64,
    /// Probability that a packet of the bad state passes.
    pub h: f64,
    /// Probability that a packet of the good state passes.
    pub k: f64,
}

impl Loss {
    /// No loss.
    pub const NONE: Loss = Loss::Independent(0.0);

    /// Whether no packet is lost.
    pub fn is_none(&self) -> bool {
        *self == Loss::NONE
    }

    /// The share of packets that are lost in the long run; by bit errors, of packets of 1500 bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Independent(probability) => *probability,
            Loss::Bursts(chain) => chain.mean(),
            Loss::Errors(errors) => errors.mean(),
        }
    }
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::NONE
    }
}

impl GilbertElliott {
    /// The chain that loses this share of packets, in bursts of this mean length in packets, at least 1: every packet of
    /// the bad state is lost, and no packet of the good one. `None` if no chain has both: at most `burst / (burst + 1)` of
    /// all packets can be lost, since at least one packet passes between two bursts.
    pub fn with_mean(mean: f64, burst: f64) -> Option<GilbertElliott> {
        let r = 1.0 / burst;
        let p = r * mean / (1.0 - mean);
        (mean < 1.0 && burst >= 1.0 && p <= 1.0).then_some(GilbertElliott { p, r, h: 0.0, k: 1.0 })
    }

    fn mean(&self) -> f64 {
        if self.p + self.r == 0.0 {
            return 1.0 - self.k;
        }
        (self.p * (1.0 - self.h) + self.r * (1.0 - self.k)) / (self.p + self.r)
    }
}

/// The running state of a link's loss.
#[derive(Debug)]
pub(crate) struct Losses {
    loss: Loss,
    /// Whether a chain is in its bad state, or the link in a bad time.
    bad: bool,
    /// When the present good or bad time ends; [`Time::NEVER`] without such times.
    turns_at: Time,
    random: Random,
    /// Good and bad times have a stream of their own, so that they are the same whatever is sent.
    turns: Random,
}

impl Losses {
    pub(crate) fn new(loss: Loss, random: Random, turns: Random) -> Losses {
        let mut losses = Losses { loss: Loss::NONE, bad: false, turns_at: Time::NEVER, random, turns };
        losses.change(loss, Time::ZERO);
        losses
    }

    /// Changes the loss from now on; a chain, and a link with good and bad times, begins good.
    pub(crate) fn change(&mut self, loss: Loss, now: Time) {
        (self.loss, self.bad) = (loss, false);
        self.turns_at = match loss {
            Loss::Errors(BitErrors { times: Some(times), .. }) => now + self.draw(times.good),
            _ => Time::NEVER,
        };
    }

    /// An exponential time with this mean.
    fn draw(&mut self, mean: Span) -> Span {
        let times = -math::ln(1.0 - self.turns.unit());
        // At least a nanosecond, so that time goes on.
        Span::from_nanos((times * mean.as_nanos() as f64).max(1.0) as u64)
    }

    /// The share of packets that are lost in the long run.
    pub(crate) fn mean(&self) -> f64 {
        self.loss.mean()
    }

    /// Whether the next packet, of so many bytes, is lost. It leaves at `at`, no earlier than those before it.
    #[inline]
    pub(crate) fn next(&mut self, bytes: u64, at: Time) -> bool {
        match self.loss {
            Loss::Independent(probability) => probability > 0.0 && self.random.chance(probability),
            Loss::Bursts(chain) => {
                let turn = if self.bad { chain.r } else { chain.p };
                self.bad ^= self.random.chance(turn);
                let passes = if self.bad { chain.h } else { chain.k };
                // The usual chain (h = 0, k = 1) draws nothing here: its state alone decides.
                passes < 1.0 && (passes <= 0.0 || !self.random.chance(passes))
            }
            Loss::Errors(errors) => {
                self.has_errors(errors, at) && self.random.chance(errors.of_packet(bytes))
            }
        }
    }

    /// Whether bits are wrong at present.
    fn has_errors(&mut self, errors: BitErrors, at: Time) -> bool {
        let Some(times) = errors.times else { return true };
        while self.turns_at <= at {
            self.bad = !self.bad;
            let lasts = self.draw(if self.bad { times.bad } else { times.good });
            self.turns_at += lasts;
        }
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of packets lost and mean length of a burst, over this many packets.
    fn measure(loss: Loss, packets: usize) -> (f64, f64) {
        let mut losses = Losses::new(loss, Random::stream(1, "loss"), Random::stream(1, "turns"));
        let (mut lost, mut bursts, mut before) = (0usize, 0usize, false);
        for number in 0..packets as u64 {
            // A packet of 1500 bytes each 0.1 ms.
            let now = losses.next(1500, Time::ZERO + Span::from_micros(100) * number);
            lost += usize::from(now);
            bursts += usize::from(now && !before);
            before = now;
        }
        (lost as f64 / packets as f64, lost as f64 / bursts as f64)
    }

    fn near(measured: f64, wanted: f64) -> bool {
        (measured / wanted - 1.0).abs() < 0.02
    }

    #[test]
    fn bursts_have_their_mean_loss_and_length_within_two_percent_over_a_million_packets() {
        // Of n bursts the share lost scatters by about sqrt(2 / n): 1 % at 20,000. Rare bursts take more packets.
        for (mean, burst, packets) in [(0.1, 5.0, 1_000_000), (0.05, 3.0, 1_000_000), (0.01, 5.0, 20_000_000)]
        {
            let chain = GilbertElliott::with_mean(mean, burst).unwrap();
            assert!((chain.mean() - mean).abs() < 1e-12);
            let (lost, length) = measure(Loss::Bursts(chain), packets);
            assert!(near(lost, mean) && near(length, burst), "{mean} {burst}: {lost} {length}");
        }
    }

    #[test]
    fn independent_losses_form_bursts_of_the_length_expected_by_chance() {
        // Losses in a row by chance: 1 / (1 - p).
        let (lost, length) = measure(Loss::Independent(0.1), 1_000_000);
        assert!(near(lost, 0.1) && near(length, 1.0 / 0.9), "{lost} {length}");
    }

    #[test]
    fn four_parameters_lose_in_both_states() {
        // Bad for 0.1 / (0.1 + 0.3) = 1/4 of packets, of which 1/2 are lost; of the others 1/10: 0.125 + 0.075.
        let chain = GilbertElliott { p: 0.1, r: 0.3, h: 0.5, k: 0.9 };
        assert!((chain.mean() - 0.2).abs() < 1e-12);
        let (lost, _) = measure(Loss::Bursts(chain), 1_000_000);
        assert!(near(lost, 0.2), "{lost}");
    }

    #[test]
    fn a_mean_loss_that_no_chain_can_have_is_refused() {
        assert!(GilbertElliott::with_mean(0.5, 1.0).is_some(), "every second packet");
        assert!(GilbertElliott::with_mean(0.6, 1.0).is_none());
        assert!(GilbertElliott::with_mean(1.0, 5.0).is_none());
        assert!(GilbertElliott::with_mean(0.1, 0.5).is_none());
    }

    #[test]
    fn bit_errors_lose_the_long_packets() {
        // 1e-5 of 12,000 bits: 1 - exp(-0.12) = 11.3 %. Of 320 bits: 0.32 %.
        let errors = BitErrors { ber: 1e-5, times: None };
        assert!((errors.of_packet(1500) - 0.113_08).abs() < 1e-5, "{}", errors.of_packet(1500));
        assert!((errors.of_packet(40) - 0.003_194_9).abs() < 1e-7, "{}", errors.of_packet(40));
        let (lost, length) = measure(Loss::Errors(errors), 1_000_000);
        assert!(near(lost, 0.113_08) && near(length, 1.0 / (1.0 - 0.113_08)), "{lost} {length}");
        // A rate that a difference from 1 would round away.
        let rare = BitErrors { ber: 1e-18, times: None };
        assert!((rare.of_packet(1500) / 1.2e-14 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn bad_times_have_their_share_and_their_length() {
        // Good for 90 ms and bad for 10 ms: every packet of a bad time is lost, 10 % in all, in bursts of about 100 packets.
        let span = Span::from_millis;
        let times = Times { good: span(90), bad: span(10) };
        let errors = BitErrors { ber: 1.0, times: Some(times) };
        assert!((errors.mean() - 0.1).abs() < 1e-12);
        let (lost, length) = measure(Loss::Errors(errors), 20_000_000);
        assert!((lost / 0.1 - 1.0).abs() < 0.02 && (length / 100.0 - 1.0).abs() < 0.03, "{lost} {length}");
    }

    #[test]
    fn bad_times_are_the_same_whatever_is_sent() {
        let times = Times { good: Span::from_millis(90), bad: Span::from_millis(10) };
        let errors = Loss::Errors(BitErrors { ber: 1.0, times: Some(times) });
        let lost_at = |step: u64| {
            let mut losses = Losses::new(errors, Random::stream(1, "loss"), Random::stream(1, "turns"));
            let at = |number: u64| Time::ZERO + Span::from_micros(100) * number;
            (0..20_000).step_by(step as usize).map(|n| (n, losses.next(1500, at(n)))).collect::<Vec<_>>()
        };
        let all = lost_at(1);
        assert!(all.iter().any(|(_, lost)| *lost));
        for (number, lost) in lost_at(7) {
            assert_eq!(all[number as usize], (number, lost));
        }
    }

    #[test]
    fn a_schedule_begins_a_good_time() {
        let times = Times { good: Span::from_millis(1), bad: Span::from_secs(1000) };
        let errors = Loss::Errors(BitErrors { ber: 1.0, times: Some(times) });
        let mut losses = Losses::new(Loss::NONE, Random::stream(1, "loss"), Random::stream(1, "turns"));
        let at = |secs| Time::ZERO + Span::from_secs(secs);
        losses.change(errors, at(5));
        assert!(!losses.next(1500, at(5)) && losses.next(1500, at(6)));
        losses.change(errors, at(7));
        assert!(!losses.next(1500, at(7)));
    }
}
