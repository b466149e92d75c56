//! Both sides of the gradients of a bin: what waits here for each of its destinations, and what a neighbour has told. Each is computed when it
//! changes, so that a packet that leaves costs one pass here and a comparison for each neighbour.

use super::candidate::{Kind, Pass};
use super::{Port, View};
use crate::gradient::{Gradients, Side};
use crate::linkstate::Routes;
use crate::nodes::{NodeId, Nodes};
use crate::packet::Key;
use crate::queue::{Bin, Destination};

/// What a bin could do toward a neighbour: the sums of the differences that go downhill, for packets and for zombies, in bytes. At 0 nothing
/// goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slope {
    pub(super) packets: i64,
    pub(super) zombies: i64,
}

/// A destination of a bin as this node stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here {
    /// Its depth here, raised by its hops, in bytes; the least number if nothing waits.
    height: i64,
    node: NodeId,
    /// What there is to go in the pass.
    has: Option<Kind>,
}

impl Here {
    /// That of no destination, where nothing waits.
    pub(super) const NOTHING: Here =
        Here { height: i64::MIN, node: NodeId::new(0).expect("0 is a node"), has: None };
}

/// The same destination as a neighbour stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct There {
    /// Its depth there, raised by its hops, in bytes.
    height: i64,
    /// What the height here must exceed, so that anything goes; the largest number at a dead end.
    floor: i64,
}

/// This node's side of a gradient, where so many bytes wait for a destination.
pub(super) fn own_side(routes: &Routes, node: NodeId, depth: u64) -> Side {
    Side { depth, hops: routes.hops(node) }
}

/// A neighbour's side, if it has told so many bytes. At the destination itself nothing waits.
#[inline]
pub(super) fn their_side(routes: &Routes, port: &Port, node: NodeId, told: u64) -> Side {
    let depth = if port.node == node { 0 } else { told };
    Side { depth, hops: routes.hops_via(port.number, node) }
}

/// This node's side of a bin, a value for each of its destinations.
pub(super) fn here<B, S: Default>(
    view: &View<'_, B, S>,
    gradients: &Gradients,
    bin: &Bin<S>,
    pass: Pass,
    depth: &impl Fn(&Destination<S>, bool) -> u64,
) -> impl Iterator<Item = Here> {
    bin.destinations.iter().map(move |(node, destination)| {
        let depth = depth(destination, pass.is_sensitive());
        let has = match (pass.packets(destination), pass.zombies(destination)) {
            (0, 0) => None,
            (0, _) => Some(Kind::Zombies),
            _ => Some(Kind::Packets),
        };
        // Without a way from here nothing goes but downhill from 0.
        let height = gradients.height(own_side(view.routes, node, depth)).unwrap_or(0);
        Here { height: if depth == 0 { i64::MIN } else { height }, node, has }
    })
}

/// A neighbour's side of a bin of this name, a value for each of these destinations.
pub(super) fn there<B, S>(
    view: &View<'_, B, S>,
    gradients: &Gradients,
    port: &Port,
    (key, nodes): (Key, Nodes),
    pass: Pass,
) -> impl Iterator<Item = There> {
    let told = view.advertised[port.number].bin(key);
    nodes.iter().map(move |node| {
        let side = their_side(view.routes, port, node, told.of(node, pass.is_sensitive()));
        match gradients.height(side) {
            Some(height) => There { height, floor: height + gradients.least(side, pass.is_sensitive()) },
            None => There { height: 0, floor: i64::MAX },
        }
    })
}

/// The differences that go downhill, with what there is to go.
pub(super) fn downhill(here: &[Here], there: &[There]) -> impl Iterator<Item = (NodeId, Option<Kind>, i64)> {
    let both = here.iter().zip(there).filter(|(here, there)| here.height > there.floor);
    both.map(|(here, there)| (here.node, here.has, here.height - there.height))
}

/// The destinations that go downhill with something of this kind.
#[inline]
pub(super) fn nodes(here: &[Here], there: &[There], kind: Kind) -> Nodes {
    let of_kind = downhill(here, there).filter(|(_, has, _)| *has == Some(kind));
    of_kind.map(|(node, ..)| node).collect()
}

impl Slope {
    /// What a bin could do toward the neighbour at a port, from both sides of it.
    #[inline]
    pub(super) fn of(here: &[Here], there: &[There], key: Key, port: &Port, zombies_first: bool) -> Slope {
        let mut slope = Slope::default();
        for (_, has, difference) in downhill(here, there) {
            match has {
                Some(Kind::Packets) => slope.packets += difference,
                Some(Kind::Zombies) => slope.zombies += difference,
                None => {}
            }
        }
        if slope.packets > 0 {
            // At equal gradients the neighbour that is the destination comes first (digest A 6.3).
            slope.packets += i64::from(key == Key::Node(port.node));
            if !zombies_first {
                slope.zombies = 0;
            }
        }
        slope
    }

    /// Of packets or of zombies.
    pub(super) fn weight(self, kind: Kind) -> i64 {
        match kind {
            Kind::Packets => self.packets,
            Kind::Zombies => self.zombies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::id;

    #[test]
    fn a_destination_goes_downhill_only_above_the_floor_of_the_neighbour() {
        let here =
            [1250, 1251, i64::MIN].map(|height| Here { height, node: id(3), has: Some(Kind::Packets) });
        let there = [There { height: 1100, floor: 1250 }; 3];
        let moves: Vec<_> = downhill(&here, &there).collect();
        assert_eq!(moves, [(id(3), Some(Kind::Packets), 151)]);
    }
}
