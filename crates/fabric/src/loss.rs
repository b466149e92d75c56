//! Random loss: independent for each packet, or in bursts (Gilbert, "Capacity of a Burst-Noise Channel", BSTJ 39, 1960;
//! Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", BSTJ 42, 1963). The chain has a good and a bad
//! state and moves before each packet; each state has its own probability of loss.

use serde::{Deserialize, Serialize};
use weir_base::Random;

/// Which packets a link loses. In records of runs, a number is the probability of independent loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Loss {
    /// Each packet with this probability, whatever happened to others.
    Independent(f64),
    /// In bursts.
    Bursts(GilbertElliott),
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

    /// The share of packets that are lost in the long run.
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Independent(probability) => *probability,
            Loss::Bursts(chain) => chain.mean(),
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
    /// Whether the chain is in its bad state.
    bad: bool,
    random: Random,
}

impl Losses {
    pub(crate) fn new(loss: Loss, random: Random) -> Losses {
        Losses { loss, bad: false, random }
    }

    /// Changes the loss from now on; a chain begins in its good state.
    pub(crate) fn change(&mut self, loss: Loss) {
        (self.loss, self.bad) = (loss, false);
    }

    /// The share of packets that are lost in the long run.
    pub(crate) fn mean(&self) -> f64 {
        self.loss.mean()
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        match self.loss {
            Loss::Independent(probability) => probability > 0.0 && self.random.chance(probability),
            Loss::Bursts(chain) => {
                let turn = if self.bad { chain.r } else { chain.p };
                self.bad ^= self.random.chance(turn);
                let passes = if self.bad { chain.h } else { chain.k };
                // The usual chain (h = 0, k = 1) draws nothing here: its state alone decides.
                passes < 1.0 && (passes <= 0.0 || !self.random.chance(passes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of packets lost and mean length of a burst, over this many packets.
    fn measure(loss: Loss, packets: usize) -> (f64, f64) {
        let mut losses = Losses::new(loss, Random::stream(1, "loss"));
        let (mut lost, mut bursts, mut before) = (0usize, 0usize, false);
        for _ in 0..packets {
            let now = losses.next();
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
}
