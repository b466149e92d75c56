//! What `weir_observe` finds in captures of simulated flows, against what the simulator counted. A capture before a lossy link has every
//! segment that the sender sent; one behind it has those that the link did not lose.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_base::{Histogram, Span, Time};
use weir_engine::{Capture, Engine, Watch};
use weir_observe::{Analysis, Clocks, Frame, KnownBy, Settings, Side, compare};
use weir_plan::Lab;
use weir_record::Records;
use weir_sim::Simulator;

/// The scripts of labs/scripted-loss.toml on the second of three links, so that the first link shows all that the sender sends.
const LAB: &str = "format = 1
[run]
duration = '5 s'
warmup = '0 s'
sample = '10 ms'
start_jitter = '0 s'
host_jitter = '0 s'
[graph]
routers = ['near', 'far']
hosts = ['sender', 'receiver']
[graph.links]
access = { from = 'sender', to = 'near', rate = '1 Gbit/s', delay = '1 ms' }
core = { from = 'near', to = 'far', rate = '10 Mbit/s', delay = '18 ms' }
exit = { from = 'far', to = 'receiver', rate = '1 Gbit/s', delay = '1 ms' }
[traffic.flow]
from = 'sender'
to = 'receiver'
cc = 'newreno'
workload = { kind = 'transfer', size = '434.4 kB' }
";

/// All packets of these captures in the order of their times, as one capture.
fn analysis(folder: &Path, links: &[&str]) -> Analysis {
    let mut frames: Vec<(Time, Vec<u8>)> = vec![];
    for link in links {
        let file = File::open(folder.join(format!("{link}.pcap"))).unwrap();
        let mut capture = weir_observe::Capture::open(file).unwrap();
        while let Some(frame) = capture.next_frame().unwrap() {
            assert_eq!(frame.link_type, 101);
            frames.push((frame.at, frame.bytes.to_vec()));
        }
    }
    frames.sort_by_key(|(at, _)| *at);
    let mut analysis = Analysis::new(Settings::default());
    for (at, bytes) in &frames {
        analysis.frame(&Frame { at: *at, link_type: 101, bytes, length: bytes.len() as u32 });
    }
    analysis
}

/// Retransmissions with those of SYNs, as `tcp_info` counts them; spurious ones; reordered segments.
fn found(analysis: &Analysis) -> [u64; 3] {
    let tcp = analysis.report().flows().next().unwrap().there.tcp.unwrap();
    assert_eq!((tcp.missed_bytes, tcp.implausible, tcp.copies, tcp.unrepaired_bytes), (0, 0, 0, 0));
    [tcp.retransmissions + tcp.syn_retransmissions, tcp.spurious_retransmissions, tcp.reordered]
}

struct Counted {
    /// Has the captures.
    folder: tempfile::TempDir,
    records: Records,
    /// Index of the lossy link.
    core: u32,
    /// Retransmissions, and those that were spurious, as the simulator counted them.
    simulator: [u64; 2],
    before: Analysis,
    behind: Analysis,
}

/// Runs the lab with this setting of the link.
fn counted(setting: &str) -> Counted {
    let folder = tempfile::tempdir().unwrap();
    let set = format!("graph.links.core.{setting}");
    let lab = Lab::from_str(LAB, "captures.toml", folder.path(), &[set]).unwrap();
    let run = lab.runs().remove(0);
    let links = ["access", "access-up", "core", "core-up"].map(String::from);
    let capture = Capture::of_links(&run, &links, folder.path()).unwrap().unwrap();
    let mut records = Records::default();
    let cancel = AtomicBool::new(false);
    let watch = Watch { cancel: &cancel, progress: &|_| {}, capture: Some(capture.clone()), folder: None };
    Simulator.run(&run, &mut records, &watch).unwrap();
    capture.finish().unwrap();
    let last = records.transport.last().unwrap();
    Counted {
        simulator: [last.retransmissions, last.spurious.unwrap()],
        before: analysis(folder.path(), &["access", "access-up"]),
        behind: analysis(folder.path(), &["core", "core-up"]),
        core: Capture::find_link(&run, "core").unwrap() as u32,
        folder,
        records,
    }
}

