//! The reservations of a host, and which circuits fit. A card is never overbooked: at each instant, the rates of its circuits
//! add up to at most the card's rate. An interval holds its start and not its end, so that one circuit can begin in the second
//! in which another ends. Nothing here reads a clock: an admitted circuit stays until it is cancelled.
//!
//! A guaranteed circuit competes with other reservations only. A circuit that is admitted by the average use of its links (3.4,
//! 3.5.3) also leaves room for the average background traffic, since nothing polices or schedules it.

use crate::Utc;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound::Excluded;
use weir_base::{Prefix, Rate, Span};

/// The guarantee of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    /// The full rate, always (3.5.1).
    #[default]
    Full,
    /// The rate, as long as background traffic stays at or below its average: it was admitted by the average use of its links, and no
    /// switch polices or schedules it (3.5.3).
    Semi,
}

/// A circuit from a device of this host, for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Circuit {
    /// The device by which it leaves the host.
    pub device: String,
    /// Its destination.
    pub destination: Prefix,
    /// Its rate.
    pub rate: Rate,
    /// Its round trip.
    pub rtt: Span,
    /// Its guarantee.
    pub guarantee: Guarantee,
    /// Its first second.
    pub from: Utc,
    /// The first second after it.
    pub until: Utc,
}

/// The capacity of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// Its rate.
    pub rate: Rate,
    /// Average rate of the background traffic, outside circuits.
    pub background: Rate,
}

/// Why a circuit is not admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The interval is empty.
    #[error("a reservation must end after it begins")]
    Empty,
    /// The rate is zero.
    #[error("a reservation needs a rate above 0")]
    NoRate,
    /// The circuit is faster than the card.
    #[error("a circuit of {rate} does not fit a card of {card}")]
    AboveCard {
        /// The circuit's rate.
        rate: Rate,
        /// The card's.
        card: Rate,
    },
    /// Another circuit leads to the same destination at the same time.
    #[error("reservation {with} to the same destination overlaps")]
    Overlap {
        /// Number of the earliest of them.
        with: u64,
    },
    /// Too little of the card's rate is free.
    #[error("only {free} are free at {at}, besides reservation {}", list(with))]
    Full {
        /// When the least rate is free.
        at: Utc,
        /// The rate that is free then.
        free: Rate,
        /// The circuits of that time, by number.
        with: Vec<u64>,
    },
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// All reservations.
#[derive(Debug, Clone, Default)]
pub struct Calendar {
    circuits: BTreeMap<u64, Circuit>,
    /// Reserved rate of each device: bits per second from each instant on, until the next.
    levels: BTreeMap<String, BTreeMap<Utc, u64>>,
    /// The intervals of each destination, which do not overlap: by start, with their number.
    intervals: BTreeMap<(String, Prefix), BTreeMap<Utc, u64>>,
}

impl Calendar {
    /// Whether a circuit fits, beside all that were admitted.
    ///
    /// # Errors
    /// Why it does not fit, and which circuits are in its way.
    pub fn admit(&self, circuit: &Circuit, card: &Card) -> Result<(), Conflict> {
        if circuit.from >= circuit.until {
            return Err(Conflict::Empty);
        }
        if circuit.rate == Rate::default() {
            return Err(Conflict::NoRate);
        }
        if circuit.rate > card.rate {
            return Err(Conflict::AboveCard { rate: circuit.rate, card: card.rate });
        }
        if let Some(with) = self.overlapping(circuit) {
            return Err(Conflict::Overlap { with });
        }
        let background = match circuit.guarantee {
            Guarantee::Full => 0,
            Guarantee::Semi => card.background.bits_per_sec(),
        };
        let (at, reserved) = self.peak(&circuit.device, circuit.from, circuit.until);
        let free = card.rate.bits_per_sec().saturating_sub(reserved).saturating_sub(background);
        if circuit.rate.bits_per_sec() > free {
            let with = self.at(&circuit.device, at).map(|(number, _)| number).collect();
            return Err(Conflict::Full { at, free: Rate::from_bits_per_sec(free), with });
        }
        Ok(())
    }

