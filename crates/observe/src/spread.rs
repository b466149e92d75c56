//! Many times in little memory: the buckets of a [`Histogram`] in which there are any. A histogram itself has room for all shorter
//! times too, which is too much for each of a hundred thousand flows.

use weir_base::{Histogram, Span};

#[derive(Debug, Clone, Default)]
pub(crate) struct Spread {
    counts: Counts,
    sum: u128,
    min: Span,
    max: Span,
}

/// The number of times in each bucket.
#[derive(Debug, Clone)]
enum Counts {
    /// Each bucket that has any, with its number, in their order.
    Sparse(Vec<(u32, u32)>),
    /// All buckets from the first that has any to the last one: less memory once half of them do, and no search.
    Dense { first: u32, counts: Vec<u32> },
}

impl Default for Counts {
    fn default() -> Counts {
        Counts::Sparse(vec![])
    }
}

impl Counts {
    fn record(&mut self, bucket: u32, times: u32) {
        match self {
            Counts::Sparse(buckets) => match buckets.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
                Ok(index) => buckets[index].1 = buckets[index].1.saturating_add(times),
                Err(index) => {
                    buckets.insert(index, (bucket, times));
                    self.condense();
                }
            },
            Counts::Dense { first, counts } => {
                if bucket < *first {
                    counts.splice(0..0, (bucket..*first).map(|_| 0));
                    *first = bucket;
                }
                let index = (bucket - *first) as usize;
                if index >= counts.len() {
                    counts.resize(index + 1, 0);
                }
                counts[index] = counts[index].saturating_add(times);
            }
        }
    }

    /// Becomes dense if that takes no more memory.
    fn condense(&mut self) {
        let Counts::Sparse(buckets) = self else { return };
        let [(first, _), .., (last, _)] = buckets[..] else { return };
        let range = (last - first) as usize + 1;
        if range <= 2 * buckets.len() && buckets.len() >= LEAST_DENSE {
            let mut counts = vec![0; range];
            buckets.iter().for_each(|&(bucket, count)| counts[(bucket - first) as usize] = count);
            *self = Counts::Dense { first, counts };
        }
    }

    fn buckets(&self) -> Vec<(u32, u32)> {
        match self {
            Counts::Sparse(buckets) => buckets.clone(),
            Counts::Dense { first, counts } => {
                (*first..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
            }
        }
    }
}

/// Fewest buckets that become dense.
const LEAST_DENSE: usize = 16;

impl Spread {
    /// A time that stands for so many.
    pub(crate) fn record(&mut self, span: Span, times: u32) {
        if self.min().is_none() {
            (self.min, self.max) = (span, span);
        }
        self.counts.record(Histogram::bucket_of(span), times);
        self.sum += u128::from(span.as_nanos()) * u128::from(times);
        self.min = self.min.min(span);
        self.max = self.max.max(span);
    }

    /// The shortest one.
    pub(crate) fn min(&self) -> Option<Span> {
        let is_empty = matches!(&self.counts, Counts::Sparse(buckets) if buckets.is_empty());
        (!is_empty).then_some(self.min)
    }

    pub(crate) fn histogram(&self) -> Histogram {
        Histogram::from_parts(self.counts.buckets(), self.sum, self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_a_histogram_whichever_way_it_keeps_its_counts() {
        let mut spread = Spread::default();
        assert_eq!(spread.min(), None);
        let mut histogram = Histogram::new();
        let mut was_dense = [false; 2];
        // Twenty times side by side, each twice, then one far below and one far above them.
        let near = (0..20).flat_map(|step| [1_000_000 + 20_000 * step; 2]);
        for nanos in near.chain([3, 5_000_000_000, 1_010_000]) {
            let times = 1 + (nanos % 3) as u32;
            spread.record(Span::from_nanos(nanos), times);
            (0..times).for_each(|_| histogram.record(Span::from_nanos(nanos)));
            assert_eq!(
                spread.histogram().buckets().collect::<Vec<_>>(),
                histogram.buckets().collect::<Vec<_>>()
            );
            assert_eq!((spread.min(), spread.histogram().max()), (histogram.min(), histogram.max()));
            assert_eq!(spread.histogram().mean(), histogram.mean());
            was_dense[usize::from(matches!(spread.counts, Counts::Dense { .. }))] = true;
        }
        assert_eq!(was_dense, [true; 2]);
    }
}