#[test]
fn a_capture_at_the_sender_counts_the_retransmissions_that_the_simulator_counts() {
    // The setting, what the simulator is to count, and what of it passes the link (retransmissions, reordered segments).
    let cases = [
        ("drop = []", [0, 0], [0, 0]),
        ("drop = [60]", [1, 0], [1, 0]),
        ("drop = [60, 61, 62, 63, 64, 65, 66, 67, 68, 69]", [10, 0], [10, 0]),
        // The probe for the last segment is the first of it behind the link, and looks like it: two of three are seen there.
        ("drop = [300, 301, 302]", [3, 0], [2, 0]),
        // The first retransmission of segment 290 does not pass the link.
        ("drop = [292, 303]", [2, 0], [1, 0]),
        ("drop = [60, 62, 64, 66, 68, 70, 72, 74, 76, 78]", [10, 0], [10, 0]),
        ("drop = { up = [20, 21, 22, 23, 24, 30, 32, 34, 36] }", [0, 0], [0, 0]),
        // The SYN, of which only the second one passes the link.
        ("drop = [1]", [1, 0], [0, 0]),
        ("reorder = [{ packet = 60, by = 3 }]", [1, 1], [1, 1]),
        ("reorder = [{ packet = 60, by = 30 }]", [1, 1], [1, 1]),
        (
            "schedule = [{ at = '250 ms', delay = '1 s' }, { at = '1500 ms', delay = '18 ms' }]",
            [1, 1],
            [1, 0],
        ),
    ];
    for (setting, expected, [behind, reordered]) in cases {
        let counted = counted(setting);
        let [again, spurious] = counted.simulator;
        assert_eq!(counted.simulator, expected, "{setting}");
        assert_eq!(found(&counted.before), [again, spurious, 0], "before: {setting}");
        assert_eq!(found(&counted.behind), [behind, spurious, reordered], "behind: {setting}");
    }
}

#[test]
fn a_capture_tells_the_round_trip_of_its_path_and_the_end_where_it_was_taken() {
    let counted = counted("drop = []");
    let flow = |analysis: &Analysis| analysis.report().flows().next().unwrap();
    // 2 x (1 + 18 + 1) ms, and the serialisation of small packets, which takes 0.1 ms there and back on the slow link.
    for analysis in [&counted.before, &counted.behind] {
        let path = flow(analysis).path_rtt_ms.unwrap();
        assert!((40.0..40.3).contains(&path), "{path} ms");
    }
    // Data is captured as it leaves the sender and acknowledgements as they leave the first router: 1 of 40 ms is on that side.
    assert_eq!(flow(&counted.before).captured_at, Some(Side::First));
    // Of the link: data leaves the near router, acknowledgements leave the far one, which is 18 + 1 + 1 ms from the sender and back.
    assert_eq!(flow(&counted.behind).captured_at, Some(Side::Between));
    // 39 ms, and 1.2 ms for a segment of 1500 bytes on the slow link.
    let rtt = flow(&counted.before).there.tcp.unwrap().rtt_ms.unwrap();
    assert!((40.2..40.4).contains(&rtt.min), "{rtt:?}");
}

