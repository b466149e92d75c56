//! Commands on result folders that are not complete, in use, damaged, or from somebody else.

use crate::place::{LAB, Place, status, text, tree};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use weir_engine::Lock;

/// A place with the results of the lab in `out`.
fn with_results() -> Place {
    let place = Place::new();
    place.done(&["run", "lab.toml", "--out", "out"]);
    place
}

/// The same with a changed description of a run, without its checksum, as a forger would send it.
fn forged(from: &str, to: &str) -> Place {
    let place = with_results();
    let folder = place.path("out/runs/sim-pie_r1");
    let whole = fs::read_to_string(folder.join("run.json")).unwrap();
    let text = whole.replace(from, to);
    assert_ne!(text, whole, "{from}");
    fs::write(folder.join("run.json"), text).unwrap();
    let manifest = fs::read(folder.join("records.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    manifest.as_object_mut().unwrap().remove("files");
    fs::write(folder.join("records.json"), manifest.to_string()).unwrap();
    place
}

#[test]
fn every_command_shows_a_part_of_a_tree_as_n_of_m_runs() {
    let place = Place::new();
    let run = place.done(&["run", "lab.toml", "--out", "out", "--only", "dumbbell.queue=pie"]);
    assert!(run.contains("There are 2 of 4 runs."), "{run}");
    let report = place.weir(&["report", "out"]);
    assert!(text(&report.stdout).contains("2 of 4 runs"), "{}", text(&report.stdout));
    assert!(text(&report.stderr).contains("not complete: it holds 2 of 4 runs"), "{}", text(&report.stderr));
    let page = fs::read_to_string(place.path("out/index.html")).unwrap();
    assert!(page.contains("Not complete: 2 of 4 runs are there."), "the page says so");
    let summary = fs::read_to_string(place.path("out/summary.json")).unwrap();
    assert!(summary.contains("\"planned_runs\": 4"));
    assert!(place.done(&["export", "out"]).starts_with("2 of 4 runs exported to "));
    let compare = place.weir(&["compare", "out", "out"]);
    assert!(text(&compare.stderr).contains("2 of 4 runs"), "{}", text(&compare.stderr));
    // Complete trees cause no warning.
    place.done(&["run", "lab.toml", "--out", "out"]);
    assert!(place.done(&["report", "out"]).contains("\n4 runs. "));
    assert!(!fs::read_to_string(place.path("out/index.html")).unwrap().contains("Not complete"));
}

#[test]
fn a_second_writer_is_refused_with_the_name_of_the_first_and_readers_can_read() {
    let place = with_results();
    let lock = Lock::take(&place.path("out")).unwrap();
    let before = tree(&place.path("out"));
    for more in [&[][..], &["--rerun"], &["--rerun", "--only", "dumbbell.queue=pie"]] {
        let output = place.weir(&[&["run", "lab.toml", "--out", "out"], more].concat());
        assert_eq!(status(&output), 2);
        let told = text(&output.stderr);
        assert!(told.contains(&format!("out is being written by process {}", std::process::id())), "{told}");
        assert!(told.contains(", for ") && told.contains("--out"), "{told}");
    }
    let report = place.done(&["report", "out"]);
    assert!(report.contains("4 runs now. The pages are not written: process"), "{report}");
    assert_eq!(status(&place.weir(&["compare", "out", "out"])), 0);
    place.done(&["export", "out", "--out", "tables"]);
    assert!(tree(&place.path("out")) == before, "nobody has touched it");
    drop(lock);
    place.done(&["run", "lab.toml", "--out", "out"]);
}

#[test]
fn every_command_ends_with_the_name_of_a_file_that_it_cannot_read() {
    for damage in ["", "{}", "not JSON"] {
        let place = with_results();
        fs::write(place.path("out/runs/sim-pie_r1/run.json"), damage).unwrap();
        let before = tree(&place.path("out"));
        for args in [&["report", "out"][..], &["export", "out"], &["compare", "out", "out"]] {
            let output = place.weir(args);
            let told = text(&output.stderr);
            assert_eq!(status(&output), 2, "{args:?}: {told}");
            assert!(told.contains("out/runs/sim-pie_r1/run.json") && told.contains("help"), "{told}");
        }
        let output = place.weir(&["run", "lab.toml", "--out", "out"]);
        assert_eq!(status(&output), 2);
        assert!(text(&output.stderr).contains("--rerun"), "{}", text(&output.stderr));
        assert!(tree(&place.path("out")) == before);
        // The suggested way out: with the folder removed, the same command runs what is missing.
        fs::remove_dir_all(place.path("out/runs/sim-pie_r1")).unwrap();
        assert!(place.done(&["run", "lab.toml", "--out", "out"]).contains("1 run done, 3 kept"));
    }
}

#[test]
fn an_interrupted_rerun_keeps_the_older_set_and_the_same_command_completes_it() {
    let place = Place::new();
    fs::write(place.path("long.toml"), LAB.replace("'4 s'", "'60 s'").replace("repeats = 2", "repeats = 10"))
        .unwrap();
    let run = |more: &[&'static str]| [&["run", "long.toml", "--no-report", "--out", "out"], more].concat();
    place.done(&run(&[]));
    fs::write(place.path("out/runs/sim-pie_r1/notes.txt"), "mine").unwrap();
    let before = tree(&place.path("out"));
    let again = run(&["--set", "run.seed=9", "--rerun"]);
    let mut child = place.command(&again).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let staged = place.path("out/.weir-rerun/runs");
    let finished = || fs::read_dir(&staged).into_iter().flatten().flatten().count();
    while finished() < 4 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), 130);
    assert!(text(&output.stderr).contains(".weir-rerun"), "{}", text(&output.stderr));
    let mut left = tree(&place.path("out"));
    left.retain(|(path, _)| !path.starts_with(".weir-rerun"));
    assert!(left == before, "the older set is as it was");
    let report = place.weir(&["report", "out"]);
    assert!(text(&report.stderr).contains("interrupted --rerun"), "{}", text(&report.stderr));
    // The command without --rerun is refused: the older set is another lab's. With it, it goes on.
    assert_eq!(status(&place.weir(&run(&["--set", "run.seed=9"]))), 2);
    let told = place.done(&again);
    assert!(!told.contains(" 0 kept from before"), "{told}");
    place.done(&["run", "long.toml", "--no-report", "--out", "whole", "--set", "run.seed=9"]);
    let mut ends = tree(&place.path("out"));
    ends.retain(|(path, _)| !path.ends_with("notes.txt"));
    assert!(ends == tree(&place.path("whole")), "as if it had never been interrupted");
    assert_eq!(fs::read(place.path("out/runs/sim-pie_r1/notes.txt")).unwrap(), b"mine");
}

#[test]
fn the_folder_of_a_changed_lab_is_refused_and_each_change_is_shown() {
    let place = Place::new();
    let run = ["run", "lab.toml", "--no-report", "--out", "out"];
    place.done(&run);
    // A comment is no change: all runs are kept.
    fs::write(place.path("lab.toml"), format!("# Two queues.\n{LAB}")).unwrap();
    assert!(place.done(&run).contains("4 kept from before"));
    fs::write(place.path("lab.toml"), LAB.replace("'10 Mbit/s'", "'20 Mbit/s'").replace("ecn = true\n", ""))
        .unwrap();
    let before = tree(&place.path("out"));
    let output = place.weir(&run);
    assert_eq!(status(&output), 2);
    let told = text(&output.stderr);
    for part in
        ["dumbbell.rate: \"10 Mbit/s\" -> \"20 Mbit/s\"", "traffic.b.ecn: true -> not given", "--rerun"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(tree(&place.path("out")) == before, "nothing was written");
    place.done(&["run", "lab.toml", "--no-report", "--out", "out", "--rerun"]);
}

/// Everything in a place except what is in `out`.
fn outside(place: &Place) -> Vec<String> {
    let files = tree(&place.path(""));
    let names = files.iter().map(|(path, bytes)| format!("{} {}", path.display(), bytes.len()));
    names.filter(|name| !name.starts_with("out/")).collect()
}

#[test]
fn forged_results_write_nothing_outside_their_folder() {
    for (from, to) in [
        ("\"engine\": \"sim\"", "\"engine\": \"../../../ESC\""),
        ("\"id\": \"sim-pie_r1\"", "\"id\": \"sim-../../../ESC\""),
        ("\"id\": \"pie_r1\"", "\"id\": \"../../../ESC\""),
        ("\"name\": \"down\"", "\"name\": \"<img src=x onerror=alert(1)>\""),
    ] {
        let place = forged(from, to);
        let before = outside(&place);
        for args in
            [&["report", "out"][..], &["export", "out"], &["compare", "out", "out", "--out", "out/page"]]
        {
            let output = place.weir(args);
            assert_eq!(status(&output), 2, "{to}: {args:?}: {}", text(&output.stderr));
            assert!(text(&output.stderr).contains("sim-pie_r1/run.json"), "{}", text(&output.stderr));
        }
        assert_eq!(outside(&place), before, "{to}");
    }
}

#[test]
fn links_in_received_results_are_not_written_through() {
    let place = with_results();
    fs::create_dir(place.path("home")).unwrap();
    fs::write(place.path("home/.profile"), "mine").unwrap();
    let (home, out) = (place.path("home"), place.path("out"));
    let aims_at = |from: &str, to: &Path| {
        let from = out.join(from);
        let _ = fs::remove_dir_all(&from);
        let _ = fs::remove_file(&from);
        symlink(to, from).unwrap();
    };
    // Files that are links are replaced; if a folder is a link, nothing is written.
    let profile = home.join(".profile");
    for file in
        ["index.html", "summary.json", ".weir-draft.index.html", "report/lab.js", "report/sim/pie_r1.html"]
    {
        aims_at(file, &profile);
    }
    fs::create_dir_all(out.join("export/sim-pie_r1")).unwrap();
    aims_at("export/sim-pie_r1/flows.csv", &profile);
    place.done(&["report", "out"]);
    place.done(&["export", "out"]);
    for folder in ["report/sim", "report", "export/sim-pie_r1", "export"] {
        aims_at(folder, &home);
        let (command, expected) = if folder.starts_with("report") { ("report", 1) } else { ("export", 2) };
        let output = place.weir(&[command, "out"]);
        assert_eq!(status(&output), expected, "{folder}");
        assert!(text(&output.stderr).contains("is a symbolic link"), "{folder}: {}", text(&output.stderr));
    }
    aims_at(".weir-lock", &profile);
    assert_eq!(status(&place.weir(&["report", "out"])), 2);
    assert_eq!(fs::read_to_string(&profile).unwrap(), "mine");
    assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
}

#[test]
fn a_rerun_of_several_labs_resumes_with_the_incomplete_ones() {
    let place = Place::new();
    let labs = place.path("labs/study");
    fs::create_dir_all(&labs).unwrap();
    fs::write(labs.join("profile.toml"), LAB.split("[vary]").next().unwrap()).unwrap();
    let claim = "[[expect]]\nmetric = 'utilisation_percent'\nat_most = 101\nsource = 'arithmetic'\n";
    let lab = |name: &str, rate: &str| {
        let more = format!("[dumbbell]\nrate = '{rate}'\n");
        fs::write(labs.join(name), format!("format = 1\nextends = 'profile.toml'\n{more}{claim}")).unwrap();
    };
    lab("a.toml", "10 Mbit/s");
    lab("b.toml", "10 Mbit/s");
    let file = |lab: &str| place.path("results/reproduce/study").join(lab).join("runs/sim-r1/run.json");
    let written = || ["a", "b"].map(|lab| fs::metadata(file(lab)).unwrap().ino());
    let again = ["reproduce", "study", "--rerun"];
    place.done(&again);
    let first = written();
    // The second lab cannot be run: a file has its folder's name. The first is complete.
    let (b, aside) = (place.path("results/reproduce/study/b"), place.path("aside"));
    fs::rename(&b, &aside).unwrap();
    fs::write(&b, "").unwrap();
    assert_eq!(status(&place.weir(&again)), 2);
    fs::remove_file(&b).unwrap();
    fs::rename(&aside, &b).unwrap();
    let second = written();
    assert!(second[0] != first[0] && second[1] == first[1], "{first:?} {second:?}");
    place.done(&again);
    let third = written();
    assert!(third[0] == second[0] && third[1] != second[1], "{second:?} {third:?}");
    // That rerun has ended: the next begins with the first lab.
    place.done(&again);
    assert!(written()[0] != third[0]);
    assert!(!place.path("results/reproduce/.weir-rerun.json").exists());
}

#[test]
fn notes_stay_when_a_lab_is_run_again_and_its_report_is_rebuilt() {
    let place = with_results();
    let added = place.done(&["note", "out", "first\nof two lines"]);
    assert!(added.starts_with("added 1  20") && added.ends_with("Z  first\n    of two lines\n"), "{added}");
    place.done(&["note", "out", "second"]);
    let before = place.done(&["note", "out", "--list"]);
    place.done(&["run", "lab.toml", "--out", "out", "--rerun"]);
    place.done(&["report", "out"]);
    assert_eq!(place.done(&["note", "out", "--list"]), before);
    place.done(&["note", "out", "--remove", "1"]);
    let left: serde_json::Value =
        serde_json::from_str(&place.done(&["note", "out", "--list", "--json"])).unwrap();
    assert_eq!((left[0]["number"].as_u64(), left[0]["text"].as_str()), (Some(2), Some("second")));
    assert_eq!(left.as_array().map(Vec::len), Some(1));
}

#[test]
fn a_note_that_cannot_be_kept_is_refused_with_what_to_do() {
    let place = with_results();
    fs::create_dir(place.path("empty")).unwrap();
    let faults: [(&[&str], &str, &str); 5] = [
        (&["note", "out", ""], "the note is empty", "in quotes"),
        (&["note", "out", "bell\u{7}"], "a control character, U+0007, as its character 5", "plain text"),
        (&["note", "out", "--remove", "3"], "there is no note 3", "--list shows"),
        (&["note", "empty", "x"], "empty holds no results of weir", "weir run"),
        (&["note", "out"], "required", "weir note"),
    ];
    for (arguments, what, help) in faults {
        let output = place.weir(arguments);
        let told = text(&output.stderr);
        assert_eq!(status(&output), 2, "{told}");
        assert!(told.contains(what) && told.contains(help), "{told}");
    }
}
