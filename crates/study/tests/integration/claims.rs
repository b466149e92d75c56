//! How claims in a lab are read, and which of them are kept for a part of its tree.

use std::path::{Path, PathBuf};
use weir_plan::{Form, Lab};
use weir_study::{Claim, Expected, Relation, Repeats, Tolerance, claims};

const NET: &str = "format = 1\n[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";

fn load(text: &str) -> Lab {
    load_with(text, &[])
}

fn load_with(text: &str, settings: &[&str]) -> Lab {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_string()).collect();
    Lab::from_str(text, "test.toml", Path::new("."), &settings).unwrap_or_else(|error| panic!("{error}"))
}

fn claimed(lab: &Lab) -> Vec<Claim> {
    claims(lab).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn expectations_are_kept_typed() {
    let lab = load(&format!(
        "{NET}[traffic.a]\n[vary]\n\"dumbbell.queue\" = [\"pie\", \"tail-drop\"]\n[[expect]]\nmetric = \"queue_delay_ms\"\nof = \"down\"\n\
         where = {{ \"dumbbell.queue\" = \"pie\" }}\nvalue = 15\ntolerance = \"10 %\"\nsource = \"RFC 8033, section 4.2\"\n"
    ));
    let [claim] = &claimed(&lab)[..] else { panic!("one claim") };
    assert_eq!((claim.metric.as_str(), claim.of.as_slice()), ("queue_delay_ms", &["down".to_owned()][..]));
    assert_eq!(claim.statistic, weir_record::Statistic::Mean);
    let near = Expected::Near { value: 15.0, tolerance: Tolerance::Share(0.1) };
    assert_eq!(claim.expected, near);
    assert_eq!(claim.cells["dumbbell.queue"], ["pie"]);
}

const QUEUES: &str = "[traffic.a]\n[vary]\n\"dumbbell.queue\" = [\"pie\", \"tail-drop\", \"codel\"]\n[[expect]]\nmetric = \"queue_delay_ms\"\n";

#[test]
fn values_along_a_level_are_a_claim_each() {
    let lab = load(&format!(
        "{NET}{QUEUES}row = \"T1\"\nby = \"dumbbell.queue\"\nvalue = {{ pie = 15, codel = 5 }}\ntolerance = 2\nrepeats = \"median\"\n\
         against = {{ \"dumbbell.queue\" = \"tail-drop\" }}\nas = \"difference\"\nsource = \"RFC 7567\"\n"
    ));
    let [pie, codel] = &claimed(&lab)[..] else { panic!("two claims") };
    let value = |claim: &Claim| match claim.expected {
        Expected::Near { value, .. } => value,
        _ => panic!("{claim:?}"),
    };
    assert_eq!((value(pie), value(codel)), (15.0, 5.0));
    assert_eq!(
        (&pie.cells["dumbbell.queue"][..], &codel.cells["dumbbell.queue"][..]),
        (&["pie".to_owned()][..], &["codel".to_owned()][..])
    );
    for claim in [pie, codel] {
        assert_eq!((claim.row.as_deref(), claim.repeats), (Some("T1"), Repeats::Median));
        let against = claim.against.as_ref().unwrap();
        assert_eq!(
            (against.cells["dumbbell.queue"].as_str(), against.relation),
            ("tail-drop", Relation::Difference)
        );
    }
}

#[test]
fn an_order_separates_the_labels_between_its_signs() {
    let claim = |order: &str| {
        let lab =
            load(&format!("{NET}{QUEUES}by = \"dumbbell.queue\"\norder = \"{order}\"\nsource = \"here\"\n"));
        claimed(&lab)[0].clone()
    };
    let rising = claim("codel ~ pie < tail-drop");
    let Expected::Order { by, order } = &rising.expected else { panic!("{rising:?}") };
    assert_eq!((by.as_str(), order.to_string().as_str()), ("dumbbell.queue", "codel ~ pie < tail-drop"));
    assert_eq!(order.pairs().collect::<Vec<_>>(), [("codel", "tail-drop"), ("pie", "tail-drop")]);
    let falling = claim("tail-drop > codel ~ pie");
    let Expected::Order { order, .. } = &falling.expected else { panic!("{falling:?}") };
    assert_eq!(order.pairs().collect::<Vec<_>>(), [("codel", "tail-drop"), ("pie", "tail-drop")]);
}

#[test]
fn only_the_selected_part_of_the_tree_is_run_and_claims_about_the_rest_are_dropped() {
    let claim = |what: &str| format!("[[expect]]\nmetric = \"queue_delay_ms\"\nsource = \"here\"\n{what}\n");
    let of = "where = { \"dumbbell.queue\" = ";
    let claims = [
        "at_most = 1",
        "over = \"mean\"\nat_most = 2",
        &format!("{of}[\"pie\", \"tail-drop\"] }}\nat_most = 3"),
        &format!("{of}\"tail-drop\" }}\nat_most = 4"),
        &format!("{of}\"pie\" }}\nagainst = {{ \"dumbbell.queue\" = \"tail-drop\" }}\nat_most = 5"),
        "by = \"dumbbell.queue\"\norder = \"pie < codel\"",
        "by = \"dumbbell.queue\"\norder = \"pie < tail-drop\"",
    ];
    let text = format!("{NET}{QUEUES}").replace("[[expect]]\nmetric = \"queue_delay_ms\"\n", "")
        + "[live]\n\"only\" = { \"dumbbell.queue\" = [\"pie\", \"codel\"] }\n"
        + &claims.map(claim).concat();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lab.toml");
    std::fs::write(&file, text).unwrap();
    let lab = Lab::load(&file, &[]).unwrap();
    assert_eq!((lab.is_for_live(), lab.tree().cells, claimed(&lab).len()), (true, 3, 7));
    let lab = Lab::load_as(&file, &[], Form { full: false, live: true }).unwrap();
    assert_eq!(lab.tree().levels[0].1, ["pie", "codel"]);
    // A claim about each cell, a claim about named cells, and an order of the cells that are kept.
    let said: Vec<_> =
        claimed(&lab).iter().map(|claim| (claim.expected.clone(), claim.cells.clone())).collect();
    let at_most = |most| Expected::Within { at_least: None, at_most: Some(most) };
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!((&said[0].0, &said[1].0), (&at_most(1.0), &at_most(3.0)));
    assert_eq!(said[1].1["dumbbell.queue"], ["pie"]);
    assert!(matches!(&said[2].0, Expected::Order { order, .. } if order.to_string() == "pie < codel"));
    let again = Lab::from_str(lab.source(), "again.toml", Path::new("."), &[]).unwrap();
    assert_eq!((again.tree(), claimed(&again)), (lab.tree(), claimed(&lab)));
}

#[test]
fn a_setting_that_removes_a_level_removes_its_claims_too() {
    let text = format!(
        "{NET}[traffic.a]\n[vary]\n\"dumbbell.queue\" = [\"pie\", \"tail-drop\"]\n[[expect]]\nmetric = \"queue_delay_ms\"\n\
         where = {{ \"dumbbell.queue\" = \"pie\" }}\nvalue = 15\ntolerance = 1\nsource = \"RFC 8033\"\n\
         [[expect]]\nmetric = \"utilisation_percent\"\nvalue = 95\ntolerance = 5\nsource = \"arithmetic\"\n"
    );
    assert_eq!(claimed(&load(&text)).len(), 2);
    let pinned = load_with(&text, &["dumbbell.queue=pie"]);
    assert_eq!(claimed(&pinned).len(), 1);
    assert_eq!(pinned.runs().len(), 1);
}

#[test]
fn thousands_of_wrong_claims_are_all_found_and_twenty_are_shown() {
    let wrong = |n| {
        format!("[[expect]]\nmetric = 'goodput_mbps'\nof = 'b{n}'\nvalue = 1\ntolerance = 1\nsource = 's'\n")
    };
    let text = format!("{NET}[traffic.a]\n{}", (0..4000).map(wrong).collect::<String>());
    let diagnostics = claims(&load(&text)).expect_err("it was accepted");
    assert_eq!(diagnostics.problems().len(), 4000);
    let shown = diagnostics.render(false, 100);
    assert_eq!(shown.matches("test.toml:").count(), 20);
    assert!(shown.contains("... and 3980 more"), "{shown}");
}

/// Labs below a folder, without the profiles of studies.
fn labs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| match path.is_dir() {
        true => labs(&path),
        false => vec![path],
    };
    let is_lab = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with(weir_study::PROFILE)
    };
    entries.flat_map(of).filter(is_lab).collect()
}

#[test]
fn the_claims_of_every_lab_are_sound_in_each_of_its_forms() {
    let labs = labs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs"));
    let mut count = 0;
    for (full, live) in [(false, false), (true, false), (false, true)] {
        for path in &labs {
            let lab = Lab::load_as(path, &[], Form { full, live }).unwrap_or_else(|error| panic!("{error}"));
            count += claimed(&lab).len();
        }
    }
    assert!(count > 300, "{count} claims");
}

#[test]
fn the_schema_of_a_lab_describes_every_key_of_a_claim() {
    let schema = weir_study::schema();
    let claim = &schema["properties"]["expect"]["items"];
    let claim = match claim["$ref"].as_str() {
        Some(name) => &schema["$defs"][name.rsplit('/').next().unwrap()],
        None => claim,
    };
    let keys = claim["properties"].as_object().unwrap();
    assert!(keys.len() > 15, "{claim}");
    for (key, property) in keys {
        let defined =
            property["$ref"].as_str().map(|name| &schema["$defs"][name.rsplit('/').next().unwrap()]);
        let described = [Some(property), defined].into_iter().flatten();
        assert!(described.into_iter().any(|one| one["description"].is_string()), "{key}");
    }
}
