//! Labs that were made to do harm: files without end, chains of labs, absurd numbers of everything, escape sequences. Each is
//! refused at once, with its place. A check that takes more than linear time does not end here.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use weir_plan::{Diagnostics, Lab};

const HEAD: &str = "format = 1\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n";

fn refused(text: &str) -> Diagnostics {
    match Lab::from_str(text, "lab.toml", Path::new("nowhere"), &[]) {
        Ok(_) => panic!("it was accepted"),
        Err(diagnostics) => diagnostics,
    }
}

fn refused_file(path: &Path) -> Diagnostics {
    Lab::load(path, &[]).expect_err("it was accepted")
}

/// `count` lines, each made from its number.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn a_file_that_is_not_ordinary_is_refused_where_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    std::fs::create_dir(path("folder")).unwrap();
    for (file, why) in [("pipe", "a pipe"), ("/dev/zero", "a device"), ("folder", "a folder")] {
        std::fs::write(path("base.toml"), format!("format = 1\nextends = '{file}'\n")).unwrap();
        let trace =
            format!("format = 1\n[dumbbell]\nrtt = '20 ms'\nrate = {{ trace = '{file}' }}\n[traffic.a]\n");
        std::fs::write(path("trace.toml"), trace).unwrap();
        for (lab, line) in [("base.toml", 2), ("trace.toml", 4)] {
            let diagnostics = refused_file(&path(lab));
            let problem = &diagnostics.problems()[0];
            assert!(problem.message().contains(why), "{lab}: {problem}");
            assert_eq!(problem.location().map(|(_, line, _)| line), Some(line), "{lab}");
        }
        assert!(refused_file(&path(file)).to_string().contains(why));
    }
}

#[test]
fn a_long_chain_of_extended_labs_is_distinguished_from_a_circle() {
    let folder = tempfile::tempdir().unwrap();
    let path = |number: usize| folder.path().join(format!("lab{number}.toml"));
    for number in 0..40 {
        std::fs::write(path(number), format!("format = 1\nextends = 'lab{}.toml'\n", number + 1)).unwrap();
    }
    std::fs::write(path(40), format!("{HEAD}[traffic.a]\n")).unwrap();
    // The 8th to the 40th are 33 in all: the first of them extends 32.
    assert!(Lab::load(&path(8), &[]).is_ok());
    let told = refused_file(&path(7)).to_string();
    assert!(told.contains("more than 32 labs extend each other") && !told.contains("circle"), "{told}");
    // The same file under another name.
    std::fs::remove_file(path(40)).unwrap();
    std::os::unix::fs::symlink("lab38.toml", path(40)).unwrap();
    let told = refused_file(&path(38)).to_string();
    assert!(told.contains("in a circle: lab38.toml -> lab39.toml -> lab38.toml"), "{told}");
}

#[test]
fn too_much_of_anything_is_refused_by_its_count() {
    let entry = "[[expect]]\nmetric = 'goodput_mbps'\nvalue = 1\ntolerance = 1\nsource = 's'\n";
    let plot = "[[plot]]\nx = { metric = 'a' }\ny = { metric = 'b' }\ncolour = 'c'\n";
    let vary = "[vary]\n";
    for (text, message) in [
        (lines(300_000, |n| format!("[traffic.g{n}]\n")), "the lab has 300000 traffic groups"),
        (lines(40_000, |_| entry.into()), "the lab has 40000 claims"),
        (lines(40_000, |_| plot.into()), "the lab has 40000 plots"),
        (vary.to_string() + &lines(40_000, |n| format!("'run.x{n}' = [1]\n")), "the lab has 40000 levels"),
        (
            vary.to_string() + &format!("'traffic.a.flows' = {:?}\n", (0..400_000).collect::<Vec<_>>()),
            "the tree has 400000 cells",
        ),
        (
            lines(5000, |n| format!("[traffic.g{n}]\n"))
                + vary
                + &format!(
                    "'run.duration' = {:?}\n",
                    (1..=900).map(|n| format!("{n} s")).collect::<Vec<_>>()
                ),
            "the tree has 900 cells, each with 5000 traffic groups and links",
        ),
    ] {
        let diagnostics = refused(&format!("{HEAD}{text}"));
        let [problem] = diagnostics.problems() else { panic!("{message}: {diagnostics}") };
        assert_eq!(problem.message(), message);
        assert!(problem.location().is_some_and(|(_, line, _)| line >= 5));
    }
    let graph = "format = 1\n[traffic.a]\nfrom = 'n1'\nto = 'n2'\n[graph]\n";
    let nodes = (0..200_000).map(|n| format!("n{n}")).collect::<Vec<_>>();
    let told = refused(&format!("{graph}routers = {nodes:?}\n[graph.links]\n"));
    assert!(told.problems().iter().any(|problem| problem.message() == "200000 nodes are too many"));
    let links = lines(60_000, |n| {
        format!("l{n} = {{ from = 'n1', to = 'n2', rate = '1 Mbit/s', delay = '1 ms' }}\n")
    });
    let told = refused(&format!("{graph}routers = ['n1', 'n2']\n[graph.links]\n{links}"));
    assert!(told.problems().iter().any(|problem| problem.message() == "60000 links are too many"));
}

