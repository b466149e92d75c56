//! Results from somebody else: whatever a description says, a report is written within the folder, or refused with the name
//! of the file; nothing panics.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use weir_base::{Bytes, Time};
use weir_engine::{Outcome, ResultFolder, Results};
use weir_plan::Lab;
use weir_record::{FlowSample, LinkCounters, LinkSample, ParquetRecorder, Recorder};

const LAB: &str = "format = 1\nname = 'sent'\n[run]\nduration = '1 s'\nwarmup = '0 s'\nrepeats = 1\n\
                   [dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\nqueue = 'pie'\n[traffic.a]\n[traffic.b]\n";

/// A result folder with one run.
fn received(folder: &Path) {
    let lab = Lab::from_str(LAB, "sent.toml", Path::new("."), &[]).unwrap();
    let run = lab.runs().remove(0);
    let out = ResultFolder::open(folder, lab.source(), "build").unwrap();
    let mut recorder = ParquetRecorder::create(&out.begin("sim", &run).unwrap()).unwrap();
    let (link, _) = run.instrumented_links().next().unwrap();
    for period in 1..=10 {
        let at = Time::from_nanos(period * 100_000_000);
        let (link, capacity) = (link as u32, Bytes::new(125_000));
        recorder.link(&LinkSample {
            at,
            link,
            counters: LinkCounters { sent_bytes: [90_000, 0, 0, 0], capacity, ..LinkCounters::default() },
            ..LinkSample::default()
        });
        recorder.flow(&FlowSample { at, flow: 1, read_bytes: 80_000, ..FlowSample::default() });
    }
    recorder.finish().unwrap();
    out.commit(&out.describe("sim", run.into(), Outcome::default())).unwrap();
}

/// JSON pointers (RFC 6901) to each value that is neither an object nor a list; in lists, only in the first two members.
fn leaves(value: &Value, way: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            leaves(value, &format!("{way}/{}", name.replace('~', "~0").replace('/', "~1")), found)
        }),
        Value::Array(members) => {
            let first = members.iter().take(2).enumerate();
            first.for_each(|(place, value)| leaves(value, &format!("{way}/{place}"), found));
        }
        _ => found.push(way.into()),
    }
}

/// Values that a forger might write instead of this one.
fn hostile(value: &Value) -> Vec<Value> {
    let texts = ["../../../ESC", "<script>alert(1)</script>", "0 s", "1 ns", "1 bit/s"];
    match value {
        Value::Number(_) => vec![json!(0), json!(u64::MAX), json!(-1)],
        Value::Null => vec![json!(0), json!("0 s"), json!("1000000 h")],
        Value::Bool(set) => vec![json!(!set)],
        _ => texts.map(|text| json!(text)).to_vec(),
    }
}

#[test]
fn a_forged_description_is_refused_by_name_or_makes_a_report_within_the_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("a/b/c/results");
    received(&folder);
    let run = folder.join("runs/sim-r1");
    let manifest: Value = serde_json::from_slice(&fs::read(run.join("records.json")).unwrap()).unwrap();
    let mut forged = manifest.clone();
    forged.as_object_mut().unwrap().remove("files");
    fs::write(run.join("records.json"), forged.to_string()).unwrap();
    let whole: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    let mut ways = vec![];
    leaves(&whole, "", &mut ways);
    let (mut refused, mut written) = (0, 0);
    for way in &ways {
        for value in hostile(whole.pointer(way).unwrap()) {
            let mut forged = whole.clone();
            *forged.pointer_mut(way).unwrap() = value.clone();
            fs::write(run.join("run.json"), forged.to_string()).unwrap();
            match Results::open(&folder) {
                Ok(results) => {
                    let summary = results.summary(None).unwrap();
                    written += 1;
                    // Few values reach more than the summary; writing the pages of every fourth is slow enough.
                    if written % 4 == 0 {
                        let report = weir_report::write(&results, &summary, None);
                        report.unwrap_or_else(|error| panic!("{way} {value}: {error}"));
                        let page = fs::read_to_string(folder.join("report/sim/r1.html")).unwrap();
                        assert!(!page.contains("<script>alert"), "{way}");
                    }
                }
                Err(error) => {
                    assert!(error.to_string().contains("run.json"), "{way} {value}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 50 && written > 50, "{refused} refused, {written} written, of {} values", ways.len());
    let names = fs::read_dir(place.path()).unwrap().chain(fs::read_dir(place.path().join("a/b/c")).unwrap());
    assert_eq!(names.count(), 2, "nothing outside");
}
