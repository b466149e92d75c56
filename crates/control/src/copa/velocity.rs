//! The velocity of Copa's window. Sources: NSDI 2018, section 2.1; the GNAT software for the start of a round trip: a change of
//! direction starts a new one, so that the velocity doubles at the earliest five round trips after the change.

use crate::Ack;
use std::cmp::Ordering;

/// Round trips in the same direction after which the velocity doubles (NSDI 2018, section 2.1).
const STEADY: u32 = 3;

/// The velocity: the window moves by this many times 1/delta packets in a round trip.
#[derive(Debug)]
pub(super) struct Velocity {
    value: f64,
    /// Whether the direction at the newest acknowledgement was up.
    rises: bool,
    /// The direction in which the window moved in the last round trip; `None` if it did not move, or after a change of direction.
    direction: Option<Ordering>,
    /// Number of round trips in the same direction, up to [`STEADY`].
    steady: u32,
    /// The round trip ends when an acknowledgement passes this offset.
    begin: u64,
    /// The window at the start of the round trip, in packets.
    cwnd: f64,
}

impl Velocity {
    /// The velocity of a connection with a window of `cwnd` packets.
    pub(super) fn new(cwnd: f64) -> Velocity {
        Velocity { value: 1.0, rises: true, direction: None, steady: 0, begin: 0, cwnd }
    }

    /// The velocity, at least 1.
    pub(super) fn get(&self) -> f64 {
        self.value
    }

    /// Takes an acknowledgement while the window is `cwnd` packets and its direction is up if `rises`. The velocity is at most `most`.
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: f64, rises: bool, most: f64) {
        if ack.acknowledged > self.begin {
            self.round(cwnd);
            self.begin(ack, cwnd);
        }
        if rises != self.rises {
            self.reset(ack, cwnd, rises);
        }
        self.value = self.value.min(most.floor()).max(1.0);
    }

    /// Resets the velocity to 1 and begins a round trip.
    pub(super) fn reset(&mut self, ack: &Ack, cwnd: f64, rises: bool) {
        (self.value, self.steady, self.direction, self.rises) = (1.0, 0, None, rises);
        self.begin(ack, cwnd);
    }

    fn begin(&mut self, ack: &Ack, cwnd: f64) {
        (self.begin, self.cwnd) = (ack.next_sequence, cwnd);
    }

    /// A round trip has ended.
    fn round(&mut self, cwnd: f64) {
        let moved = cwnd.total_cmp(&self.cwnd);
        let direction = Some(moved).filter(|moved| moved.is_ne());
        if direction.is_none() || direction != self.direction {
            (self.value, self.steady) = (1.0, 0);
        } else if self.steady < STEADY {
            self.steady += 1;
        } else {
            self.value *= 2.0;
        }
        self.direction = direction;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, ms};

    /// Ends `count` round trips in which the window moves by `step`; returns the velocity after each.
    fn rounds(velocity: &mut Velocity, sent: &mut u64, cwnd: &mut f64, step: f64, count: usize) -> Vec<f64> {
        let mut seen = Vec::new();
        for _ in 0..count {
            *cwnd += step;
            let mut ack = ack(ms(0), 1);
            (ack.acknowledged, ack.next_sequence) = (*sent + 1, *sent + 1000);
            *sent += 1000;
            velocity.on_ack(&ack, *cwnd, step > 0.0, 50.0);
            seen.push(velocity.get());
        }
        seen
    }

    #[test]
    fn the_velocity_doubles_from_the_fifth_round_trip_on_and_resets_on_a_change_of_direction() {
        let (mut velocity, mut sent, mut cwnd) = (Velocity::new(100.0), 0, 100.0);
        let up = rounds(&mut velocity, &mut sent, &mut cwnd, 2.0, 7);
        assert_eq!(up, [1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0]);
        // The first acknowledgement in the other direction begins a round trip, which does not count.
        let down = rounds(&mut velocity, &mut sent, &mut cwnd, -2.0, 7);
        assert_eq!(down, [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0]);
    }

    #[test]
    fn the_velocity_is_bounded_and_an_unchanged_window_resets_it() {
        let (mut velocity, mut sent, mut cwnd) = (Velocity::new(100.0), 0, 100.0);
        assert_eq!(rounds(&mut velocity, &mut sent, &mut cwnd, 2.0, 20).last(), Some(&50.0));
        let mut ack = ack(ms(0), 1);
        (ack.acknowledged, ack.next_sequence) = (sent + 1, sent + 1000);
        velocity.on_ack(&ack, cwnd, true, 50.0);
        assert_eq!(velocity.get(), 1.0);
    }
}
