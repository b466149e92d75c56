//! Kills of daemons at random: nodes and a receiver under files and a stream of media, and a node over and over with its host compared.
//! Environment variables make the tests longer, as `make soak` does.

use super::files::Sites;
use super::{NAMES, Node, PATIENCE, Triangle, are_up, site};
use crate::hosts::{BLOCK, Serving, bytes, send_signal, text, weir};
use rustix::process::Signal;
use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_base::{Prefix, Random};
use weir_linux::nft::{Table, Transparent};

/// A number from the environment, or the usual one.
fn number_of(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |number| number.parse().unwrap())
}

/// Bytes of a datagram of the stream of media, and the time between two.
const DATAGRAM: usize = 1000;
const INTERVAL: Duration = Duration::from_millis(20);

/// The datagram of this number: no two are alike.
fn datagram(number: u64) -> Vec<u8> {
    let mut datagram = number.to_be_bytes().to_vec();
    datagram.extend(bytes(DATAGRAM - 8 + number as usize % 7).iter().map(|byte| byte ^ number as u8));
    datagram
}

/// Sends datagrams to site b until it is over. While the node of its own site is dead there is no device that takes them.
fn send_media(socket: &UdpSocket, over: &AtomicBool) {
    for number in 0.. {
        if over.load(Ordering::Acquire) {
            return;
        }
        let _ = socket.send_to(&datagram(number), (site(1), 5000));
        std::thread::sleep(INTERVAL);
    }
}

/// Reads the datagrams at site b, and counts them: each is one that was sent, unchanged.
fn read_media(socket: &UdpSocket, over: &AtomicBool, count: &AtomicU64) {
    let mut buffer = [0; 2 * DATAGRAM];
    while !over.load(Ordering::Acquire) {
        let Ok(length) = socket.recv(&mut buffer) else { continue };
        let number = u64::from_be_bytes(*buffer.first_chunk().unwrap());
        assert!(buffer[..length] == datagram(number), "datagram {number} has changed");
        count.fetch_add(1, Ordering::AcqRel);
    }
}

/// Sends files to site b, one after the other, until it is over. Each command either ends with the whole file at the receiver, or says why
/// not; the same command goes on. Returns how many files arrived, and how many attempts failed.
fn send_files(sites: &Sites, over: &AtomicBool) -> (u64, u64) {
    let mut random = Random::stream(1, "files");
    let (to, mut files, mut failures) = (site(1).to_string(), 0, 0);
    while !over.load(Ordering::Acquire) {
        let name = format!("file-{files}");
        let contents = bytes(1 + random.below(3 * BLOCK as u64) as usize);
        let (file, there) = (sites.file(&name, &contents), sites.folder_of(1).join(&name));
        let mut after = None;
        loop {
            let output = sites.send(&[&file], &to, &["--timeout", "5s"]);
            let arrived = fs::read(&there).ok();
            // Under its name it is whole, whatever its sender was told.
            assert!(
                arrived.as_ref().is_none_or(|arrived| *arrived == contents),
                "{name} is not what was sent"
            );
            if output.status.success() {
                assert!(arrived.is_some(), "{name} is not there: {}", text(&output.stdout));
                break;
            }
            assert!(text(&output.stderr).contains("weir: "), "{:?}: {}", output.status, text(&output.stderr));
            failures += 1;
            if over.load(Ordering::Acquire) {
                let begun = *after.get_or_insert_with(Instant::now);
                assert!(begun.elapsed() < PATIENCE, "{name} does not arrive: {}", text(&output.stderr));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        fs::remove_file(&there).unwrap();
        fs::remove_file(&file).unwrap();
        files += 1;
    }
    (files, failures)
}

/// Ends what other threads do, also if the test fails.
struct Ends<'a>([&'a AtomicBool; 2]);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|over| over.store(true, Ordering::Release));
    }
}

