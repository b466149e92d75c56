//! Internal pacing (`tcp_update_pacing_rate`, `tcp_update_skb_after_send`): a segment may leave when the transmission time of the
//! previous segments at the pacing rate has passed, with credit for at most half a segment's time after a late start.

use weir_base::{Bytes, Rate, Span, Time};

/// Pacing in slow start, per cent of window over smoothed RTT (`tcp_pacing_ss_ratio`).
const SLOW_START_PERCENT: u64 = 200;
/// Pacing after it (`tcp_pacing_ca_ratio`).
const AVOIDANCE_PERCENT: u64 = 120;
/// The first segments of a connection are not paced: pacing begins with this one (`tcp_update_skb_after_send`).
const FIRST_PACED: u32 = 10;

/// Paces segments at a rate.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    always: bool,
    rate: Option<Rate>,
    /// Values from which the rate is derived when it is needed; `None` if the controller gives the rate.
    basis: Option<Basis>,
    enforced: bool,
    next: Time,
    /// Data segments sent, counted up to [`FIRST_PACED`].
    sent: u32,
}

/// The values from which Linux derives a pacing rate.
#[derive(Debug, Clone, Copy)]
struct Basis {
    window: Bytes,
    srtt8: u64,
    percent: u64,
}

impl Pacer {
    pub(crate) fn new(always: bool) -> Pacer {
        Pacer { always, rate: None, basis: None, enforced: always, next: Time::ZERO, sent: 0 }
    }

    /// Takes the controller's rate or, without one, derives Linux's from the window.
    #[inline(always)]
    pub(crate) fn update(&mut self, given: Option<Rate>, window: Bytes, srtt8: u64, slow_start: bool) {
        self.enforced = self.always || given.is_some();
        if given.is_some() {
            (self.rate, self.basis) = (given, None);
        } else if srtt8 > 0 {
            let percent = if slow_start { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
            self.basis = Some(Basis { window, srtt8, percent });
            if self.enforced {
                self.rate = self.rate();
            }
        }
    }

    /// The rate, whether enforced or not. It takes a division, so a rate that is not enforced is computed on request.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.basis.map(|Basis { window, srtt8, percent }| rate_of(window, srtt8, percent)).or(self.rate)
    }

    /// Whether segments are paced.
    #[inline]
    pub(crate) fn is_enforced(&self) -> bool {
        self.enforced
    }

    /// When the next segment may leave.
    pub(crate) fn ready_at(&self) -> Time {
        if self.enforced { self.next } else { Time::ZERO }
    }

    /// A segment of `bytes` payload bytes has left.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: Bytes, now: Time) {
        if self.sent < FIRST_PACED {
            self.sent += u32::from(bytes > Bytes::ZERO);
        }
        if self.sent < FIRST_PACED {
            return;
        }
        let Some(rate) = self.rate.filter(|_| self.enforced) else { return };
        let length = rate.time_to_send(bytes);
        // A late start is compensated by at most half a segment's time.
        let credit = Span::from_nanos(now.since(self.next).as_nanos().min(length.as_nanos() / 2));
        let start = if self.next > now { self.next } else { now };
        self.next = start + length.saturating_sub(credit);
    }
}

/// The rate of `percent` per cent of a window each round trip. The factor is eight bits a byte, and eight times 10^6 since
/// the round trip time is in eighths of microseconds.
#[inline]
fn rate_of(window: Bytes, srtt8: u64, percent: u64) -> Rate {
    let (factor, divisor) = (64_000_000 * percent, 100 * srtt8);
    // Nearly every window fits into 64 bits, where division is quicker.
    let bits = match window.get().checked_mul(factor) {
        Some(scaled) => scaled / divisor,
        None => {
            let bits = u128::from(window.get()) * u128::from(factor) / u128::from(divisor);
            u64::try_from(bits).unwrap_or(u64::MAX)
        }
    };
    Rate::from_bits_per_sec(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_paced_at_the_rate_and_leave_at_once_without_one() {
        let mut pacer = Pacer::new(false);
        for _ in 0..FIRST_PACED {
            pacer.on_sent(Bytes::new(1250), Time::ZERO);
            assert_eq!(pacer.ready_at(), Time::ZERO);
        }
        pacer.update(Some(Rate::from_mbit_per_sec(10)), Bytes::ZERO, 0, false);
        pacer.on_sent(Bytes::new(1250), Time::ZERO);
        assert_eq!(pacer.ready_at(), Time::ZERO + Span::from_millis(1));
        pacer.on_sent(Bytes::new(1250), Time::ZERO + Span::from_micros(1_200));
        assert_eq!(pacer.ready_at(), Time::ZERO + Span::from_millis(2));
    }

    #[test]
    fn the_first_nine_segments_are_not_held_back() {
        let mut pacer = Pacer::new(false);
        pacer.update(Some(Rate::from_mbit_per_sec(10)), Bytes::ZERO, 0, false);
        for _ in 0..9 {
            pacer.on_sent(Bytes::new(1250), Time::ZERO);
        }
        assert_eq!(pacer.ready_at(), Time::ZERO);
        pacer.on_sent(Bytes::new(1250), Time::ZERO);
        assert_eq!(pacer.ready_at(), Time::ZERO + Span::from_millis(1));
    }

    #[test]
    fn slow_start_is_paced_at_twice_the_window_per_round_trip() {
        let mut pacer = Pacer::new(true);
        pacer.update(None, Bytes::new(12_500), 8 * 10_000, true);
        assert_eq!(pacer.rate(), Some(Rate::from_mbit_per_sec(20)));
    }
}
