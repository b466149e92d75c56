//! Aggregation points that are killed under load and started again at once: the bandwidth comes back, the stream goes on, and no loss is
//! counted that is none. WEIR_RESTARTS says how often each of the two is killed (once by default); what is measured is printed.

use super::path::{Path, RTT, Site};
use super::row::*;
use super::streams::{await_bound, cp};
use std::io::{Read, Write};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Every so many datagrams the path loses one.
const LOST: u64 = 100;
/// Time before each restart, and the last part of it from which the values before the restart are taken.
const LOADED: Duration = Duration::from_secs(4);
const BEFORE: Duration = Duration::from_secs(2);
/// Time after a restart.
const AFTER: Duration = Duration::from_secs(3);
/// Longest wait for the bandwidth.
const LONGEST: Duration = Duration::from_secs(20);

/// A stream of CP-RUDP from the west to the east, as long as it is fed.
struct Stream {
    sender: Child,
    receiver: Child,
    ends: Arc<AtomicBool>,
    /// Count the bytes that were fed, and the equal ones that arrived.
    fed: JoinHandle<u64>,
    arrived: JoinHandle<u64>,
}

/// The byte at this place of the stream.
fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Stream {
    fn start(path: &Path) -> Stream {
        let (folder, who) = (path.west.folder.path(), "--application 1 --flow 3");
        let mut receiver =
            path.east.right(|| cp(folder, &format!("recv --at {RIGHT}:{PORT} {who}")).spawn().unwrap());
        path.east.right(await_bound);
        let send =
            format!("send --at {LEFT}:{PORT} --to {RIGHT}:{PORT} {who} --rate 1mbit --max-rate 40mbit");
        let mut command = cp(folder, &send);
        command.stdin(std::process::Stdio::piped());
        let mut sender = path.west.left(|| command.spawn().unwrap());
        let ends = Arc::new(AtomicBool::new(false));
        let (mut input, stop) = (sender.stdin.take().unwrap(), Arc::clone(&ends));
        let fed = std::thread::spawn(move || {
            let mut fed = 0;
            while !stop.load(Ordering::Relaxed) {
                let piece: Vec<u8> = (fed..fed + 8192).map(byte).collect();
                input.write_all(&piece).unwrap();
                fed += 8192;
            }
            fed
        });
        let mut output = receiver.stdout.take().unwrap();
        let arrived = std::thread::spawn(move || {
            let (mut arrived, mut piece) = (0, [0; 8192]);
            loop {
                let length = output.read(&mut piece).unwrap();
                if length == 0 {
                    return arrived;
                }
                for got in &piece[..length] {
                    assert_eq!(*got, byte(arrived), "byte {arrived}");
                    arrived += 1;
                }
            }
        });
        Stream { sender, receiver, ends, fed, arrived }
    }

    /// Ends it. All that was fed has arrived.
    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        let sent = self.sender.wait_with_output().unwrap();
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let mut receiver = self.receiver;
        assert!(receiver.wait().unwrap().success());
        assert_eq!(self.fed.join().unwrap(), self.arrived.join().unwrap());
    }
}

/// What the points count of losses, at the west and at the east, and the datagrams lost on the path to each of them.
fn losses(path: &Path) -> [(f64, f64); 2] {
    let [forward, back] = &path.directions;
    [(Site::West, back), (Site::East, forward)]
        .map(|(site, to)| (path.measured(site, &["packets_lost"])[0], to.lost() as f64))
}

/// Kills the point of a site and starts it again. `flowshare` is the name of the bandwidth that it must know again: told by the other
/// point at the senders, estimated by itself at the receivers.
fn restarts(path: &Path, points: &mut [Running; 2], site: Site, flowshare: &str) {
    let flowshare_now = || path.measured(site, &[flowshare])[0];
    std::thread::sleep(LOADED - BEFORE);
    let (began, mut samples) = (Instant::now(), vec![]);
    while began.elapsed() < BEFORE {
        samples.push(flowshare_now());
        std::thread::sleep(RTT);
    }
    let before = samples.iter().sum::<f64>() / samples.len() as f64;
    let forward = &path.directions[0];
    let rate_before = forward.between(began, Instant::now()) as f64 / began.elapsed().as_secs_f64();
    let lost_before = losses(path);
    let killed = Instant::now();
    points[site as usize].kill();
    points[site as usize] = path.start(site);
    let works = Instant::now();
    let lost_since = losses(path);
    let (mut back, mut samples) = (None, vec![]);
    while works.elapsed() < AFTER || back.is_none() {
        let (at, now) = (works.elapsed(), flowshare_now());
        samples.push((at, now));
        back = back.or((now > before / 2.0).then_some(at));
        assert!(at < LONGEST, "{site:?}: {flowshare} is {now} Mbit/s and was {before}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let rounds = |span: Duration| span.as_secs_f64() / RTT.as_secs_f64();
    let (_, at_ten) = samples.into_iter().rfind(|(at, _)| *at <= RTT * 10).unwrap();
    let rate = forward.between(works + RTT * 6, works + RTT * 10) as f64 / (RTT * 4).as_secs_f64();
    println!(
        "{site:?}: away for {} ms; {flowshare} is above half of {before:.2} Mbit/s after {:.1} round trips and {at_ten:.2} after ten; \
         {rate:.0} packets a second in round trips 7 to 10, {rate_before:.0} before",
        (works - killed).as_millis(),
        rounds(back.unwrap()),
    );
    // The point that was killed counts from zero. A loss is found when three later packets have come.
    for ((own, (at, lost)), [began, since]) in [Site::West, Site::East]
        .into_iter()
        .zip(losses(path))
        .zip([0, 1].map(|n| [lost_before[n], lost_since[n]]))
    {
        let (counted, real) = if own == site { (at, lost - since.1) } else { (at - began.0, lost - began.1) };
        println!("  {own:?}: {counted} losses counted, {real} on the path");
        assert!(counted <= real + 1.0, "{own:?} counts {counted} losses of {real}");
    }
}

#[test]
fn a_point_that_is_killed_under_load_has_the_bandwidth_back_and_counts_no_phantom_loss() {
    let Some(path) = Path::new(Some(LOST)) else { return };
    let times = std::env::var("WEIR_RESTARTS").map_or(1, |times| times.parse().unwrap());
    let mut points = [Site::West, Site::East].map(|site| path.start(site));
    let stream = Stream::start(&path);
    for _ in 0..times {
        restarts(&path, &mut points, Site::West, "outbound_flowshare_mbps");
        restarts(&path, &mut points, Site::East, "flowshare_mbps");
    }
    stream.end();
}