#[test]
fn a_file_larger_than_any_lab_is_refused_by_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.toml");
    std::fs::write(&path, format!("{HEAD}[traffic.a]\n{}", "# as large as it likes\n".repeat(200_000)))
        .unwrap();
    let told = refused_file(&path).to_string();
    assert!(told.contains("it is larger than 4 MiB"), "{told}");
}

#[test]
fn thousands_of_problems_are_all_found_and_twenty_are_shown() {
    let keys = lines(8000, |n| format!("key{n} = 1\n"));
    let groups = lines(4000, |n| format!("[traffic.g{n}]\ncc = 'qubic'\n"));
    let levels = format!("[vary]\n{}", lines(32, |n| format!("'run.x{n}' = 7\n")));
    for (text, count) in [
        (format!("{HEAD}{keys}[traffic.a]\n"), 8000),
        (format!("{HEAD}{groups}"), 4000),
        (format!("{HEAD}[traffic.a]\n{levels}"), 32),
    ] {
        let diagnostics = refused(&text);
        assert_eq!(diagnostics.problems().len(), count);
        let shown = diagnostics.render(false, 100);
        assert_eq!(shown.matches("lab.toml:").count(), 20);
        assert!(shown.contains(&format!("... and {} more", count - 20)), "{shown}");
    }
}

#[test]
fn a_tree_of_many_values_and_names_is_checked_in_linear_time() {
    // Two levels of 50,000 values are far beyond the limit, and each is compared with the other before.
    let values = |unit: &str| (0..50_000).map(|n| format!("{n} {unit}")).collect::<Vec<_>>();
    let text = format!(
        "{HEAD}[traffic.a]\n[vary]\n'run.duration' = {:?}\n'dumbbell.rtt' = {:?}\n[only]\n'run.duration' = {:?}\n",
        values("s"),
        values("ms"),
        values("s")
    );
    assert!(refused(&text).to_string().contains("2500000000 cells"));
    // A name of a megabyte is similar to no other of the same length.
    let long = |letter: &str| letter.repeat(1_000_000);
    let text = format!("{HEAD}[traffic.a]\n[vary]\n'{}' = 1\n[only]\n'{}' = 'x'\n", long("a"), long("b"));
    let shown = refused(&text).to_string();
    assert!(shown.len() < 50_000, "{}", shown.len());
    // A group of each number, each of which might be a flow of another.
    let groups = lines(10_000, |n| format!("[traffic.g-{n}]\n"));
    let lab = Lab::from_str(&format!("{HEAD}{groups}"), "lab.toml", Path::new("nowhere"), &[]).unwrap();
    assert_eq!(lab.runs()[0].groups.len(), 10_000);
}

#[test]
fn labels_that_make_names_longer_than_a_file_system_takes_are_refused() {
    let level = |n: usize| format!("level{n} = {{ '{}' = {{}} }}\n", "x".repeat(32));
    let lab = |levels: usize| format!("{HEAD}[traffic.a]\n[vary]\n{}", lines(levels, level));
    // Each level gives 32 letters and `_`, the repeat up to six: `r10000`.
    assert!(Lab::from_str(&lab(5), "lab.toml", Path::new("nowhere"), &[]).is_ok());
    assert!(refused(&lab(6)).to_string().contains("have up to 204 letters"));
}

#[test]
fn messages_about_a_lab_have_no_control_characters() {
    let mut text = String::from("# \u{1b}[2J\u{1b}]0;title\u{7}\r\n");
    let _ = write!(text, "{HEAD}[traffic.\"\\u001b[31m\u{202e}\"]\ncc = \"\u{9b}\u{7f}\"\n");
    for text in [&text, "format = 1\n\u{1b}[8m = \u{1b}]8;;x\u{7}\n", "format = \u{1b}[1m\n# \u{9b}5m\n"] {
        let shown = refused(text).render(false, 100);
        let harmful = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
        assert_eq!(shown.chars().find(harmful), None, "{shown:?}");
    }
}
