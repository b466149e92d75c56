//! How long packets may be: the search for the largest packet that the path carries (RFC 8899, section 5). Data leaves in packets of a
//! size that is known to pass; longer packets of padding probe for more. Probes are acknowledged, and their loss is no sign of congestion.
//!
//! Unlike in the RFC, no state confirms the base: the request of a sealed connection has that length, and plain connections take the base
//! for granted. There is no state below the base. A probe also counts as lost by acknowledgements of later packets, not only by a timer.

use super::wire::Ack;
use weir_base::{Span, Time};

/// The base: a UDP payload in bytes that every path carries (RFC 8899, section 5.1.2; RFC 9000, section 14). The request of a sealed
/// connection has this length.
pub(crate) const BASE: u32 = 1200;
/// The search gives up a size after this many lost probes. A path no longer carries a size after at least this many lost packets of it in
/// a row (RFC 8899, sections 5.1.2 and 4.3).
const PROBES: u32 = 3;
/// A probe is lost if it was not acknowledged for this long (RFC 8899, section 5.1.1).
const PROBE_TIMER: Span = Span::from_secs(1);
/// A search that has ended begins again after this long (RFC 8899, section 5.1.1).
const RAISE_TIMER: Span = Span::from_secs(600);
/// A search ends when less than this many bytes can be gained: 1 % of a packet.
const WORTH: u32 = 16;
/// As any other packet, a probe is lost when a packet with a number higher by this has arrived.
const LATER: u64 = 3;
/// The run of losses that shows a smaller MTU is so long that random loss makes it with at most this probability.
const BY_CHANCE: f64 = 0.001;
/// Higher rates of loss count as this one.
const WORST_PER: f64 = 0.9;

/// A probe in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Probe {
    number: u64,
    size: u32,
    due: Time,
}

/// The largest packet that the path carries, in bytes of UDP payload.
#[derive(Debug, Clone)]
pub(crate) struct PathMtu {
    base: u32,
    most: u32,
    /// The largest size that is known to pass, and the smallest that is known not to pass.
    carried: u32,
    refused: u32,
    probe: Option<Probe>,
    /// Lost probes of the size that is being probed.
    lost_probes: u32,
    /// When the next probe may leave.
    next: Time,
    /// Packets larger than the base: the highest number that has arrived, how many above it are lost, and the highest of these.
    arrived: Option<u64>,
    lost: u32,
    last_lost: u64,
    /// Lost probes since [`PathMtu::take_in_vain`] was called.
    in_vain: u32,
}

impl PathMtu {
    /// A path that carries the base and at most `most` bytes. `None` if that leaves nothing to search for.
    pub(crate) fn new(most: u32) -> Option<PathMtu> {
        (most > BASE).then_some(PathMtu {
            base: BASE,
            most,
            carried: BASE,
            refused: most + 1,
            probe: None,
            lost_probes: 0,
            next: Time::ZERO,
            arrived: None,
            lost: 0,
            last_lost: 0,
            in_vain: 0,
        })
    }

    /// The largest size that packets may have, in bytes of UDP payload.
    pub(crate) fn carried(&self) -> u32 {
        self.carried
    }

    /// When a probe is due, or when the probe in flight counts as lost.
    pub(crate) fn next_timer(&self) -> Time {
        self.probe.map_or(self.next, |probe| probe.due)
    }

    /// The size of the next probe: the maximum first, since most paths carry it, then the middle of the remaining range.
    fn wanted(&self) -> u32 {
        if self.refused > self.most { self.most } else { self.carried.midpoint(self.refused) }
    }

    /// Serves the timers. Returns the size of a probe that is to leave now.
    pub(crate) fn on_time(&mut self, now: Time) -> Option<u32> {
        if self.probe.is_some_and(|probe| probe.due <= now) {
            self.probe_is_lost(now);
        }
        if self.probe.is_some() || now < self.next {
            return None;
        }
        if self.refused.saturating_sub(self.carried) <= WORTH {
            // The raise timer has fired.
            self.refused = self.most + 1;
        }
        (self.carried < self.most).then(|| self.wanted())
    }

    /// A probe has left, of `size` bytes of UDP payload.
    pub(crate) fn sent(&mut self, number: u64, size: u32, timeout: Span, now: Time) {
        self.probe = Some(Probe { number, size, due: now + timeout.max(PROBE_TIMER) });
    }

    fn probe_is_lost(&mut self, now: Time) {
        let Some(probe) = self.probe.take() else { return };
        (self.lost_probes, self.in_vain) = (self.lost_probes + 1, self.in_vain + 1);
        if self.lost_probes >= PROBES {
            self.lost_probes = 0;
            self.refused = probe.size;
            self.settle(now);
        }
    }

    /// Sets the time of the next probe: the raise timer if the search has ended.
    fn settle(&mut self, now: Time) {
        let found = self.refused.saturating_sub(self.carried) <= WORTH;
        self.next = match found {
            _ if self.carried == self.most => Time::NEVER,
            true => now + RAISE_TIMER,
            false => now,
        };
    }

    /// A packet larger than the base has arrived, or counts as lost.
    pub(crate) fn large(&mut self, number: u64, arrived: bool) {
        if arrived && self.arrived.is_none_or(|before| before < number) {
            (self.arrived, self.lost) = (Some(number), 0);
        } else if !arrived && self.arrived.is_none_or(|before| before < number) {
            self.lost += 1;
            self.last_lost = self.last_lost.max(number);
        }
    }

    /// Takes an acknowledgement, after [`PathMtu::large`] was called for its packets. Returns whether the size of packets has changed.
    /// `per` is the path's rate of loss.
    pub(crate) fn on_ack(&mut self, ack: &Ack, largest: u64, per: f64, now: Time) -> bool {
        let before = self.carried;
        if let Some(probe) = self.probe {
            let below = largest.checked_sub(probe.number);
            let has = |below: u64| {
                ack.ranges().any(|(high, low)| (u64::from(high)..=u64::from(low)).contains(&below))
            };
            if below.is_some_and(has) {
                (self.probe, self.lost_probes, self.carried) = (None, 0, probe.size);
                self.large(probe.number, true);
                self.settle(now);
            } else if below.is_some_and(|below| below >= LATER) {
                self.probe_is_lost(now);
            }
        }
        // A shorter packet has arrived that left after the lost ones.
        if self.carried > self.base && self.lost >= in_a_row(per) && largest > self.last_lost {
            (self.refused, self.carried) = (self.carried, self.base);
            (self.probe, self.lost_probes, self.lost, self.next) = (None, 0, 0, now);
        }
        self.carried != before
    }

    /// The number of lost probes since the last call: they say nothing about the path's rate of loss.
    pub(crate) fn take_in_vain(&mut self) -> u32 {
        std::mem::take(&mut self.in_vain)
    }

    /// The path has changed: the search begins anew.
    #[cfg(feature = "seal")]
    pub(crate) fn restart(&mut self) {
        *self = PathMtu::new(self.most).unwrap_or_else(|| self.clone());
    }
}

/// The number of packets of a size that must be lost in a row for their size to be the reason.
fn in_a_row(per: f64) -> u32 {
    let chance = BY_CHANCE.ln() / per.clamp(f64::MIN_POSITIVE, WORST_PER).ln();
    (chance.ceil() as u32).max(PROBES)
}

#[cfg(test)]
mod tests;
