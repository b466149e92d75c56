//! `[only]`: the part of the tree that is run, and what is claimed of that part.

use crate::claims::{Claim, Expected, Known, Over, Words};
use crate::diagnostic::Fault;
use crate::tree::{Item, Table};
use crate::vary::Level;
use std::collections::{BTreeMap, HashSet};

/// On some levels, the labels that are there; on the others all are.
#[derive(Debug, Default)]
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
        let tree = Known::of(levels, &[]);
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

    fn has(&self, level: &str, label: &str) -> bool {
        self.0.get(level).is_none_or(|labels| labels.contains(label))
    }

    /// The levels with the labels that are left.
    pub(crate) fn levels(&self, all: &[Level]) -> Vec<Level> {
        let mut levels = all.to_vec();
        for level in &mut levels {
            let Level { name, choices } = level;
            choices.retain(|choice| self.has(name, &choice.label));
        }
        levels
    }

    /// What is claimed of the cells that are left. A claim about each of several cells is about those of them that are there; one
    /// that takes several together, sets them against another, or in an order, goes with the first that is not.
    pub(crate) fn claims(&self, claims: Vec<Claim>, all: &[Level]) -> Vec<Claim> {
        let whole = |level: &Level| level.choices.iter().all(|choice| self.has(&level.name, &choice.label));
        let levels: Vec<(&str, bool)> = all.iter().map(|level| (level.name.as_str(), whole(level))).collect();
        claims.into_iter().filter_map(|claim| self.claim(claim, &levels)).collect()
    }

    /// `levels` tells of each whether all its labels are left.
    fn claim(&self, mut claim: Claim, levels: &[(&str, bool)]) -> Option<Claim> {
        let against = claim.against.iter().flat_map(|against| &against.cells);
        let ordered = match &claim.expected {
            Expected::Order { by, order } => order.labels().map(|label| (by.as_str(), label)).collect(),
            _ => vec![],
        };
        let needed = against.map(|(level, label)| (level.as_str(), label.as_str())).chain(ordered);
        if !{ needed }.all(|(level, label)| self.has(level, label)) {
            return None;
        }
        let together = claim.over == Over::Mean;
        for &(level, whole) in levels {
            let along = claim.along.as_ref().is_some_and(|along| along.level == level);
            match claim.cells.get_mut(level) {
                Some(labels) => {
                    let named = labels.len();
                    labels.retain(|label| self.has(level, label));
                    if labels.is_empty() || (labels.len() < named && (together || along)) {
                        return None;
                    }
                }
                None if (together || along) && !whole => return None,
                None => {}
            }
        }
        Some(claim)
    }
}
