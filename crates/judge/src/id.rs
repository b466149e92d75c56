//! The name of a cell: the seed of its session and its number, from which everything else about it follows.

use std::fmt;
use std::str::FromStr;

/// The name of a cell: the seed of its session and its number, from 1; `3-17` in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// The session's seed.
    pub seed: u64,
    /// The cell's number in the session.
    pub number: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.seed, self.number)
    }
}

impl FromStr for Id {
    type Err = String;
    fn from_str(text: &str) -> Result<Id, String> {
        let parts = text.split_once('-');
        let read = parts.and_then(|(seed, number)| Some((seed.parse().ok()?, number.parse().ok()?)));
        read.map(|(seed, number)| Id { seed, number })
            .ok_or_else(|| format!("`{text}` is not the name of a cell, such as 3-17"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cells_name_reads_back() {
        let id = Id { seed: 3, number: 17 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("3".parse::<Id>().is_err());
    }
}
