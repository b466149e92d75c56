//! Every lab that comes with weir loads, and reads back from its own source to the same runs.

use std::path::{Path, PathBuf};
use weir_plan::{Lab, template};

/// Every lab, and every study's profile too.
fn lab_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let studies = std::fs::read_dir(root.join("labs")).unwrap().map(|entry| entry.unwrap().path());
    let folders =
        studies.filter(|path| path.is_dir()).chain(["labs", "benches"].map(|folder| root.join(folder)));
    let mut found: Vec<PathBuf> = folders
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    found.sort();
    found
}

fn labs() -> Vec<PathBuf> {
    // A study's profile is no lab: its labs extend it.
    lab_files().into_iter().filter(|path| !path.ends_with("profile.toml")).collect()
}

fn load(path: &Path) -> Lab {
    Lab::load(path, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_lab_loads_and_has_the_name_of_its_file() {
    let labs = labs();
    assert!(labs.len() >= 8);
    for path in labs {
        let lab = load(&path);
        assert_eq!(lab.name(), path.file_stem().unwrap().to_str().unwrap());
        assert_eq!(lab.runs().len() as u64, lab.tree().runs());
    }
}

/// Steen 2017, sections 6.1, 12.1, 12.2 and chapter 13: 18, 96, 552 (two AQMs, three sets of flows, two codepoints, 46 rates)
/// and 60 cells a threshold.
#[test]
fn the_trees_of_the_dualpi2_study_have_the_sizes_of_the_study() {
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/dualpi2");
    for (lab, cells) in [("sample", 18), ("overload", 96), ("overload-tcp", 552), ("threshold", 120)] {
        assert_eq!(load(&study.join(format!("{lab}.toml"))).tree().cells, cells, "{lab}");
    }
}

/// Ong 2020, sections 3.3 and 3.4: ten background controls, and LEDBAT++ that weir adds, at four delays beside six
/// foregrounds, and two, four and eight flows of each by themselves; section 5.4.2 varies fifteen settings at two delays.
#[test]
fn the_trees_of_the_lbe_study_have_the_sizes_of_the_study() {
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/lbe");
    for (lab, cells) in [("download", 4 * 6 * 11), ("alone", 4 * 3 * 11), ("parameters", 2 * 15)] {
        assert_eq!(load(&study.join(format!("{lab}.toml"))).tree().cells, cells, "{lab}");
    }
}

/// Of so many runs of a lab with settings, one is looked at.
const PART: usize = 25;

#[test]
fn every_labs_source_reads_back_to_the_same_runs() {
    for path in labs() {
        for settings in [vec![], vec!["run.duration=601 s".to_string(), "run.seed=7".into()]] {
            let lab = Lab::load(&path, &settings).unwrap_or_else(|error| panic!("{error}"));
            let folder = tempfile::tempdir().unwrap();
            for (place, bytes) in lab.attachments() {
                let file = folder.path().join(place);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, bytes).unwrap();
            }
            let again = Lab::from_str(lab.source(), "lab.toml", folder.path(), &[]);
            let again = again.unwrap_or_else(|error| panic!("{error}\n{}", lab.source()));
            assert_eq!(lab.name(), again.name());
            // Settings are the same for all runs, so a part of them shows it.
            let wanted = |number: usize| settings.is_empty() || number.is_multiple_of(PART);
            assert_eq!(lab.runs_where(wanted), again.runs_where(wanted));
            assert!(lab.ids().eq(again.ids()));
            assert_eq!(lab.source(), again.source());
        }
    }
}

#[test]
fn run_names_are_unique_and_fit_for_folders() {
    for path in labs() {
        let runs = load(&path).runs();
        let names: std::collections::BTreeSet<_> = runs.iter().map(|run| run.id.clone()).collect();
        assert_eq!(names.len(), runs.len(), "{}", path.display());
        for name in names {
            assert!(
                name.len() < 120 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)),
                "{name}"
            );
        }
    }
}

#[test]
fn a_run_is_the_same_after_json() {
    for path in labs() {
        let run = load(&path).runs_where(|number| number == 0).swap_remove(0);
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<weir_plan::Run>(&text).unwrap(), run);
        assert_eq!(run.check(), Ok(()), "{}", path.display());
    }
}

