//! Claims about the part of the tree that `[only]` leaves.

use super::{Claim, Expected, Over};
use weir_plan::{Lab, Names};

/// What is claimed of the cells that are left. A claim about each of several cells is about those of them that are left; one
/// that takes several together, against another, or in an order, is left out with the first of them.
pub(super) fn kept(claims: Vec<Claim>, lab: &Lab, names: &Names<'_>) -> Vec<Claim> {
    let whole = |labels: &[&str], level: &str| labels.iter().all(|label| lab.keeps(level, label));
    let levels: Vec<(&str, bool)> =
        names.levels().map(|(level, labels)| (level, whole(&labels, level))).collect();
    claims.into_iter().filter_map(|claim| kept_of(claim, lab, &levels)).collect()
}

/// `levels` tells of each whether all its labels are left.
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
