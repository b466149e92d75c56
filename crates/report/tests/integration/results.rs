//! From a result folder to its pages: the pages show the recorded numbers.

use std::path::Path;
use weir_base::{Bytes, Ecn, Histogram, Span, Time};
use weir_engine::{Audit, Outcome, ResultFolder, Results};
use weir_plan::{Lab, Run};
use weir_record::{
    DelaySample, FlowCounters, FlowSample, LinkCounters, LinkSample, ParquetRecorder, Recorder,
    TransportSample,
};

const LAB: &str = r#"
format = 1
name = "two-queues"

[run]
duration = "4 s"
warmup = "1 s"

[dumbbell]
rate = "10 Mbit/s"
rtt = "20 ms"

[traffic.fast]
cc = "cubic"

[traffic.slow]
cc = "newreno"

[vary.queue]
"deep, 4 BDP" = { "dumbbell.queue" = { kind = "tail-drop", limit = "4 bdp" } }
"short" = { "dumbbell.queue" = "pie" }
"#;

/// Four seconds in which the first flow has 6 Mbit/s and the second 3, behind a queue with this delay.
fn record(folder: &Path, run: &Run, delay: Span) {
    let mut recorder = ParquetRecorder::create(folder).unwrap();
    let (forward, _) = run.instrumented_links().next().unwrap();
    let mut sojourns = Histogram::new();
    (0..80).for_each(|_| sojourns.record(delay));
    for period in 1..=40 {
        let at = Time::from_nanos(period * 100_000_000);
        let link = forward as u32;
        recorder.link(&LinkSample {
            at,
            link,
            counters: LinkCounters {
                arrived: [84, 0, 0, 0],
                dropped: [if period == 20 { 4 } else { 0 }, 0, 0, 0],
                sent: [80, 0, 0, 0],
                sent_bytes: [120_000, 0, 0, 0],
                capacity: Bytes::new(125_000),
                ..LinkCounters::default()
            },
            ..LinkSample::default()
        });
        recorder.delay(&DelaySample { at, link, class: Ecn::NotEct, delay: sojourns.clone() });
        for (flow, read_bytes) in [(0, 75_000), (1, 37_500)] {
            recorder.flow(&FlowSample {
                at,
                flow,
                read_bytes,
                counters: FlowCounters { sent_packets: 50, ..FlowCounters::default() },
            });
            let cwnd = 20.0 / f64::from(flow + 1);
            recorder.transport(&TransportSample { at, flow, cwnd, ..TransportSample::default() });
        }
    }
    recorder.finish().unwrap();
}

/// A result folder of both queues, simulated; the second run is invalid.
fn results(path: &Path) -> Results {
    let file = path.with_extension("toml");
    std::fs::write(&file, LAB).unwrap();
    let lab = Lab::load(&file, &[]).unwrap();
    let folder = ResultFolder::open(path, lab.source(), "build").unwrap();
    for (run, delay) in lab.runs().iter().zip([60, 15]) {
        record(&folder.begin("sim", run).unwrap(), run, Span::from_millis(delay));
        let audit = Audit { sent: 12, delivered: 10, dropped: 2, ..Audit::default() };
        let mut outcome = Outcome { audit, ..Outcome::default() };
        if delay == 15 {
            outcome.invalid = vec!["stalls cover 2 % of it".into()];
            outcome.environment.insert("lateness_us".into(), serde_json::json!({ "p99": 412.0 }));
        }
        folder.commit(&folder.describe("sim", run.clone().into(), outcome)).unwrap();
    }
    Results::open(path).unwrap()
}

fn page(folder: &Path, results: &Results, run: usize, ending: &str) -> String {
    let id = &results.runs[run].file.run.id;
    std::fs::read_to_string(folder.join(format!("report/sim/{id}.{ending}"))).unwrap().replace('\u{a0}', " ")
}