    /// Adds a circuit under a number, whether or not it fits: circuits that were admitted earlier stay. It replaces a circuit of
    /// the same number.
    pub fn insert(&mut self, number: u64, circuit: Circuit) {
        self.remove(number);
        self.shift(&circuit, u64::checked_add);
        let place = (circuit.device.clone(), circuit.destination);
        self.intervals.entry(place).or_default().insert(circuit.from, number);
        self.circuits.insert(number, circuit);
    }

    /// Removes a circuit. `None` if there is none of this number.
    pub fn remove(&mut self, number: u64) -> Option<Circuit> {
        let circuit = self.circuits.remove(&number)?;
        self.shift(&circuit, u64::checked_sub);
        let place = (circuit.device.clone(), circuit.destination);
        if let Entry::Occupied(mut intervals) = self.intervals.entry(place) {
            intervals.get_mut().remove(&circuit.from);
            if intervals.get().is_empty() {
                intervals.remove();
            }
        }
        Some(circuit)
    }

    /// All circuits by number.
    pub fn circuits(&self) -> impl Iterator<Item = (u64, &Circuit)> {
        self.circuits.iter().map(|(number, circuit)| (*number, circuit))
    }

    /// The circuits of a device at an instant.
    pub fn at<'a>(&'a self, device: &'a str, at: Utc) -> impl Iterator<Item = (u64, &'a Circuit)> {
        self.circuits().filter(move |(_, it)| it.device == device && (it.from..it.until).contains(&at))
    }

    /// The highest reserved rate of a device within an interval, in bits per second, and the first instant at which it is
    /// reserved.
    pub fn peak(&self, device: &str, from: Utc, until: Utc) -> (Utc, u64) {
        let Some(levels) = self.levels.get(device) else { return (from, 0) };
        let at_start = levels.range(..=from).next_back().map_or(0, |(_, level)| *level);
        if until <= from {
            return (from, at_start);
        }
        let later = levels.range((Excluded(from), Excluded(until)));
        later.fold((from, at_start), |most, (at, level)| if *level > most.1 { (*at, *level) } else { most })
    }

    /// The first circuit to the same destination whose interval overlaps with this one's.
    fn overlapping(&self, circuit: &Circuit) -> Option<u64> {
        let intervals = self.intervals.get(&(circuit.device.clone(), circuit.destination))?;
        let before = intervals.range(..=circuit.from).next_back().map(|(_, number)| *number);
        let still_there = |number: &u64| self.circuits.get(number).is_some_and(|it| it.until > circuit.from);
        before.filter(still_there).or_else(|| {
            let mut later = intervals.range((Excluded(circuit.from), Excluded(circuit.until)));
            later.next().map(|(_, number)| *number)
        })
    }

    /// Raises or lowers the reserved rate over a circuit's interval.
    fn shift(&mut self, circuit: &Circuit, by: fn(u64, u64) -> Option<u64>) {
        if circuit.from >= circuit.until {
            return;
        }
        let levels = self.levels.entry(circuit.device.clone()).or_default();
        for edge in [circuit.from, circuit.until] {
            let level = levels.range(..=edge).next_back().map_or(0, |(_, level)| *level);
            levels.entry(edge).or_insert(level);
        }
        let rate = circuit.rate.bits_per_sec();
        for (_, level) in levels.range_mut(circuit.from..circuit.until) {
            // Rates are checked to be at most half of the range when they are read; a sum beyond the range is cut to it.
            *level = by(*level, rate).unwrap_or(u64::MAX);
        }
        // An edge at which the level does not change is not needed.
        for edge in [circuit.from, circuit.until] {
            let before = levels.range(..edge).next_back().map_or(0, |(_, level)| *level);
            if levels.get(&edge) == Some(&before) {
                levels.remove(&edge);
            }
        }
    }
}

#[cfg(test)]
mod tests;
