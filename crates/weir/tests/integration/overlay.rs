//! An overlay of three sites in network namespaces: each site has a node, and each two nodes have a link. Where namespaces and devices
//! cannot be made the tests skip and say so; with WEIR_REQUIRE_LIVE=1 that is a failure.

mod decoded;
mod devices;
mod files;
mod groups;
mod kills;
mod labs;
mod services;
mod streams;

use crate::browser;
use crate::hosts::{bytes, send_signal, text, weir};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_linux::namespace::Namespace;

/// Longest wait for something that takes a second or two.
const PATIENCE: Duration = Duration::from_secs(30);
/// The names of nodes, and the pairs that have a link.
const NAMES: [&str; 3] = ["a", "b", "c"];
const LINKS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];
/// The loopback address at which each node, in a namespace of its own, shows its status.
const METRICS: &str = "127.0.0.1:9100";
/// A service of the file of node a, which SIGHUP may change.
const SERVICE: &str = "[[service]]\nname = 'video'\nports = 5000\nadmit = { kind = 'log', priority = 2.0 }\n";

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
}

/// The address of a site's device.
fn site(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 1 + node as u8, 0, 1)
}

/// The address of a node on its link to another one.
fn at(node: usize, to: usize) -> Ipv4Addr {
    let link = LINKS.iter().position(|(a, b)| (*a, *b) == (node.min(to), node.max(to))).unwrap();
    Ipv4Addr::new(192, 0, 2 + link as u8, 1 + u8::from(node > to))
}

/// Three namespaces, joined by links.
struct Triangle {
    namespaces: Vec<Namespace>,
    folder: tempfile::TempDir,
    keys: Vec<String>,
}

/// A node that ends with the test.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

impl Triangle {
    /// `None` if it cannot be made.
    fn new() -> Option<Triangle> {
        if !(rustix::process::geteuid().is_root() && weir_linux::may_make_namespaces()) {
            println!("skipped: nodes are set up by root, in network namespaces");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            return None;
        }
        let namespaces: Vec<Namespace> = NAMES.iter().map(|_| Namespace::new().unwrap()).collect();
        let folder = tempfile::tempdir().unwrap();
        let key = |name: &&str| {
            let made =
                weir(&["overlay", "keygen"]).arg(folder.path().join(format!("{name}.key"))).output().unwrap();
            assert!(made.status.success(), "{}", text(&made.stderr));
            text(&made.stdout).trim().to_owned()
        };
        let keys = NAMES.iter().map(key).collect();
        let triangle = Triangle { namespaces, folder, keys };
        for node in 0..NAMES.len() {
            triangle.inside(node, || run("ip link set dev lo up"));
        }
        for (a, b) in LINKS {
            let far = triangle.namespaces[b].as_fd().as_raw_fd();
            let far = format!("/proc/{}/fd/{far}", std::process::id());
            let (near_name, far_name) = (format!("to-{}", NAMES[b]), format!("to-{}", NAMES[a]));
            triangle.inside(a, || {
                run(&format!("ip link add {near_name} type veth peer name {far_name} netns {far}"))
            });
            for (node, to, name) in [(a, b, &near_name), (b, a, &far_name)] {
                triangle.inside(node, || {
                    run(&format!("ip address add {}/24 dev {name}", at(node, to)));
                    run(&format!("ip link set dev {name} up"));
                });
            }
        }
        (0..NAMES.len()).for_each(|node| triangle.write(node, SERVICE));
        Some(triangle)
    }

    fn inside<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> T {
        self.namespaces[node].inside(|| Ok(work())).unwrap()
    }

