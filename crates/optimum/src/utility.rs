//! The utility optimum: what each flow gets where the sum of the utilities of elastic flows is as large as possible, beside inelastic flows
//! that run whole or not at all. Link prices, which are the dual solution, say why no flow gets more.
//!
//! Source: GNAT report, sections 2.2, 4.21, 4.22 to 4.25; digest G 2.6, A 7.2, A 7.4, A 9.2. Rates are those of paths within a flow's
//! deadline, found by column generation ([`elastic`]). With coding a link carries, of a class, the largest of the flows to its receivers.
//!
//! Inelastic flows do not maximise the sum of utilities; they follow the rule by which the study's proxies decide. A flow of priority p and
//! rate m pays at most p / m for a bit per second, its *worth*. In falling order of worth, a flow is on if it and all that are on before
//! it then run whole at prices that they may pay ([`rule`]). So it yields to an elastic flow whose utility for a bit more is higher.

mod conic;
mod elastic;
mod rule;
mod search;
mod why;

use crate::network::Network;
use weir_base::{Rate, Span};

pub use why::{Allocation, Blocked, Share, Why};

/// Most classes times links: each class has a load on each link, and each receiver keeps the links that are in time.
const MOST_CELLS: usize = 4_000_000;
/// Most classes of flows.
pub const MOST_CLASSES: usize = 2_000;
/// Most flows of a class.
pub const MOST_FLOWS: u32 = 1_000_000;

/// The utility p log(a r + 1) of a rate r, up to a cap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Log {
    /// The priority p.
    pub priority: f64,
    /// The shape a in seconds per bit.
    pub shape: f64,
    /// The most that a flow sends.
    pub cap: Rate,
}

/// What a flow does with the rate that it could have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Utility {
    /// It takes any.
    Log(Log),
    /// It takes this rate or nothing.
    Strap {
        /// The priority p.
        priority: f64,
        /// The rate m.
        rate: Rate,
    },
    /// As LOG, but nothing if that is less than a floor.
    Flog {
        /// What it does above the floor.
        log: Log,
        /// The floor.
        floor: Rate,
    },
}

impl Utility {
    fn priority(&self) -> f64 {
        match *self {
            Utility::Log(log) | Utility::Flog { log, .. } => log.priority,
            Utility::Strap { priority, .. } => priority,
        }
    }

    /// What an inelastic flow pays at most for a bit per second; `None` for an elastic one.
    pub fn worth(&self) -> Option<f64> {
        let least = match *self {
            Utility::Log(_) => return None,
            Utility::Strap { rate, .. } => rate,
            Utility::Flog { floor, .. } => floor,
        };
        Some(self.priority() / least.bits_per_sec() as f64)
    }

    /// The most that a flow takes, in bits per second.
    fn most(&self) -> f64 {
        let most = match *self {
            Utility::Log(log) | Utility::Flog { log, .. } => log.cap,
            Utility::Strap { rate, .. } => rate,
        };
        most.bits_per_sec() as f64
    }
}

/// Equal flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Where its flows begin: index of a node.
    pub source: usize,
    /// Where each of them ends: indices of nodes.
    pub receivers: Vec<usize>,
    /// How many flows there are.
    pub count: u32,
    /// The time within which each packet must arrive.
    pub deadline: Option<Span>,
    /// What each flow does with the rate that it could have.
    pub utility: Utility,
    /// For each link, the bits that a bit of the flow takes there. Empty where a bit takes one.
    pub loads: Vec<f64>,
    /// The bits that come back for each bit over the link in the other direction, such as acknowledgements; 0 where none do. A class with
    /// several receivers has none.
    pub answers: f64,
}

/// Why classes fit no network.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClassError {
    /// There are too many.
    #[error("{classes} classes of flows with {receivers} receivers over {links} links are too many")]
    Size {
        /// Classes.
        classes: usize,
        /// Receivers of all classes.
        receivers: usize,
        /// Links.
        links: usize,
    },
    /// A class has no flow, too many, or no receiver.
    #[error("the class `{0}` has no flow, more than {MOST_FLOWS}, or no receiver")]
    Count(String),
    /// Its source is a receiver, a receiver is named twice, or there is no such node.
    #[error("the class `{0}` has a receiver that is its source, is named twice, or is no node")]
    Ends(String),
    /// A number is out of its range.
    #[error("the class `{class}` has a {what} that is out of its range")]
    Number {
        /// The class.
        class: String,
        /// What is wrong.
        what: &'static str,
    },
}

impl Class {
    fn check(&self, network: &Network) -> Result<(), ClassError> {
        let name = || self.name.clone();
        if self.receivers.is_empty() || self.count == 0 || self.count > MOST_FLOWS {
            return Err(ClassError::Count(name()));
        }
        let nodes = network.nodes().len();
        let wrong = |(place, &receiver): (usize, &usize)| {
            receiver == self.source || receiver >= nodes || self.receivers[..place].contains(&receiver)
        };
        if self.source >= nodes || self.receivers.iter().enumerate().any(wrong) {
            return Err(ClassError::Ends(name()));
        }
        let above_zero = |number: f64| number > 0.0 && number.is_finite();
        let log = match self.utility {
            Utility::Log(log) | Utility::Flog { log, .. } => Some(log),
            Utility::Strap { .. } => None,
        };
        let floor_is_wrong = match self.utility {
            Utility::Flog { log, floor } => floor > log.cap || floor == Rate::default(),
            _ => false,
        };
        let loads_are_wrong = !self.loads.is_empty()
            && (self.loads.len() != network.links().len()
                || !self.loads.iter().all(|&load| above_zero(load)));
        let faults = [
            (!above_zero(self.utility.priority()), "priority"),
            (log.is_some_and(|log| !above_zero(log.shape)), "shape"),
            (self.utility.most() <= 0.0, "rate"),
            (floor_is_wrong, "floor"),
            (loads_are_wrong, "load"),
            (!(0.0..=1.0).contains(&self.answers), "share of answers"),
            (self.answers > 0.0 && self.receivers.len() > 1, "share of answers beside several receivers"),
        ];
        match faults.iter().find(|(is_wrong, _)| *is_wrong) {
            Some(&(_, what)) => Err(ClassError::Number { class: name(), what }),
            None => Ok(()),
        }
    }

    /// The bits that a bit of a flow takes on a link.
    fn load(&self, link: u32) -> f64 {
        self.loads.get(link as usize).copied().unwrap_or(1.0)
    }
}

/// How packets for several receivers are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    /// Nodes may code: a link carries the largest of the flows to a class's receivers.
    Coded,
    /// Nodes copy and forward, over trees.
    Trees,
}

/// The optimum of classes of flows in a network. Classes without a way in time get nothing.
///
/// # Errors
/// A class does not fit the network, or there are too many.
pub fn utility_optimum(
    network: &Network,
    classes: &[Class],
    forwarding: Forwarding,
) -> Result<Allocation, ClassError> {
    let receivers = classes.iter().map(|class| class.receivers.len()).sum();
    let links = network.links().len();
    if classes.len() > MOST_CLASSES || links.saturating_mul(receivers) > MOST_CELLS {
        return Err(ClassError::Size { classes: classes.len(), receivers, links });
    }
    classes.iter().try_for_each(|class| class.check(network))?;
    Ok(rule::decide(network, classes, forwarding))
}
