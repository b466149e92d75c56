//! The family of statistics that an AP keeps for each measured quantity (section 3.2.3): the latest value, averages and
//! extremes.

use crate::header::VALUE_MAX;
use weir_base::math;

/// One value of a family. The number is its offset within the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Statistic {
    /// The latest sample. The source does not say whether the plain name (`NET.rtt`) is the latest or the smoothed value;
    /// here it is the latest one, and the smoothed one has its own cell.
    Latest = 0,
    /// Exponentially weighted average.
    Smoothed,
    /// Mean of all samples since the application began.
    Mean,
    /// Median of the last 31 samples.
    Median,
    /// Standard deviation of all samples. The source uses the variance, which does not fit 24 bits.
    Deviation,
    /// Smallest sample.
    Min,
    /// Largest sample.
    Max,
    /// Number of samples.
    Samples,
}

impl Statistic {
    /// All of them, in order of their offsets.
    pub const ALL: [Statistic; 8] = [
        Statistic::Latest,
        Statistic::Smoothed,
        Statistic::Mean,
        Statistic::Median,
        Statistic::Deviation,
        Statistic::Min,
        Statistic::Max,
        Statistic::Samples,
    ];

    /// The statistic at this offset within a family.
    pub(crate) const fn at(offset: u8) -> Option<Statistic> {
        if (offset as usize) < Statistic::ALL.len() { Some(Statistic::ALL[offset as usize]) } else { None }
    }
}

/// Samples over which the median is taken.
const RECENT: usize = 31;

/// Samples of one quantity, in the unit of its cells.
#[derive(Debug, Clone)]
pub struct Series {
    /// Weight of a new sample in the smoothed average, in (0, 1].
    weight: f64,
    count: u64,
    latest: f64,
    smoothed: f64,
    sum: f64,
    squares: f64,
    least: f64,
    most: f64,
    recent: [f32; RECENT],
}

impl Series {
    /// A series without samples. `weight`, in (0, 1], is the weight of a new sample in the smoothed average.
    pub fn new(weight: f64) -> Series {
        Series {
            weight,
            count: 0,
            latest: 0.0,
            smoothed: 0.0,
            sum: 0.0,
            squares: 0.0,
            least: f64::INFINITY,
            most: 0.0,
            recent: [0.0; RECENT],
        }
    }

    /// Takes a sample, zero or more.
    #[inline]
    pub fn add(&mut self, sample: f64) {
        self.smoothed =
            if self.count == 0 { sample } else { self.smoothed + self.weight * (sample - self.smoothed) };
        self.recent[(self.count % RECENT as u64) as usize] = sample as f32;
        self.count += 1;
        self.latest = sample;
        self.sum += sample;
        self.squares += sample * sample;
        self.least = self.least.min(sample);
        self.most = self.most.max(sample);
    }

    /// The smoothed average; `None` before the first sample.
    pub fn smoothed(&self) -> Option<f64> {
        (self.count > 0).then_some(self.smoothed)
    }

    /// A statistic as a cell holds it: rounded to the nearest integer, at most 2^24 - 1, zero without samples.
    pub fn value(&self, statistic: Statistic) -> u32 {
        if self.count == 0 {
            return 0;
        }
        let count = self.count as f64;
        let value = match statistic {
            Statistic::Latest => self.latest,
            Statistic::Smoothed => self.smoothed,
            Statistic::Mean => self.sum / count,
            Statistic::Median => self.median(),
            Statistic::Deviation => {
                let mean = self.sum / count;
                math::sqrt((self.squares / count - mean * mean).max(0.0))
            }
            Statistic::Min => self.least,
            Statistic::Max => self.most,
            Statistic::Samples => count,
        };
        (value + 0.5).clamp(0.0, VALUE_MAX.into()) as u32
    }

    fn median(&self) -> f64 {
        let filled = self.count.min(RECENT as u64) as usize;
        let mut recent = self.recent;
        let (_, median, _) = recent[..filled].select_nth_unstable_by((filled - 1) / 2, f32::total_cmp);
        (*median).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_holds_the_statistics_of_its_samples() {
        let mut series = Series::new(0.1);
        for sample in [100.0, 200.0, 600.0] {
            series.add(sample);
        }
        // Smoothed 100, 110, 159; mean 300; deviation sqrt((4 + 1 + 9) * 10^4 / 3) = 216.02.
        let values = Statistic::ALL.map(|statistic| series.value(statistic));
        assert_eq!(values, [600, 159, 300, 200, 216, 100, 600, 3]);
    }

    #[test]
    fn statistics_are_zero_without_samples_and_at_most_24_bits() {
        let mut series = Series::new(0.1);
        assert!(Statistic::ALL.iter().all(|statistic| series.value(*statistic) == 0));
        series.add(1e9);
        assert_eq!(series.value(Statistic::Latest), VALUE_MAX);
    }
}