    fn path(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("{}.toml", NAMES[node]))
    }

    /// Writes the file of a node, with these lines at its end.
    fn write(&self, node: usize, more: &str) {
        self.write_with(node, "", more);
    }

    /// The same, with further keys of the node itself.
    fn write_with(&self, node: usize, keys: &str, more: &str) {
        let name = NAMES[node];
        let mut file = format!(
            "format = 1\nname = '{name}'\nkey = '{name}.key'\nlisten = '0.0.0.0:7770'\naddress = '{}'\n{keys}\n",
            site(node)
        );
        for (number, (name, key)) in NAMES.iter().zip(&self.keys).enumerate() {
            let prefix = format!("10.{}.0.0/16", 1 + number);
            file +=
                &format!("[[node]]\nname = '{name}'\nnumber = {number}\n{key}\nprefixes = ['{prefix}']\n");
        }
        for other in (0..NAMES.len()).filter(|other| *other != node) {
            file += &format!("[[neighbour]]\nname = '{}'\nat = '{}:7770'\n", NAMES[other], at(other, node));
        }
        std::fs::write(self.path(node), file + more).unwrap();
    }

    /// Starts a node, and waits until it works.
    fn start(&self, node: usize) -> Node {
        self.start_with(node, &[])
    }

    /// The same, with further arguments.
    fn start_with(&self, node: usize, more: &[&str]) -> Node {
        let file = self.path(node);
        let own = ["overlay", "node", file.to_str().unwrap(), "--metrics", METRICS];
        self.start_by(node, weir(&[&own[..], more].concat())).0
    }

    /// Starts a node by this command, and waits until it works. Returns what it has said, too.
    fn start_by(&self, node: usize, mut command: Command) -> (Node, String) {
        let mut child = self.inside(node, || command.stderr(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        while !told.contains("interrupt it to end") {
            assert!(lines.read_line(&mut told).unwrap() > 0, "{told}");
        }
        // What it says later must not block it.
        std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
        (Node(child), told)
    }

    fn weir(&self, node: usize, arguments: &[&str]) -> Output {
        self.inside(node, || weir(arguments).output().unwrap())
    }

    fn said(&self, node: usize, arguments: &[&str]) -> String {
        let output = self.weir(node, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn status(&self, node: usize) -> Value {
        serde_json::from_str::<Value>(&self.said(node, &["overlay", "status", "--json"])).unwrap()[0].take()
    }

    /// Waits until a node's status is so.
    fn until(&self, node: usize, what: &str, is_so: impl Fn(&Value) -> bool) {
        let begun = Instant::now();
        loop {
            let status = self.status(node);
            if is_so(&status) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "not {what}: {status}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts all nodes, and waits until each knows its neighbours.
    fn start_all(&self) -> Vec<Node> {
        let nodes = (0..NAMES.len()).map(|node| self.start(node)).collect();
        (0..NAMES.len()).for_each(|node| self.until(node, "joined", |status| are_up(status) == 2));
        nodes
    }

    fn socket(&self, node: usize, port: u16) -> UdpSocket {
        let socket = self.inside(node, || UdpSocket::bind((site(node), port)).unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        socket
    }
}

/// The neighbours that are up.
fn are_up(status: &Value) -> usize {
    status["neighbours"].as_array().unwrap().iter().filter(|one| one["up"] == true).count()
}

/// Sends a datagram until it arrives; returns where it came from. Copies of earlier ones may arrive before.
fn deliver(from: &UdpSocket, to: &UdpSocket, payload: &[u8]) -> (IpAddr, u16) {
    let begun = Instant::now();
    let mut buffer = [0; 8000];
    loop {
        from.send_to(payload, to.local_addr().unwrap()).unwrap();
        while let Ok((length, source)) = to.recv_from(&mut buffer) {
            if &buffer[..length] == payload {
                return (source.ip(), source.port());
            }
        }
        assert!(begun.elapsed() < PATIENCE, "nothing arrives");
    }
}

#[test]
fn programs_of_three_sites_reach_each_other_and_every_flow_is_told() {
    let Some(triangle) = Triangle::new() else { return };
    let _nodes = triangle.start_all();
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    assert_eq!(deliver(&from, &to, b"hello"), (site(0).into(), 4000));
    // The longest datagram that fits, one in fragments, and the answer.
    for length in [1389 - 28, 4000] {
        deliver(&from, &to, &bytes(length));
    }
    assert_eq!(deliver(&to, &from, b"hello yourself"), (site(1).into(), 5000));

    let data = bytes(4 << 20);
    let listener = triangle.inside(2, || TcpListener::bind((site(2), 6000)).unwrap());
    let mut stream = triangle.inside(0, || TcpStream::connect((site(2), 6000)).unwrap());
    let sent = data.clone();
    let sending = std::thread::spawn(move || stream.write_all(&sent).unwrap());
    let mut arrived = vec![];
    let (mut accepted, from_host) = listener.accept().unwrap();
    assert_eq!(from_host.ip(), site(0));
    accepted.read_to_end(&mut arrived).unwrap();
    sending.join().unwrap();
    assert!(arrived == data);

    let status = triangle.status(0);
    let flow = |name: &str| {
        let flows = status["flows"].as_array().unwrap();
        flows.iter().find(|flow| flow["flow"].as_str().unwrap().contains(name)).unwrap()
    };
    let video = flow("10.1.0.1:4000-10.2.0.1:5000/udp");
    assert_eq!(
        (&video["service"], &video["to"], &video["priority"]),
        (&"video".into(), &"b".into(), &2.0.into())
    );
    assert_eq!(video["stands"], "on");
    assert_eq!(flow("-10.3.0.1:6000/tcp")["service"], Value::Null);
    // The fragments are not video: they have no ports.
    assert!(flow("10.1.0.1-10.2.0.1/ip")["sent_bytes"].as_u64().unwrap() > 4000);
    for none in ["foreign_source", "not_opened", "forged_announcements", "malformed", "unknown_destination"] {
        assert_eq!(status["packets"][none], 0, "{none}");
    }

    if let Some(browser) = browser::browser() {
        let page = triangle
            .inside(0, || browser::at_rest_here(&browser, &format!("http://{METRICS}/"), "1200,900", 3000));
        assert!(page.contains("overlay node a at 0.0.0.0:7770</h1>"), "{page}");
        let row = |cells: &[&str]| cells.iter().map(|cell| format!("<td>{cell}</td>")).collect::<String>();
        assert!(page.contains(&row(&["10.1.0.1:4000-10.2.0.1:5000/udp", "b", "video", "on"])), "{page}");
        assert!(page.contains("<td>b</td><td class=\"number\">up</td>"), "{page}");
    }

    let why = triangle.said(0, &["overlay", "why", "10.1.0.1:4000"]);
    assert!(
        why.starts_with("10.1.0.1:4000-10.2.0.1:5000/udp  to b, by log of service video, priority 2.0\n"),
        "{why}"
    );
    triangle.said(0, &["overlay", "set", "--flow", "10.1.0.1:4000", "--priority", "4"]);
    assert!(triangle.said(0, &["overlay", "why", "10.1.0.1:4000"]).contains("priority 4.0"));
    triangle.said(0, &["overlay", "set", "--k", "1e12"]);
    assert_eq!(triangle.status(0)["k"], 1e12);
    triangle.said(
        0,
        &["overlay", "add", "name = 'call', ports = 5000, admit = { kind = 'log', priority = 8.0 }"],
    );
    deliver(&from, &to, b"again");
    assert!(triangle.said(0, &["overlay", "why", "10.1.0.1:4000"]).contains("of service call, priority 8.0"));
    // One for a flow alone comes before all others.
    let only = ["overlay", "add", "--flow", "10.1.0.1:4000", "name = 'this one', admit = 'log'"];
    triangle.said(0, &only);
    deliver(&from, &to, b"and again");
    assert!(triangle.said(0, &["overlay", "why", "10.1.0.1:4000"]).contains("of service this one"));
    triangle.said(0, &["overlay", "del", "this one"]);
    triangle.said(0, &["overlay", "del", "call"]);
    deliver(&from, &to, b"as before");
    assert!(triangle.said(0, &["overlay", "why", "10.1.0.1:4000"]).contains("of service video"));
    deliver(&triangle.socket(0, 4001), &to, b"of another flow");
    let all = triangle.said(0, &["status"]);
    assert!(all.starts_with("overlay node a at 0.0.0.0:7770, for "), "{all}");
    for (arguments, told) in [
        (&["why", "10.9.0.1"][..], "no flow \"10.9.0.1\" has sent"),
        (&["why", "10.1.0.1"], "several flows have"),
        (&["set", "--k", "0"], "out of range"),
        (&["status", "z"], "no overlay node \"z\" runs here"),
        (&["del", "call"], "no service has the name \"call\""),
        (&["add", "name = 'video'"], "there is a service \"video\" already"),
        (&["add", "name = 'x', admit = 'strap'"], "needs the rate that a flow offers"),
        (&["add", "name = 'x', port = 1"], "unknown field `port`"),
        (&["add", "name = "], "the service cannot be read"),
        (&["add", "--flow", "10.1.0.1:4000", "name = 'x', ports = 1"], "--flow sets `ports` too"),
        (&["set", "--drain", "perhaps"], "invalid value 'perhaps'"),
    ] {
        let output = triangle.weir(0, &[&["overlay"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
    }
}

#[test]
fn traffic_goes_over_the_third_node_when_a_link_fails() {
    let Some(triangle) = Triangle::new() else { return };
    let _nodes = triangle.start_all();
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    deliver(&from, &to, b"before");
    triangle.inside(0, || run("ip link set dev to-b down"));
    triangle.until(0, "down", |status| are_up(status) == 1);
    let forwarded = |status: &Value| status["packets"]["forwarded"].as_u64().unwrap();
    let before = forwarded(&triangle.status(2));
    deliver(&from, &to, b"during");
    assert!(forwarded(&triangle.status(2)) > before);
    // A drained node is no way for others, and a way again later.
    triangle.said(2, &["overlay", "set", "--drain", "on"]);
    assert!(triangle.said(2, &["overlay", "status"]).contains("drained: it forwards nothing of other nodes"));
    let far = triangle.socket(2, 5000);
    deliver(&from, &far, b"to the drained node itself");
    std::thread::sleep(Duration::from_millis(500));
    let before = forwarded(&triangle.status(2));
    for _ in 0..20 {
        from.send_to(b"nowhere", (site(1), 5000)).unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(forwarded(&triangle.status(2)), before);
    triangle.said(2, &["overlay", "set", "--drain", "off"]);
    deliver(&from, &to, b"over it again");
    triangle.inside(0, || run("ip link set dev to-b up"));
    triangle.until(0, "up again", |status| are_up(status) == 2);
    deliver(&from, &to, b"after");
}

#[test]
fn a_killed_node_leaves_nothing_on_the_host_and_its_neighbours_take_it_back() {
    let Some(triangle) = Triangle::new() else { return };
    let mut nodes = triangle.start_all();
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    let host =
        || triangle.inside(1, || text(&Command::new("ip").args(["-4", "route"]).output().unwrap().stdout));
    deliver(&from, &to, b"before");
    assert!(host().contains("10.1.0.0/16 dev weir0"), "{}", host());
    drop(to);
    nodes[1].0.kill().unwrap();
    nodes[1].0.wait().unwrap();
    let devices = triangle.inside(1, || text(&Command::new("ip").arg("link").output().unwrap().stdout));
    assert!(!devices.contains("weir0") && !host().contains("weir0"), "{devices}{}", host());
    triangle.until(0, "down", |status| are_up(status) == 1);
    nodes[1] = triangle.start(1);
    triangle.until(0, "up again", |status| are_up(status) == 2);
    let to = triangle.socket(1, 5000);
    deliver(&from, &to, b"after");
    deliver(&to, &from, b"the other way");
    // A second node with this name is refused, and a stop is no failure.
    let second = triangle.weir(1, &["overlay", "node", triangle.path(1).to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("already running at b"), "{}", text(&second.stderr));
    send_signal(&nodes[1].0, Signal::TERM);
    assert_eq!(nodes[1].0.wait().unwrap().code(), Some(0));
}

/// WEIR_KILLS says how many kills there are; `make soak` has 600, which take half an hour. Proxies would reset the stream: its hosts' own TCP
/// repairs what is lost.
#[test]
fn a_stream_outlives_kills_of_every_node_on_its_way() {
    let Some(triangle) = Triangle::new() else { return };
    (0..NAMES.len()).for_each(|node| triangle.write_with(node, "tcp = 'carry'", SERVICE));
    let mut nodes = triangle.start_all();
    let kills: u64 = std::env::var("WEIR_KILLS").map_or(3, |kills| kills.parse().unwrap());
    let listener = triangle.inside(1, || TcpListener::bind((site(1), 6000)).unwrap());
    let mut stream = triangle.inside(0, || TcpStream::connect((site(1), 6000)).unwrap());
    let (mut from, ends) = (listener.accept().unwrap().0, Arc::new(AtomicBool::new(false)));
    let (over, come_so_far) = (ends.clone(), Arc::new(AtomicU64::new(0)));
    let told = come_so_far.clone();
    let sending = std::thread::spawn(move || {
        let (piece, mut sent) = (bytes(1 << 16), 0_u64);
        while !over.load(Ordering::Acquire) {
            stream.write_all(&piece).unwrap();
            sent += piece.len() as u64;
            std::thread::sleep(Duration::from_millis(20));
        }
        sent
    });
    let reading = std::thread::spawn(move || {
        let (piece, mut come, mut read) = (bytes(1 << 16), vec![0; 1 << 16], 0_u64);
        while from.read_exact(&mut come).is_ok() {
            assert!(come == piece, "after {read} bytes");
            read += come.len() as u64;
            told.store(read, Ordering::Release);
        }
        read
    });
    for kill in 0..kills {
        // Each node in turn, two to four seconds apart.
        let node = (kill % 3) as usize;
        nodes[node].0.kill().unwrap();
        nodes[node].0.wait().unwrap();
        std::thread::sleep(Duration::from_millis(100 * (kill * 7 % 10)));
        nodes[node] = triangle.start(node);
        triangle.until(node, "taken back", |status| are_up(status) == 2);
        std::thread::sleep(Duration::from_millis(500));
    }
    // The stream goes on: the hosts' own TCP waits longer after each timeout.
    let (after, begun) = (come_so_far.load(Ordering::Acquire), Instant::now());
    while come_so_far.load(Ordering::Acquire) < after + (1 << 20) {
        assert!(
            begun.elapsed() < PATIENCE,
            "{} bytes since the last kill",
            come_so_far.load(Ordering::Acquire) - after
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    ends.store(true, Ordering::Release);
    let sent = sending.join().unwrap();
    assert_eq!(reading.join().unwrap(), sent);
}

#[test]
fn services_are_read_again_on_sighup_and_a_wrong_file_changes_nothing() {
    let Some(triangle) = Triangle::new() else { return };
    let nodes = triangle.start_all();
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    let service = || {
        deliver(&from, &to, b"x");
        let status = triangle.status(0);
        let flows = status["flows"].as_array().unwrap();
        // All flows begin anew when the services change.
        let flow = flows.iter().find(|flow| flow["flow"].as_str().unwrap().contains(":5000"));
        flow.map_or(Value::Null, |flow| flow["service"].clone())
    };
    assert_eq!(service(), "video");
    triangle.write(0, &SERVICE.replace("'video'", "'film'"));
    send_signal(&nodes[0].0, Signal::HUP);
    let begun = Instant::now();
    while service() != "film" {
        assert!(begun.elapsed() < PATIENCE, "the file is not read again");
    }
    triangle.write(0, &SERVICE.replace("'video'", "'talk'").replace("2.0", "-2.0"));
    send_signal(&nodes[0].0, Signal::HUP);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(service(), "film");
}

#[test]
fn strangers_are_not_answered_and_a_source_of_another_site_goes_nowhere() {
    let Some(triangle) = Triangle::new() else { return };
    let _nodes = triangle.start_all();
    let stranger = triangle.inside(1, || UdpSocket::bind((at(1, 0), 0)).unwrap());
    stranger.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for number in 0..2000_usize {
        let garbage = bytes(1 + number % 1400);
        stranger.send_to(&garbage[..], (at(0, 1), 7770)).unwrap();
    }
    assert!(stranger.recv(&mut [0; 2048]).is_err(), "a stranger is answered");
    // A program of site a with an address of site c.
    let forger = triangle.inside(0, || {
        run("ip address add 10.3.0.9/32 dev lo");
        UdpSocket::bind(("10.3.0.9", 4000)).unwrap()
    });
    let to = triangle.socket(1, 5000);
    for _ in 0..5 {
        forger.send_to(b"forged", (site(1), 5000)).unwrap();
    }
    triangle.until(0, "refused", |status| status["packets"]["foreign_source"] == 5);
    assert!(to.recv(&mut [0; 64]).is_err(), "a forged source arrives");
    deliver(&triangle.socket(0, 4001), &to, b"true");
}
