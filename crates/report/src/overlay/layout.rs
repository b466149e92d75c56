//! Places of nodes in a picture of a network: distances on paper follow the numbers of links between nodes (stress majorisation, Gansner,
//! Koren and North, 2004). The same network always has the same picture.

/// Rounds until the picture no longer changes visibly.
const ROUNDS: usize = 300;
/// Nodes that no path joins are as far apart as this many links beyond the longest path.
const APART: f64 = 1.0;

/// A place for each of so many nodes, each coordinate from 0 to 1.
pub(super) fn places(nodes: usize, links: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let hops = distances(nodes, links);
    let mut at = columns(&hops);
    for _ in 0..ROUNDS {
        for node in 0..nodes {
            let (mut x, mut y, mut weights) = (0.0, 0.0, 0.0);
            for other in (0..nodes).filter(|other| *other != node) {
                let wanted = hops[node][other];
                let weight = 1.0 / (wanted * wanted);
                let (dx, dy) = (at[node].0 - at[other].0, at[node].1 - at[other].1);
                let length = libm::hypot(dx, dy).max(1e-9);
                x += weight * (at[other].0 + wanted * dx / length);
                y += weight * (at[other].1 + wanted * dy / length);
                weights += weight;
            }
            if weights > 0.0 {
                at[node] = (x / weights, y / weights);
            }
        }
    }
    scaled(&turned(&at, &hops))
}

/// Where the nodes begin: in columns by their distance from the first node, each column a little higher than the one before, so that no
/// two forces cancel out.
fn columns(hops: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let Some(first) = hops.first() else { return Vec::new() };
    let place = |node: usize| {
        let of_column = |other: &usize| first[*other] == first[node];
        let row = (0..node).filter(of_column).count() as f64;
        let rows = (0..first.len()).filter(of_column).count() as f64;
        (first[node], row - (rows - 1.0) / 2.0 + 0.05 * first[node])
    };
    (0..first.len()).map(place).collect()
}

/// For each pair of nodes, the number of links between them.
fn distances(nodes: usize, links: &[(usize, usize)]) -> Vec<Vec<f64>> {
    let mut beside = vec![Vec::new(); nodes];
    for &(from, to) in links {
        beside[from].push(to);
        beside[to].push(from);
    }
    let mut found = Vec::with_capacity(nodes);
    for node in 0..nodes {
        let mut hops = vec![f64::INFINITY; nodes];
        hops[node] = 0.0;
        let (mut reached, mut next) = (vec![node], 0);
        while let Some(&at) = reached.get(next) {
            next += 1;
            for &other in &beside[at] {
                if hops[other].is_infinite() {
                    hops[other] = hops[at] + 1.0;
                    reached.push(other);
                }
            }
        }
        found.push(hops);
    }
    let longest = found.iter().flatten().copied().filter(|hops| hops.is_finite()).fold(0.0, f64::max);
    found.iter_mut().flatten().filter(|hops| hops.is_infinite()).for_each(|hops| *hops = longest + APART);
    found
}

/// The places turned so that the first node is on the left, and on the right the one that is the most links from it: packets go from the
/// left to the right where flows enter at the first node.
fn turned(at: &[(f64, f64)], hops: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let Some((first, own)) = at.first().zip(hops.first()) else { return Vec::new() };
    let farthest = (0..own.len()).max_by(|&a, &b| own[a].total_cmp(&own[b]).then(b.cmp(&a))).unwrap_or(0);
    let (dx, dy) = (at[farthest].0 - first.0, at[farthest].1 - first.1);
    let length = libm::hypot(dx, dy);
    let (cos, sin) = if length > 0.0 { (dx / length, dy / length) } else { (1.0, 0.0) };
    at.iter().map(|(x, y)| (x * cos + y * sin, y * cos - x * sin)).collect()
}

/// The places within a square of size 1, each direction scaled on its own.
fn scaled(at: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let range = |of: fn(&(f64, f64)) -> f64| {
        let values = || at.iter().map(of);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    };
    let (x, y) = (range(|p| p.0), range(|p| p.1));
    // A row of nodes stays a row.
    let part = |value: f64, (low, high): (f64, f64)| match high - low {
        size if size > 1e-3 * (x.1 - x.0).max(y.1 - y.0) => (value - low) / size,
        _ => 0.5,
    };
    at.iter().map(|p| (part(p.0, x), part(p.1, y))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_nodes_is_drawn_as_a_row_in_its_order() {
        let places = places(4, &[(0, 1), (1, 2), (2, 3)]);
        assert_eq!(places[0].0, 0.0);
        assert!(places.windows(2).all(|pair| pair[0].0 < pair[1].0), "{places:?}");
        assert!(places.iter().all(|(_, y)| (0.4..0.6).contains(y)), "{places:?}");
    }

    #[test]
    fn a_grid_keeps_its_nodes_apart_and_a_node_without_links_has_a_place() {
        let side = 5;
        let mut links = Vec::new();
        for node in 0..side * side {
            links.extend((node % side + 1 < side).then_some((node, node + 1)));
            links.extend((node + side < side * side).then_some((node, node + side)));
        }
        let places = places(side * side + 1, &links);
        for (one, a) in places.iter().enumerate() {
            assert!((0.0..=1.0).contains(&a.0) && (0.0..=1.0).contains(&a.1), "{a:?}");
            for (other, b) in places.iter().enumerate().skip(one + 1) {
                let apart = libm::hypot(a.0 - b.0, a.1 - b.1);
                assert!(apart > 0.08, "{one} and {other} are {apart} apart");
            }
        }
    }

    #[test]
    fn no_node_and_one_node_are_networks_too() {
        assert_eq!(places(0, &[]), []);
        assert_eq!(places(1, &[]), [(0.5, 0.5)]);
    }
}
