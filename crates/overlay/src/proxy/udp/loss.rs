//! What a source makes of the reports of one receiver: the part of its packets that do not arrive in time (digest A 7.6).

use super::received::SILENCE;
use weir_base::{Span, Time};

/// Weight of the newest report (digest A 7.6).
const GAIN: f64 = 0.2;
/// A source that has sent for so long beyond the deadline and has heard nothing takes all for lost: five periods of reports.
const PATIENCE: Span = Span::from_millis(500);

/// The loss toward one receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    highest: u64,
    in_time: u64,
    rate: f64,
    heard: Time,
}

impl Loss {
    /// A receiver that was heard first now. Packets up to the first report count as one sample.
    pub fn new(now: Time) -> Loss {
        Loss { highest: 0, in_time: 0, rate: 0.0, heard: now }
    }

    /// A report has come.
    pub fn on_report(&mut self, highest: u64, in_time: u64, now: Time) {
        // Reports may overtake each other.
        if highest <= self.highest || in_time < self.in_time {
            return;
        }
        let was_silent = now.since(self.heard) >= SILENCE;
        let (sent, arrived) = (highest - self.highest, in_time - self.in_time);
        let sample = 1.0 - arrived.min(sent) as f64 / sent as f64;
        self.rate =
            if was_silent || self.highest == 0 { sample } else { self.rate + GAIN * (sample - self.rate) };
        (self.highest, self.in_time, self.heard) = (highest, in_time, now);
    }

    /// The part that is lost.
    pub fn rate(&self) -> f64 {
        self.rate
    }
    /// When a report came last.
    pub fn heard(&self) -> Time {
        self.heard
    }
}

/// The loss of a flow toward the receiver that has the most: all of it if none was heard for too long while it sent. `sends_since` is when
/// the flow began to send without a pause, `sent` when it did last.
pub fn worst<'a>(
    losses: impl Iterator<Item = &'a Loss>,
    (sends_since, sent): (Time, Time),
    deadline: Span,
) -> f64 {
    let (mut worst, mut heard) = (0.0f64, Time::ZERO);
    for loss in losses {
        // A flow that has begun anew is not judged by what was before.
        if loss.heard >= sends_since {
            worst = worst.max(loss.rate);
        }
        heard = heard.max(loss.heard);
    }
    let is_unheard = sent.since(heard.max(sends_since)) > deadline + PATIENCE;
    if is_unheard { 1.0 } else { worst }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn loss_is_a_moving_average_with_weight_a_fifth() {
        let mut loss = Loss::new(at(0));
        loss.on_report(100, 100, at(100));
        loss.on_report(200, 150, at(200));
        assert!((loss.rate() - 0.1).abs() < 1e-12);
        loss.on_report(300, 200, at(300));
        assert!((loss.rate() - 0.18).abs() < 1e-12);
        // An older report says nothing.
        loss.on_report(250, 150, at(301));
        assert_eq!(loss.heard(), at(300));
    }

    #[test]
    fn a_source_that_hears_nothing_takes_all_for_lost() {
        let mut loss = Loss::new(at(0));
        loss.on_report(100, 100, at(100));
        let of = |since, sent| worst([&loss].into_iter(), (at(since), at(sent)), Span::from_millis(60));
        assert_eq!(of(0, 600), 0.0);
        assert_eq!(of(0, 700), 1.0);
        // It was silent, and has sent again for 100 ms.
        assert_eq!(of(5000, 5100), 0.0);
    }
}