#[test]
fn pages_say_what_the_records_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let results = results(&path);
    let summary = results.summary(None).unwrap();
    weir_report::write(&results, &summary, None).unwrap();

    // 9 Mbit/s of goodput on a link that was busy for 96 %: 60 % and 30 % of 10 Mbit/s.
    let deep = page(&path, &results, 0, "html");
    let said = "Tail drop at link down had a queue delay of 60 ms (p99 60 ms); CUBIC took 60 % of link down, NewReno 30 %.";
    assert!(deep.contains(&format!("<h1>{said}</h1>")), "{deep}");
    assert!(deep.contains("12 sent; 10 delivered, 2 dropped by queues"), "{deep}");
    let short = page(&path, &results, 1, "html");
    let said = "Invalid, so its numbers are not reliable (stalls cover 2 % of it): PIE at link down held a delay of 15 ms; CUBIC \
                took 60 % of link down, NewReno 30 %.";
    assert!(short.contains(&format!("<h1>{said}</h1>")), "{short}");
    assert!(short.contains("<dt>lateness us</dt><dd>p99 412</dd>"), "{short}");

    let script = page(&path, &results, 0, "js");
    let line = |name: &str, ink: &str, value: &str| {
        // Values that stay the same are left out.
        let rest = ",".repeat(39);
        format!("{{\"n\":\"{name}\",\"i\":\"{ink}\",\"v\":[{value}{rest}]}}")
    };
    for expected in [
        line("fast", "g0", "6"),
        line("slow", "g1", "3"),
        line("link down, mean", "n0", "60"),
        line("slow", "g1", "10"),
    ] {
        assert!(script.contains(&expected), "{expected} is not in {script}");
    }
    assert!(script.contains("\"p\":0.1,\"n\":40,\"w\":1"), "{script}");
    let index = std::fs::read_to_string(path.join("index.html")).unwrap();
    assert!(index.contains("One of 2 runs is invalid, and marked so."), "{index}");
}

#[test]
fn another_warm_up_is_shaded_in_the_plots() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let results = results(&path);
    let warmup = Some(Span::from_millis(2500));
    weir_report::write(&results, &results.summary(warmup).unwrap(), warmup).unwrap();
    assert!(page(&path, &results, 0, "js").contains("\"n\":40,\"w\":2.5"));
    assert!(page(&path, &results, 0, "html").contains("<dt>left out as warm-up</dt><dd>2.5 s</dd>"));
}

#[test]
fn records_that_cannot_be_read_name_their_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let results = results(&path);
    let summary = results.summary(None).unwrap();
    std::fs::write(results.runs[1].location.folder().join("links.parquet"), "torn").unwrap();
    let error = weir_report::write(&results, &summary, None).unwrap_err().to_string();
    assert!(error.contains(&results.runs[1].file.run.id), "{error}");
    assert!(!path.join("index.html").exists(), "an index of pages that are not there");
}

#[test]
fn a_report_grows_while_its_lab_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let results = results(&path);
    let summary = results.summary(None).unwrap();
    let report = weir_report::Growing::new(&path, &results.lab, &results.lab.runs(), 1);
    report.join(&results.runs[0], &summary.runs[0]);
    report.refresh().unwrap();
    let index = || std::fs::read_to_string(path.join("index.html")).unwrap();
    assert!(index().contains("Not complete: 1 of 2 runs are done."), "{}", index());
    let script = || std::fs::read_to_string(path.join("report/lab.js")).unwrap();
    assert!(
        script().contains("\"growing\":1") && script().contains("\"id\":\"deep-4bdp_r1\""),
        "{}",
        script()
    );
    assert!(!path.join("report/sim").exists(), "pages come at the end");
    report.finish(&results, &summary, None).unwrap();
    let grown = (index(), script());
    assert!(!grown.0.contains("Not complete") && path.join("report/sim").is_dir());
    weir_report::write(&results, &summary, None).unwrap();
    assert!(grown == (index(), script()), "as if it had been written at once");
}
