//! Controls are loaded into the running kernel and unloaded, and leave nothing behind: five times by default, or as often as
//! WEIR_LOADS says. The tests are skipped, with a message, if loading is not permitted; with WEIR_REQUIRE_LIVE=1 that is a
//! failure.
#![cfg(feature = "bpf")]

use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use serde_json::Map;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_control::Config;
use weir_kernel::{CONTROLS, Control, Problem, Relabelling, Running};

/// Environment variable that is set for the process to be killed.
const VICTIM: &str = "WEIR_LOADING_VICTIM";
/// How long the kernel may take to clear up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Names in the kernel are the same for the whole system: one test at a time. `None` if loading is not permitted.
fn permitted() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match weir_kernel::hold(&plain("vegas")) {
        Ok(_) => Some(alone),
        Err(problem @ (Problem::Forbidden(_) | Problem::Missing { .. })) => {
            println!("skipped: {problem}");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            None
        }
        Err(problem) => panic!("{problem}"),
    }
}

fn plain(name: &str) -> Config {
    name.parse().unwrap()
}

fn times() -> usize {
    std::env::var("WEIR_LOADS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// A control that is in the kernel.
fn running(name: &str) -> Running {
    weir_kernel::running().unwrap().into_iter().find(|running| running.control.name == name).unwrap()
}

/// The controls that no other process of this machine has in the kernel.
fn ours() -> Vec<&'static Control> {
    let others: Vec<_> = weir_kernel::running()
        .unwrap()
        .into_iter()
        .filter(|running| !running.holders.is_empty())
        .map(|running| running.control)
        .collect();
    CONTROLS.iter().filter(|control| !others.contains(control)).collect()
}

/// What weir could have left behind: names that the kernel lists, programs and maps.
fn remains() -> Vec<String> {
    let kernel_names: Vec<&str> = ours().iter().map(|control| control.kernel).collect();
    let listed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let listed = listed.split_whitespace().filter(|name| kernel_names.contains(name));
    let mut all: Vec<String> = listed.map(str::to_owned).collect();
    let shorts: Vec<&str> = kernel_names.iter().map(|name| name.strip_prefix("weir_").unwrap()).collect();
    let ours =
        |name: String, mark: char| shorts.iter().any(|short| name.starts_with(&format!("{short}{mark}")));
    all.extend(
        ProgInfoIter::default()
            .filter(|program| {
                let name = program.name.to_string_lossy().into_owned();
                name == "relabel" || name == "choose" || ours(name, '_')
            })
            .map(|program| format!("program {}", program.name.display())),
    );
    all.extend(
        MapInfoIter::default()
            .filter(|map| {
                let name = map.name.to_string_lossy().into_owned();
                kernel_names.contains(&name.as_str())
                    || (name == "circuits" && shorts.contains(&"ctcp"))
                    || name.starts_with("relabel.")
                    || ours(name, '.')
            })
            .map(|map| format!("map {}", map.name.display())),
    );
    all
}

/// Waits until nothing remains: the kernel frees programs in the background.
fn nothing_remains() {
    let start = Instant::now();
    while !remains().is_empty() {
        assert!(start.elapsed() < PATIENCE, "left behind: {:?}", remains());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_control_is_loaded_and_removed_with_its_last_holder() {
    let Some(_alone) = permitted() else { return };
    for _ in 0..times() {
        let held: Vec<_> =
            CONTROLS.iter().map(|control| weir_kernel::hold(&plain(control.name)).unwrap()).collect();
        let all = weir_kernel::running().unwrap();
        assert_eq!(all.len(), CONTROLS.len());
        assert!(all.iter().all(|running| !running.pinned && running.flows == 0));
        let second = weir_kernel::hold(&plain("yield")).unwrap();
        drop(held);
        assert_eq!(running("yield").control.name, "yield", "the last reference keeps it");
        drop(second);
        nothing_remains();
    }
}

#[test]
fn parameters_are_those_of_the_lab_and_change_while_it_runs() {
    let Some(_alone) = permitted() else { return };
    for control in CONTROLS {
        let _held = weir_kernel::hold(&plain(control.name)).unwrap();
        let serde_json::Value::Object(mut expected) = serde_json::to_value(plain(control.name)).unwrap()
        else {
            panic!()
        };
        expected.remove("kind");
        let mut has = running(control.name).parameters;
        has.sort_keys();
        expected.sort_keys();
        assert_eq!(has, expected, "{}", control.name);
    }
    let changed = r#"{ "kind": "yield", "beta": 20, "reading": "paper", "decrease_threshold": -3 }"#;
    let changed: Config = serde_json::from_str(changed).unwrap();
    let held = weir_kernel::hold(&plain("yield")).unwrap();
    let Err(Problem::Differs { parameter, has, wanted, .. }) = weir_kernel::hold(&changed) else {
        panic!("it has other parameters")
    };
    assert_eq!([parameter.as_str(), has.as_str(), wanted.as_str()], ["beta", "15", "20"]);
    drop(held);
    let _held = weir_kernel::hold(&changed).unwrap();
    let parameters = running("yield").parameters;
    assert_eq!(
        ["beta", "reading", "decrease_threshold"].map(|name| parameters[name].to_string()),
        ["20", "\"paper\"", "-3"]
    );
}

#[test]
fn connections_outlive_the_control_that_they_use() {
    let Some(_alone) = permitted() else { return };
    let held = weir_kernel::hold(&plain("vegas")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_tcp_congestion(&client, "weir_vegas").unwrap();
    assert_eq!(running("vegas").flows, 1);
    drop(held);
    assert_eq!(rustix::net::sockopt::tcp_congestion(&client).unwrap(), "weir_vegas");
    let sending = std::thread::spawn(move || client.write_all(&vec![7; 1 << 20]).map(|()| client));
    let mut received = vec![0; 1 << 20];
    server.read_exact(&mut received).unwrap();
    assert!(received.iter().all(|byte| *byte == 7));
    let client = sending.join().unwrap().unwrap();
    // New connections cannot use the control, and it disappears with the old one.
    assert!(rustix::net::sockopt::set_tcp_congestion(&server, "weir_vegas").is_err());
    drop((client, server));
    nothing_remains();
}

/// Packets that this network namespace has received with ECT(0) and with ECT(1), of IPv4 and IPv6.
fn received() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt:")).map(str::split_whitespace);
    let mut all: Vec<(&str, &str)> = lines.next().unwrap().zip(lines.next().unwrap()).collect();
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap();
    all.extend(text.lines().filter_map(|line| line.strip_prefix("Ip6")?.split_once([' ', '\t'])));
    ["InECT0Pkts", "InECT1Pkts"].map(|wanted| {
        let counts = all.iter().filter(|(name, _)| *name == wanted);
        counts.map(|(_, number)| number.trim().parse::<u64>().unwrap()).sum()
    })
}

/// Sends a megabyte over loopback under a control; returns the number of packets received with ECT(0) and with ECT(1).
fn send_under(control: &str, address: &str) -> [u64; 2] {
    let before = received();
    let listener = TcpListener::bind(address).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&listener, control).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&client, control).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let sending = std::thread::spawn(move || client.write_all(&vec![7; 1 << 20]));
    let mut all = vec![];
    server.read_to_end(&mut all).unwrap();
    sending.join().unwrap().unwrap();
    assert!(all.len() == 1 << 20 && all.iter().all(|byte| *byte == 7));
    // Read before the server's end closes: the acknowledgements of the client's end, whose socket is gone, are then under no
    // control.
    let after = received();
    drop(server);
    // What the close sends may still be under way, and is not the next connection's.
    let mut last = received();
    loop {
        std::thread::sleep(Duration::from_millis(20));
        match received() {
            now if now == last => break,
            now => last = now,
        }
    }
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn only_packets_of_the_relabelled_control_leave_as_ect_1() {
    let Some(_alone) = permitted() else { return };
    let inside = || {
        // SAFETY: only the network namespace of this thread changes; no descriptor loses its meaning.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap();
        let _held =
            [weir_kernel::hold(&plain("prague")).unwrap(), weir_kernel::hold(&plain("vegas")).unwrap()];
        let devices = ["lo".to_owned()];
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let [ect0, ect1] = send_under("weir_prague", address);
            assert!(ect0 > 0 && ect1 == 0, "Linux sends ECT(0): {ect0} {ect1}");
            let relabelling = Relabelling::new(weir_kernel::control("prague").unwrap(), &devices).unwrap();
            let [ect0, ect1] = send_under("weir_prague", address);
            assert!(ect0 == 0 && ect1 > 0, "all are relabelled: {ect0} {ect1}");
            let [ect0, ect1] = send_under("weir_vegas", address);
            assert!(ect0 > 0 && ect1 == 0, "those of others are not: {ect0} {ect1}");
            drop(relabelling);
            let [ect0, ect1] = send_under("weir_prague", address);
            assert!(ect0 > 0 && ect1 == 0, "it ends with its holder: {ect0} {ect1}");
        }
        let vegas = weir_kernel::control("vegas").unwrap();
        assert!(matches!(Relabelling::new(vegas, &devices), Err(Problem::NoMarks("vegas"))));
        let nowhere = ["nowhere".to_owned()];
        let prague = weir_kernel::control("prague").unwrap();
        assert!(matches!(Relabelling::new(prague, &nowhere), Err(Problem::Failed { .. })));
    };
    std::thread::spawn(inside).join().unwrap();
    nothing_remains();
}

#[test]
fn the_relabelling_of_a_pinned_control_is_removed_with_it() {
    let Some(_alone) = permitted() else { return };
    let prague = weir_kernel::control("prague").unwrap();
    let load = || weir_kernel::load(prague, &Map::new(), &["lo".to_owned()]);
    assert_eq!(load().unwrap(), Vec::<String>::new());
    load().unwrap();
    assert!(matches!(weir_kernel::load(prague, &Map::new(), &[]), Err(Problem::Loaded("weir_prague"))));
    assert!(remains().iter().any(|left| left == "program relabel"));
    weir_kernel::unload("prague").unwrap();
    nothing_remains();
}

#[test]
fn nothing_remains_of_a_loader_that_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        let _held: Vec<_> =
            CONTROLS.iter().map(|control| weir_kernel::hold(&plain(control.name)).unwrap()).collect();
        println!("loaded");
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let Some(_alone) = permitted() else { return };
    for _ in 0..times() {
        let mut victim = Command::new("/proc/self/exe")
            .args(["--exact", "loading::nothing_remains_of_a_loader_that_is_killed", "--nocapture"])
            .env(VICTIM, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = [0; 1];
        let mut output = victim.stdout.take().unwrap();
        let mut text = String::new();
        while !text.ends_with("loaded\n") {
            output.read_exact(&mut told).unwrap();
            text.push(char::from(told[0]));
        }
        assert_eq!(weir_kernel::running().unwrap().len(), CONTROLS.len());
        victim.kill().unwrap();
        victim.wait().unwrap();
        nothing_remains();
    }
}
