//! Many times in little memory: the buckets of a [`Histogram`] in which there are any. A histogram itself has room for all shorter
//! times too, which is too much for each of a hundred thousand flows.

use weir_base::{Histogram, Span};

/// The number of times in each bucket, in the order of the buckets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread {
    counts: Vec<(u32, u32)>,
    sum: u128,
    min: Span,
    max: Span,
}

impl Spread {
    pub(crate) fn record(&mut self, span: Span) {
        if self.counts.is_empty() {
            (self.min, self.max) = (span, span);
        }
        let bucket = Histogram::bucket_of(span);
        match self.counts.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(index) => self.counts[index].1 = self.counts[index].1.saturating_add(1),
            Err(index) => self.counts.insert(index, (bucket, 1)),
        }
        self.sum += u128::from(span.as_nanos());
        self.min = self.min.min(span);
        self.max = self.max.max(span);
    }

    /// The shortest one.
    pub(crate) fn min(&self) -> Option<Span> {
        (!self.counts.is_empty()).then_some(self.min)
    }

    pub(crate) fn histogram(&self) -> Histogram {
        Histogram::from_parts(self.counts.iter().copied(), self.sum, self.min, self.max)
    }
}
