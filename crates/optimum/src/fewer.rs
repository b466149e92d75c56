//! Fewer paths for the same flow.
//!
//! An interior point method gives every path a little. As long as the paths that carry something are more than the full links and the
//! whole rate determine, rates can be moved among them, without loss, until one carries nothing or one more link is full. What is left
//! is a corner of the set of solutions.

use crate::answer::Piece;
use std::collections::BTreeMap;

/// Most paths that are looked at: the work grows with the fourth power.
const MOST: usize = 120;
/// A link is full when less than this share of its limit is left.
const FULL: f64 = 1e-12;
/// Smaller numbers are zero in the elimination, whose entries are near 1.
const ZERO: f64 = 1e-9;

/// Moves the rates of paths to fewer of them. Their sum stays, and no link carries more than its limit in bits per second.
pub(crate) fn fewer(paths: &mut Vec<Piece>, limit: impl Fn(u32) -> f64) {
    if paths.len() > MOST {
        return;
    }
    let mut full: BTreeMap<u32, bool> = BTreeMap::new();
    for &link in paths.iter().flat_map(|path| &path.links) {
        let is_full = limit(link) - load(paths, link) <= limit(link) * FULL;
        full.insert(link, is_full);
    }
    let whole: f64 = paths.iter().map(|path| path.rate).sum();
    while let Some(change) = movable(paths, &full) {
        let of_link = |link: u32| -> f64 {
            paths.iter().zip(&change).filter(|(path, _)| path.links.contains(&link)).map(|(_, by)| by).sum()
        };
        let emptied = paths
            .iter()
            .zip(&change)
            .map(|(path, by)| if *by < 0.0 { -path.rate / by } else { f64::INFINITY });
        let emptied: Vec<f64> = emptied.collect();
        let filled = full.iter().filter(|&(_, &is_full)| !is_full).map(|(&link, _)| {
            let by = of_link(link);
            let room = limit(link) - load(paths, link);
            (link, if by > ZERO { room.max(0.0) / by } else { f64::INFINITY })
        });
        let filled = filled.min_by(|a, b| a.1.total_cmp(&b.1));
        let Some(first) = (0..paths.len()).min_by(|&a, &b| emptied[a].total_cmp(&emptied[b])) else { return };
        let step = filled.map_or(emptied[first], |(_, step)| step.min(emptied[first]));
        if !step.is_finite() {
            return;
        }
        for (path, by) in paths.iter_mut().zip(&change) {
            path.rate = (path.rate + step * by).max(0.0);
        }
        match filled.filter(|&(_, step)| step < emptied[first]) {
            Some((link, _)) => drop(full.insert(link, true)),
            None => paths[first].rate = 0.0,
        }
        paths.retain(|path| path.rate > whole * FULL);
    }
}

fn load(paths: &[Piece], link: u32) -> f64 {
    paths.iter().filter(|path| path.links.contains(&link)).map(|path| path.rate).sum()
}

/// A change of the rates that keeps their sum and the load of full links, if there is one: a vector of the null space, by elimination.
fn movable(paths: &[Piece], full: &BTreeMap<u32, bool>) -> Option<Vec<f64>> {
    let links = full.iter().filter(|&(_, &is_full)| is_full).map(|(&link, _)| link);
    let on = |link: u32| paths.iter().map(|path| f64::from(u8::from(path.links.contains(&link)))).collect();
    let mut rows: Vec<Vec<f64>> = std::iter::once(vec![1.0; paths.len()]).chain(links.map(on)).collect();
    // For each row that is done, the column of its leading one.
    let mut leading: Vec<usize> = Vec::new();
    for column in 0..paths.len() {
        let done = leading.len();
        let pivot =
            (done..rows.len()).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()));
        let Some(pivot) = pivot.filter(|&row| rows[row][column].abs() > ZERO) else {
            // Every row is zero here but those that are done: this path can be moved against theirs.
            let mut change = vec![0.0; paths.len()];
            change[column] = 1.0;
            for (row, &lead) in leading.iter().enumerate() {
                change[lead] = -rows[row][column];
            }
            return Some(change);
        };
        rows.swap(done, pivot);
        let by = rows[done][column];
        rows[done].iter_mut().for_each(|number| *number /= by);
        let own = rows[done].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|&(other, _)| other != done) {
            let factor = row[column];
            if factor != 0.0 {
                row.iter_mut().zip(&own).for_each(|(number, own)| *number -= factor * own);
            }
        }
        leading.push(column);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Span;

    #[test]
    fn rates_move_to_as_few_paths_as_full_links_allow() {
        // Four paths over two parallel pairs of links, 0 or 1 and then 2 or 3, each with a limit of 3.
        let piece = |links: [u32; 2], rate: f64| Piece { links: links.into(), rate, delay: Span::ZERO };
        let mut paths = vec![piece([0, 2], 1.5), piece([0, 3], 1.5), piece([1, 2], 1.5), piece([1, 3], 1.5)];
        fewer(&mut paths, |_| 3.0);
        let rates: Vec<f64> = paths.iter().map(|path| path.rate).collect();
        assert_eq!(rates, [3.0, 3.0], "{paths:?}");
        assert!((0..4).all(|link| (load(&paths, link) - 3.0).abs() < 1e-9), "{paths:?}");
    }
}
