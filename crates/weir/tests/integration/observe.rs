//! `weir observe` on a device of a network namespace. Where programs cannot be loaded the tests skip and say so; with WEIR_REQUIRE_LIVE=1
//! that is a failure.

use crate::hosts::{send_signal, text, weir};
use rustix::process::Signal;
use serde_json::Value;
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use weir_linux::namespace::{Namespace, set_sysctl};

/// How long something may take that usually takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(20);

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

/// Two devices, of which the first has an address, and nothing answers at the second.
struct Line(Namespace);

impl Line {
    /// `None` where namespaces cannot be made, or programs not be loaded.
    fn new() -> Option<Line> {
        let line = weir_linux::may_make_namespaces().then(|| Line(Namespace::new().unwrap()))?;
        line.0
            .inside(|| {
                let _ = set_sysctl("ipv6.conf.all.disable_ipv6", "1");
                run("ip link add name v0 txqueuelen 1000 type veth peer name v1");
                run("ip address add 10.1.0.1/24 dev v0");
                run("ip link set dev v0 up");
                run("ip link set dev v1 up");
                // No question of ARP goes out.
                run("ip neighbour add 10.1.0.2 lladdr 02:00:00:00:00:02 dev v0");
                run("tc qdisc add dev v0 root handle 5: tbf rate 800kbit burst 2000 limit 20000");
                Ok(())
            })
            .unwrap();
        let tried = line.weir(&["observe", "v0", "--for", "10ms"]);
        if tried.status.success() {
            return Some(line);
        }
        println!("skipped: {}", text(&tried.stderr));
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        None
    }

    fn inside<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.0.inside(|| Ok(what())).unwrap()
    }

    fn weir(&self, args: &[&str]) -> Output {
        self.inside(|| weir(args).output().unwrap())
    }

    fn begins(&self, args: &[&str]) -> Child {
        self.inside(|| weir(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }
}

/// Whether the process holds programs or maps of the kernel.
fn is_loaded(process: &Child) -> bool {
    let held = std::fs::read_dir(format!("/proc/{}/fd", process.id())).into_iter().flatten().flatten();
    let is_bpf = |to: std::path::PathBuf| to.to_string_lossy().contains("bpf");
    held.into_iter().any(|fd| std::fs::read_link(fd.path()).is_ok_and(is_bpf))
}

fn eventually(what: &str, mut happens: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happens() {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn packets_that_wait_and_those_that_are_refused_are_counted() {
    let Some(line) = Line::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("queue");
    let child = line.begins(&["observe", "v0", "--for", "3s", "--json", "--out", &out.display().to_string()]);
    // Packets that come before the programs are attached are not seen.
    eventually("its programs are loaded", || is_loaded(&child));
    sleep(Duration::from_millis(500));
    line.inside(|| {
        let socket = UdpSocket::bind("10.1.0.1:0").unwrap();
        for _ in 0..40 {
            socket.send_to(&[0; 958], "10.1.0.2:9").unwrap();
        }
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let queue = &told["queue"];
    // 1000 bytes each: 20 wait, and what comes meanwhile is refused.
    let (came, left) = (queue["came"].as_u64().unwrap(), queue["left"].as_u64().unwrap());
    let dropped: u64 = told["drops"].as_object().unwrap().values().map(|drops| drops.as_u64().unwrap()).sum();
    assert_eq!((came, left + dropped), (40, 40), "{told:#}");
    assert!(left >= 20, "{told:#}");
    assert_eq!(told["drops"]["qdisc-drop"].as_u64(), Some(dropped), "{told:#}");
    assert_eq!(queue["came_by_codepoint"][0], 40);
    // The last of 20 that wait leaves after 200 ms: 10 ms each. The burst has room for two.
    let longest = queue["sojourn_ms"]["max"].as_f64().unwrap();
    assert!(longest >= 170.0, "{told:#}");
    assert_eq!(queue["compared"]["counted"], queue["compared"]["seen"], "{told:#}");
    assert_eq!(told["discipline"], "tbf");
    for name in ["index.html", "observation.json", "series.csv"] {
        assert!(out.join(name).exists(), "{name}");
    }
}

#[test]
fn what_cannot_be_observed_is_refused_with_a_reason() {
    let Some(line) = Line::new() else { return };
    let refused = |device: &str| {
        let output = line.weir(&["observe", device, "--for", "1s"]);
        assert_eq!(output.status.code(), Some(2), "{device}");
        text(&output.stderr)
    };
    assert!(refused("v7").contains("there is no device v7"));
    assert!(refused("v1").contains("v1 has no queue"));
    let nobody = line.inside(|| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ]);
        command.arg(env!("CARGO_BIN_EXE_weir")).args(["observe", "v0", "--for", "1s"]).output().unwrap()
    });
    assert_eq!(nobody.status.code(), Some(2), "{}", text(&nobody.stderr));
    assert!(text(&nobody.stderr).contains("may not load programs"), "{}", text(&nobody.stderr));
}

#[test]
fn an_observation_ends_when_the_queue_is_replaced() {
    let Some(line) = Line::new() else { return };
    let child = line.begins(&["observe", "v0", "--json"]);
    eventually("its programs are loaded", || is_loaded(&child));
    sleep(Duration::from_millis(300));
    line.inside(|| run("tc qdisc replace dev v0 root handle 6: bfifo limit 5000"));
    let told: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(told["ended_early"], "another queue took its place: bfifo 6:");
}

#[test]
fn a_killed_observation_leaves_nothing_in_the_kernel() {
    let Some(line) = Line::new() else { return };
    let kills = std::env::var("WEIR_KILLS").map_or(5, |kills| kills.parse().unwrap());
    for _ in 0..kills {
        let mut child = line.begins(&["observe", "v0"]);
        eventually("its programs are loaded", || is_loaded(&child));
        send_signal(&child, Signal::KILL);
        child.wait().unwrap();
        // The kernel releases programs with the last descriptor.
        assert!(!is_loaded(&child));
    }
    let pinned = std::fs::read_dir("/sys/fs/bpf").into_iter().flatten().flatten();
    assert!(pinned.into_iter().all(|pin| !pin.file_name().to_string_lossy().contains("watch")));
}
