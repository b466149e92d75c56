//! Labs with an overlay on daemons: `weir run --on live`, and `weir overlay up`.

use super::{PATIENCE, are_up, deliver};
use crate::hosts::{bytes, send_signal, text, weir};
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A triangle of nodes.
const TRIANGLE: &str = "format = 1\n[run]\nduration = \"3 s\"\nwarmup = \"0 s\"\nstart_jitter = \"0 s\"\nhost_jitter = \"0 s\"\n\
    [graph]\nrouters = [\"a\", \"b\", \"c\"]\n[graph.links]\n\
    ab = { from = \"a\", to = \"b\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
    ac = { from = \"a\", to = \"c\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
    bc = { from = \"b\", to = \"c\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
    [overlay]\nnodes = [\"a\", \"b\", \"c\"]\n";
/// Marks the processes of a test: they inherit it.
const MARK: &str = "WEIR_TEST_OF";

/// A folder with a lab, and the mark of its processes.
struct Place {
    folder: tempfile::TempDir,
    mark: String,
}

impl Place {
    /// `None` if this machine cannot run it.
    fn new(name: &str, lab: &str) -> Option<Place> {
        if !(rustix::process::geteuid().is_root() && weir_linux::may_make_namespaces()) {
            println!("skipped: nodes are set up by root, in network namespaces");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lab.toml"), lab).unwrap();
        Some(Place { folder, mark: format!("{MARK}={name}-{}", std::process::id()) })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let (name, value) = self.mark.split_once('=').unwrap();
        let mut command = weir(arguments);
        command.current_dir(self.folder.path()).env(name, value);
        command
    }

    /// Runs the lab, and returns what its summary says of each group.
    fn run(&self) -> Vec<Value> {
        self.told("groups")
    }

    /// The same of each flow.
    fn flows(&self) -> Vec<Value> {
        self.told("flows")
    }

    fn told(&self, of: &str) -> Vec<Value> {
        let output = self.command(&["run", "lab.toml", "--on", "live", "--out", "out"]).output().unwrap();
        let summary = fs::read(self.folder.path().join("out/summary.json"))
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
        let summary: Value = serde_json::from_slice(&summary).unwrap();
        summary["runs"][0][of].as_array().unwrap_or_else(|| panic!("{}", text(&output.stderr))).clone()
    }

    /// The processes of this test, beside those that have ended.
    fn processes(&self) -> usize {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let is_ours = |folder: &Path| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == self.mark.as_bytes())
        };
        all.filter(|entry| is_ours(&entry.path())).count()
    }

    /// Waits until there are so many.
    fn until_there_are(&self, what: &str, is_so: impl Fn(usize) -> bool) {
        let begun = Instant::now();
        while !is_so(self.processes()) {
            assert!(begun.elapsed() < PATIENCE, "{what}: there are {}", self.processes());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Kills what a test has left.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

fn bytes_read(group: &Value) -> u64 {
    group["read_bytes"].as_u64().unwrap()
}

#[test]
fn datagrams_cross_the_daemons_of_a_lab_and_nothing_is_left() {
    let lab = format!(
        "{TRIANGLE}[traffic.there]\nfrom = \"a\"\nto = \"b\"\noverlay = {{ priority = 2, deadline = \"1 s\" }}\n\
         workload = {{ kind = \"udp\", rate = \"2 Mbit/s\", packet = \"1052 B\" }}\n\
         [traffic.back]\nfrom = \"b\"\nto = \"a\"\n\
         workload = {{ kind = \"udp\", rate = \"1 Mbit/s\", packet = \"528 B\", source = \"socket\" }}\n"
    );
    let Some(place) = Place::new("datagrams", &lab) else { return };
    let groups = place.run();
    for (group, payload, offered) in [(&groups[0], 1024, 750_000), (&groups[1], 500, 375_000)] {
        let read = bytes_read(group);
        assert!(read.is_multiple_of(payload) && read <= offered, "{read}");
        assert!(read > offered / 4, "{read}");
        // The time of each datagram that was read is known, and each was admitted.
        let crossed = group["transit_ms"]["count"].as_u64().unwrap();
        assert!(crossed >= read / payload && crossed * payload <= offered, "{crossed}");
        assert!(group["in_time_percent"].as_f64().unwrap() > 0.0 && group["passed_links"].is_null());
    }
    assert_eq!(place.processes(), 0);
}

#[test]
fn a_stream_over_proxies_of_a_lab_arrives_whole() {
    let lab = format!(
        "{TRIANGLE}[traffic.file]\nfrom = \"a\"\nto = \"b\"\ntransport = \"relay\"\n\
         workload = {{ kind = \"transfer\", size = \"500 kB\" }}\n"
    )
    .replace("3 s", "8 s");
    let Some(place) = Place::new("streams", &lab) else { return };
    let groups = place.run();
    assert_eq!(bytes_read(&groups[0]), 500_000);
    assert!(groups[0]["transit_ms"].is_null(), "packets of proxies have no times");
    assert_eq!(place.processes(), 0);
}

#[test]
fn datagrams_to_a_group_reach_the_hosts_that_have_joined_it() {
    for source in ["fabric", "socket"] {
        let lab = format!(
            "{TRIANGLE}[traffic.all]\nfrom = \"a\"\nmulticast = [\"b\", \"c\"]\nstart = \"1 s\"\n\
             workload = {{ kind = \"udp\", rate = \"2 Mbit/s\", packet = \"1052 B\", source = \"{source}\" }}\n"
        );
        let Some(place) = Place::new("group", &lab.replace("3 s", "5 s")) else { return };
        let flows = place.flows();
        assert_eq!(flows.len(), 2);
        for flow in &flows {
            // 4 s of 2 Mbit/s, of which the first packets wait for the overlay to know the member.
            let read = flow["read_bytes"].as_u64().unwrap();
            assert!(read.is_multiple_of(1024) && (500_000..=1_000_000).contains(&read), "{source}: {flow}");
        }
    }
}

#[test]
fn what_goes_beside_the_overlay_takes_its_links_without_its_nodes() {
    // The direct link is the longer way: the packets of the group beside the overlay pass c.
    let lab = format!(
        "{TRIANGLE}[traffic.carried]\nfrom = \"a\"\nto = \"b\"\ntransport = \"relay\"\n\
         workload = {{ kind = \"transfer\", size = \"200 kB\" }}\n\
         [traffic.file]\nfrom = \"a\"\nto = \"b\"\noverlay = false\nworkload = {{ kind = \"transfer\", size = \"300 kB\" }}\n\
         [traffic.datagrams]\nfrom = \"b\"\nto = \"a\"\noverlay = false\n\
         workload = {{ kind = \"udp\", rate = \"1 Mbit/s\", packet = \"1500 B\" }}\n"
    )
    .replace("rate = \"10 Mbit/s\", delay = \"5 ms\" }\nac", "rate = \"10 Mbit/s\", delay = \"40 ms\" }\nac")
    .replace("3 s", "6 s");
    let Some(place) = Place::new("beside", &lab) else { return };
    let groups = place.run();
    assert_eq!([bytes_read(&groups[0]), bytes_read(&groups[1])], [200_000, 300_000]);
    // 1 Mbit/s for 6 s, and no node has an admission for it.
    assert!(bytes_read(&groups[2]) > 600_000 && groups[2]["transit_ms"].is_null(), "{}", groups[2]);
    // The time of a round trip is that of the links, four of 5 ms, and is read from the hosts' own headers.
    let round_trip = groups[1]["rtt_ms"]["p50"].as_f64().unwrap();
    assert!((20.0..80.0).contains(&round_trip), "{round_trip}");
}

#[test]
fn daemons_end_with_a_run_that_is_killed() {
    let lab = format!(
        "{TRIANGLE}[traffic.there]\nfrom = \"a\"\nto = \"b\"\nworkload = {{ kind = \"udp\", rate = \"1 Mbit/s\" , packet = \"1052 B\" }}\n"
    )
    .replace("3 s", "60 s");
    let Some(place) = Place::new("killed", &lab) else { return };
    let mut command = place.command(&["run", "lab.toml", "--on", "live", "--out", "out"]);
    let mut run = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    place.until_there_are("the run and its three daemons", |count| count >= 4);
    // Well inside the run, or while the nodes look for each other.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(run.0.try_wait().unwrap().is_none(), "it must be running when it is killed");
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    place.until_there_are("nothing is left", |count| count == 0);
}

#[test]
fn what_daemons_cannot_do_is_refused() {
    let udp = "workload = { kind = \"udp\", rate = \"1 Mbit/s\", packet = \"1052 B\" }\n";
    let there = format!("[traffic.x]\nfrom = \"a\"\nto = \"b\"\n{udp}");
    for (lab, told) in [
        (
            format!(
                "{TRIANGLE}[traffic.x]\nfrom = \"a\"\nmulticast = [\"b\", \"c\"]\n{udp}[traffic.y]\nfrom = \"c\"\nmulticast = [\"b\"]\n{udp}"
            ),
            "behind the node b both receive what is sent to groups",
        ),
        (
            format!("{TRIANGLE}{there}overlay = false\nip = 6\n"),
            "group x: it goes beside the overlay over IPv6",
        ),
        (
            format!("{TRIANGLE}{there}overlay = false\n")
                .replace("nodes = [\"a\", \"b\", \"c\"]", "nodes = [\"b\", \"c\"]"),
            "packets beside the overlay pass the router a, which is no node",
        ),
        (format!("{TRIANGLE}planner = true\n{there}"), "[overlay] planner = true cannot be set"),
        (
            format!("{TRIANGLE}{there}overlay = {{ class = \"sensitive\" }}\n"),
            "takes packets for sensitive that have a deadline",
        ),
        (
            format!("{TRIANGLE}{there}").replace("1052 B", "1500 B"),
            "packets of 1500 B exceed the 1389 B that fit",
        ),
        (
            format!("{TRIANGLE}{there}").replace(
                "bc = ",
                "second = { from = \"a\", to = \"b\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\nbc = ",
            ),
            "the nodes a and b have two links",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lab.toml"), lab).unwrap();
        let Output { status, stderr, .. } =
            weir(&["run", "lab.toml", "--on", "live"]).current_dir(folder.path()).output().unwrap();
        let said = text(&stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(told), "{told}: {said}");
        assert_eq!(status.code(), Some(2), "{told}");
    }
}

/// Does something in a network namespace that has a file.
fn inside<T: Send + 'static>(namespace: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let namespace = File::open(namespace).unwrap();
    let there = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    };
    std::thread::spawn(there).join().unwrap()
}

/// A UDP socket there.
fn socket_in(namespace: &str, address: &str) -> UdpSocket {
    let address = address.to_owned();
    let socket = inside(namespace, move || UdpSocket::bind((address.as_str(), 7000)).unwrap());
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

/// A lab that is up, and the ways in.
struct Up {
    process: Running,
    /// Name, address and the file of the namespace, of the nodes and of the hosts behind them.
    entrances: Vec<[String; 3]>,
}

impl Up {
    fn begin(place: &Place, more: &[&str]) -> Up {
        let mut command = place.command(&[&["overlay", "up", "lab.toml"], more].concat());
        let mut process = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let mut entrances = Vec::new();
        while let Some(line) = lines.next().map(Result::unwrap).filter(|line| !line.starts_with("In the")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let namespace = words.iter().find_map(|word| word.strip_prefix("--net=")).unwrap();
            entrances.push([words[0], words[1], namespace].map(str::to_owned));
        }
        Up { process, entrances }
    }

    fn of(&self, name: &str) -> &[String; 3] {
        self.entrances.iter().find(|[own, ..]| own == name).unwrap()
    }

    fn hosts(&self) -> Vec<&[String; 3]> {
        let is_host = |one: &&[String; 3]| !["a", "b", "c"].contains(&one[0].as_str());
        self.entrances.iter().filter(is_host).collect()
    }

    /// Sends datagrams both ways between two of them.
    fn reach(&self, [near, far]: [&[String; 3]; 2]) {
        let sockets = [near, far].map(|[_, address, namespace]| socket_in(namespace, address));
        assert_eq!(deliver(&sockets[0], &sockets[1], b"hello").0.to_string(), near[1]);
        deliver(&sockets[1], &sockets[0], b"hello yourself");
    }

    fn status(&self, name: &str) -> Value {
        let Output { stdout, stderr, .. } =
            inside(&self.of(name)[2], || weir(&["overlay", "status", "--json"]).output().unwrap());
        serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{}", text(&stderr)))
    }
}

/// The triangle with a group, whose hosts are behind the nodes a and b.
fn with_hosts() -> String {
    format!(
        "{TRIANGLE}[traffic.x]\nfrom = \"a\"\nto = \"b\"\nworkload = {{ kind = \"udp\", rate = \"1 Mbit/s\", packet = \"1052 B\" }}\n"
    )
}

#[test]
fn programs_use_the_overlay_of_a_lab_that_is_up() {
    let Some(place) = Place::new("up", &with_hosts()) else { return };
    let mut up = Up::begin(&place, &[]);
    // Three nodes, and the two hosts of the group.
    assert_eq!(up.entrances.len(), 5, "{:?}", up.entrances);
    let hosts = up.hosts();
    up.reach([up.of("a"), up.of("c")]);
    up.reach([hosts[0], hosts[1]]);
    let status = up.status("a");
    assert_eq!((are_up(&status[0]), &status[0]["packets"]["foreign_source"]), (2, &0.into()));
    send_signal(&up.process.0, Signal::INT);
    assert_eq!(up.process.0.wait().unwrap().code(), Some(0));
    assert_eq!(place.processes(), 0);
}

#[test]
fn over_veth_pairs_the_same_nodes_and_hosts_reach_each_other_without_the_labs_delays() {
    // Over links of the lab no datagram would arrive: each takes a minute.
    let Some(place) = Place::new("veth", &with_hosts().replace("5 ms", "60 s")) else { return };
    let up = Up::begin(&place, &["--links", "veth"]);
    assert_eq!(up.entrances.len(), 5, "{:?}", up.entrances);
    let hosts = up.hosts();
    up.reach([up.of("a"), up.of("c")]);
    up.reach([hosts[0], hosts[1]]);
    up.reach([hosts[1], up.of("c")]);
    let status = up.status("a");
    assert_eq!((are_up(&status[0]), &status[0]["packets"]["foreign_source"]), (2, &0.into()));
    // Devices lead from node to node: nothing else is between them.
    let names = inside(&up.of("c")[2], || fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let devices = names.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
    let mut devices: Vec<&str> = devices.filter(|name| name.starts_with("eth") || *name == "lo").collect();
    devices.sort_unstable();
    assert_eq!(devices, ["eth1", "eth2", "lo"], "{names}");
}

#[test]
fn streams_over_veth_pairs_arrive_whole_over_proxies_and_without() {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    let relay = "[traffic.y]\nfrom = \"a\"\nto = \"b\"\ntransport = \"relay\"\n";
    for (name, lab) in [("veth-carry", with_hosts()), ("veth-proxy", with_hosts() + relay)] {
        let Some(place) = Place::new(name, &lab) else { return };
        let up = Up::begin(&place, &["--links", "veth"]);
        let host = |end: &str| up.of(&format!("x-{end}")).clone();
        let [(_, near), (address, far)] =
            ["sender", "receiver"].map(host).map(|[_, address, file]| (address, file));
        let own = address.clone();
        let listener = inside(&far, move || TcpListener::bind((own.as_str(), 7001)).unwrap());
        let mut stream = inside(&near, move || TcpStream::connect((address.as_str(), 7001)).unwrap());
        let data = bytes(4 << 20);
        let sent = data.clone();
        let sending = std::thread::spawn(move || stream.write_all(&sent).unwrap());
        let mut arrived = vec![];
        listener.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
        sending.join().unwrap();
        assert!(arrived == data, "{name}: {} of {} bytes", arrived.len(), data.len());
    }
}

#[test]
fn nothing_of_an_overlay_over_veth_pairs_is_left_when_it_is_killed() {
    let Some(place) = Place::new("veth-killed", &with_hosts()) else { return };
    let mut up = Up::begin(&place, &["--links", "veth"]);
    let own = fs::read_to_string("/proc/self/net/dev").unwrap();
    let of = |text: &str| {
        text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect::<Vec<_>>()
    };
    assert!(!of(&own).iter().any(|name| name.starts_with("h") && name[1..].parse::<u32>().is_ok()), "{own}");
    up.process.0.kill().unwrap();
    up.process.0.wait().unwrap();
    place.until_there_are("nothing is left", |count| count == 0);
    for [name, _, namespace] in &up.entrances {
        assert!(!Path::new(namespace).exists(), "{name}");
    }
}

#[test]
fn a_network_with_a_router_that_is_no_node_is_refused_for_veth_pairs() {
    let lab = with_hosts()
        .replace("routers = [\"a\", \"b\", \"c\"]", "routers = [\"a\", \"b\", \"c\", \"d\"]")
        .replace(
            "[overlay]",
            "cd = { from = \"c\", to = \"d\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n[overlay]",
        );
    let Some(place) = Place::new("veth-router", &lab) else { return };
    let output = place.command(&["overlay", "up", "lab.toml", "--links", "veth"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let told = text(&output.stderr);
    assert!(
        told.contains("the link cd leads to d, which is neither") && told.contains("--links fabric"),
        "{told}"
    );
}
