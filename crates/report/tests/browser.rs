//! Every page in a real browser, from disk: its plots have drawn and its console is clean. Skips, and says so, where there
//! is no Chromium; `WEIR_REQUIRE_CHROMIUM=1` makes that a failure.
#![allow(clippy::unwrap_used)]

mod sample;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a browser made of a page.
struct Seen {
    dom: String,
    /// What was written to its console.
    console: Vec<String>,
}

impl Seen {
    fn count(&self, what: &str) -> usize {
        self.dom.matches(what).count()
    }
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// The browser, or none after having said why the test is skipped.
fn browser() -> Option<PathBuf> {
    let found = chromium();
    if found.is_none() {
        let required = std::env::var("WEIR_REQUIRE_CHROMIUM").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "WEIR_REQUIRE_CHROMIUM=1, and no chromium on the path (Debian: apt-get install chromium)"
        );
        eprintln!("skipped: no chromium on the path (Debian: apt-get install chromium)");
    }
    found
}

/// Opens a page and waits until its scripts are done.
fn open(browser: &Path, page: &Path) -> Seen {
    assert!(page.is_file(), "{} was not written", page.display());
    let scratch = tempfile::tempdir().unwrap();
    let (out, err) = (scratch.path().join("out"), scratch.path().join("err"));
    let status = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--window-size=1280,1000", "--enable-logging=stderr"])
        // Virtual time runs until nothing is left to do; the timeout ends a page that never comes to rest.
        .args(["--virtual-time-budget=4000", "--timeout=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", scratch.path().join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(&err).unwrap())
        .status()
        .unwrap();
    let log = String::from_utf8_lossy(&std::fs::read(&err).unwrap()).into_owned();
    assert!(status.success(), "chromium failed on {}: {log}", page.display());
    let console = log.lines().filter(|line| line.contains(":CONSOLE")).map(String::from).collect();
    Seen { dom: std::fs::read_to_string(&out).unwrap(), console }
}

fn assert_sound(name: &str, seen: &Seen, plots: usize) {
    assert_eq!(seen.console, [] as [String; 0], "console of {name}");
    assert_eq!(seen.count("data-drawn=\"false\""), 0, "a plot of {name} has not drawn");
    assert_eq!(seen.count("data-drawn=\"true\""), plots, "plots of {name} that have drawn");
}

#[test]
fn a_console_message_does_not_go_unseen() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    std::fs::write(&page, "<!doctype html><title>x</title><script>nowhere()</script>").unwrap();
    assert_eq!(open(&browser, &page).console.len(), 1);
}

#[test]
fn every_kind_of_page_draws_and_keeps_the_console_clean() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim", "live"], 2);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let report = folder.path().join("report");
    let id = &lab.runs[0].id;

    let index = open(&browser, &folder.path().join("index.html"));
    assert_sound("the index", &index, 1);
    assert_eq!(index.count("aria-rowindex"), lab.runs.len(), "rows of the index");

    let comparison = open(&browser, &report.join("compare.html"));
    assert_sound("the comparison", &comparison, 1);
    assert_eq!(comparison.count("<rect class=\"over\""), 12, "columns of the comparison");

    for engine in ["sim", "live"] {
        let run = open(&browser, &report.join(format!("{engine}/{id}.html")));
        assert_sound("a run's page", &run, sample::series(&lab.runs[0]).charts.len());
        assert_eq!(run.count("class=\"line g0"), 3, "lines of the first group");
    }
    let both = open(&browser, &report.join(format!("both/{id}.html")));
    assert_sound("the page of both engines", &both, sample::series(&lab.runs[0]).charts.len());
    assert!(both.count("dashed") >= 9, "the second engine's lines are dashed");
}

#[test]
fn every_metric_of_the_comparison_draws() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim", "live"], 2);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    for metric in
        ["used", "goodput", "drop", "mark", "rtt", "rate-ratio", "window-ratio", "jain", "again", "window"]
    {
        let page = folder.path().join(format!("report/{metric}.html"));
        let html = std::fs::read_to_string(folder.path().join("report/compare.html")).unwrap();
        std::fs::write(
            &page,
            html.replacen("<head>", &format!("<head><script>location.hash='{metric}'</script>"), 1),
        )
        .unwrap();
        let seen = open(&browser, &page);
        assert_sound(metric, &seen, 1);
        assert!(
            seen.dom.contains(&format!("data-key=\"{metric}\" aria-pressed=\"true\"")),
            "{metric} was not chosen"
        );
    }
}

#[test]
fn an_index_of_five_thousand_runs_draws_only_what_is_in_sight() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::large(5000);
    weir_report::write_pages(folder.path(), &lab, |_| Ok(weir_report::model::RunSeries::default())).unwrap();
    let index = open(&browser, &folder.path().join("index.html"));
    assert_sound("the index", &index, 1);
    let rows = index.count("aria-rowindex");
    assert!((10..100).contains(&rows), "{rows} rows in the page");
    assert!(index.dom.contains("aria-rowcount=\"5001\""));
    let comparison = open(&browser, &folder.path().join("report/compare.html"));
    assert_sound("the comparison", &comparison, 1);
    assert!(comparison.count("class=\"over\"") < 200, "columns in the page");
}

#[test]
fn a_run_without_series_says_so() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut lab = sample::lab(&["sim"], 1);
    lab.runs.truncate(1);
    weir_report::write_pages(folder.path(), &lab, |_| Ok(weir_report::model::RunSeries::default())).unwrap();
    let run = open(&browser, &folder.path().join(format!("report/sim/{}.html", lab.runs[0].id)));
    assert_sound("the run", &run, 0);
    assert!(run.dom.contains("No series were recorded."));
}
