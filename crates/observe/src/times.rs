//! A histogram of times as the few numbers that are shown of it.

use serde::Serialize;
use weir_base::{Histogram, Span};

/// A distribution of times in ms; percentiles are within 0.8 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Times {
    /// Number of samples.
    pub count: u64,
    /// Shortest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

impl Times {
    /// The distribution of a histogram; `None` if it is empty.
    pub fn of(histogram: &Histogram) -> Option<Times> {
        let percentile = |share| histogram.percentile(share).map(Span::as_millis_f64);
        Some(Times {
            count: histogram.count(),
            min: histogram.min()?.as_millis_f64(),
            mean: histogram.mean()?.as_millis_f64(),
            p50: percentile(0.5)?,
            p99: percentile(0.99)?,
            max: histogram.max()?.as_millis_f64(),
        })
    }
}
