//! What carries packets between neighbouring nodes, as a lab names it, and as a node sees it.

use super::HEADERS;
use weir_base::{Bytes, Rate, Span, Time};
use weir_overlay::cat::{Cat, Delay};
use weir_overlay::{Reported, Wire};
use weir_sliq::hop;

mod wire {
    /// A wire has no parameters of its own: it is the link.
    #[derive(
        Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
    )]
    #[serde(default, deny_unknown_fields)]
    pub struct Config {}
}

weir_base::registry! {
    /// What carries packets between neighbouring nodes, as a lab names it.
    pub enum Config: "cat" {
        Wire(wire::Config) = "wire": "The link itself, without a transport: its rate, delay and loss are known at once";
        Sliq(hop::Config) = "sliq" ("SLIQ"): "A SLIQ connection between two nodes, which measures the path and retransmits what it loses";
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::Wire(wire::Config::default())
    }
}

impl Config {
    /// Bytes of the headers around a packet of the overlay, from the IP header on, without what the link adds. A connection that delivers
    /// packets by a due time says it in each.
    pub fn headers(&self, has_due: bool) -> Bytes {
        match self {
            Config::Wire(_) => HEADERS,
            Config::Sliq(config) => HEADERS + config.headers(has_due),
        }
    }

    /// Whether it acknowledges packets.
    pub fn acknowledges(&self) -> bool {
        matches!(self, Config::Sliq(_))
    }
}

/// The carrier of a link.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Carrier {
    /// The link itself.
    Wire(Wire),
    /// A connection, of which the station tells the node.
    Reported(Reported),
}

impl Carrier {
    /// A carrier of which nothing is known yet, for a link that adds so many bytes to an IP packet.
    pub(super) fn new(config: &Config, unlimited: Rate, overhead: Bytes) -> Carrier {
        match config {
            Config::Wire(_) => Carrier::Wire(Wire::new(unlimited, Span::ZERO, 0.0, HEADERS + overhead)),
            Config::Sliq(_) => Carrier::Reported(Reported::default()),
        }
    }
}

/// The same of either carrier.
macro_rules! either {
    ($carrier:ident, $one:ident => $what:expr) => {
        match $carrier {
            Carrier::Wire($one) => $what,
            Carrier::Reported($one) => $what,
        }
    };
}

impl Cat for Carrier {
    #[inline]
    fn room(&self, now: Time) -> Bytes {
        either!(self, one => one.room(now))
    }
    #[inline]
    fn ready(&self, now: Time) -> Time {
        either!(self, one => one.ready(now))
    }
    fn offer(&mut self, bytes: Bytes, now: Time) {
        either!(self, one => one.offer(bytes, now));
    }
    #[inline]
    fn capacity(&self) -> Rate {
        either!(self, one => one.capacity())
    }
    fn overhead(&self) -> Bytes {
        either!(self, one => one.overhead())
    }
    #[inline]
    fn delay(&self) -> Delay {
        either!(self, one => one.delay())
    }
    fn transit(&self, bytes: Bytes, now: Time) -> Span {
        either!(self, one => one.transit(bytes, now))
    }
    fn loss(&self) -> f64 {
        either!(self, one => one.loss())
    }
}
