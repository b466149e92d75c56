//! Files over the overlay: to one host, and to the members of a group.

use super::{NAMES, Node, PATIENCE, Triangle, at, run, site};
use crate::hosts::{BLOCK, Serving, bytes, send_signal, serving, text, weir};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const GROUP: &str = "239.1.2.3";

/// The sites with their nodes, and a folder for each to receive in.
pub(super) struct Sites {
    pub(super) nodes: Vec<Node>,
    pub(super) triangle: Triangle,
}

/// Carries what the nodes a and b say to each other, but for each 30th packet. Nodes a and b believe that it is the other one.
fn lose_packets(triangle: &Triangle) {
    let (near, far) = triangle.inside(0, || {
        let socket = |at: (Ipv4Addr, u16)| UdpSocket::bind(at).unwrap();
        (socket((Ipv4Addr::LOCALHOST, 7771)), socket((at(0, 1), 0)))
    });
    let path = triangle.path(0);
    let file = fs::read_to_string(&path).unwrap();
    let direct = format!("{}:7770", at(1, 0));
    assert!(file.contains(&direct), "{file}");
    fs::write(&path, file.replace(&direct, "127.0.0.1:7771")).unwrap();
    far.connect((at(1, 0), 7770)).unwrap();
    // Both threads end with the test's process; the sockets are in namespaces that nobody else uses.
    let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    let node = Arc::new(Mutex::new(None));
    let learnt = node.clone();
    std::thread::spawn(move || {
        let (mut packet, mut count) = ([0; 2048], 0);
        while let Ok((length, from)) = near.recv_from(&mut packet) {
            *learnt.lock().unwrap() = Some(from);
            count += 1;
            if count % 30 != 0 {
                // The other node may not listen yet.
                let _ = far.send(&packet[..length]);
            }
        }
    });
    std::thread::spawn(move || {
        let (mut packet, mut count) = ([0; 2048], 0);
        loop {
            // An error says that the other node does not listen yet.
            let Ok(length) = far_too.recv(&mut packet) else { continue };
            count += 1;
            if let Some(node) = learnt_node(&node).filter(|_| count % 30 != 0) {
                near_too.send_to(&packet[..length], node).unwrap();
            }
        }
    });
}

fn learnt_node(node: &Mutex<Option<SocketAddr>>) -> Option<SocketAddr> {
    *node.lock().unwrap()
}

impl Sites {
    /// `None` if they cannot be made.
    pub(super) fn new() -> Option<Sites> {
        Sites::changed(|_| {})
    }

    /// The same, with something changed before the nodes start.
    fn changed(change: impl FnOnce(&Triangle)) -> Option<Sites> {
        let triangle = Triangle::new()?;
        let key = triangle.folder.path().join("groups.key");
        assert!(weir(&["overlay", "keygen"]).arg(&key).output().unwrap().status.success());
        let keys = "groups = ['239.1.0.0/16']\ngroup_key = 'groups.key'";
        (0..NAMES.len()).for_each(|node| triangle.write_with(node, keys, ""));
        change(&triangle);
        let nodes = triangle.start_all();
        let sites = Sites { nodes, triangle };
        (0..NAMES.len()).for_each(|node| fs::create_dir(sites.folder_of(node)).unwrap());
        Some(sites)
    }

    pub(super) fn folder_of(&self, node: usize) -> PathBuf {
        self.triangle.folder.path().join(format!("in-{}", NAMES[node]))
    }

    /// A receiver of what site a sends.
    pub(super) fn receive(&self, node: usize, more: &[&str]) -> Serving {
        let mut command = weir(&["overlay", "receive"]);
        command.arg(self.folder_of(node)).args(["--from", "10.1.0.0/16"]).args(more);
        self.triangle.inside(node, || serving(command)).0
    }

