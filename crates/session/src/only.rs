//! The part of a tree that a session runs: for each level, the labels that are wanted.

use crate::error::SessionError;
use std::collections::BTreeMap;
use weir_plan::{Lab, Run};

/// What `--only` names.
#[derive(Debug)]
pub struct Only(BTreeMap<String, Vec<String>>);

impl Only {
    /// Reads choices of the form `LEVEL=LABEL`; without any, all runs are wanted.
    ///
    /// # Errors
    /// A choice has another form, or the lab's tree has no such level or label.
    pub fn read(choices: &[String], lab: &Lab) -> Result<Only, SessionError> {
        let levels = lab.tree().levels;
        let mut only: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for choice in choices {
            let Some((level, label)) = choice.split_once('=') else {
                let help = "write --only LEVEL=LABEL, for example --only queue=PIE";
                return Err(SessionError::asked(format!("`{choice}` is not a level and a label"), help));
            };
            let named = weir_plan::level_named(levels.iter().map(|(name, _)| name.as_str()), level);
            let Some((level, labels)) = levels.iter().find(|(name, _)| Some(name.as_str()) == named) else {
                let names: Vec<_> = levels.iter().map(|(name, _)| name.as_str()).collect();
                let help = if names.is_empty() {
                    "this lab varies nothing".into()
                } else {
                    format!("the levels are {}", names.join(", "))
                };
                return Err(SessionError::asked(format!("the tree has no level `{level}`"), help));
            };
            if !labels.iter().any(|known| known == label) {
                return Err(SessionError::asked(
                    format!("the level `{level}` has no label `{label}`"),
                    format!("its labels are {}", labels.join(" | ")),
                ));
            }
            only.entry(level.clone()).or_default().push(label.into());
        }
        Ok(Only(only))
    }

    /// Whether a run is wanted.
    pub fn holds(&self, run: &Run) -> bool {
        run.params.iter().all(|param| self.takes(&param.level, &param.value))
    }

    /// Whether runs with this label on this level are wanted.
    pub fn takes(&self, level: &str, label: &str) -> bool {
        self.0.get(level).is_none_or(|labels| labels.iter().any(|it| it == label))
    }
}
