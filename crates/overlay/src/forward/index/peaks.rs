//! Weights by number, and the largest of them at once: a binary tree in which each node is the larger of the two below it. A change takes
//! as many steps as the tree is deep, where a search would look at all bins in each decision.

/// Weights of 0 or more, by number.
#[derive(Debug, Default)]
pub(super) struct Peaks {
    /// The root is at 1, what is below a node at twice its place and the next, and the leaves from half of the length on.
    tree: Vec<i64>,
}

impl Peaks {
    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }

    /// The weight of a number.
    pub(super) fn get(&self, number: usize) -> i64 {
        self.tree.get(self.leaves() + number).copied().unwrap_or(0)
    }

    /// Sets it.
    pub(super) fn set(&mut self, number: usize, weight: i64) {
        if number >= self.leaves() {
            self.grow(number + 1);
        }
        let mut at = self.leaves() + number;
        self.tree[at] = weight;
        while at > 1 {
            at /= 2;
            let larger = self.tree[2 * at].max(self.tree[2 * at + 1]);
            if std::mem::replace(&mut self.tree[at], larger) == larger {
                break;
            }
        }
    }

    fn grow(&mut self, numbers: usize) {
        let (leaves, old) = (numbers.next_power_of_two(), self.leaves());
        let mut tree = vec![0; 2 * leaves];
        tree[leaves..leaves + old].copy_from_slice(&self.tree[old..]);
        for at in (1..leaves).rev() {
            tree[at] = tree[2 * at].max(tree[2 * at + 1]);
        }
        self.tree = tree;
    }

    /// Sets all to 0.
    pub(super) fn clear(&mut self) {
        self.tree.fill(0);
    }

    /// The first number of the largest weight, and the weight, if it is above 0.
    pub(super) fn largest(&self) -> Option<(usize, i64)> {
        let most = self.tree.get(1).copied().filter(|most| *most > 0)?;
        let mut at = 1;
        while at < self.leaves() {
            at = if self.tree[2 * at] == most { 2 * at } else { 2 * at + 1 };
        }
        Some((at - self.leaves(), most))
    }

    /// The numbers whose weight is above 0.
    pub(super) fn above(&self) -> impl Iterator<Item = usize> {
        self.tree[self.leaves()..]
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight > 0)
            .map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random changes: the largest is what a search finds.
    #[test]
    fn the_largest_is_the_first_that_a_search_finds() {
        let mut random = weir_base::Random::stream(3, "peaks");
        let (mut peaks, mut plain) = (Peaks::default(), [0i64; 100]);
        for step in 0..5000u64 {
            let number = random.below((step / 20 + 1).min(100)) as usize;
            let weight = random.below(20) as i64;
            peaks.set(number, weight);
            plain[number] = weight;
            let most = plain.iter().copied().max().filter(|most| *most > 0);
            let first = most.and_then(|most| plain.iter().position(|one| *one == most));
            assert_eq!(peaks.largest(), first.zip(most), "step {step}");
            assert_eq!(peaks.get(number), weight);
        }
        assert_eq!(peaks.above().count(), plain.iter().filter(|weight| **weight > 0).count());
        peaks.clear();
        assert_eq!(peaks.largest(), None);
    }
}