/// WEIR_SECONDS says how long daemons are killed; `make soak` has half an hour.
#[test]
fn files_arrive_whole_or_their_sender_is_told_though_random_daemons_are_killed() {
    let Some(mut sites) = Sites::new() else { return };
    // A file takes a second or so, so that many of the kills are under one.
    [1, 2].into_iter().for_each(|to| sites.queue(0, to, "tbf rate 40mbit burst 64kb latency 50ms"));
    let mut nodes: Vec<Option<Node>> = std::mem::take(&mut sites.nodes).into_iter().map(Some).collect();
    let mut receiver: Option<Serving> = Some(sites.receive(1, &[]));
    let (near, far) = (sites.triangle.socket(0, 4000), sites.triangle.socket(1, 5000));
    let (over, files_over, count) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let mut random = Random::stream(number_of("WEIR_SEED", 1), "kills");
    let length = Duration::from_secs(number_of("WEIR_SECONDS", 8));
    std::thread::scope(|scope| {
        let _ends = Ends([&over, &files_over]);
        scope.spawn(|| send_media(&near, &over));
        scope.spawn(|| read_media(&far, &over, &count));
        let sending = scope.spawn(|| send_files(&sites, &files_over));
        let pause = |random: &mut Random, most: u64| {
            std::thread::sleep(Duration::from_millis(random.below(most)));
        };
        let (begun, mut kills) = (Instant::now(), 0);
        while begun.elapsed() < length {
            pause(&mut random, 2000);
            // Of the three nodes and the receiver one at least.
            let victims = 1 + random.below(15);
            for victim in (0..4).filter(|victim| victims >> victim & 1 == 1) {
                kills += 1;
                // What is dropped is killed.
                match nodes.get_mut(victim) {
                    Some(node) => drop(node.take()),
                    None => drop(receiver.take()),
                }
            }
            pause(&mut random, 1000);
            for (number, node) in nodes.iter_mut().enumerate().filter(|(_, node)| node.is_none()) {
                *node = Some(sites.triangle.start(number));
            }
            receiver.get_or_insert_with(|| sites.receive(1, &[]));
        }
        // All is as before: what did not arrive does now, and the stream of media goes on.
        (0..NAMES.len())
            .for_each(|node| sites.triangle.until(node, "taken back", |status| are_up(status) == 2));
        files_over.store(true, Ordering::Release);
        let (files, failures) = sending.join().unwrap();
        let (before, waited) = (count.load(Ordering::Acquire), Instant::now());
        while count.load(Ordering::Acquire) < before + 50 {
            assert!(waited.elapsed() < PATIENCE, "no media since the last kill");
            std::thread::sleep(INTERVAL);
        }
        println!(
            "{kills} kills in {:.0} s; {files} files arrived, {failures} attempts failed with a reason; {} datagrams of media arrived",
            begun.elapsed().as_secs_f64(),
            count.load(Ordering::Acquire)
        );
        assert!(files > 0 && kills > 0);
    });
}

/// The name of the table of a node's device.
const TABLE: &str = "weir-weir0";

/// What a node may leave at its host: the names and sizes of devices, addresses, routes of all tables, and rules.
fn host(triangle: &Triangle) -> [String; 4] {
    let [links, addresses, routes, rules] = triangle.inside(1, || {
        [
            &["-o", "link", "show"][..],
            &["-4", "-o", "address"],
            &["-4", "route", "show", "table", "all"],
            &["rule"],
        ]
        .map(|what| text(&Command::new("ip").args(what).output().unwrap().stdout))
    });
    // Whether a device has a carrier is said some time after it has one.
    let link = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mtu = words.iter().skip_while(|word| **word != "mtu").nth(1);
        format!("{} {}\n", words[1], mtu.unwrap())
    };
    [links.lines().map(link).collect(), addresses, routes, rules]
}

/// Whether nf_tables has no table of this name there: a table of a taken name cannot be made.
fn has_no_table(triangle: &Triangle, name: &str) -> bool {
    triangle.inside(1, || {
        let to = [Prefix::from(std::net::IpAddr::from([192, 0, 2, 1]))];
        let at = ([127, 0, 0, 1], 1).into();
        let proxy = Transparent { to: &to, not_to: &[], at, mark: 1, own_mark: 2, except: None };
        Table::transparent(name, &proxy).is_ok()
    })
}

/// WEIR_KILLS says how many kills there are; `make soak` has 200.
#[test]
fn a_host_is_as_it_was_after_kills_of_its_node_at_any_time() {
    let Some(triangle) = Triangle::new() else { return };
    let file = triangle.path(1);
    let start = || {
        let mut command = weir(&["overlay", "node", file.to_str().unwrap()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Node(triangle.inside(1, || command.spawn().unwrap()))
    };
    let [links, addresses, routes, rules] = host(&triangle);
    let mut random = Random::stream(number_of("WEIR_SEED", 1), "kills of one");
    for kill in 0..number_of("WEIR_KILLS", 5) {
        let mut node = start();
        // Also before it works, which takes a tenth of a second or so.
        std::thread::sleep(Duration::from_millis(random.below(400)));
        node.0.kill().unwrap();
        node.0.wait().unwrap();
        let after = host(&triangle);
        assert_eq!(after[..3], [links.clone(), addresses.clone(), routes.clone()], "kill {kill}");
        assert!(has_no_table(&triangle, TABLE), "kill {kill}");
        // One rule may be left. The table that it names is empty: `routes` has those of all tables.
        let more: Vec<&str> = after[3].lines().filter(|rule| !rules.contains(rule)).collect();
        assert!(
            more.len() <= 1 && more.iter().all(|rule| rule.contains("fwmark 0x7765")),
            "{kill}: {more:?}"
        );
    }
    // The next one takes the rule away as it ends.
    let mut node = triangle.start(1);
    assert!(!has_no_table(&triangle, TABLE));
    send_signal(&node.0, Signal::TERM);
    node.0.wait().unwrap();
    assert_eq!(host(&triangle), [links, addresses, routes, rules]);
    assert!(has_no_table(&triangle, TABLE));
}