    pub(super) fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.triangle.folder.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    }

    /// Sends from site a.
    fn begin(&self, files: &[&Path], to: &str, more: &[&str]) -> Child {
        let mut command = weir(&["overlay", "send"]);
        command.args(files).arg(to).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.triangle.inside(0, || command.spawn().unwrap())
    }

    pub(super) fn send(&self, files: &[&Path], to: &str, more: &[&str]) -> Output {
        self.begin(files, to, more).wait_with_output().unwrap()
    }

    /// Sends what must arrive. Returns the last report.
    fn sent(&self, files: &[&Path], to: &str, more: &[&str]) -> Value {
        last(&self.send(files, to, &[more, &["--json"]].concat()))
    }

    /// Waits until a part of a file has this length.
    fn until_part(&self, node: usize, name: &str, length: usize) {
        until_long(&self.folder_of(node).join(format!("{name}.weir-part")), length);
    }

    /// Puts a queue of the kernel before the link from a node to another one.
    pub(super) fn queue(&self, from: usize, to: usize, how: &str) {
        self.triangle.inside(from, || run(&format!("tc qdisc add dev to-{} root {how}", NAMES[to])));
    }
}

/// Waits until a file has this length.
fn until_long(file: &Path, length: usize) {
    let begun = Instant::now();
    while fs::metadata(file).map_or(0, |about| about.len()) < length as u64 {
        assert!(begun.elapsed() < PATIENCE, "nothing arrives at {}", file.display());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn last(output: &Output) -> Value {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let all = text(&output.stdout);
    serde_json::from_str(all.lines().last().unwrap()).unwrap_or_else(|error| panic!("{error}: {all}"))
}

/// Slow enough that a transfer of some blocks does not end before it is interrupted.
const SLOW: &str = "tbf rate 80mbit burst 64kb latency 50ms";

#[test]
fn a_transfer_that_is_killed_goes_on_with_the_missing_blocks() {
    let Some(sites) = Sites::new() else { return };
    // Both ways to b, so that the overlay has no faster one.
    [1, 2].into_iter().for_each(|to| sites.queue(0, to, SLOW));
    let receiver = sites.receive(1, &[]);
    let contents = bytes(6 * BLOCK + 5);
    let (file, empty) = (sites.file("data", &contents), sites.file("empty", b""));
    let to = site(1).to_string();
    let mut first = sites.begin(&[&file, &empty], &to, &[]);
    sites.until_part(1, "data", 2 * BLOCK);
    send_signal(&first, Signal::KILL);
    assert!(!first.wait().unwrap().success());
    // The receiver may not have noticed yet that the first sender is gone.
    let begun = Instant::now();
    let told = loop {
        let output = sites.send(&[&file, &empty], &to, &["--json"]);
        if output.status.success() || begun.elapsed() > PATIENCE {
            break last(&output);
        }
        assert!(
            text(&output.stderr).contains("is being received in another session"),
            "{}",
            text(&output.stderr)
        );
    };
    let kept = told["kept_bytes"].as_u64().unwrap();
    assert!(kept >= BLOCK as u64 && kept.is_multiple_of(BLOCK as u64), "{told}");
    assert_eq!(told["sent_bytes"].as_u64().unwrap() + kept, contents.len() as u64);
    assert!(
        fs::read(sites.folder_of(1).join("data")).unwrap() == contents
            && sites.folder_of(1).join("empty").exists()
    );
    // The same again has nothing to do, and another content is refused.
    let again = sites.send(&[&file, &empty], &to, &[]);
    assert!(
        again.status.success() && text(&again.stdout).contains("nothing was to do"),
        "{}",
        text(&again.stdout)
    );
    let other = sites.file("data", &vec![7; contents.len()]);
    let refused = sites.send(&[&other], &to, &[]);
    assert!(text(&refused.stderr).contains("its content is another"), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(1));
    assert!(fs::read(sites.folder_of(1).join("data")).unwrap() == contents);
    let all = sites.triangle.said(1, &["status"]);
    assert!(all.contains("receiver over the overlay at 0.0.0.0:7765"), "{all}");
    drop(receiver);
    let gone = sites.send(&[&file], &to, &[]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(
        text(&gone.stderr).contains("run `weir overlay receive FOLDER --from PREFIX` there"),
        "{}",
        text(&gone.stderr)
    );
}

/// Room on the disk of a receiver, and the part of it that something else takes.
const DISK: usize = 40 << 20;

/// A receiver whose folder is a file system of its own, which is gone with it. Returns where others find the folder.
fn on_a_small_disk(sites: &Sites, node: usize, more: &str) -> (Serving, PathBuf) {
    let (folder, weir) = (sites.folder_of(node), env!("CARGO_BIN_EXE_weir"));
    let script = format!(
        "mount -t tmpfs -o size={DISK} none {0} && exec {weir} overlay receive {0} --from 10.1.0.0/16 {more}",
        folder.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let receiver = sites.triangle.inside(node, || serving(command)).0;
    let there = format!("/proc/{}/root{}", receiver.id(), folder.display());
    (receiver, there.into())
}

#[test]
fn a_full_disk_is_told_to_the_sender_and_the_transfer_goes_on_when_there_is_room() {
    let Some(sites) = Sites::new() else { return };
    [1, 2].into_iter().for_each(|to| sites.queue(0, to, SLOW));
    for (node, to, more) in
        [(1, site(1).to_string(), String::new()), (2, GROUP.into(), format!("--group {GROUP}"))]
    {
        let (_receiver, folder) = on_a_small_disk(&sites, node, &more);
        let contents = bytes(6 * BLOCK + 5);
        let file = sites.file("data", &contents);
        let (there, part) = (folder.join("data"), folder.join("data.weir-part"));
        let begun = sites.begin(&[&file], &to, &[]);
        until_long(&part, BLOCK);
        // Something else fills the disk while the file comes.
        let mut filler = fs::File::create(folder.join("filler")).unwrap();
        assert!(filler.write_all(&vec![1; DISK]).is_err());
        let output = begun.wait_with_output().unwrap();
        // Of a group each receiver has a line.
        let told = text(&output.stdout) + &text(&output.stderr);
        assert!(
            told.contains("\"data\" cannot be written") && told.contains("No space left on device"),
            "{told}"
        );
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(!there.exists(), "what is not whole has its name");
        // While the disk is full, the same command is told so before anything is sent.
        let full = sites.send(&[&file], &to, &[]);
        let told = text(&full.stdout) + &text(&full.stderr);
        assert!(!full.status.success() && told.contains("do not fit the disk"), "{told}");
        assert!(!there.exists());
        drop(filler);
        fs::remove_file(folder.join("filler")).unwrap();
        let told = sites.sent(&[&file], &to, &[]);
        assert!(fs::read(&there).unwrap() == contents && !part.exists());
        // What had come before the disk was full is not sent again. A group is told once what each of its receivers lacks.
        if node == 1 {
            let kept = told["kept_bytes"].as_u64().unwrap();
            assert!(kept >= BLOCK as u64 && kept < contents.len() as u64, "{told}");
        }
    }
}

#[test]
fn what_a_receiver_does_not_take_is_told_and_a_deadline_is_asked_of_the_node() {
    let Some(sites) = Sites::new() else { return };
    let _receiver = sites.receive(1, &["--quota", "1MB"]);
    let (small, large) = (sites.file("small", &bytes(500_000)), sites.file("large", &bytes(600_000)));
    let to = site(1).to_string();
    let told = sites.sent(&[&small], &to, &["--deadline", "60s", "--priority", "3"]);
    assert_eq!((&told["in_time"], &told["files"][0]["bytes"]), (&true.into(), &500_000.into()));
    // The service of the transfer is gone with it.
    let services = sites.triangle.weir(0, &["overlay", "del", &format!("files to {to}:7765")]);
    assert!(text(&services.stderr).contains("no service has the name"), "{}", text(&services.stderr));
    let refused = sites.send(&[&large], &to, &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("600000 bytes do not fit the quota"), "{}", text(&refused.stderr));
    // Another site may not send here, and is told so.
    let foreign = sites.triangle.weir(2, &["overlay", "send", small.to_str().unwrap(), &to]);
    assert!(text(&foreign.stderr).contains("10.3.0.1 may not send"), "{}", text(&foreign.stderr));
    for (arguments, told) in [
        (&["--priority", "0"][..], "write a number above 0"),
        (&["--receivers", "2"], "is one receiver, not a group"),
        (&["--deadline", "5min", "--node", "z"], "no overlay node \"z\" runs here"),
    ] {
        let output = sites.send(&[&small], &to, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
    }
    let none = sites.triangle.weir(1, &["overlay", "receive", "/nowhere/at/all", "--from", "10.1.0.0/16"]);
    assert_eq!(none.status.code(), Some(2));
    let group = ["--listen", "0.0.0.0:0", "--group", "10.1.2.3"];
    let arguments = [&["overlay", "receive", "/tmp", "--from", "10.1.0.0/16"][..], &group].concat();
    let no_group = sites.triangle.weir(1, &arguments);
    assert!(text(&no_group.stderr).contains("10.1.2.3 is no multicast group"), "{}", text(&no_group.stderr));
    let nobody = sites.send(&[&small], GROUP, &["--wait", "100ms"]);
    assert!(
        text(&nobody.stderr).contains("no receiver has joined within 100 ms"),
        "{}",
        text(&nobody.stderr)
    );
    assert_eq!(nobody.status.code(), Some(1));
}

#[test]
fn a_group_gets_files_over_a_link_that_loses_packets_and_each_receiver_is_told() {
    let Some(sites) = Sites::changed(lose_packets) else { return };
    let _receivers = [1, 2].map(|node| sites.receive(node, &["--group", GROUP]));
    let contents = bytes(2 * BLOCK + 1234);
    let files = [sites.file("data", &contents), sites.file("empty", b""), sites.file("small", b"x")];
    // An earlier attempt has left a block at one of them.
    fs::write(sites.folder_of(1).join("data.weir-part"), &contents[..BLOCK]).unwrap();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let told = sites.sent(&files, GROUP, &["--receivers", "2"]);
    let whole = |address: usize| serde_json::json!({ "address": site(address).to_string(), "whole": true, "why": null });
    assert_eq!(told["receivers"], serde_json::json!([whole(1), whole(2)]), "{told}");
    for node in [1, 2] {
        assert!(fs::read(sites.folder_of(node).join("data")).unwrap() == contents, "{}", NAMES[node]);
        assert_eq!(fs::read(sites.folder_of(node).join("small")).unwrap(), b"x");
    }
    // All blocks that one lacks are sent once, and what is lost again.
    let least = (contents.len() / 1024) as u64;
    let datagrams = told["datagrams"].as_u64().unwrap();
    assert!((least..2 * least).contains(&datagrams), "{datagrams}");
    let again = sites.send(&files, GROUP, &["--receivers", "2"]);
    let said = text(&again.stdout);
    assert!(again.status.success() && said.contains("nothing was to do"), "{said}{}", text(&again.stderr));
    assert!(said.contains("10.3.0.1 has all of it, with the same digests"), "{said}");
}

#[test]
fn a_receiver_that_falls_silent_is_told_and_the_others_get_all() {
    let Some(mut sites) = Sites::new() else { return };
    for (from, to) in [(0, 1), (0, 2)] {
        sites.queue(from, to, SLOW);
    }
    let receivers = [1, 2].map(|node| sites.receive(node, &["--group", GROUP]));
    let contents = bytes(4 * BLOCK);
    let file = sites.file("data", &contents);
    let sender = sites.begin(&[&file], GROUP, &["--receivers", "2", "--timeout", "10s", "--json"]);
    sites.until_part(2, "data", BLOCK);
    receivers[1].signal(Signal::STOP);
    // The node of the other one starts again: it joins the group and the session again.
    sites.nodes[1].0.kill().unwrap();
    sites.nodes[1].0.wait().unwrap();
    sites.nodes[1] = sites.triangle.start(1);
    let output = sender.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let why = text(&output.stderr);
    assert!(why.contains("10.3.0.1 has been silent for") && why.contains("1 of 2 receivers"), "{why}");
    let all = text(&output.stdout);
    let told: Value = serde_json::from_str(all.lines().last().unwrap()).unwrap();
    let ends = told["receivers"].as_array().unwrap();
    assert_eq!((&ends[0]["whole"], &ends[1]["whole"]), (&true.into(), &false.into()), "{told}{why}");
    assert!(fs::read(sites.folder_of(1).join("data")).unwrap() == contents);
    // The one that was silent gets the rest from the same command.
    receivers[1].signal(Signal::CONT);
    let told = sites.sent(&[&file], GROUP, &["--receivers", "2"]);
    assert_eq!(told["receivers"].as_array().unwrap().len(), 2, "{told}");
    assert!(fs::read(sites.folder_of(2).join("data")).unwrap() == contents);
}
