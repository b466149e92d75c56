//! Claims about the part of the tree that `[only]` keeps.

use super::{Claim, Expected, Over};
use weir_plan::{Lab, Names};

/// The claims about the cells that are kept. A claim about each of several cells is then about the kept ones. A claim that
/// combines cells (a mean, a relation, an order) is left out if one of its cells is.
pub(super) fn kept(claims: Vec<Claim>, lab: &Lab, names: &Names<'_>) -> Vec<Claim> {
    let whole = |labels: &[&str], level: &str| labels.iter().all(|label| lab.keeps(level, label));
    let levels: Vec<(&str, bool)> =
        names.levels().map(|(level, labels)| (level, whole(&labels, level))).collect();
    claims.into_iter().filter_map(|claim| kept_of(claim, lab, &levels)).collect()
}

/// `levels` says for each level whether all its labels are kept.
fn kept_of(mut claim: Claim, lab: &Lab, levels: &[(&str, bool)]) -> Option<Claim> {
    let against = claim.against.iter().flat_map(|against| &against.cells);
    let ordered = match &claim.expected {
        Expected::Order { by, order } => order.labels().map(|label| (by.as_str(), label)).collect(),
        _ => vec![],
    };
    let needed = against.map(|(level, label)| (level.as_str(), label.as_str())).chain(ordered);
    if !{ needed }.all(|(level, label)| lab.keeps(level, label)) {
        return None;
    }
    let together = claim.over == Over::Mean;
    for &(level, whole) in levels {
        let along = claim.along.as_ref().is_some_and(|along| along.level == level);
        match claim.cells.get_mut(level) {
            Some(labels) => {
                let named = labels.len();
                labels.retain(|label| lab.keeps(level, label));
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
