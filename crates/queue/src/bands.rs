//! Bands: the common part of queues that hold other queues. A packet goes to the first band whose filter matches it; each band
//! has a queue of its own.

use crate::{Backlog, Config, Discipline, Fate, Limit, Link, tail_drop};
use serde::{Deserialize, Deserializer, de::Error};
use weir_base::{Dscp, Ecn, Packet, Random, Time};

/// Largest number of bands in a queue.
const MOST: usize = 16;

/// Which packets a band takes: those that match all lists. A list that is `None` matches every packet.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Filter {
    pub(crate) ecn: Option<Vec<Ecn>>,
    pub(crate) dscp: Option<Vec<Dscp>>,
    pub(crate) flows: Option<Vec<u32>>,
}

impl Filter {
    pub(crate) fn takes(&self, packet: &impl Packet) -> bool {
        self.ecn.as_ref().is_none_or(|codepoints| codepoints.contains(&packet.ecn()))
            && self.dscp.as_ref().is_none_or(|dscps| dscps.contains(&packet.dscp()))
            && self.flows.as_ref().is_none_or(|flows| flows.contains(&packet.flow().0))
    }
}

/// Queues in bands.
#[derive(Debug)]
pub(crate) struct Bands<P> {
    bands: Vec<(Filter, Discipline<P>)>,
}

impl<P: Packet> Bands<P> {
    /// Each band draws from a random stream of its own, seeded from `random`.
    pub(crate) fn new<'a>(
        bands: impl Iterator<Item = (Filter, &'a Config)>,
        link: &Link,
        mut random: Random,
    ) -> Bands<P> {
        let build = |(index, (filter, queue)): (usize, (Filter, &Config))| {
            let random = Random::stream_of(random.bits(), "band", index as u64);
            (filter, queue.build(link, random))
        };
        Bands { bands: bands.enumerate().map(build).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.bands.len()
    }

    /// The band of a packet: the first whose filter matches it, or else the last band.
    #[inline]
    pub(crate) fn of(&self, packet: &P) -> usize {
        self.bands
            .iter()
            .position(|(filter, _)| filter.takes(packet))
            .unwrap_or(self.bands.len().saturating_sub(1))
    }

    #[inline]
    pub(crate) fn queue(&mut self, band: usize) -> &mut Discipline<P> {
        &mut self.bands[band].1
    }

    #[inline]
    pub(crate) fn is_empty(&self, band: usize) -> bool {
        self.bands[band].1.backlog().packets == 0
    }

    #[inline]
    pub(crate) fn dequeue(&mut self, band: usize, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.bands[band].1.dequeue(now, fate)
    }

    pub(crate) fn update(&mut self, now: Time) {
        self.bands.iter_mut().for_each(|(_, queue)| queue.update(now));
    }

    /// The earliest time at which any band can send; `None` when all are empty.
    pub(crate) fn departs(&self, now: Time) -> Option<Time> {
        self.bands.iter().filter_map(|(_, queue)| queue.departs(now)).min()
    }

    /// Whether every band's queue is work-conserving.
    pub(crate) fn is_work_conserving(&self) -> bool {
        self.bands.iter().all(|(_, queue)| queue.is_work_conserving())
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.bands.iter().map(|(_, queue)| queue.backlog()).fold(Backlog::default(), |sum, backlog| Backlog {
            packets: sum.packets + backlog.packets,
            bytes: sum.bytes + backlog.bytes,
        })
    }

    /// Reports each band's backlog and its queue's state, named after the band: `band1_packets`, `band1_drop_probability`.
    pub(crate) fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        for (index, (_, queue)) in self.bands.iter().enumerate() {
            let mut told = |inner: &str, value| report(&format!("band{}_{inner}", index + 1), value);
            told("packets", f64::from(queue.backlog().packets));
            queue.state(&mut told);
        }
    }
}

/// Reads a list of bands; refuses an empty list and one of more than `MOST` bands.
pub(crate) fn list<'de, D: Deserializer<'de>, B: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<B>, D::Error> {
    let bands = Vec::deserialize(deserializer)?;
    if (1..=MOST).contains(&bands.len()) {
        Ok(bands)
    } else {
        Err(D::Error::custom(format!("{} bands are out of range; write 1 to {MOST}", bands.len())))
    }
}

/// The queue of a band that names no queue: tail drop of 1000 packets.
pub(crate) fn default_queue() -> Config {
    Config::TailDrop(tail_drop::Config { limit: Limit::Packets(1000) })
}

/// A queue within a queue, as the lab's schema writes it.
pub(crate) fn nested(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "$ref": "#/$defs/queue" })
}
