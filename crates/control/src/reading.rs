//! Which description of an algorithm is followed, where its paper and its code do not say the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of two descriptions that differ is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// What its authors wrote about it.
    Paper,
    /// What the code does that was measured.
    Listing,
}
