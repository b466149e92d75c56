//! Every broken lab is refused with a place and a suggestion. The snapshots beside this file show what a person sees.

use crate::refusals;
use crate::refusals::broken;
use std::path::Path;
use weir_plan::{Diagnostics, Lab};

fn refuse(name: &str) -> Diagnostics {
    // Relative to the crate, where cargo runs tests: no snapshot holds a path of this machine.
    match Lab::load(Path::new(&format!("tests/broken/{name}.toml")), &[]) {
        Ok(_) => panic!("{name} was accepted"),
        Err(diagnostics) => diagnostics,
    }
}

#[test]
fn every_broken_lab_is_refused_with_a_place_and_a_suggestion() {
    assert!(broken().len() >= 40);
    refusals::each_has_a_place_and_a_suggestion(refuse);
}

#[test]
fn the_message_of_every_broken_lab_is_readable() {
    for name in broken() {
        insta::assert_snapshot!(name.clone(), refuse(&name).render(false, 100));
    }
}
