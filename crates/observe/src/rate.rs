//! Bytes by periods of the same length: the fullest period of a flow, and all periods of a capture.

use serde::Serialize;
use weir_base::{Bytes, Rate, Span, Time};

/// Most periods of a capture that are kept. When there are more, each two become one.
const MOST_PERIODS: usize = 4096;

/// The fullest period of a direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peak {
    period: u64,
    bytes: u64,
    most: u64,
}

impl Peak {
    pub(crate) fn count(&mut self, period: u64, bytes: u32) {
        if period != self.period {
            (self.period, self.bytes) = (period, 0);
        }
        self.bytes += u64::from(bytes);
        self.most = self.most.max(self.bytes);
    }

    pub(crate) fn rate(&self, period: Span) -> Rate {
        Rate::from_bytes_in(Bytes::new(self.most), period)
    }
}

/// What passed in a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Period {
    /// Packets of IP.
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub ip_bytes: u64,
    /// Retransmitted segments of TCP.
    pub retransmissions: u64,
    /// Packets that are marked (CE).
    pub marks: u64,
}

impl Merge for Period {
    fn merge(&mut self, other: &Period) {
        self.packets += other.packets;
        self.ip_bytes += other.ip_bytes;
        self.retransmissions += other.retransmissions;
        self.marks += other.marks;
    }
}

/// What two adjacent periods become when they are one.
pub(crate) trait Merge: Clone + Default {
    fn merge(&mut self, other: &Self);
}

/// The periods since a first moment, such as that of a capture's first packet.
#[derive(Debug, Clone)]
pub(crate) struct Periods<P> {
    pub(crate) length: Span,
    pub(crate) periods: Vec<P>,
}

impl<P: Merge> Periods<P> {
    pub(crate) fn new(length: Span) -> Periods<P> {
        Periods { length, periods: vec![] }
    }

    /// The period in which this time since the start lies.
    pub(crate) fn at(&mut self, since_start: Span) -> &mut P {
        let index = loop {
            let index = since_start.as_nanos() / self.length.as_nanos();
            match usize::try_from(index) {
                Ok(index) if index < MOST_PERIODS => break index,
                _ => self.halve(),
            }
        };
        if self.periods.len() <= index {
            self.periods.resize(index + 1, P::default());
        }
        &mut self.periods[index]
    }

    fn halve(&mut self) {
        self.length = Span::from_nanos(self.length.as_nanos().saturating_mul(2));
        let pairs = self.periods.chunks(2).map(|pair| {
            let mut both = P::default();
            pair.iter().for_each(|period| both.merge(period));
            both
        });
        self.periods = pairs.collect();
    }
}

/// The time between two packets; zero if the capture has them the other way round.
pub(crate) fn elapsed(from: Time, to: Time) -> Span {
    Span::from_nanos(to.as_nanos().saturating_sub(from.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_periods_than_are_kept_become_half_as_many() {
        let mut periods = Periods::<Period>::new(Span::from_secs(1));
        for second in [0, 1, 4095, 4096] {
            periods.at(Span::from_secs(second)).packets += 1;
        }
        assert_eq!(periods.length, Span::from_secs(2));
        let packets = |index: usize| periods.periods[index].packets;
        assert_eq!([packets(0), packets(1), packets(2047), packets(2048)], [2, 0, 1, 1]);
    }

    #[test]
    fn the_peak_is_the_fullest_period() {
        let mut peak = Peak::default();
        [(0, 100), (1, 200), (1, 50), (3, 240)]
            .iter()
            .for_each(|(period, bytes)| peak.count(*period, *bytes));
        // 250 bytes in a second.
        assert_eq!(peak.rate(Span::from_secs(1)), Rate::from_bits_per_sec(2000));
    }
}
