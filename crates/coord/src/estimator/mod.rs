//! Estimators of the rate of one flowshare (section 4.2): the rate that one flow of a protocol would have on this path. The
//! AP that receives a direction's packets estimates the rate of that direction and reports it to the other AP.
//!
//! An estimator receives a stream of events that is as dense as one flow ([`crate::Filter`]) and knows the round trip time, the
//! mean packet length and the rate of that stream. All rates are in bytes of IP packets a second. The source does not say
//! whether packet sizes include headers; here they always do.

mod rap;
mod tfrc;

pub use rap::Config as RapConfig;
pub use tfrc::{Config as TfrcConfig, Tcp, Variant};

use weir_base::{Span, Time};

weir_base::registry! {
    /// Estimators that an application can name.
    pub enum Config: "estimator" {
        Tfrc(tfrc::Config) = "tfrc": "Equation-based, from loss event rate and round trip time (RFC 5348; section 4.2.1)";
        Rap(rap::Config) = "rap": "Additive increase, multiplicative decrease of a rate (Rejaie 1999; section 4.2.2)";
    }
}

/// An event of the virtual stream.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// Number of the (first) packet in the virtual stream, which has no gaps.
    pub sequence: u64,
    /// Number of packets: one that arrived, or one or more that were lost.
    pub count: u64,
    /// Arrival time of the packet; for a lost packet, its estimated arrival time.
    pub at: Time,
}

/// The state of the path that an estimator uses.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// Smoothed round trip time.
    pub rtt: Span,
    /// The latest round trip time.
    pub latest_rtt: Span,
    /// Mean length of a packet in bytes.
    pub size: f64,
    /// Rate of the virtual stream in bytes a second.
    pub receiving: f64,
}

/// An estimator of any kind.
#[derive(Debug, Clone)]
pub enum Estimator {
    /// Equation-based.
    Tfrc(tfrc::Tfrc),
    /// Additive increase, multiplicative decrease.
    Rap(rap::Rap),
}

impl Estimator {
    /// An estimator without history.
    pub fn new(config: &Config) -> Estimator {
        match config {
            Config::Tfrc(config) => Estimator::Tfrc(tfrc::Tfrc::new(config.clone())),
            Config::Rap(config) => Estimator::Rap(rap::Rap::new(config.clone())),
        }
    }

    /// A packet of the virtual stream has arrived.
    #[inline]
    pub fn arrived(&mut self, event: &Event, conditions: &Conditions) {
        match self {
            Estimator::Tfrc(tfrc) => tfrc.arrived(event),
            Estimator::Rap(rap) => rap.arrived(event, conditions),
        }
    }

    /// Packets of the virtual stream were lost; the loss is detected at `now`.
    pub fn lost(&mut self, event: &Event, conditions: &Conditions, now: Time) {
        match self {
            Estimator::Tfrc(tfrc) => tfrc.lost(event, conditions),
            Estimator::Rap(rap) => rap.lost(event, conditions, now),
        }
    }

    /// The rate of one flowshare under these conditions, in bytes a second.
    #[inline]
    pub fn rate(&self, conditions: &Conditions) -> f64 {
        match self {
            Estimator::Tfrc(tfrc) => tfrc.rate(conditions),
            Estimator::Rap(rap) => rap.rate(conditions),
        }
    }

    /// The estimator's internal state as names and values, for the records.
    pub fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        match self {
            Estimator::Tfrc(tfrc) => tfrc.state(report),
            Estimator::Rap(rap) => rap.state(report),
        }
    }
}
