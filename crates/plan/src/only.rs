//! `[only]`: the part of the tree that is run.

use crate::diagnostic::Fault;
use crate::names::Names;
use crate::tree::{Item, Table};
use crate::vary::Level;
use crate::words::Words;
use std::collections::{BTreeMap, HashSet};

/// For some levels, the labels that are kept; other levels keep all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Only(BTreeMap<String, HashSet<String>>);

impl Only {
    /// `[only]`, checked against the levels.
    pub(crate) fn read(root: &Table, levels: &[Level]) -> Result<Only, Vec<Fault>> {
        let Some(node) = root.get("only") else { return Ok(Only::default()) };
        let help = "write [only], and under it LEVEL = \"LABEL\", or a list of labels";
        let Item::Table(table) = &node.item else {
            let message = format!("[only] is {}, not a table of levels", node.what());
            return Err(vec![Fault::new(node.origin, message, help)]);
        };
        let (mut only, mut faults) = (BTreeMap::new(), Vec::new());
        let tree = Names::of(levels);
        for (name, entry) in &table.0 {
            match crate::read::read::<Words>(&entry.value) {
                Ok(Words(labels)) => {
                    let known = levels.iter().any(|level| level.name == *name);
                    let place = if known { entry.value.origin } else { entry.named };
                    faults.extend(tree.labels(name, &labels, place));
                    only.insert(name.clone(), labels.into_iter().collect());
                }
                Err(mut fault) => {
                    fault.help.get_or_insert(help.into());
                    faults.push(fault.at(entry.value.origin));
                }
            }
        }
        if faults.is_empty() { Ok(Only(only)) } else { Err(faults) }
    }

    pub(crate) fn has(&self, level: &str, label: &str) -> bool {
        self.0.get(level).is_none_or(|labels| labels.contains(label))
    }

    /// The levels with the labels that are kept.
    pub(crate) fn levels(&self, all: &[Level]) -> Vec<Level> {
        let mut levels = all.to_vec();
        for level in &mut levels {
            let Level { name, choices } = level;
            choices.retain(|choice| self.has(name, &choice.label));
        }
        levels
    }
}
