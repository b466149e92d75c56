//! A histogram as a few bytes: sum, smallest and largest, then for each bucket in use the distance from the one before and
//! its count, all as variable-length integers with seven bits in each byte, least significant first (LEB128). The bucket
//! numbers are those of [`weir_base::Histogram`].

use weir_base::{Histogram, Span};

/// A compact histogram that can be merged and written, but not counted into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedHistogram {
    sum: u128,
    min: Span,
    max: Span,
    count: u64,
    /// The buckets in use, in the format of the file; checked when the histogram was made.
    pairs: Vec<u8>,
}

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the distance of a bucket from the one before, and its count. Most of both have one byte.
#[inline]
fn write_pair(gap: u32, count: u32, out: &mut Vec<u8>) {
    if (gap | count) < 0x80 {
        out.extend_from_slice(&[gap as u8, count as u8]);
    } else {
        write_varint(gap.into(), out);
        write_varint(count.into(), out);
    }
}

fn write_long_varint(mut value: u128, out: &mut Vec<u8>) {
    while value > u64::MAX.into() {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    write_varint(value as u64, out);
}

/// Takes one integer off the front. `None` if the bytes end within it, or if it has more than 128 bits. Most have one byte.
#[inline]
fn read_varint(bytes: &mut &[u8]) -> Option<u128> {
    match bytes.split_first()? {
        (&byte, rest) if byte < 0x80 => {
            *bytes = rest;
            Some(byte.into())
        }
        _ => read_long_varint(bytes),
    }
}

fn read_long_varint(bytes: &mut &[u8]) -> Option<u128> {
    let mut value = 0;
    for shift in (0..128).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u128::from(byte & 0x7f);
        if shift > 121 && part >> (128 - shift) != 0 {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The pairs of bucket and count in checked bytes.
fn pairs(mut bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let mut bucket = 0u32;
    std::iter::from_fn(
        #[inline(always)]
        move || {
            let (gap, count, rest) = match bytes {
                // Most gaps and counts have one byte.
                [gap, count, rest @ ..] if (gap | count) & 0x80 == 0 => {
                    (u32::from(*gap), u32::from(*count), rest)
                }
                _ => long_pair(bytes)?,
            };
            bytes = rest;
            bucket = bucket.checked_add(gap)?;
            Some((bucket, count))
        },
    )
}

/// A gap and a count of any length, and the bytes after them; `None` if there are no more. Apart from [`pairs`], which is small
/// enough without it to be a part of the loops over all pairs.
#[cold]
fn long_pair(mut bytes: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (gap, count) = (read_varint(&mut bytes)?, read_varint(&mut bytes)?);
    Some((gap.try_into().ok()?, count.try_into().ok()?, bytes))
}

impl PackedHistogram {
    /// Reads a histogram from the bytes of a table. `None` if they are no histogram: too short, buckets out of order or out of
    /// range, empty buckets, or a sum that these counts cannot have. Without buckets it is empty.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<PackedHistogram> {
        let sum = read_varint(&mut bytes)?;
        let min = u64::try_from(read_varint(&mut bytes)?).ok()?;
        let max = u64::try_from(read_varint(&mut bytes)?).ok()?;
        let (mut rest, mut bucket, mut count) = (bytes, 0u128, 0u64);
        while !rest.is_empty() {
            let gap = read_varint(&mut rest)?;
            let in_bucket = u32::try_from(read_varint(&mut rest)?).ok()?;
            bucket = bucket.checked_add(gap)?;
            if bucket >= u128::from(Histogram::BUCKETS) || in_bucket == 0 || (gap == 0 && count > 0) {
                return None;
            }
            count += u64::from(in_bucket);
        }
        let bounds = u128::from(count) * u128::from(min)..=u128::from(count) * u128::from(max);
        let is_known = count > 0 || min == 0 && max == 0;
        (is_known && bounds.contains(&sum)).then(|| PackedHistogram {
            sum,
            min: Span::from_nanos(min),
            max: Span::from_nanos(max),
            count,
            pairs: bytes.into(),
        })
    }

    /// The bytes that [`PackedHistogram::from_bytes`] reads.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_long_varint(self.sum, out);
        write_varint(self.min.as_nanos(), out);
        write_varint(self.max.as_nanos(), out);
        out.extend_from_slice(&self.pairs);
    }

    /// Adds its counts to a histogram.
    pub fn add_to(&self, histogram: &mut Histogram) {
        if self.count == 0 {
            return;
        }
        histogram.merge_parts(pairs(&self.pairs), self.sum, self.min, self.max);
    }

    /// The same histogram, unpacked.
    pub fn unpack(&self) -> Histogram {
        Histogram::from_parts(pairs(&self.pairs), self.sum, self.min, self.max)
    }

    /// Number of spans that were counted; 0 only if an empty histogram was packed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The value at or below which a share `p` in `[0, 1]` of the spans lies, as [`Histogram::percentile`] computes it.
    pub fn percentile(&self, p: f64) -> Span {
        let (rank, mut seen) = (Histogram::rank(p, self.count), 0);
        let found = pairs(&self.pairs).find(|(_, count)| {
            seen += u64::from(*count);
            seen >= rank
        });
        found.map_or(self.max, |(bucket, _)| Histogram::middle_of(bucket).clamp(self.min, self.max))
    }

    /// Their exact mean.
    pub fn mean(&self) -> Span {
        Span::from_nanos((self.sum / u128::from(self.count.max(1))) as u64)
    }

    /// Packs a histogram, which may be empty; `room` is memory to reuse, whose contents are dropped.
    pub(crate) fn pack(histogram: &Histogram, room: Vec<u8>) -> PackedHistogram {
        let mut pairs = room;
        pairs.clear();
        let (buckets, (mut last, mut all)) = (histogram.buckets(), (0, 0));
        // Most pairs have two bytes, so that this memory rarely grows.
        let most = buckets.size_hint().1.unwrap_or(0) as u64;
        pairs.reserve(2 * most.min(histogram.count()) as usize);
        for (bucket, count) in buckets {
            write_pair(bucket - last, count, &mut pairs);
            all += u64::from(count);
            last = bucket;
        }
        PackedHistogram {
            sum: histogram.sum(),
            min: histogram.min().unwrap_or_default(),
            max: histogram.max().unwrap_or_default(),
            count: all,
            pairs,
        }
    }

    /// Its memory, for another histogram.
    pub(crate) fn into_room(self) -> Vec<u8> {
        self.pairs
    }
}

impl From<&Histogram> for PackedHistogram {
    /// Packs a histogram, which may be empty.
    fn from(histogram: &Histogram) -> PackedHistogram {
        PackedHistogram::pack(histogram, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_histogram_comes_back_as_it_was(spans in prop::collection::vec(any::<u64>(), 1..200)) {
            let mut histogram = Histogram::new();
            spans.iter().for_each(|&s| histogram.record(Span::from_nanos(s)));
            let packed = PackedHistogram::from(&histogram);
            let back = packed.unpack();
            prop_assert_eq!(back.buckets().collect::<Vec<_>>(), histogram.buckets().collect::<Vec<_>>());
            prop_assert_eq!((back.sum(), back.min(), back.max(), back.count()),
                (histogram.sum(), histogram.min(), histogram.max(), histogram.count()));
            prop_assert_eq!((packed.count(), Some(packed.mean())), (spans.len() as u64, histogram.mean()));
            for p in [0.0, 0.01, 0.5, 0.99, 1.0] {
                prop_assert_eq!(Some(packed.percentile(p)), histogram.percentile(p));
            }
        }

        #[test]
        fn bytes_that_are_no_histogram_are_refused_or_harmless(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(packed) = PackedHistogram::from_bytes(&bytes) {
                let mut sum = packed.unpack();
                packed.add_to(&mut sum);
                prop_assert_eq!(sum.count(), 2 * packed.count());
                prop_assert_eq!(sum.percentile(0.5).is_some(), packed.count() > 0);
            }
        }
    }

    #[test]
    fn three_packets_in_two_buckets_take_ten_bytes() {
        let mut histogram = Histogram::new();
        [5, 5, 1000].iter().for_each(|&s| histogram.record(Span::from_nanos(s)));
        let mut bytes = Vec::new();
        PackedHistogram::from(&histogram).write(&mut bytes);
        // Sum 1010, smallest 5, largest 1000, bucket 5 twice, then the bucket of 1000 (octave 4 of 64, place 61) once.
        let bucket_of_1000 = (4u32 << 6) + 61;
        let gap = bucket_of_1000 - 5;
        assert_eq!(bytes, [0xf2, 0x07, 5, 0xe8, 0x07, 5, 2, (gap as u8 & 0x7f) | 0x80, (gap >> 7) as u8, 1]);
    }

    #[test]
    fn a_sum_that_the_counts_cannot_have_is_refused() {
        assert!(PackedHistogram::from_bytes(&[10, 5, 5, 5, 2]).is_some());
        assert!(PackedHistogram::from_bytes(&[11, 5, 5, 5, 2]).is_none());
        assert!(PackedHistogram::from_bytes(&[]).is_none());
        assert!(PackedHistogram::from_bytes(&[0, 0, 0]).is_some_and(|empty| empty.count() == 0));
        assert!(PackedHistogram::from_bytes(&[1, 0, 0]).is_none());
        assert!(PackedHistogram::from_bytes(&[0, 0, 1]).is_none());
    }
}
