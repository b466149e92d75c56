//! Endpoints without reports: the aggregation points of both sites are killed and replaced by wires, so that data and acknowledgements pass
//! and nothing is reported. A sender then halves its rate every four round trips, and follows the reports again when there are some.

use super::path::{Path, RTT, Site};
use super::row::*;
use super::sliq::Hosts;
use super::streams::{await_bound, cp};
use std::process::Child;
use std::time::{Duration, Instant};

/// The highest rate: 133 packets of 1,500 bytes in four round trips.
const PACE: &str = "--max-rate 8mbit";
/// Time for which nothing is reported. At the highest rate 1,000 packets pass in it.
const SILENCE: Duration = Duration::from_millis(1500);
/// Longest wait for an acknowledgement.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs a sender that is started when the points work, over their end and their return.
fn loses_its_reports(path: &Path, send: impl FnOnce() -> Child) {
    let [forward, back] = &path.directions;
    let points = [Site::West, Site::East].map(|site| path.start(site));
    let mut sender = send();
    while forward.count() < 400 {
        assert!(sender.try_wait().unwrap().is_none(), "it ended after {} packets", forward.count());
        std::thread::sleep(Duration::from_millis(10));
    }
    points.into_iter().for_each(|mut point| point.kill());
    path.bypass(true);
    let (from, acknowledged) = (Instant::now(), back.count());
    // Acknowledgements still arrive, or this would be an outage.
    while from.elapsed() < SILENCE || back.count() < acknowledged + 2 {
        assert!(from.elapsed() < LONGEST, "nothing passes the wires");
        std::thread::sleep(Duration::from_millis(10));
    }
    let to = Instant::now();
    path.bypass(false);
    let sent = forward.between(from, to);
    let each = (0..7).map(|n| forward.between(from + RTT * 4 * n, from + RTT * 4 * (n + 1)));
    println!("packets in each four round trips without reports: {:?}", each.collect::<Vec<_>>());
    // At most 133 packets before the first halving, half as many before the second, and so on.
    assert!(sent < 500, "{sent} packets without a report");
    let _points = [Site::West, Site::East].map(|site| path.start(site));
    let output = sender.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_stream_halves_its_rate_while_nothing_is_reported() {
    let Some(path) = Path::new(None) else { return };
    let (folder, who) = (path.west.folder.path(), "--application 1 --flow 3");
    let data = content(2_000_000);
    std::fs::write(folder.join("film.bin"), &data).unwrap();
    let mut receiver =
        path.east.right(|| cp(folder, &format!("recv --at {RIGHT}:{PORT} {who} copy.bin")).spawn().unwrap());
    path.east.right(await_bound);
    loses_its_reports(&path, || {
        let send = format!("send --at {LEFT}:{PORT} --to {RIGHT}:{PORT} {who} --rate 4mbit {PACE} film.bin");
        path.west.left(|| cp(folder, &send).spawn().unwrap())
    });
    assert!(receiver.wait().unwrap().success());
    assert!(std::fs::read(folder.join("copy.bin")).unwrap() == data);
}

#[test]
fn a_connection_of_sliq_halves_its_rate_while_nothing_is_reported() {
    let Some(path) = Path::new(None) else { return };
    let hosts = Hosts::new(path.west.folder.path(), &path.east, "");
    let data = content(2_000_000);
    loses_its_reports(&path, || {
        path.west.left(|| hosts.send(&data, &format!("--first-rate 4mbit {PACE}")).spawn().unwrap())
    });
    assert!(hosts.received() == Some(data));
}