#[test]
fn the_template_loads_and_runs_in_seconds() {
    let lab =
        Lab::from_str(&template(), "new.toml", Path::new("."), &[]).unwrap_or_else(|error| panic!("{error}"));
    assert!(lab.tree().packets < 100_000);
    assert_eq!(lab.runs().len(), 2);
}

#[test]
fn the_agreement_lab_has_eighteen_cells_of_five_repeats() {
    let lab = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/agreement.toml"));
    insta::assert_snapshot!(lab.tree(), @r"
    dumbbell.rate: 10 Mbit/s | 100 Mbit/s
      mix: reno v reno | cubic v cubic | reno v cubic
        queue: tail drop 1 BDP | tail drop 2 BDP | PIE
    18 cells x 5 repeats = 90 runs: 2700 s of traffic, about 12375000 data packets
    ");
    let runs = lab.runs();
    assert_eq!(runs.len(), 90);
    assert_eq!(runs[0].id, "10mbit_reno-v-reno_tail-drop-1bdp_r1");
    assert_eq!(runs[89].id, "100mbit_reno-v-cubic_pie_r5");
}

/// Editors check lab files against the schema: whatever it refuses there must be wrong.
#[test]
fn the_json_schema_accepts_every_lab_and_profile_and_refuses_what_is_wrong() {
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("lab.schema.json", weir_plan::schema()).unwrap();
    let schema = compiler.compile("lab.schema.json", &mut schemas).unwrap();
    let check = |text: &str| {
        let lab: serde_json::Value = toml::from_str(text).unwrap();
        schemas.validate(&lab, schema).map_err(|error| error.to_string())
    };
    let files = lab_files();
    assert!(files.iter().any(|path| path.ends_with("profile.toml")), "profiles are among them");
    let refused: Vec<String> = files
        .iter()
        .filter_map(|path| {
            let why = check(&std::fs::read_to_string(path).unwrap()).err()?;
            Some(format!("{}: {why}", path.display()))
        })
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert_eq!(check(&template()), Ok(()));
    for wrong in [
        "format = 'one'\n",
        "format = 1\n[dumbell]\nrate = '1 Mbit/s'\n",
        "format = 1\n[run]\nrepeats = 'three'\n",
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
}

/// Most tables of a lab to which an unknown key is added.
const MOST_TABLES: usize = 60;

#[test]
fn an_unknown_key_is_refused_wherever_it_stands() {
    /// The tables below a table: their paths, and what `kind` says in them.
    fn tables(table: &toml::Table, path: &str, found: &mut Vec<(String, String)>) {
        let kind = table.get("kind").and_then(toml::Value::as_str).unwrap_or_default();
        found.push((path.to_owned(), kind.to_owned()));
        for (key, value) in table {
            // `[[expect]]` is read where claims are judged.
            if let toml::Value::Table(inner) = value {
                let quoted = if key.contains('.') { format!("\"{key}\"") } else { key.clone() };
                tables(inner, &format!("{path}{quoted}."), found);
            }
        }
    }
    // Tables with the same path and the same `kind` have the same keys in all labs: one of them is tried.
    let seen = std::sync::Mutex::new(std::collections::BTreeSet::new());
    let one = |path: &std::path::Path| {
        let mut found = vec![];
        tables(&toml::from_str(load(path).source()).unwrap(), "", &mut found);
        // Levels have paths and labels of their own; the tests of `[vary]` refuse unknown ones.
        found.retain(|(path, _)| !path.starts_with("vary."));
        // A lab of a thousand groups has a thousand tables of one kind.
        found.truncate(MOST_TABLES);
        found.retain(|table| seen.lock().unwrap().insert(table.clone()));
        for (table, _) in &found {
            let setting = format!("{table}nonsense=1");
            assert!(
                Lab::load(path, std::slice::from_ref(&setting)).is_err(),
                "{}: {setting}",
                path.display()
            );
        }
        found.len()
    };
    // On all cores, since labs are read many times.
    let (paths, next) = (labs(), std::sync::atomic::AtomicUsize::new(0));
    let some = || {
        let take = || paths.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        std::iter::from_fn(take).map(|path| one(path)).sum::<usize>()
    };
    let tried: usize = std::thread::scope(|scope| {
        let threads = [scope.spawn(some), scope.spawn(some)];
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert!(tried > 300, "{tried} tables");
}
