//! Weights by number, and the largest of them at once: the largest of each eight, the largest of each eight of these, and so on. A change
//! looks at eight weights of each level, where a search would look at all bins in each decision.

/// Numbers of a level for which the level above has one.
const FOLD: usize = 8;

/// Weights of 0 or more, by number.
#[derive(Debug, Default)]
pub(super) struct Peaks {
    /// The first has the weights; the last has one fold at most. Each is as long as whole folds.
    levels: Vec<Vec<i64>>,
    /// The first number of the largest weight, and the weight, if it is above 0.
    largest: Option<(usize, i64)>,
}

/// The weights of a fold.
fn fold(level: &[i64], at: usize) -> &[i64] {
    &level[at * FOLD..(at + 1) * FOLD]
}

fn most_of(weights: &[i64]) -> i64 {
    weights.iter().fold(0, |most, weight| most.max(*weight))
}

impl Peaks {
    /// Sets the weight of a number.
    pub(super) fn set(&mut self, number: usize, weight: i64) {
        if self.levels.first().is_none_or(|weights| number >= weights.len()) {
            self.grow(number + 1);
        }
        if self.levels[0][number] == weight {
            return;
        }
        let (mut at, mut most) = (number, weight);
        for level in &mut self.levels {
            if std::mem::replace(&mut level[at], most) == most {
                break;
            }
            at /= FOLD;
            most = most_of(fold(level, at));
        }
        match self.largest {
            // The largest has become smaller.
            Some((first, largest)) if number == first && weight < largest => self.largest = self.find(),
            Some((first, largest)) if weight < largest || weight == largest && number > first => {}
            _ if weight > 0 => self.largest = Some((number, weight)),
            _ => {}
        }
    }

    fn grow(&mut self, numbers: usize) {
        let mut weights = self.levels.drain(..).next().unwrap_or_default();
        weights.resize(numbers.next_multiple_of(FOLD), 0);
        self.levels.push(weights);
        while let Some(below) = self.levels.last().filter(|level| level.len() > FOLD) {
            let mut level: Vec<i64> = below.chunks(FOLD).map(most_of).collect();
            level.resize(level.len().next_multiple_of(FOLD), 0);
            self.levels.push(level);
        }
    }

    /// Sets all to 0.
    pub(super) fn clear(&mut self) {
        self.levels.iter_mut().for_each(|level| level.fill(0));
        self.largest = None;
    }

    /// The first number of the largest weight, and the weight, if it is above 0.
    pub(super) fn largest(&self) -> Option<(usize, i64)> {
        self.largest
    }

    fn find(&self) -> Option<(usize, i64)> {
        let most = self.levels.last().map(|top| most_of(top)).filter(|most| *most > 0)?;
        let down = |at, level: &Vec<i64>| {
            let first = fold(level, at).iter().position(|weight| *weight == most);
            at * FOLD + first.unwrap_or(0)
        };
        Some((self.levels.iter().rev().fold(0, down), most))
    }

    /// The numbers whose weight is above 0.
    pub(super) fn above(&self) -> impl Iterator<Item = usize> {
        let weights = self.levels.first().into_iter().flatten().enumerate();
        weights.filter(|(_, weight)| **weight > 0).map(|(number, _)| number)
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
        }
        let above: Vec<usize> = peaks.above().collect();
        assert_eq!(above, (0..100).filter(|number| plain[*number] > 0).collect::<Vec<_>>());
        peaks.clear();
        assert_eq!(peaks.largest(), None);
    }
}
