//! Multicast: who a packet is for, what depth admits a flow, and how a node chooses a packet of a group for a neighbour.
//!
//! Source: digest G 2.1, A 6.5, X 4.5. Four ways to forward: depths by group and destination with packets that part (`per-bin`), the same
//! with coded packets as counters (`coded`), one depth by group and one by destination (`total`), and a shared tree as PIM-SM builds it
//! (`tree`), which is the baseline.

pub mod tree;

use crate::nodes::{NodeId, Nodes};
use weir_base::Bytes;

/// How groups are forwarded.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// Depths by group and destination; a packet whose receivers part is copied.
    #[default]
    PerBin,
    /// The same; packets of a group are interchangeable, as network coding makes them.
    Coded,
    /// One depth by group and one by destination, an approximation with less signalling.
    Total,
    /// A shared tree over a rendezvous point, without backpressure.
    Tree,
}

/// What of a group's depths is the price of admission.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The largest over the flow's receivers, the study's default.
    #[default]
    Max,
    /// The sum over them, which is the price of network utility maximisation.
    Sum,
}

/// Parameters of multicast.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How groups are forwarded.
    pub forwarding: Forwarding,
    /// What of a group's depths is the price of admission.
    pub admission: Rule,
    /// A packet is not parted for a destination that is uphill by up to so much.
    pub opportunism: Bytes,
    /// Packets of a bin that are looked at for one decision, where one has been at the neighbour or depths are summed over groups.
    pub search: u32,
    /// The rendezvous point of a tree: a node's number.
    pub rendezvous: u8,
    /// Packets that wait for a link of a tree at most.
    pub tree_limit: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            forwarding: Forwarding::PerBin,
            admission: Rule::Max,
            opportunism: Bytes::new(4000),
            search: 200,
            rendezvous: 0,
            tree_limit: 50,
        }
    }
}

impl Rule {
    /// The price of a flow whose receivers have these depths.
    pub fn price(self, depths: impl Iterator<Item = u64>) -> u64 {
        match self {
            Rule::Max => depths.max().unwrap_or(0),
            Rule::Sum => depths.sum(),
        }
    }
}

/// The receivers of a flow: members of its group without the source, of which the sender may choose some (digest X 4.5: it names those
/// that are interested, so the network carries nothing to the rest).
#[inline]
pub fn receivers(members: Nodes, source: NodeId, interested: Option<Nodes>) -> Nodes {
    let others = members.without(source);
    interested.map_or(others, |interested| others.and(interested))
}

/// A packet of a group, as a candidate for a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The destinations that it is sent for.
    pub nodes: Nodes,
    /// The sum of their differences of depth.
    pub score: i64,
    /// Whether no receiver stays behind.
    pub is_whole: bool,
    /// Whether it goes downhill.
    pub is_downhill: bool,
}

/// What a packet for `receivers` is worth toward a neighbour, where the destinations `wanted` go downhill by `difference` (A 6.5).
pub fn offer(receivers: Nodes, wanted: Nodes, difference: impl Fn(NodeId) -> i64) -> Option<Offer> {
    let nodes = receivers.and(wanted);
    let score = nodes.iter().map(difference).sum();
    (!nodes.is_empty()).then_some(Offer { nodes, score, is_whole: nodes == receivers, is_downhill: true })
}

/// The same under the approximation: downhill by the sums over groups, or else all of its reachable receivers, uphill (G 2.1).
pub fn offer_by_sums(receivers: Nodes, finite: Nodes, difference: impl Fn(NodeId) -> i64) -> Option<Offer> {
    let reachable = receivers.and(finite);
    let downhill: Nodes = reachable.iter().filter(|node| difference(*node) > 0).collect();
    if !downhill.is_empty() {
        return offer(receivers, downhill, difference);
    }
    let score = reachable.iter().map(difference).sum();
    let is_whole = reachable == receivers;
    (!reachable.is_empty()).then_some(Offer { nodes: reachable, score, is_whole, is_downhill: false })
}

impl Offer {
    /// Whether it is better than another. Under the approximation a packet that need not part comes first; downhill always does.
    pub fn beats(&self, other: &Offer, prefers_whole: bool) -> bool {
        let rank = |offer: &Offer| (offer.is_downhill, prefers_whole && offer.is_whole, offer.score);
        rank(self) > rank(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(nodes: &[u8]) -> Nodes {
        nodes.iter().filter_map(|node| NodeId::new(*node)).collect()
    }

    #[test]
    fn the_price_of_a_flow_is_the_largest_depth_or_the_sum() {
        assert_eq!(Rule::Max.price([3000, 5000, 0].into_iter()), 5000);
        assert_eq!(Rule::Sum.price([3000, 5000, 0].into_iter()), 8000);
        assert_eq!(Rule::Max.price([].into_iter()), 0);
    }

    #[test]
    fn a_sender_chooses_among_the_members_and_is_not_one_itself() {
        let (members, source) = (set(&[1, 2, 3, 12]), NodeId::new(1).unwrap());
        assert_eq!(receivers(members, source, None), set(&[2, 3, 12]));
        assert_eq!(receivers(members, source, Some(set(&[2, 12, 40]))), set(&[2, 12]));
    }

    #[test]
    fn a_packet_is_worth_the_sum_of_its_downhill_differences() {
        let difference = |node: NodeId| i64::from(node.number()) * 1000;
        let part = offer(set(&[1, 2, 3]), set(&[2, 3]), difference).unwrap();
        assert_eq!((part.nodes, part.score, part.is_whole), (set(&[2, 3]), 5000, false));
        assert_eq!(offer(set(&[1]), set(&[2, 3]), difference), None);
    }

    #[test]
    fn under_the_approximation_a_whole_packet_comes_before_one_that_would_part() {
        let difference = |node: NodeId| if node.number() == 1 { -100 } else { 1000 };
        let finite = set(&[1, 2, 3]);
        let whole = offer_by_sums(set(&[2]), finite, difference).unwrap();
        let parts = offer_by_sums(set(&[1, 2, 3]), finite, difference).unwrap();
        assert!(parts.beats(&whole, false) && whole.beats(&parts, true));
    }

    #[test]
    fn under_the_approximation_something_is_sent_uphill_but_never_to_a_dead_end() {
        let uphill = |node: NodeId| -i64::from(node.number());
        let sent = offer_by_sums(set(&[1, 2, 3]), set(&[1, 2]), uphill).unwrap();
        assert_eq!((sent.nodes, sent.is_downhill), (set(&[1, 2]), false));
        assert_eq!(offer_by_sums(set(&[3]), set(&[1, 2]), uphill), None);
    }
}
