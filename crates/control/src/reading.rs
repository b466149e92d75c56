//! The choice between two descriptions of an algorithm, its paper and its code, where they differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of two descriptions that differ is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// The text of its authors.
    Paper,
    /// The code that was measured.
    Listing,
}
