//! What is answered: bounds, the paths or trees that reach the lower one, and the prices that prove the upper one.

use weir_base::Span;

/// The relative gap at which an answer counts as exact.
pub(crate) const GAP: f64 = 1e-6;

/// A rate that is carried, and one that nothing can exceed, in bits per second. With several sessions both are sums by weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// What the paths or trees of the answer carry.
    pub lower: f64,
    /// What the prices of the answer prove to be the most; infinite if nothing is proved yet.
    pub upper: f64,
}

impl Bounds {
    /// The difference as a share of the upper bound; 0 if that is 0.
    pub fn gap(self) -> f64 {
        match self.upper {
            upper if upper <= 0.0 => 0.0,
            upper if upper.is_infinite() => 1.0,
            upper => (1.0 - self.lower / upper).max(0.0),
        }
    }

    /// Whether the gap is at most 1e-6.
    pub fn are_exact(self) -> bool {
        self.gap() <= GAP
    }
}

/// What a network can carry by a deadline.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The deadline of every packet.
    pub deadline: Span,
    /// The bounds, equal to 1e-6 unless it was stopped before.
    pub bounds: Bounds,
    /// What is carried for each session.
    pub sessions: Vec<Carried>,
    /// The proof of the upper bound.
    pub prices: Prices,
    /// Links that every path in time to a receiver crosses and whose rates add up to the answer, if such links were found. With a
    /// deadline there may be none.
    pub cut: Option<Cut>,
}

/// What is carried for a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// Bits per second that each of its receivers receives.
    pub rate: f64,
    /// How they reach the receivers.
    pub delivery: Delivery,
}

/// How a session's data reaches its receivers.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivery {
    /// With coding: for each receiver the paths of its own flow, whose rates add up to the session's rate. A link carries the largest
    /// of the receivers' flows, not their sum.
    Paths(Vec<Vec<Piece>>),
    /// Without coding: trees that each reach all receivers, whose rates add up to the session's rate.
    Trees(Vec<Piece>),
}

/// A path or a tree, and what it carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Indices of its links; those of a path in order.
    pub links: Vec<u32>,
    /// Bits per second.
    pub rate: f64,
    /// The time from the source to the receiver that is reached last.
    pub delay: Span,
}

/// A price for each link, session and receiver. Nothing can carry more than the sum, over the links, of their rates times their prices
/// if the cheapest ways in time to all receivers of a session cost at least its weight together (linear programming duality).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prices {
    /// For each session and each of its receivers, links and their prices; what is not listed is free. The link's price for the
    /// session is the sum over the receivers. Without coding each session has one list, and the cheapest tree counts.
    pub sessions: Vec<Vec<Vec<(u32, f64)>>>,
}

impl Prices {
    /// Each link's price: that of the session for which it is dearest.
    pub fn by_link(&self, links: usize) -> Vec<f64> {
        let mut most = vec![0.0; links];
        let mut sum = vec![0.0; links];
        for session in &self.sessions {
            for &(link, price) in session.iter().flatten() {
                sum[link as usize] += price;
            }
            for &(link, _) in session.iter().flatten() {
                let price = std::mem::take(&mut sum[link as usize]);
                most[link as usize] = f64::max(most[link as usize], price);
            }
        }
        most
    }
}

/// Links that part a receiver from its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// The receiver: index of a node.
    pub receiver: usize,
    /// Indices of the links.
    pub links: Vec<u32>,
    /// The sum of their rates in bits per second.
    pub rate: f64,
}
