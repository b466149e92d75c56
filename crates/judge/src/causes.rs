//! Causes of differences, which a person found and wrote into `docs/judge-causes.toml`: the kernel's own noise, or what weir
//! does not model. Each names the cells that it explains and the evidence.

use crate::id::Id;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Causes {
    /// Its causes.
    #[serde(default)]
    pub cause: Vec<Cause>,
}

/// A cause.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The cells, as SEED-NUMBER.
    pub cells: Vec<String>,
    /// The measures that it explains; all if left out.
    #[serde(default)]
    pub measures: Vec<String>,
    /// The cause, in words.
    pub cause: String,
    /// How it was found out.
    pub evidence: String,
}

impl Causes {
    /// Reads the file; there are no causes if it does not exist.
    ///
    /// # Errors
    /// It is not of this form, or names no cell.
    pub fn read(path: &Path) -> Result<Causes, String> {
        let Ok(text) = fs::read_to_string(path) else { return Ok(Causes::default()) };
        Causes::of(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn of(text: &str) -> Result<Causes, String> {
        let causes: Causes = toml::from_str(text).map_err(|error| error.to_string())?;
        for name in causes.cause.iter().flat_map(|cause| &cause.cells) {
            name.parse::<Id>()?;
        }
        Ok(causes)
    }

    /// The number, from 1, of the cause of a cell's difference in a measure.
    pub fn of_difference(&self, cell: Id, measure: &str) -> Option<usize> {
        let explains = |cause: &Cause| {
            cause.cells.contains(&cell.to_string())
                && (cause.measures.is_empty() || cause.measures.iter().any(|it| it == measure))
        };
        self.cause.iter().position(explains).map(|place| place + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_explains_its_cells_and_measures_alone() {
        let text = "[[cause]]\ncells = [\"1-7\"]\nmeasures = [\"drops\"]\ncause = \"a\"\nevidence = \"b\"\n";
        let causes = Causes::of(text).unwrap();
        let cell = |seed, number| Id { seed, number };
        assert_eq!(causes.of_difference(cell(1, 7), "drops"), Some(1));
        assert_eq!(causes.of_difference(cell(1, 7), "marks"), None);
        assert_eq!(causes.of_difference(cell(2, 7), "drops"), None);
        assert!(Causes::of("[[cause]]\ncells = [\"seven\"]\ncause = \"a\"\nevidence = \"b\"\n").is_err());
    }
}
