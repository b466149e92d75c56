//! Whether two results agree: the mean difference of paired values, its 95 % interval, and a bound.

use serde::{Deserialize, Serialize};

/// How far apart two results may be and still agree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// In the metric's unit (points, for a percentage).
    Absolute(f64),
    /// As a share of the reference's mean: 0.15 is 15 %.
    Relative(f64),
}
