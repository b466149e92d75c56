//! The contract of the command line: its output, its refusals and their status, and that one seed gives one result.

use crate::place::{LAB, Place, status, text, tree};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_run_writes_its_folder_and_ends_with_a_table() {
    let place = Place::new();
    let output = place.weir(&["run", "lab.toml"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("pie"), "{}", text(&output.stdout));
    let out = place.path("results/lab");
    for file in ["index.html", "summary.json", "lab.toml", "runs/sim-pie_r2/run.json"] {
        assert!(out.join(file).is_file(), "{file} is missing");
    }
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap();
    let runs = summary["runs"].as_array().unwrap();
    assert_eq!((summary["lab"].as_str(), runs.len()), (Some("lab"), 4));
    let flow = &runs[0]["flows"][0];
    assert_eq!((flow["group"].as_str(), flow["controller"].as_str()), (Some("a"), Some("cubic")));
    assert!(flow["goodput_mbps"].as_f64().unwrap() > 0.1);
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_jobs() {
    let place = Place::new();
    for (out, jobs) in [("one", "1"), ("again", "1"), ("two", "2")] {
        let output = place.weir(&["run", "lab.toml", "--out", out, "--jobs", jobs]);
        assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    }
    let one = tree(&place.path("one"));
    assert!(one.iter().any(|(path, _)| path.extension().is_some_and(|e| e == "parquet")));
    assert!(one == tree(&place.path("again")), "the same lab twice");
    assert!(one == tree(&place.path("two")), "with one job and with two");
}

#[test]
fn the_version_names_the_commit() {
    let head = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let head = head.ok().filter(|head| head.status.success());
    let commit = head.map_or("unknown".to_owned(), |head| text(&head.stdout).trim().to_owned());
    let output = Place::new().weir(&["--version"]);
    assert_eq!(text(&output.stdout), format!("weir {} (commit {commit})\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn bad_input_is_refused_with_status_2_and_nothing_is_written() {
    let place = Place::new();
    fs::write(place.path("bad.toml"), LAB.replace("cubic", "qubic")).unwrap();
    let before = place.files();
    for args in [
        &["run", "bad.toml"][..],
        &["run", "missing.toml"],
        &["run", "lab.toml", "--set", "dumbbell.rate=10"],
        &["run", "lab.toml", "--pcap", "sideways"],
        &["run", "lab.toml", "--on", "paper"],
        &["run", "lab.toml", "--only", "pie"],
        &["run", "lab.toml", "--only", "quee=pie"],
        &["run", "lab.toml", "--only", "dumbbell.queue=pye"],
        &["run", "lab.toml", "--only", "dumbbell.queue=pye", "--dry-run"],
        &["reproduce", "nothing"],
        &["reproduce", "--labs", "nowhere"],
        &["report", "."],
        &["export", "nowhere"],
        &["compare", "nowhere"],
        &["describe", "pye"],
        &["new", "lab.toml"],
    ] {
        let output = place.weir(args);
        assert_eq!(status(&output), 2, "{args:?}: {}", text(&output.stderr));
        let told = text(&output.stderr);
        assert!(told.contains("help") || told.contains("--help"), "{args:?}: {told}");
        assert_eq!(place.files(), before, "{args:?}");
    }
    let told = text(&place.weir(&["run", "bad.toml"]).stderr);
    assert!(told.contains("bad.toml") && told.contains("cubic"), "{told}");
}

#[test]
fn a_dry_run_prints_the_tree_and_writes_nothing() {
    let place = Place::new();
    let output = place.weir(&["run", "lab.toml", "--dry-run"]);
    assert_eq!(status(&output), 0);
    assert!(text(&output.stdout).contains("4 runs"), "{}", text(&output.stdout));
    assert_eq!(place.files(), ["lab.toml"]);
}

#[test]
fn a_dry_run_of_a_part_prints_that_part() {
    let place = Place::new();
    let output = place.weir(&["run", "lab.toml", "--dry-run", "--only", "queue=pie"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains("2 runs, 8 s of network time") && !told.contains("tail-drop"), "{told}");
    assert_eq!(place.files(), ["lab.toml"]);
}

#[test]
fn an_interrupted_tree_keeps_finished_runs_and_resumes() {
    let place = Place::new();
    fs::write(place.path("long.toml"), many(20, 60)).unwrap();
    let mut child =
        place.command(&["run", "long.toml", "--no-report"]).stderr(Stdio::piped()).spawn().unwrap();
    let runs = place.path("results/long/runs");
    let finished = || {
        fs::read_dir(&runs)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|e| e.path().join("run.json").is_file())
            .count()
    };
    let patience = Instant::now();
    while finished() < 3 && patience.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let kept = finished();
    assert!((3..40).contains(&kept), "{kept}");
    let unfinished =
        fs::read_dir(&runs).unwrap().flatten().filter(|e| !e.path().join("run.json").is_file()).count();
    assert_eq!(unfinished, 0, "what was not finished is gone");
    let output = place.weir(&["run", "long.toml", "--no-report"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains(&format!("{} runs done, {kept} kept", 40 - kept)),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_folder_of_another_lab_is_not_touched_without_rerun() {
    let place = Place::new();
    let run =
        |args: &[&str]| place.weir(&[&["run", "lab.toml", "--out", "out", "--no-report"], args].concat());
    assert_eq!(status(&run(&[])), 0);
    let before = tree(&place.path("out"));
    let refused = run(&["--set", "run.seed=9"]);
    assert_eq!(status(&refused), 2);
    assert!(text(&refused.stderr).contains("--rerun"), "{}", text(&refused.stderr));
    assert!(before == tree(&place.path("out")));
    assert_eq!(status(&run(&["--set", "run.seed=9", "--rerun"])), 0);
    assert!(before != tree(&place.path("out")));
    fs::write(place.path("out/notes.txt"), "mine").unwrap();
    assert_eq!(status(&run(&["--rerun"])), 0);
    assert_eq!(
        fs::read_to_string(place.path("out/notes.txt")).unwrap(),
        "mine",
        "a person's file comes back"
    );
    assert_eq!(place.files(), ["lab.toml", "out"]);
    assert!(!place.path("out/.weir-rerun").exists(), "what was set aside is gone");
    fs::create_dir(place.path("precious")).unwrap();
    fs::write(place.path("precious/thesis.txt"), "years").unwrap();
    fs::write(place.path("precious/lab.toml"), LAB).unwrap();
    assert_eq!(status(&place.weir(&["run", "lab.toml", "--out", "precious", "--rerun"])), 2);
    assert!(place.path("precious/thesis.txt").is_file());
}

#[test]
fn the_warm_up_can_be_changed_without_running_again() {
    let place = Place::new();
    assert_eq!(status(&place.weir(&["run", "lab.toml"])), 0);
    let summary = || -> serde_json::Value {
        serde_json::from_slice(&fs::read(place.path("results/lab/summary.json")).unwrap()).unwrap()
    };
    let before = summary();
    let output = place.weir(&["report", "results/lab", "--warmup", "3 s"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let after = summary();
    assert_eq!(after["runs"][0]["warmup_s"].as_f64(), Some(3.0));
    assert_ne!(before["runs"][0]["metrics"], after["runs"][0]["metrics"]);
    assert_eq!(status(&place.weir(&["report", "results/lab", "--warmup", "4 s"])), 2);
}

#[test]
fn a_capture_of_a_simulated_link_opens_in_wireshark() {
    let place = Place::new();
    let output = place.weir(&["run", "lab.toml", "--pcap", "down", "--no-report"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let file = place.path("results/lab/runs/sim-pie_r1/down.pcap");
    let read = Command::new("tshark")
        .args(["-r", file.to_str().unwrap(), "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"])
        .args([
            "-T",
            "fields",
            "-e",
            "ip.len",
            "-e",
            "tcp.checksum.status",
            "-e",
            "ip.checksum.status",
            "-c",
            "2000",
        ])
        .output();
    let Ok(read) = read else {
        assert!(std::env::var_os("CI").is_none(), "CI must have tshark");
        eprintln!("skipped: there is no tshark here to read the capture");
        return;
    };
    let lines = text(&read.stdout);
    assert_eq!(lines.lines().count(), 2000, "{}", text(&read.stderr));
    assert!(lines.lines().all(|line| line.ends_with("\t1\t1")), "checksums are good: {lines}");
    assert!(lines.lines().any(|line| line.starts_with("1500\t")));
}

#[test]
fn names_are_listed_and_described() {
    let place = Place::new();
    let list = text(&place.weir(&["list"]).stdout);
    for name in ["newreno", "cubic", "tail-drop", "pie", "bulk", "transfer", "udp", "queue_delay_ms"] {
        assert!(list.contains(name), "{name}");
    }
    let pie = text(&place.weir(&["describe", "pie"]).stdout);
    assert!(pie.contains("RFC 8033") && pie.contains("target") && pie.contains("15 ms"), "{pie}");
    // An enumeration's values are listed, and an unknown name is not taken for a metric.
    let dualpi2 = text(&place.weir(&["describe", "dualpi2"]).stdout);
    assert!(dualpi2.contains("\"rfc9332\"") && dualpi2.contains("\"thesis\""), "{dualpi2}");
    let prague = text(&place.weir(&["describe", "prague"]).stdout);
    assert!(prague.contains("rtt_scaling = \"rate\"") && prague.contains("        \"rate\""), "{prague}");
    let unknown = text(&place.weir(&["describe", "fq-codal"]).stderr);
    assert!(unknown.contains("did you mean `fq-codel`"), "{unknown}");
    let unknown = text(&place.weir(&["describe", "cake"]).stderr);
    assert!(!unknown.contains("_packets") && unknown.contains("weir list"), "{unknown}");
    // Tables are described with their keys, registries with their members; values are TOML.
    let rudp = text(&place.weir(&["describe", "rudp"]).stdout);
    assert!(rudp.contains("scheme = { kind = \"equal\" }") && rudp.contains("`weight`"), "{rudp}");
    let sliq = text(&place.weir(&["describe", "sliq"]).stdout);
    assert!(sliq.contains("        deadline: "), "{sliq}");
    let point = text(&place.weir(&["describe", "aggregation-point"]).stdout);
    assert!(point.contains("\n  application = [{ id = 1"), "{point}");
    let dumbbell = text(&place.weir(&["describe", "dumbbell"]).stdout);
    assert!(dumbbell.contains("\n  rtt\n      "), "{dumbbell}");
    // A key of traffic groups, whose name may be left out.
    assert_eq!(
        text(&place.weir(&["describe", "traffic.flows"]).stdout).lines().last().unwrap().trim(),
        "flows = 1",
    );
    let seed = text(&place.weir(&["describe", "run.seed"]).stdout);
    assert_eq!(
        seed,
        "run.seed (setting of a lab file)\n  The lab's seed: every random number follows from it.\n  values: a whole number of 0 or more\n  \
         default: 1\n\nIn a lab:\n  [run]\n  seed = 1\n"
    );
    let flowshare = text(&place.weir(&["describe", "normalised_flowshare"]).stdout);
    assert!(!flowshare.contains("unit:"), "{flowshare}");
    // Every example is a lab's own TOML.
    let listed: serde_json::Value = serde_json::from_slice(&place.weir(&["list", "--json"]).stdout).unwrap();
    for entry in listed.as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let described = text(&place.weir(&["describe", name]).stdout);
        for line in described.lines().filter(|line| line.contains("= { kind = ")) {
            assert!(!line.contains("null") && !line.contains(": "), "{name}: {line}");
        }
    }
    let schema: serde_json::Value = serde_json::from_slice(&place.weir(&["schema"]).stdout).unwrap();
    assert!(schema.to_string().contains("mark_ecnth"));
}

#[test]
fn a_new_lab_loads_and_runs() {
    let place = Place::new();
    assert_eq!(status(&place.weir(&["new", "first.toml"])), 0);
    let output = place.weir(&["run", "first.toml"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let place = Place::new();
    let whole = text(&place.weir(&["--help"]).stdout);
    for command in [
        "run",
        "report",
        "compare",
        "reproduce",
        "list",
        "describe",
        "new",
        "export",
        "schema",
        "doctor",
        "completions",
    ] {
        assert!(whole.contains(command), "{command}");
        let help = text(&place.weir(&[command, "--help"]).stdout);
        assert!(help.contains("Example"), "{command}: {help}");
    }
}

/// The lab with this many repeats of this many seconds: twice as many runs.
fn many(repeats: u32, seconds: u32) -> String {
    LAB.replace("repeats = 2", &format!("repeats = {repeats}")).replace("'4 s'", &format!("'{seconds} s'"))
}

#[test]
fn a_large_lab_is_kept_in_shards_that_every_command_reads() {
    let place = Place::new();
    fs::write(place.path("large.toml"), many(101, 2)).unwrap();
    for (out, jobs) in [("one", "1"), ("two", "2")] {
        let output = place.weir(&["run", "large.toml", "--out", out, "--jobs", jobs]);
        assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    }
    let one = tree(&place.path("one"));
    assert!(one == tree(&place.path("two")), "with one job and with two");
    let shards = fs::read_dir(place.path("one/runs")).unwrap().count();
    assert_eq!(shards, 4, "202 runs in shards of 64");
    // The report that grew while the lab ran equals the one that is made from the records afterwards.
    let output = place.weir(&["report", "two"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert!(one == tree(&place.path("two")), "summary and pages from the records");
    let output = place.weir(&["report", "two", "--warmup", "1500 ms"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(place.path("two/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["runs"][201]["warmup_s"].as_f64(), Some(1.5));
    let output = place.weir(&["export", "one"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let flows = fs::read_to_string(place.path("one/export/sim-pie_r101/flows.csv")).unwrap();
    // Two flows in twenty periods, and a line of names. A flow has no row of a period in which nothing happened to it.
    let lines = flows.lines().count();
    assert!((21..=41).contains(&lines), "{lines}");
    let compared = place.weir(&["compare", "one", "two", "--out", "page"]);
    assert_eq!(status(&compared), 0, "{}", text(&compared.stderr));
    assert!(fs::read_to_string(place.path("page/index.html")).unwrap().contains("agree"));
}

#[test]
fn a_killed_large_lab_resumes_from_its_shards() {
    let place = Place::new();
    fs::write(place.path("large.toml"), many(150, 8)).unwrap();
    let run = ["run", "large.toml", "--no-report", "--out", "out"];
    let mut child = place.command(&run).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let patience = Instant::now();
    while !place.path("out/runs/sim-0000/runs.json").is_file()
        && patience.elapsed() < Duration::from_secs(120)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let output = place.weir(&run);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(!told.contains(" 0 kept from before"), "{told}");
    let hidden = fs::read_dir(place.path("out/runs")).unwrap().flatten();
    assert_eq!(hidden.filter(|e| e.file_name().to_string_lossy().starts_with('.')).count(), 0);
    let whole = ["run", "large.toml", "--no-report", "--out", "whole"];
    assert_eq!(status(&place.weir(&whole)), 0);
    assert!(tree(&place.path("out")) == tree(&place.path("whole")), "as if never killed");
}

#[test]
fn selected_runs_can_be_run_alone_and_repeated() {
    let place = Place::new();
    let run = |args: &[&str]| {
        let output = place.weir(&[&["run", "lab.toml", "--out", "out"], args].concat());
        assert_eq!(status(&output), 0, "{}", text(&output.stderr));
        text(&output.stdout)
    };
    // A level is named in full, or by its last part.
    assert!(run(&["--only", "queue=pie"]).contains("2 runs done, 0 kept"));
    assert!(!place.path("out/runs/sim-tail-drop_r1").exists());
    assert!(run(&[]).contains("2 runs done, 2 kept"));
    let before = tree(&place.path("out"));
    assert!(run(&["--rerun", "--only", "dumbbell.queue=pie"]).contains("2 runs done, 2 kept"));
    assert!(before == tree(&place.path("out")));
}

#[test]
fn the_levels_of_a_report_can_be_put_in_another_order() {
    let place = Place::new();
    fs::write(place.path("two.toml"), format!("{LAB}'dumbbell.rtt' = ['20 ms', '10 ms']\n")).unwrap();
    assert_eq!(status(&place.weir(&["run", "two.toml", "--out", "out"])), 0);
    let output = place.weir(&["report", "out", "--order", "dumbbell.rtt"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let summary = fs::read_to_string(place.path("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let params = |run: usize| summary["runs"][run]["params"].to_string();
    assert_eq!(params(0), r#"{"dumbbell.rtt":"20 ms","dumbbell.queue":"tail-drop"}"#);
    assert_eq!(params(2), r#"{"dumbbell.rtt":"20 ms","dumbbell.queue":"pie"}"#);
    assert_eq!(status(&place.weir(&["report", "out", "--order", "queue"])), 0);
    assert_eq!(status(&place.weir(&["report", "out", "--order", "quee"])), 2);
}

#[test]
fn a_study_is_reproduced_and_its_claims_are_judged() {
    let place = Place::new();
    fs::create_dir_all(place.path("labs/study")).unwrap();
    let claim = |value: f64, more: &str| {
        format!(
            "[[expect]]\nmetric = 'utilisation_percent'\nvalue = {value}\ntolerance = 5.0\nsource = 'here'\n{more}"
        )
    };
    let profile = LAB.split("[vary]").next().unwrap().replace("repeats = 2", "repeats = 1");
    fs::write(place.path("labs/study/profile.toml"), profile).unwrap();
    let lab = |claims: &str| {
        fs::write(
            place.path("labs/study/one.toml"),
            format!("format = 1\nextends = 'profile.toml'\n{claims}"),
        )
        .unwrap();
    };
    let reproduce = |args: &[&str]| place.weir(&[&["reproduce", "study", "--rerun"], args].concat());
    // The link is full, so one claim holds; the other differs for a reason.
    lab(&(claim(100.0, "") + &claim(50.0, "differs = 'a known mistake, https://example.org/erratum'\n")));
    let output = reproduce(&["--json"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        told["score"].to_string(),
        r#"{"holds":1,"fails":0,"differs":1,"not_measured":0,"numbers":2,"numbers_hold":1}"#
    );
    let claims = &told["labs"][0]["claims"];
    assert_eq!((claims[0]["verdict"].as_str(), claims[0]["repeats"].as_u64()), (Some("holds"), Some(1)));
    assert!(place.path("results/reproduce/index.html").is_file());
    assert!(place.path("results/reproduce/study/one/index.html").is_file());
    // With --full the cells run as often as [full] says; without the reason the claim fails.
    lab(&("full = { 'run.repeats' = 2 }\n".to_owned() + &claim(50.0, "")));
    let output = reproduce(&["--full"]);
    assert_eq!(status(&output), 1);
    assert!(text(&output.stdout).contains("0 of 1 claims hold, 1 fails."), "{}", text(&output.stdout));
    assert!(place.path("results/reproduce-full/study/one/runs/sim-r2").is_dir());
    // A lab that does not extend the study's profile is not judged.
    fs::write(place.path("labs/study/two.toml"), LAB).unwrap();
    let output = reproduce(&[]);
    assert_eq!(status(&output), 2);
    assert!(text(&output.stderr).contains("extends = \"profile.toml\""), "{}", text(&output.stderr));
    assert!(text(&place.weir(&["list", "labs"]).stdout).contains("labs/study/one.toml"));
}

#[test]
fn a_study_on_real_linux_runs_only_the_part_that_live_selects() {
    let place = Place::new();
    fs::create_dir_all(place.path("labs/study")).unwrap();
    let profile = LAB.split("[vary]").next().unwrap().replace("repeats = 2", "repeats = 1");
    fs::write(place.path("labs/study/profile.toml"), profile).unwrap();
    fs::write(place.path("labs/study/about-live.md"), "# On real Linux\n").unwrap();
    let claim = "[[expect]]\nmetric = 'utilisation_percent'\nat_most = 101\nsource = 'arithmetic'\n";
    let begin = "format = 1\nextends = 'profile.toml'\n";
    fs::write(place.path("labs/study/simulated.toml"), format!("{begin}{claim}")).unwrap();
    let levels = "[vary]\n'dumbbell.rate' = ['2 Mbit/s', '900 Mbit/s']\n[live]\n'only' = { 'dumbbell.rate' = '2 Mbit/s' }\n";
    fs::write(place.path("labs/study/both.toml"), format!("{begin}{levels}{claim}")).unwrap();
    let output = place.weir(&["reproduce", "study", "--on", "sim,live"]);
    if text(&output.stderr).contains("may not make network namespaces") {
        println!("skipped: {}", text(&output.stderr));
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return;
    }
    // On a busy machine the live run is invalid, and its claim is not measured.
    assert!(status(&output) <= 1, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("they have no [live]: simulated"), "{}", text(&output.stderr));
    let runs = |folder: &str| {
        let runs = fs::read_dir(place.path(folder)).unwrap().flatten();
        let mut names: Vec<_> = runs.map(|run| run.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(runs("results/reproduce-live/study"), ["both"]);
    assert_eq!(runs("results/reproduce-live/study/both/runs"), ["live-2mbit_r1", "sim-2mbit_r1"]);
    let page = fs::read_to_string(place.path("results/reproduce-live/documents/study-live.md")).unwrap();
    assert!(page.starts_with("# On real Linux\n"), "{page}");
}
