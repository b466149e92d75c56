//! How long the segments of a stream take from their hand-over to their arrival, with what waits before them and what is retransmitted: the
//! packet delivery delay of the GNAT software, by which its overlay finds ways.

use weir_base::Span;

/// Weight of a new sample in the mean and in the variance (the GNAT software).
const WEIGHT: f64 = 0.003;
/// Samples that do not count: the path is not yet warm (the GNAT software).
const IGNORED: u32 = 4;

/// The mean and the variance.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Passage {
    samples: u32,
    /// In seconds, and in seconds squared.
    mean: f64,
    variance: f64,
}

impl Passage {
    /// A segment has taken this long. The first samples weigh as in a plain mean, so that no first value stays for long.
    pub(crate) fn take(&mut self, time: Span) {
        self.samples = self.samples.saturating_add(1);
        let Some(counted) = self.samples.checked_sub(IGNORED).filter(|counted| *counted > 0) else { return };
        let weight = (1.0 / f64::from(counted)).max(WEIGHT);
        let off = time.as_secs_f64() - self.mean;
        self.mean += weight * off;
        self.variance = (1.0 - weight) * (self.variance + weight * off * off);
    }

    /// The mean, and the variance in seconds squared; `None` before the first sample that counts.
    pub(crate) fn known(&self) -> Option<(Span, f64)> {
        (self.samples > IGNORED).then(|| (Span::from_secs_f64(self.mean), self.variance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_and_the_variance_follow_the_samples_behind_the_first_four() {
        let mut passage = Passage::default();
        (0..4).for_each(|_| passage.take(Span::from_secs(1)));
        assert_eq!(passage.known(), None);
        for sample in 0..200 {
            passage.take(Span::from_millis(if sample % 2 == 0 { 8 } else { 12 }));
        }
        let (mean, variance) = passage.known().unwrap();
        assert!((mean.as_millis_f64() - 10.0).abs() < 0.1, "{mean}");
        assert!((variance - 4e-6).abs() < 2e-7, "{variance}");
    }
}