#[test]
fn two_captures_have_the_losses_and_the_queue_delay_between_them_that_the_simulator_has() {
    // Every second of twenty packets is lost.
    let counted = counted("drop = [60, 62, 64, 66, 68, 70, 72, 74, 76, 78]");
    let open = |link: &str| {
        let file = File::open(counted.folder.path().join(format!("{link}.pcap"))).unwrap();
        weir_observe::Capture::open(file).unwrap()
    };
    let captures = || [open("access"), open("core")];
    let longest = Span::from_secs(1);
    let given = Clocks { offset_ns: 0, known_by: KnownBy::Given };
    let report = compare(captures(), given, longest, &mut |_| Ok(())).unwrap();
    assert_eq!((report.there.lost, report.back.packets, report.ambiguous), (10, 0, 0));
    assert_eq!((report.elsewhere, report.outside, report.skipped), ([0; 2], [0; 2], [0; 2]));
    let mut delays = Histogram::new();
    let core = counted.records.delays.iter().filter(|sample| sample.link == counted.core);
    core.for_each(|sample| sample.delay.add_to(&mut delays));
    assert_eq!(report.there.packets, delays.count());
    // Between the captures are 1 ms of delay, the serialisation of at most 12 us on the first link, and the queue.
    let sojourn = report.there.sojourn_ms.unwrap();
    let queue = delays.mean().unwrap().as_millis_f64();
    assert!((1.0..1.013).contains(&(sojourn.mean - queue)), "{} ms, {queue} ms in the queue", sojourn.mean);
    // Without knowledge of the clocks the least sojourn counts as zero: that of the SYN, 1 ms and 0.48 us for 60 bytes.
    let estimated = Clocks::estimate(|| Ok(captures()), longest).unwrap().unwrap();
    assert_eq!(estimated.known_by, KnownBy::OneDirection);
    assert!((1_000_300..1_000_500).contains(&estimated.offset_ns), "{estimated:?}");
}

#[test]
fn packets_report_the_delays_and_drops_of_their_queue() {
    // Five packets of 1,500 bytes at 10 Mbit/s: no packet waits for 8.4 ms, up to which delays are whole steps.
    let queue = "queue = { kind = 'tail-drop', limit = '5 packets' }, report = 'ip-id', delay = '18 ms'";
    let run_of = |text: &str| Lab::from_str(text, "test.toml", ".".as_ref(), &[]).unwrap().runs().remove(0);
    let run = run_of(&LAB.replace("delay = '18 ms'", queue));
    let folder = tempfile::tempdir().unwrap();
    let links = ["core".to_owned()];
    let capture = Capture::of_links(&run, &links, folder.path()).unwrap().unwrap();
    let (cancel, mut records) = (AtomicBool::new(false), Records::default());
    let watch = Watch { cancel: &cancel, progress: &|_| {}, capture: Some(capture.clone()), folder: None };
    Simulator.run(&run, &mut records, &watch).unwrap();
    capture.finish().unwrap();
    let core = Capture::find_link(&run, "core").unwrap() as u32;
    let mut delay = Histogram::new();
    let of_core = records.delays.iter().filter(|sample| sample.link == core);
    of_core.for_each(|sample| delay.merge(&sample.delay.unpack()));
    let dropped: u64 = records.links.iter().filter(|it| it.link == core).flat_map(|it| it.dropped).sum();
    let mut analysis = Analysis::new(Settings { is_stamped: true, ..Settings::default() });
    let file = File::open(folder.path().join("core.pcap")).unwrap();
    analysis.read(&mut weir_observe::Capture::open(file).unwrap()).unwrap();
    let report = analysis.report().stamped().unwrap();
    let told = report.not_ecn.delay_ms.unwrap();
    assert_eq!((told.count, report.packets_without_report), (delay.count(), 0));
    assert!(dropped > 0 && report.not_ecn.drops == dropped, "{} of {dropped}", report.not_ecn.drops);
    let short = delay.mean().unwrap().as_millis_f64() - told.mean;
    assert!((0.0..0.032_768).contains(&short), "{told:?}, {short} ms short");
    // The key changes nothing but the packets.
    let mut without = Records::default();
    let plain = run_of(&LAB.replace("delay = '18 ms'", &queue.replace("report = 'ip-id', ", "")));
    let watch = Watch { cancel: &cancel, progress: &|_| {}, capture: None, folder: None };
    Simulator.run(&plain, &mut without, &watch).unwrap();
    assert_eq!((records.links, records.flows), (without.links, without.flows));
}
