//! The report of a queue in the packets that leave it (`report = "ip-id"`), read as from any capture.

use crate::{DUMBBELL, go_with, lab};
use std::fs::File;
use weir_base::Span;
use weir_engine::Capture;
use weir_live::Tally;
use weir_observe::{Analysis, Settings, StampedReport};

/// One step of a delay.
const STEP: Span = Span::from_nanos(1 << 15);

/// What the packets behind the link `down` report, and its records.
fn reported(link: &str, traffic: &str) -> (StampedReport, Tally, usize) {
    let run = lab(&format!("{DUMBBELL}report = \"ip-id\"\n{link}[traffic.a]\ncc = \"newreno\"\n{traffic}"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("down.pcap");
    let (index, _) = run.instrumented_links().find(|(_, link)| link.name == "down").unwrap();
    let capture = Capture::create(index, &file).unwrap();
    let (tally, _) = go_with(&run, Some(capture.clone()));
    capture.finish().unwrap();
    let mut analysis = Analysis::new(Settings { is_stamped: true, ..Settings::default() });
    let mut packets = weir_observe::Capture::open(File::open(&file).unwrap()).unwrap();
    while let Some(frame) = packets.next_frame().unwrap() {
        analysis.frame(&frame);
    }
    let report = analysis.report().stamped().unwrap();
    (report, tally, index)
}

/// Five packets of 1,500 bytes at 10 Mbit/s: no packet waits for 8.4 ms, up to which delays are whole steps.
const SHORT: &str = "queue = { kind = \"tail-drop\", limit = \"5 packets\" }\n";
const TRANSFER: &str = "workload = { kind = \"transfer\", size = \"1 MB\" }\n";

pub(crate) fn packets_report_delays_and_drops() {
    let (StampedReport { not_ecn, ecn, packets_without_report }, tally, down) = reported(SHORT, TRANSFER);
    let sums = &tally.links[down];
    assert_eq!(tally.flows[0].sum.read_bytes, 1_000_000, "the kernel accepts what the link has written");
    assert_eq!((ecn.packets, packets_without_report), (0, 0));
    assert_eq!(not_ecn.packets, sums.delay.count());
    assert!(sums.dropped > 0, "slow start overruns five packets");
    assert_eq!(not_ecn.drops, sums.dropped);
    let (told, truth) = (not_ecn.delay_ms.unwrap(), sums.delay.mean().unwrap().as_millis_f64());
    let short = truth - told.mean;
    assert!((0.0..STEP.as_millis_f64()).contains(&short), "{told:?}, but {truth} ms");
    assert!(told.max <= sums.delay.max().unwrap().as_millis_f64(), "{told:?}");
}

pub(crate) fn packets_of_ipv6_report_nothing() {
    if !std::path::Path::new("/proc/sys/net/ipv6").exists() {
        return println!("IPv6: skipped, this kernel has none");
    }
    let (report, tally, down) = reported(SHORT, &format!("ip = 6\n{TRANSFER}"));
    assert_eq!(tally.flows[0].sum.read_bytes, 1_000_000);
    assert_eq!(report.packets_without_report, tally.links[down].delay.count());
    assert_eq!((report.not_ecn.packets, report.ecn.packets), (0, 0));
}
