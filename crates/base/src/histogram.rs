//! A log-linear histogram of times. Count, sum, minimum and maximum are exact; each bucket is at most 1/64 of its value wide, so the
//! error of a percentile is at most 0.8 %. The histogram is small, can be merged, and is fast enough to record every packet.

use crate::Span;

/// Binary logarithm of the number of buckets in a power of two, 64.
const SUB_BITS: u32 = 6;

/// The number of spans in each bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u32>,
    count: u64,
    sum: u128,
    min: Span,
    max: Span,
}

/// The bucket of a span. Each octave has 64 buckets; below the first octave, each value has a bucket of its own.
#[inline]
fn bucket_of(span: Span) -> usize {
    let value = span.as_nanos();
    let shift = 63 - SUB_BITS - (value | 1 << SUB_BITS).leading_zeros();
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// The lowest value of a bucket and its width, in nanoseconds.
fn bounds_of(bucket: usize) -> (u64, u64) {
    let octave = bucket >> SUB_BITS;
    if octave <= 1 {
        (bucket as u64, 1)
    } else {
        let shift = octave - 1;
        let low = ((1u64 << SUB_BITS) + (bucket as u64 & ((1 << SUB_BITS) - 1))) << shift;
        (low, 1 << shift)
    }
}

impl Histogram {
    /// Number of buckets up to that of the longest span; every bucket's number is below this.
    pub const BUCKETS: u32 = (u64::BITS - SUB_BITS + 1) << SUB_BITS;

    /// The bucket that counts this span, as [`Histogram::buckets`] numbers it.
    pub fn bucket_of(span: Span) -> u32 {
        bucket_of(span) as u32
    }

    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Counts one span.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let bucket = bucket_of(span);
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.grow(bucket),
        }
        if !span.is_between(self.min, self.max) {
            self.widen(span);
        }
        self.count += 1;
        self.sum += u128::from(span.as_nanos());
    }

    /// Counts one span in a bucket that is not allocated yet.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize(bucket + 1, 0);
        self.counts[bucket] = 1;
    }

    /// Widens the range by a span outside it. The range of an empty histogram is zero alone.
    #[cold]
    fn widen(&mut self, span: Span) {
        self.min = if self.count == 0 { span } else { self.min.min(span) };
        self.max = self.max.max(span);
    }

    /// The buckets from the smallest to the largest span; clearing and writing use only those.
    fn used(&self) -> std::ops::Range<usize> {
        if self.count == 0 {
            return 0..0;
        }
        let end = (bucket_of(self.max) + 1).min(self.counts.len());
        bucket_of(self.min).min(end)..end
    }

    /// Adds another histogram's counts to this one's.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        let used = other.used();
        if used.end > self.counts.len() {
            self.counts.resize(used.end, 0);
        }
        for bucket in used {
            self.counts[bucket] = self.counts[bucket].saturating_add(other.counts[bucket]);
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Removes all spans; the buckets stay allocated.
    pub fn clear(&mut self) {
        let used = self.used();
        self.counts[used].fill(0);
        (self.count, self.sum, self.min, self.max) = (0, 0, Span::ZERO, Span::ZERO);
    }

    /// The number of spans.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The exact sum of all spans, in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.sum
    }
    /// The smallest span; `None` if the histogram is empty.
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then_some(self.min)
    }
    /// The largest span; `None` if the histogram is empty.
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(self.max)
    }
    /// The exact mean, rounded down to nanoseconds; `None` if the histogram is empty.
    pub fn mean(&self) -> Option<Span> {
        (self.count > 0).then(|| Span::from_nanos((self.sum / u128::from(self.count)) as u64))
    }

    /// The standard deviation, with each span at the middle of its bucket; `None` if the histogram is empty.
    pub fn deviation(&self) -> Option<Span> {
        let mean = (self.count > 0).then(|| self.sum as f64 / self.count as f64)?;
        let square = |bucket: usize| {
            let off = self.middle(bucket).as_nanos() as f64 - mean;
            f64::from(self.counts[bucket]) * off * off
        };
        let squares: f64 = self.used().map(square).sum();
        Some(Span::from_nanos(libm::round(libm::sqrt(squares / self.count as f64)) as u64))
    }

    /// The middle of a bucket, limited to the range from the smallest to the largest span.
    fn middle(&self, bucket: usize) -> Span {
        Histogram::middle_of(bucket as u32).clamp(self.min, self.max)
    }

    /// The middle of the bucket of this number, which is below [`Histogram::BUCKETS`].
    pub fn middle_of(bucket: u32) -> Span {
        let (start, width) = bounds_of(bucket as usize);
        Span::from_nanos(start + width / 2)
    }

    /// The nearest rank of the share `p` in `[0, 1]` among `count` spans in ascending order, counted from 1.
    pub fn rank(p: f64, count: u64) -> u64 {
        // A cast and a comparison: the ceiling of libm works bit by bit, and a distribution has sixty ranks.
        let (share, whole) = (p * count as f64, (p * count as f64) as u64);
        (whole + u64::from((whole as f64) < share)).clamp(1, count.max(1))
    }

    /// The value at or below which a share `p` in `[0, 1]` of the spans lies (nearest rank, middle of its bucket, within the range of
    /// the spans); `None` if the histogram is empty.
    pub fn percentile(&self, p: f64) -> Option<Span> {
        if self.count == 0 {
            return None;
        }
        let rank = Histogram::rank(p, self.count);
        let mut seen = 0;
        for bucket in self.used() {
            seen += u64::from(self.counts[bucket]);
            if seen >= rank {
                return Some(self.middle(bucket));
            }
        }
        Some(self.max)
    }

    /// [`percentile`](Histogram::percentile) at several ascending shares, in one pass; empty if the histogram is empty.
    pub fn percentiles(&self, shares: &[f64]) -> Vec<Span> {
        let mut values = Vec::with_capacity(shares.len());
        let mut ranks = shares.iter().map(|share| Histogram::rank(*share, self.count)).peekable();
        let mut seen = 0;
        // Most buckets between the smallest and the largest span are empty.
        for (bucket, count) in self.buckets() {
            seen += u64::from(count);
            while ranks.next_if(|rank| *rank <= seen).is_some() {
                values.push(self.middle(bucket as usize));
            }
        }
        // A bucket whose count was limited to 32 bits makes the sum smaller than the count.
        values.resize(if self.count == 0 { 0 } else { shares.len() }, self.max);
        values
    }

    /// The buckets with spans as (bucket number, count), ascending. With sum, minimum and maximum they are the whole histogram: see
    /// [`Histogram::from_parts`].
    pub fn buckets(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let used = self.used();
        let counts = (used.start as u32..).zip(&self.counts[used]);
        counts.filter(|(_, count)| **count > 0).map(|(bucket, count)| (bucket, *count))
    }

    /// Rebuilds a histogram from the results of [`Histogram::buckets`], [`Histogram::sum`], [`Histogram::min`] and
    /// [`Histogram::max`].
    pub fn from_parts(
        buckets: impl IntoIterator<Item = (u32, u32)>,
        sum: u128,
        min: Span,
        max: Span,
    ) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.merge_parts(buckets, sum, min, max);
        histogram
    }

    /// Adds the parts of another histogram, without rebuilding it first.
    pub fn merge_parts(
        &mut self,
        buckets: impl IntoIterator<Item = (u32, u32)>,
        sum: u128,
        min: Span,
        max: Span,
    ) {
        self.min = if self.count == 0 { min } else { self.min.min(min) };
        self.max = self.max.max(max);
        self.sum += sum;
        for (bucket, count) in buckets {
            let bucket = bucket as usize;
            if bucket >= self.counts.len() {
                self.counts.resize(bucket + 1, 0);
            }
            self.counts[bucket] = self.counts[bucket].saturating_add(count);
            self.count += u64::from(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_into_the_bucket_that_holds_it() {
        for value in (0..200_000u64).chain([
            1_000_000,
            15_000_000,
            u64::from(u32::MAX),
            1 << 40,
            (1 << 40) + 12345,
            u64::MAX - 1,
        ]) {
            let (low, width) = bounds_of(bucket_of(Span::from_nanos(value)));
            assert!(low <= value && value - low < width, "{value}: {low}+{width}");
            assert!((bucket_of(Span::from_nanos(value)) as u32) < Histogram::BUCKETS);
            assert!(width == 1 || width * 64 <= low, "{value}: bucket too wide");
        }
    }

    #[test]
    fn the_deviation_is_computed_from_the_middles_of_the_buckets() {
        let of = |millis: &[u64]| {
            let mut histogram = Histogram::new();
            millis.iter().for_each(|&ms| histogram.record(Span::from_millis(ms)));
            histogram.deviation().map(Span::as_millis_f64)
        };
        assert_eq!((of(&[]), of(&[7])), (None, Some(0.0)));
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 9 + 1 + 1 + 1 + 4 + 16 = 32, over 8.
        let deviation = of(&[2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
        assert!((deviation - 2.0).abs() < 0.03, "{deviation}");
    }

    #[test]
    fn the_mean_is_exact_and_percentiles_are_within_a_bucket() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|ms| histogram.record(Span::from_millis(ms)));
        assert_eq!(histogram.mean(), Some(Span::from_micros(500_500)));
        let p99 = histogram.percentile(0.99).unwrap().as_millis_f64();
        assert!((p99 - 990.0).abs() < 990.0 / 64.0, "{p99}");
        assert_eq!(histogram.percentile(0.0).unwrap().as_millis(), 1);
        assert_eq!(histogram.percentile(1.0), histogram.max());
        let shares = [0.0, 0.01, 0.5, 0.5, 0.999, 1.0];
        let each = shares.map(|share| histogram.percentile(share).unwrap());
        assert_eq!(histogram.percentiles(&shares), each);
        assert_eq!(Histogram::new().percentiles(&shares), []);
    }

    #[test]
    fn a_histogram_is_rebuilt_from_its_parts_and_merging_adds_samples() {
        let (mut a, mut b) = (Histogram::new(), Histogram::new());
        (0..50).for_each(|i| a.record(Span::from_micros(i * 37)));
        (0..70).for_each(|i| b.record(Span::from_micros(i * 990)));
        let copy = Histogram::from_parts(a.buckets(), a.sum(), a.min().unwrap(), a.max().unwrap());
        assert_eq!(copy.percentile(0.5), a.percentile(0.5));
        a.merge(&b);
        assert_eq!((a.count(), a.max()), (120, b.max()));
        a.clear();
        assert_eq!((a.count(), a.mean(), a.buckets().count()), (0, None, 0));
    }
}
