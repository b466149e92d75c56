//! The labs of `labs/emulation`: access links, paths by destination and bypass traffic hold what was worked out by hand.

use crate::place::{Place, status, text};
use std::path::Path;

#[test]
fn access_links_paths_by_destination_and_bypass_traffic_do_what_a_person_can_work_out() {
    let place = Place::new();
    let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs");
    let output = place.weir(&["reproduce", "emulation", "--labs", labs.to_str().unwrap(), "--json"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let [fails, differs, unknown] =
        ["fails", "differs", "not_measured"].map(|verdict| told["score"][verdict].as_u64());
    assert_eq!((fails, differs, unknown), (Some(0), Some(0), Some(0)), "{}", told["score"]);
    let labs: Vec<&str> =
        told["labs"].as_array().unwrap().iter().filter_map(|lab| lab["lab"].as_str()).collect();
    assert_eq!(labs.len(), 3, "{told}");
}
