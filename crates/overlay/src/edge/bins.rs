//! The bins into which flows enter here. All flows of a bin that are for the same receivers see one price, so it is read once for all of them.

use crate::cat::Cat;
use crate::node::Node;
use crate::nodes::Nodes;
use crate::packet::{Body, Key};
use weir_base::{Bytes, Time, WindowedMin};

/// A bin, as flows for the same receivers see it.
#[derive(Debug)]
pub(super) struct Bin {
    /// Its name, and the receivers of a group that are meant.
    pub(super) to: Key,
    pub(super) interested: Option<Nodes>,
    /// The price that was seen last, and the most since the planner was told.
    pub(super) price: Bytes,
    pub(super) peak: Bytes,
    /// The depths of the last burst's time.
    depths: WindowedMin<Bytes>,
    flows: usize,
}

/// All of them, by number. The number of a bin without flows is used again.
#[derive(Debug, Default)]
pub(super) struct Bins {
    bins: Vec<Bin>,
}

impl Bins {
    /// A flow enters here. Returns its bin's number.
    pub(super) fn join(&mut self, to: Key, interested: Option<Nodes>) -> usize {
        let is_it = |bin: &Bin| bin.flows > 0 && bin.to == to && bin.interested == interested;
        if let Some(at) = self.bins.iter().position(is_it) {
            self.bins[at].flows += 1;
            return at;
        }
        let (price, peak, depths) = (Bytes::ZERO, Bytes::ZERO, WindowedMin::new());
        let bin = Bin { to, interested, price, peak, depths, flows: 1 };
        match self.bins.iter().position(|bin| bin.flows == 0) {
            Some(at) => {
                self.bins[at] = bin;
                at
            }
            None => {
                self.bins.push(bin);
                self.bins.len() - 1
            }
        }
    }

    /// A flow of this bin is closed.
    pub(super) fn leave(&mut self, at: usize) {
        self.bins[at].flows -= 1;
    }

    /// The bin of this number.
    pub(super) fn get(&self, at: usize) -> &Bin {
        &self.bins[at]
    }

    /// Those with flows.
    pub(super) fn used(&self) -> impl Iterator<Item = &Bin> {
        self.bins.iter().filter(|bin| bin.flows > 0)
    }

    /// The planner has been told.
    pub(super) fn told(&mut self) {
        self.bins.iter_mut().for_each(|bin| bin.peak = bin.price);
    }

    /// Reads K and the price of a bin; `None` if one is not known.
    pub(super) fn look<B: Body, C: Cat>(
        &mut self,
        at: usize,
        node: &Node<B, C>,
        now: Time,
    ) -> Option<(f64, Bytes)> {
        let bin = &mut self.bins[at];
        let (k, depth) = (node.k()?, node.price_of(bin.to, bin.interested)?);
        let burst = node.burst();
        let price = if burst.is_zero() { depth } else { bin.depths.update(burst, now, depth) };
        bin.price = price;
        bin.peak = bin.peak.max(price);
        Some((k, price))
    }
}
