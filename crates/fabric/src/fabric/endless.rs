//! A bound on what links and stations do at one instant: a station whose timer is due again at once, packets that two stations send to
//! each other in no time, a shaper that may send and does not. Such a link or station stops, and the driver finds out which it was.

use super::Fabric;
use std::fmt;
use weir_base::Time;

/// Most events of this kind at one instant: far more than a run has that goes on.
const MOST_AT_ONE_INSTANT: u32 = 1 << 22;

/// What has no end at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Culprit {
    /// The link with this number.
    Link(usize),
    /// The station with this number.
    Station(usize),
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Culprit::Link(link) => write!(f, "link {link}"),
            Culprit::Station(station) => write!(f, "station {station}"),
        }
    }
}

/// The events at one instant after which another one is due at the same instant.
#[derive(Debug, Default)]
pub(super) struct Endless {
    at: Time,
    count: u32,
    culprit: Option<(Culprit, Time)>,
}

impl<P> Fabric<P> {
    /// Another event is due at this instant. Returns whether there were too many, so that this one is not to be handled.
    pub(super) fn is_endless(&mut self, by: Culprit, now: Time) -> bool {
        let Endless { at, count, culprit } = &mut self.endless;
        if *at != now {
            (*at, *count) = (now, 0);
        }
        *count += 1;
        let endless = *count >= MOST_AT_ONE_INSTANT;
        if endless {
            culprit.get_or_insert((by, now));
        }
        endless
    }

    /// What did not end at one instant, and when; `None` if nothing did.
    pub fn endless(&self) -> Option<(Culprit, Time)> {
        self.endless.culprit
    }
}
