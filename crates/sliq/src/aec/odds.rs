//! The fate of a group of packets on a channel that loses each packet with the same probability, independently: the states of a group, the
//! probabilities of transitions, and the loss at the end.

use super::code::MOST_SOURCES;

/// Maximum number of packets of a group in one round.
pub const MOST_IN_ROUND: usize = 32;

/// The packets of a group that the receiver has. With `k` packets in all the group is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Have {
    /// Source packets.
    pub sources: u8,
    /// Repair packets.
    pub repairs: u8,
}

impl Have {
    /// Nothing has arrived.
    pub const NOTHING: Have = Have { sources: 0, repairs: 0 };

    /// Number of packets that have arrived.
    pub(super) fn packets(self) -> usize {
        usize::from(self.sources) + usize::from(self.repairs)
    }
}

/// The incomplete states of a group of `k`, in order of their numbers.
pub(super) fn states(k: usize) -> impl Iterator<Item = Have> {
    (0..k).flat_map(move |sources| {
        (0..k - sources).map(move |repairs| Have { sources: sources as u8, repairs: repairs as u8 })
    })
}

/// The number of incomplete states of a group of `k`.
pub(super) fn count(k: usize) -> usize {
    k * (k + 1) / 2
}

/// The number of an incomplete state, from 0.
pub(super) fn index(k: usize, have: Have) -> usize {
    let sources = usize::from(have.sources);
    sources * k - sources * sources.saturating_sub(1) / 2 + usize::from(have.repairs)
}

/// The binomial distribution at one rate of loss.
#[derive(Debug)]
pub(super) struct Odds {
    /// `arrive[n][i]`: the probability that `i` of `n` packets arrive.
    arrive: Vec<[f64; MOST_IN_ROUND + 1]>,
}

impl Odds {
    /// The distribution at this probability of loss.
    pub(super) fn new(per: f64) -> Odds {
        let mut arrive = vec![[0.0; MOST_IN_ROUND + 1]; MOST_IN_ROUND + 1];
        arrive[0][0] = 1.0;
        for n in 1..=MOST_IN_ROUND {
            for i in 0..=n {
                let last = if i > 0 { arrive[n - 1][i - 1] } else { 0.0 };
                arrive[n][i] = arrive[n - 1][i] * per + last * (1.0 - per);
            }
        }
        Odds { arrive }
    }

    /// Calls `to` with each incomplete state that may follow when `packets` are sent (the missing source packets first, then repair
    /// packets), and its probability. The rest to one is the probability that the group is complete.
    #[inline]
    pub(super) fn next(&self, k: usize, have: Have, packets: usize, mut to: impl FnMut(Have, f64)) {
        let sources = packets.min(k - usize::from(have.sources));
        let repairs = packets - sources;
        let need = k - have.packets();
        for i in 0..=sources.min(need - 1) {
            for j in 0..=repairs.min(need - 1 - i) {
                let probability = self.arrive[sources][i] * self.arrive[repairs][j];
                to(Have { sources: have.sources + i as u8, repairs: have.repairs + j as u8 }, probability);
            }
        }
    }

    /// The mean share of source packets that are missing if the group ends after these packets.
    pub(super) fn loss(&self, k: usize, have: Have, packets: usize) -> f64 {
        let mut loss = 0.0;
        self.next(k, have, packets, |have, probability| loss += probability * missing(k, have));
        loss
    }
}

/// The share of source packets that are missing in an incomplete group.
fn missing(k: usize, have: Have) -> f64 {
    (k - usize::from(have.sources)) as f64 / k as f64
}

const _: () = assert!(MOST_SOURCES <= MOST_IN_ROUND);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_numbered_in_order() {
        for k in 1..=MOST_SOURCES {
            assert!(states(k).enumerate().all(|(number, have)| index(k, have) == number));
            assert_eq!(states(k).count(), count(k));
        }
    }

    #[test]
    fn the_loss_of_two_packets_and_one_repair_matches_the_value_computed_by_hand() {
        // At a loss of 1/2: all three lost, 1/8, misses both; the repair alone, 1/8, misses both; either source alone, 2/8, misses
        // one of two. In all 1/8 + 1/8 + 2/8 * 1/2 = 3/8.
        assert_eq!(Odds::new(0.5).loss(2, Have::NOTHING, 3), 0.375);
        // One source packet is here, and the other or the repair packet completes the group. Both are lost with 1/4, and then half is
        // missing.
        assert_eq!(Odds::new(0.5).loss(2, Have { sources: 1, repairs: 0 }, 2), 0.125);
    }

    #[test]
    fn a_group_of_one_is_lost_when_every_copy_is() {
        let odds = Odds::new(0.1);
        assert!((odds.loss(1, Have::NOTHING, 3) - 0.001).abs() < 1e-15);
    }
}
