//! Every lab with a broken claim is refused with a place and a suggestion. The snapshots beside this file show the errors as a
//! user sees them.

#[path = "../../../plan/tests/integration/refusals.rs"]
mod refusals;

use refusals::broken;
use std::path::Path;
use weir_plan::{Diagnostics, Lab};

fn refuse(name: &str) -> Diagnostics {
    let lab = Lab::load(Path::new(&format!("tests/broken/{name}.toml")), &[]).unwrap();
    match weir_study::claims(&lab) {
        Ok(_) => panic!("{name} was accepted"),
        Err(diagnostics) => diagnostics,
    }
}

#[test]
fn every_broken_claim_is_refused_with_a_place_and_a_suggestion() {
    assert!(broken().len() >= 20);
    refusals::each_has_a_place_and_a_suggestion(refuse);
}

#[test]
fn the_message_of_every_broken_claim_is_readable() {
    for name in broken() {
        insta::assert_snapshot!(name.clone(), refuse(&name).render(false, 100));
    }
}
