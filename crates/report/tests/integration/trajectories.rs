//! Single flows of both engines beside each other, as a reader sees them: in the terminal, on the page, and as pictures. The records and
//! captures are made up, so that every number can be worked out by hand.

use crate::{chromium, devtools};
use std::path::Path;
use weir_base::{Rate, Span, Time};
use weir_engine::{Outcome, ResultFolder, Results};
use weir_plan::Lab;
use weir_record::{
    Component, FlowEvent, FlowEventKind, FlowSample, ParquetRecorder, Recorder, StateSample, TransportSample,
};
use weir_report::{Chosen, Side, Trajectories, write_comparison};

const LAB: &str = r#"
format = 1
name = "one-flow"

[run]
duration = "2 s"
warmup = "0 s"
repeats = 2

[dumbbell]
rate = "10 Mbit/s"
rtt = "20 ms"

[traffic.flow]
cc = "cubic"

[traffic.crowd]
flows = 2

[vary]
"traffic.flow.cc" = ["cubic", "bbr"]
"#;

/// Two seconds in periods of 100 ms: the window grows by two segments in each, by three from the tenth period on if `faster`.
fn record(folder: &Path, faster: bool) {
    let mut recorder = ParquetRecorder::create(folder).unwrap();
    recorder.event(&FlowEvent { at: Time::ZERO, flow: 0, kind: FlowEventKind::Started });
    let mut cwnd = 10.0;
    for period in 1..=20 {
        let at = Time::from_nanos(period * 100_000_000);
        cwnd += if faster && period >= 10 { 3.0 } else { 2.0 };
        recorder.flow(&FlowSample { at, flow: 0, read_bytes: 60_000, ..FlowSample::default() });
        recorder.transport(&TransportSample {
            at,
            flow: 0,
            cwnd,
            in_flight: 10.0,
            srtt: Span::from_millis(25),
            pacing_rate: Some(Rate::from_mbit_per_sec(12)),
            ..TransportSample::default()
        });
        let of = Component::Controller(0);
        recorder.state(&StateSample { at, of, name: "w_max_segments", value: 40.0 });
    }
    recorder.finish().unwrap();
}

/// A capture of link `down` with packets of 1000 bytes at whole milliseconds, by the numbers of their first bytes.
fn capture(folder: &Path, numbers: &[u32]) {
    let mut bytes = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0]);
    for (place, number) in (1_u32..).zip(numbers) {
        for word in [0, place * 1_000_000, 40, 1040] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0x45, 0, 4, 16, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(40_000_u16.to_be_bytes());
        bytes.extend(weir_plan::address::port_of(0).to_be_bytes());
        bytes.extend(number.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    }
    std::fs::write(folder.join("down.pcap"), bytes).unwrap();
}

/// Both engines' runs of both cells. The simulated CUBIC grows faster; the first live repeat of CUBIC is invalid; BBR has no captures.
fn results(path: &Path) -> Results {
    let file = path.with_extension("toml");
    std::fs::write(&file, LAB).unwrap();
    let lab = Lab::load(&file, &[]).unwrap();
    let folder = ResultFolder::open(path, lab.source(), "build").unwrap();
    for run in lab.runs() {
        let cubic = run.id.contains("cubic");
        for engine in ["live", "sim"] {
            let place = folder.begin(engine, &run).unwrap();
            record(&place, cubic && engine == "sim");
            if cubic {
                let last = if engine == "sim" { 0 } else { 3000 };
                capture(&place, &[0, 1000, 2000, last]);
            }
            let mut outcome = Outcome::default();
            if cubic && engine == "live" && run.repeat == 1 {
                outcome.invalid = vec!["stalls cover 2 % of it".into()];
            }
            folder.commit(&folder.describe(engine, run.clone().into(), outcome)).unwrap();
        }
    }
    Results::open(path).unwrap()
}

fn held(results: &Results) -> Trajectories {
    let sides = ["live", "sim"].map(|engine| Chosen::of(results, |run| run.file.engine == engine));
    Trajectories::new([&sides[0], &sides[1]], ["live", "sim"]).unwrap()
}

/// After n periods the live window is 10 + 2 n segments, and from the tenth on the simulated one is n - 9 larger. At n = 12 that is 3,
/// below a tenth of 34; at n = 13, after 1.3 s, it is 4, above a tenth of 36.
#[test]
fn the_terminal_says_where_single_flows_part() {
    let folder = tempfile::tempdir().unwrap();
    let results = results(&folder.path().join("results"));
    insta::assert_snapshot!(held(&results).partings(100), @r"

    Single flows of live and sim, by the time since the flow's start:
    cubic · flow, repeat 2
      At link down data packet 4 is the first that differs (a retransmission in sim only): live sent
      bytes 3000 to 4000 at 0.004000 s; sim sent bytes 0 to 1000 again at 0.004000 s.
      In the samples the congestion window parts first, from 1.3 s on: live 36.0, sim 40.0 segments
      (bound: 10 % or 2 segments).
    bbr · flow, repeat 1
      No quantity differs by more than its bound in three samples one after the other.
      The first packet that differs is found in captures of both runs (weir run LAB --pcap down,up).
    ");
}

#[test]
fn the_page_shows_both_lines_and_their_difference() {
    let folder = tempfile::tempdir().unwrap();
    let results = results(&folder.path().join("results"));
    let summary = results.summary(None).unwrap();
    let page = folder.path().join("page");
    let side = Side { name: "results".into(), results: &results, summary: &summary };
    write_comparison(&page, &[side], false, None, Some(&held(&results))).unwrap();
    let html = std::fs::read_to_string(page.join("index.html")).unwrap();
    for said in [
        "Single flows: live Linux beside simulator",
        "<dt data-pair=\"0\">cubic · flow, repeat 2</dt><dd>At link down data packet 4 is the first that differs (a retransmission in sim only)",
        "<dt data-pair=\"1\">bbr · flow, repeat 1</dt><dd>No quantity differs by more than its bound",
    ] {
        assert!(html.contains(said), "{said} is not in {html}");
    }
    let script = std::fs::read_to_string(page.join("report/trajectories/0.js")).unwrap();
    let window = script.lines().find(|line| line.contains("Congestion window")).unwrap();
    // The first point is the flow's start, before the first sample.
    assert!(window.contains("[null,12,14,16,18,20,22,24,26,28,30,32,34"), "{window}");
    assert!(window.contains("[null,12,14,16,18,20,22,24,26,28,31,34,37"), "{window}");
    assert!(window.contains("[null,0,,,,,,,,,-1,-2,-3,-4"), "{window}");

    let Some(browser) = chromium::for_a_test() else { return };
    let address = format!("file://{}", page.join("index.html").display());
    let seen = devtools::open(&browser, &address, "1280,1000", 4000);
    assert_eq!(seen.console, [] as [String; 0]);
    let pictures = seen.dom.split("id=\"trajectories\"").nth(1).unwrap();
    let pictures = pictures.split("</section>").next().unwrap();
    // Window, data in flight, smoothed RTT, pacing rate and one state, each with its difference.
    assert_eq!(pictures.matches("data-drawn=\"true\"").count(), 10);
    assert_eq!(pictures.matches("data-drawn=\"false\"").count(), 0);
    assert!(pictures.contains("live Linux minus simulator"), "{pictures}");
}
