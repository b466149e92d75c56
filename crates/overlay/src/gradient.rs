//! The difference of depths toward a neighbour, by which packets move.
//!
//! Source: digest A 6.2, A 6.3. Each side's depth is raised by 1,100 bytes for each hop that is left from there. A neighbour that
//! reaches the destination only back through this node is a dead end: there is no gradient toward it.

use weir_base::Bytes;

/// Parameters of the gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gradients {
    /// A difference up to this moves nothing, unless the neighbour is the destination: 150 bytes.
    pub hysteresis: Bytes,
    /// Bytes that each hop counts: 1,100.
    pub hop_bias: Bytes,
}

impl Default for Gradients {
    fn default() -> Gradients {
        Gradients { hysteresis: Bytes::new(150), hop_bias: Bytes::new(1100) }
    }
}

/// One side of a link, as the gradient for a destination sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// Bytes that wait there for the destination.
    pub depth: u64,
    /// Hops from there to the destination; `None` if there is no way. A neighbour's ways do not pass the node that asks.
    pub hops: Option<u8>,
}

impl Gradients {
    /// A side's depth in bytes, raised by its hops; `None` without a way.
    #[inline]
    pub fn height(&self, side: Side) -> Option<i64> {
        side.hops.map(|hops| (side.depth + self.hop_bias.get() * u64::from(hops)) as i64)
    }

    /// The difference in bytes toward a neighbour; `None` if that is a dead end. Without a way from this node its own side counts
    /// nothing.
    #[inline]
    pub fn difference(&self, own: Side, neighbour: Side) -> Option<i64> {
        Some(self.height(own).unwrap_or(0) - self.height(neighbour)?)
    }

    /// What a difference must exceed to move a packet, in bytes. Toward the destination itself any difference does, except that of
    /// sensitive traffic.
    #[inline]
    pub fn least(&self, neighbour: Side, sensitive: bool) -> i64 {
        let arrives = neighbour.hops == Some(0);
        if arrives && !sensitive { 0 } else { self.hysteresis.get() as i64 }
    }
}

/// Whether a neighbour is closer to the destination than this node.
#[inline]
pub fn is_closer(own: Option<u8>, neighbour: Option<u8>) -> bool {
    match (own, neighbour) {
        (Some(own), Some(neighbour)) => neighbour < own,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Gradients = Gradients { hysteresis: Bytes::new(150), hop_bias: Bytes::new(1100) };

    fn side(depth: u64, hops: u8) -> Side {
        Side { depth, hops: Some(hops) }
    }

    #[test]
    fn each_hop_counts_as_1100_bytes() {
        // Two hops from here; one from a neighbour on the shortest path, three on a detour.
        assert_eq!(G.difference(side(5000, 2), side(4000, 1)), Some(2100));
        assert_eq!(G.difference(side(5000, 2), side(4000, 3)), Some(-100));
    }

    #[test]
    fn a_difference_within_the_hysteresis_moves_a_packet_only_to_its_destination() {
        let moves = |own, neighbour, sensitive| {
            G.difference(own, neighbour).filter(|difference| *difference > G.least(neighbour, sensitive))
        };
        assert_eq!(moves(side(150, 2), side(1100, 1), false), None);
        assert_eq!(moves(side(151, 2), side(1100, 1), false), Some(151));
        assert_eq!(moves(side(40, 0), side(0, 0), false), Some(40));
        assert_eq!(moves(side(40, 0), side(0, 0), true), None);
    }

    #[test]
    fn toward_a_dead_end_there_is_no_gradient() {
        assert_eq!(G.difference(side(1 << 40, 1), Side { depth: 0, hops: None }), None);
        // Without a way from here a neighbour with one is uphill.
        assert_eq!(G.difference(Side { depth: 9000, hops: None }, side(0, 1)), Some(-1100));
    }
}
