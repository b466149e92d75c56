//! What a node's links have left for flows that need them by a time, and the price that another flow would bring.
//!
//! Source: digest A 9.2. The study sums all links for every flow, and only computes which are fast enough; here a flow with a deadline
//! counts those alone. It takes the slowest of them first, since those are of least use to others.

use super::seen::BinSeen;
use weir_base::{Rate, Span};

/// What each link has left, in bits per second.
#[derive(Debug, Clone)]
pub(super) struct Left(Vec<f64>);

impl Left {
    pub(super) fn new(capacities: &[Rate]) -> Left {
        Left(capacities.iter().map(|rate| rate.bits_per_sec() as f64).collect())
    }

    /// What all links have.
    pub(super) fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// What is left toward the receiver that has the least, over links that are fast enough.
    pub(super) fn toward(&self, bin: &BinSeen, deadline: Option<Span>) -> f64 {
        let of = |ways: &Vec<Option<Span>>| -> f64 {
            self.0
                .iter()
                .zip(ways)
                .filter(|(_, delay)| is_fast(**delay, deadline))
                .map(|(left, _)| left)
                .sum()
        };
        bin.ways.iter().map(of).min_by(f64::total_cmp).unwrap_or_default()
    }

    /// A flow takes its rate.
    pub(super) fn take(&mut self, bin: &BinSeen, deadline: Option<Span>, rate: f64) {
        let slowest = |port: usize| bin.ways.iter().filter_map(|ways| *ways.get(port)?).max();
        let mut ports: Vec<(Span, usize)> = (0..self.0.len())
            .filter_map(|port| Some((slowest(port).filter(|delay| is_fast(Some(*delay), deadline))?, port)))
            .collect();
        ports.sort_unstable_by(|a, b| b.cmp(a));
        let mut wanted = rate;
        for (_, port) in ports {
            let taken = wanted.min(self.0[port]);
            self.0[port] -= taken;
            wanted -= taken;
        }
    }
}

/// Whether a way keeps a deadline.
pub(super) fn is_fast(delay: Option<Span>, deadline: Option<Span>) -> bool {
    delay.is_some_and(|delay| deadline.is_none_or(|deadline| delay <= deadline))
}

/// Elastic flows: the priority of each, and the most that it wants.
pub(super) type Elastic = [(f64, f64)];

/// The rate for a unit of priority at which elastic flows fill a capacity; infinite if they do not.
pub(super) fn unit_rate(flows: &Elastic, capacity: f64) -> f64 {
    if capacity <= 0.0 {
        return 0.0;
    }
    let mut flows: Vec<(f64, f64)> = flows.to_vec();
    // Those that are satisfied first: by what they want for a unit of priority.
    flows.sort_by(|(p, most), (q, other)| (most / p).total_cmp(&(other / q)));
    let mut priorities: f64 = flows.iter().map(|(priority, _)| priority).sum();
    let mut left = capacity;
    for (priority, most) in flows {
        let unit = left / priorities;
        if most > priority * unit {
            return unit;
        }
        left -= most;
        priorities -= priority;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::NodeId;
    use crate::packet::Key;
    use weir_base::Bytes;

    fn bin(delays: &[u64]) -> BinSeen {
        let ways = vec![delays.iter().map(|delay| Some(Span::from_millis(*delay))).collect()];
        let key = Key::Node(NodeId::new(1).unwrap());
        BinSeen { key, depth: Bytes::ZERO, peak: Bytes::ZERO, ways }
    }

    #[test]
    fn elastic_flows_that_want_less_leave_the_rest_to_others() {
        // 12 for 1 + 5 + 5 priorities, of which one wants no more than 2: 10 for 6.
        assert_eq!(unit_rate(&[(1.0, 50.0), (5.0, 2.0), (5.0, 50.0)], 12.0), 10.0 / 6.0);
        assert_eq!(unit_rate(&[(1.0, 5.0)], 12.0), f64::INFINITY);
        assert_eq!(unit_rate(&[(1.0, 5.0)], 0.0), 0.0);
    }

    #[test]
    fn a_flow_with_a_deadline_counts_fast_links_alone_and_takes_the_slowest_first() {
        let mut left = Left::new(&[Rate::from_bits_per_sec(10), Rate::from_bits_per_sec(10)]);
        let bin = bin(&[10, 60]);
        let tight = Some(Span::from_millis(50));
        assert_eq!((left.toward(&bin, None), left.toward(&bin, tight)), (20.0, 10.0));
        left.take(&bin, None, 4.0);
        assert_eq!(left.toward(&bin, tight), 10.0);
        left.take(&bin, tight, 7.0);
        assert_eq!((left.toward(&bin, tight), left.total()), (3.0, 9.0));
    }
}
