//! Weights by number, and the largest of them at once: the largest of each eight, the largest of each eight of these, and so on. A change
//! looks at eight weights of each level, where a search would look at all bins in each decision.

/// Numbers of a level for which the level above has one.
const FOLD: usize = 8;

/// Weights of 0 or more, by number.
#[derive(Debug, Default)]
pub(super) struct Peaks {
    /// The weights, and behind them the levels above, the last of which is one fold. Each is as long as whole folds.
    levels: Vec<i64>,
    /// How long the first is.
    numbers: usize,
    /// The first number of the largest weight, and the weight, if it is above 0.
    largest: Option<(usize, i64)>,
}

/// A level: where it begins, and how long it is.
#[derive(Debug, Clone, Copy)]
struct Level {
    start: usize,
    length: usize,
}

impl Level {
    /// The level above; `None` if this one is the last.
    fn above(self) -> Option<Level> {
        let Level { start, length } = self;
        let next = Level { start: start + length, length: (length / FOLD).next_multiple_of(FOLD) };
        (length > FOLD).then_some(next)
    }

    /// The weights of a fold.
    fn fold(self, levels: &[i64], at: usize) -> &[i64] {
        &levels[self.start + at * FOLD..][..FOLD]
    }
}

fn most_of(weights: &[i64]) -> i64 {
    weights.iter().fold(0, |most, weight| most.max(*weight))
}

impl Peaks {
    fn first_level(&self) -> Level {
        Level { start: 0, length: self.numbers }
    }

    /// Sets the weight of a number.
    pub(super) fn set(&mut self, number: usize, weight: i64) {
        if number >= self.numbers {
            self.grow(number + 1);
        }
        if self.levels[number] == weight {
            return;
        }
        let (mut level, mut at, mut most) = (self.first_level(), number, weight);
        while std::mem::replace(&mut self.levels[level.start + at], most) != most {
            let Some(above) = level.above() else { break };
            at /= FOLD;
            most = most_of(level.fold(&self.levels, at));
            level = above;
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
        self.levels.truncate(self.numbers);
        self.numbers = numbers.next_multiple_of(FOLD);
        self.levels.resize(self.numbers, 0);
        let mut level = self.first_level();
        while let Some(above) = level.above() {
            self.levels.resize(above.start + above.length, 0);
            for at in 0..level.length / FOLD {
                self.levels[above.start + at] = most_of(level.fold(&self.levels, at));
            }
            level = above;
        }
    }

    /// Sets all to 0.
    pub(super) fn clear(&mut self) {
        self.levels.fill(0);
        self.largest = None;
    }

    /// The first number of the largest weight, and the weight, if it is above 0.
    pub(super) fn largest(&self) -> Option<(usize, i64)> {
        self.largest
    }

    fn find(&self) -> Option<(usize, i64)> {
        let most = most_of(self.levels.last_chunk::<FOLD>()?);
        (most > 0).then(|| (self.first_of(self.first_level(), most), most))
    }

    /// The first number of a level with the largest weight.
    fn first_of(&self, level: Level, most: i64) -> usize {
        let at = level.above().map_or(0, |above| self.first_of(above, most));
        let first = level.fold(&self.levels, at).iter().position(|weight| *weight == most);
        at * FOLD + first.unwrap_or(0)
    }

    /// The numbers whose weight is above 0.
    pub(super) fn above(&self) -> impl Iterator<Item = usize> {
        let weights = self.levels[..self.numbers].iter().enumerate();
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
