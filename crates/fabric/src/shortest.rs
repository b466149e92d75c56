//! Paths of least delay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_base::Span;

/// A link as a search crosses it: a search against the direction of packets swaps its ends.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// Index of the link.
    pub link: u32,
    /// The node that the search reaches over it.
    pub to: usize,
    /// The delay that it adds.
    pub delay: Span,
}

/// For each node, the last link of the path of least delay from `start`; of equal paths, those with fewer links, then the link with the
/// lower index (Dijkstra). `edges` lists those that leave each node. A path ends at a host and does not pass it. `None` for `start` and
/// for nodes that no path reaches.
pub fn least_delay(start: usize, edges: &[Vec<Edge>], is_host: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
    const UNREACHED: (u64, u32, u32) = (u64::MAX, u32::MAX, u32::MAX);
    let mut best = vec![UNREACHED; edges.len()];
    let mut heap = BinaryHeap::from([Reverse((0u64, 0u32, start))]);
    best[start] = (0, 0, 0);
    while let Some(Reverse((delay, hops, node))) = heap.pop() {
        if (delay, hops) > (best[node].0, best[node].1) || (is_host(node) && node != start) {
            continue;
        }
        for &Edge { link, to, delay: more } in &edges[node] {
            let next = (delay.saturating_add(more.as_nanos()), hops + 1, link);
            if next < best[to] {
                best[to] = next;
                heap.push(Reverse((next.0, next.1, to)));
            }
        }
    }
    best[start] = UNREACHED;
    best.into_iter().map(|found| (found != UNREACHED).then_some(found.2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(links: &[(usize, usize, u64)]) -> Vec<Vec<Edge>> {
        let mut edges = vec![vec![]; 4];
        for (link, &(from, to, ms)) in (0..).zip(links) {
            edges[from].push(Edge { link, to, delay: Span::from_millis(ms) });
        }
        edges
    }

    #[test]
    fn less_delay_then_fewer_links_then_the_lower_link() {
        let slow_and_two = edges(&[(0, 3, 9), (0, 1, 4), (1, 3, 4)]);
        assert_eq!(least_delay(0, &slow_and_two, |_| false), [None, Some(1), None, Some(2)]);
        let as_slow = edges(&[(0, 1, 4), (1, 3, 4), (0, 3, 8), (0, 3, 8)]);
        assert_eq!(least_delay(0, &as_slow, |_| false), [None, Some(0), None, Some(2)]);
    }

    #[test]
    fn a_path_ends_at_a_host_but_may_begin_there() {
        let through = edges(&[(0, 1, 1), (1, 3, 1)]);
        assert_eq!(least_delay(0, &through, |node| node < 2), [None, Some(0), None, None]);
    }
}
