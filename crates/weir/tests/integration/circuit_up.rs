//! Circuits in network namespaces: what is set up, what transfers get, what is refused, and that everything is restored
//! afterwards, also when weir is killed. Where circuits cannot be set up the tests skip and say so; with WEIR_REQUIRE_LIVE=1
//! that is a failure. Ten kills as an ordinary test, as many as WEIR_KILLS says by hand.

use serde_json::Value;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_base::Random;
use weir_linux::namespace::{Namespace, set_sysctl, sysctl};
#[cfg(feature = "kernel")]
use weir_shaper::{Counters, Handle};
use weir_shaper::{Device, Snapshot};

/// Arguments of all circuits in these tests.
const COMMON: &str = "--device v0 --card 10gbit --rtt 2ms --for 1h";

/// A sender with the device `v0`, a receiver with 10.1.0.2 and 10.2.0.2, and a file of reservations.
struct Place {
    sender: Namespace,
    #[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "transfers need the control"))]
    receiver: Namespace,
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// The state that circuits change.
#[derive(Debug, PartialEq)]
struct State {
    shapers: Snapshot,
    wmem: Option<String>,
    /// Weir's files in /run.
    files: Vec<PathBuf>,
    reservations: Value,
}

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path());
        found.extend(below(&entry.path()));
    }
    found.sort();
    found
}

impl Place {
    /// `None` if the namespaces cannot be made. One at a time: the control's name is the same for the whole system.
    fn new() -> Option<Place> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let privileged = rustix::process::geteuid().is_root() && weir_linux::may_make_namespaces();
        if !privileged {
            println!("skipped: circuits are set up by root, in network namespaces");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            return None;
        }
        let (sender, receiver) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let there = format!("/proc/{}/fd/{}", std::process::id(), receiver.as_fd().as_raw_fd());
        let set_up = |far: Option<&str>, device: &str, host: u8| {
            let _ = set_sysctl("ipv6.conf.all.disable_ipv6", "1");
            if let Some(far) = far {
                run(&format!("ip link add name v0 txqueuelen 1000 type veth peer name v1 netns {far}"));
            }
            run("ip link set dev lo up");
            run(&format!("ip address add 10.1.0.{host}/24 dev {device}"));
            run(&format!("ip address add 10.2.0.{host}/24 dev {device}"));
            run(&format!("ip link set dev {device} up"));
            Ok(())
        };
        sender.inside(|| set_up(Some(&there), "v0", 1)).unwrap();
        receiver.inside(|| set_up(None, "v1", 2)).unwrap();
        Some(Place { sender, receiver, folder: tempfile::tempdir().unwrap(), _alone: alone })
    }

    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.sender.inside(|| Ok(work())).unwrap()
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("circuit").args(arguments.split_whitespace()).stdin(Stdio::null());
        if !arguments.starts_with("watch") {
            command.arg("--store").arg(self.folder.path().join("circuits.sqlite"));
        }
        command
    }

    fn weir(&self, arguments: &str) -> Output {
        self.inside(|| self.command(arguments).output().unwrap())
    }

    fn done(&self, arguments: &str) -> String {
        let output = self.weir(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What it refuses, with status 2 and nothing on stdout.
    fn refusal(&self, arguments: &str) -> String {
        let output = self.weir(arguments);
        let told = text(&output.stderr);
        assert_eq!(
            (output.status.code(), text(&output.stdout).as_str()),
            (Some(2), ""),
            "{arguments}: {told}"
        );
        told
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.done(arguments)).unwrap()
    }

    /// The state now; the command before may have been killed.
    fn state(&self) -> State {
        let reservations = self.json("list --all --json");
        let look = || (Device::open("v0").unwrap().snapshot().unwrap(), sysctl("ipv4.tcp_wmem"));
        let (shapers, wmem) = self.inside(look);
        State { shapers, wmem, files: below(Path::new("/run/weir")), reservations }
    }

    /// Sets a circuit to 10.1.0.0/24 up; false if this kernel cannot load its control.
    #[cfg(feature = "kernel")]
    fn up_with_its_control(&self) -> bool {
        let first = self.weir(&format!("up --to 10.1.0.0/24 --rate 500mbit {COMMON}"));
        let told = text(&first.stderr);
        if told.contains("may not load") || told.contains("lacks") {
            println!("skipped: {told}");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            return false;
        }
        assert!(first.status.success(), "{told}");
        true
    }

    #[cfg(feature = "kernel")]
    fn counters(&self, class: u16) -> Counters {
        let counted = || Device::open("v0").unwrap().counters(&[Handle::new(0x7765, class)]).unwrap()[0];
        self.inside(counted).unwrap()
    }
}

#[test]
fn circuits_are_set_up_and_removed_and_leave_the_device_as_it_was() {
    let Some(place) = Place::new() else { return };
    let before = place.state();
    let dry = place.done(&format!("up --to 10.1.0.0/24 --rate 500mbit {COMMON} --dry-run"));
    assert!(
        dry.contains("tc class replace dev v0 parent 7765: classid 7765:1 htb rate 500000000bit"),
        "{dry}"
    );
    let receiver = "# on the receiving host in 10.1.0.0/24, unless its values are larger:\nsysctl -w net.ipv4.tcp_rmem=\"4096 ";
    assert!(dry.contains(receiver), "{dry}");
    assert_eq!(place.state(), before, "a dry run changes nothing");

    let one = place.json(&format!("up --to 10.1.0.0/24 --rate 500mbit {COMMON} --no-control --json"));
    assert_eq!((&one["number"], &one["class"], &one["state"]), (&1.into(), &"7765:1".into(), &"up".into()));
    let with_one = place.state();
    place.done(&format!("up --to 10.2.0.0/24 --rate 100mbit {COMMON} --no-control"));
    let listed = place.done("list");
    assert!(listed.lines().count() == 2 && listed.lines().all(|line| line.starts_with("up ")), "{listed}");

    place.done("change 2 --rate 50mbit --card 10gbit");
    let changed = place.state();
    assert_eq!(changed.reservations[1]["rate_bit_per_s"], 50_000_000);
    place.done("change 2 --rate 100mbit --card 10gbit");
    assert_ne!(place.state().shapers, changed.shapers);

    assert!(place.refusal("cancel 2").contains("circuit 2 is up"));
    place.done("down 2");
    place.done("cancel 2");
    assert_eq!(place.state(), with_one);
    place.done("up 1 --dry-run");
    place.done("down --all");
    place.done("cancel 1");
    assert_eq!(place.state(), before);
}

#[test]
fn impossible_circuits_are_refused_and_change_nothing() {
    let Some(place) = Place::new() else { return };
    place.done("reserve --to 10.3.0.0/24 --rate 1gbit --device v0 --card 10gbit --rtt 2ms --from 2100-01-01T10:00Z --for 1h");
    let before = place.state();
    let up = |rest: &str| format!("up --no-control --to 10.1.0.0/24 --rtt 2ms --for 1h {rest}");
    for (arguments, why) in [
        (up("--device v7 --card 10gbit --rate 1gbit"), "there is no device v7"),
        (up("--device v0 --card 10gbit --rate 11gbit"), "does not fit a card of 10 Gbit/s"),
        (up("--device v0 --card 10gbit --rate 0bit"), "a rate above 0"),
        ("up 1".to_owned(), "begins at 2100-01-01T10:00:00Z"),
        ("up 9".to_owned(), "there is no reservation 9"),
        ("up".to_owned(), "no circuit is named"),
        ("down 1".to_owned(), "circuit 1 is not up"),
    ] {
        let told = place.refusal(&arguments);
        assert!(told.contains(why), "{arguments}: {told}");
        assert_eq!(place.state(), before, "{arguments}");
    }
    // A refused reservation must not cost the equal one that exists.
    let fixed = "up --no-control --to 10.4.0.0/24 --rtt 2ms --device v0 --card 10gbit --rate 1gbit --from 2020-01-01T10:00Z \
                 --until 2100-01-01T10:00Z";
    place.done(fixed);
    place.done("down 2");
    let reserved = place.state();
    assert!(place.refusal(fixed).contains("reservation 2 to the same destination overlaps"));
    assert_eq!(place.state(), reserved);
}

#[test]
fn a_foreign_shaper_is_left_alone_or_restored() {
    let Some(place) = Place::new() else { return };
    place.inside(|| run("tc qdisc add dev v0 root handle 5: tbf rate 200mbit burst 20000 limit 200000"));
    let before = place.state();
    let up = format!("up --to 10.1.0.0/24 --rate 500mbit {COMMON} --no-control");
    let told = place.refusal(&up);
    assert!(told.contains("v0 has a root discipline that is not weir's: tbf 5:"), "{told}");
    assert_eq!(place.state(), before);
    place.done(&format!("{up} --replace"));
    assert_eq!(place.state().shapers.root().unwrap().1, "htb");
    place.done("down 1");
    place.done("cancel 1");
    assert_eq!(place.state(), before);
    // The shaper was removed by hand meanwhile: the circuit is down, and the present discipline stays.
    place.done(&format!("{up} --replace"));
    place.inside(|| run("tc qdisc replace dev v0 root handle 6: bfifo limit 5000"));
    let by_hand = place.inside(|| Device::open("v0").unwrap().snapshot().unwrap());
    let told = text(&place.weir("down 2").stderr);
    assert!(told.contains("another program has removed the circuits' shaper from v0"), "{told}");
    let after = place.state();
    assert_eq!((after.shapers, after.wmem, after.files), (by_hand, before.wmem, before.files));
}

#[test]
fn an_unprivileged_user_is_told_which_privileges_are_missing() {
    let Some(place) = Place::new() else { return };
    let nobody = |arguments: &str| {
        place.inside(|| {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
            command.arg(env!("CARGO_BIN_EXE_weir")).args(arguments.split_whitespace()).output().unwrap()
        })
    };
    let probe = nobody("--version");
    if !probe.status.success() {
        println!("skipped: another user cannot run {}", env!("CARGO_BIN_EXE_weir"));
        return;
    }
    let output =
        nobody(&format!("circuit up --to 10.1.0.0/24 --rate 500mbit {COMMON} --store /tmp/none.sqlite"));
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    for name in ["CAP_NET_ADMIN to change", "CAP_BPF to load", "CAP_PERFMON", "CAP_SYS_ADMIN", "--no-control"]
    {
        assert!(told.contains(name), "{name} in {told}");
    }
}

/// Sends this many bytes to an address with weir's control, and returns how many arrived.
#[cfg(feature = "kernel")]
fn transfer(place: &Place, address: &str, bytes: usize) -> usize {
    use rustix::net::sockopt::set_tcp_congestion;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    let at = SocketAddr::new(address.parse().unwrap(), 0);
    let listener = place.receiver.inside(|| TcpListener::bind(at)).unwrap();
    let to = listener.local_addr().unwrap();
    let send = || {
        // A program that another test starts meanwhile must not hold the connection open.
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_tcp_congestion(&socket, "weir_ctcp")?;
        connect(&socket, &to)?;
        TcpStream::from(socket).write_all(&vec![7; bytes])
    };
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| place.sender.inside(send));
        let read = listener.accept().unwrap().0.read_to_end(&mut vec![]).unwrap();
        sending.join().unwrap().unwrap();
        read
    })
}

#[cfg(feature = "kernel")]
#[test]
fn transfers_go_through_their_own_class_with_the_window_of_their_circuit() {
    let Some(place) = Place::new() else { return };
    let before = place.state();
    if !place.up_with_its_control() {
        return;
    }
    place.done(&format!("up --to 10.2.0.0/24 --rate 100mbit {COMMON}"));
    let windows = weir_kernel::circuits().unwrap();
    assert_eq!(windows.len(), 2, "{windows:?}");
    const SENT: usize = 3_000_000;
    let mut others = place.counters(2);
    for (address, class) in [("10.1.0.2", 1), ("10.2.0.2", 2)] {
        assert_eq!(transfer(&place, address, SENT), SENT);
        let counted = place.counters(class);
        // Each segment with 66 bytes of headers, and a few acknowledgements and control packets.
        let frames = (SENT as u64).div_ceil(1448);
        let expected = SENT as u64 + frames * 66;
        assert!(
            (expected..expected + expected / 50).contains(&counted.bytes),
            "{counted:?}, {expected} expected"
        );
        assert_eq!(counted.drops, 0, "{counted:?}");
        // Beside the last packets of its own connection.
        let neighbour = place.counters(3 - class);
        assert!(
            neighbour.bytes < others.bytes + 1500,
            "the neighbour's class carries nothing of it: {neighbour:?}"
        );
        others = counted;
    }
    place.done("down --all");
    place.done("cancel 1 2");
    assert_eq!(place.state(), before);
    assert!(weir_kernel::circuits().is_err(), "the control has gone with the last circuit");
}

#[cfg(feature = "kernel")]
#[test]
fn a_circuit_whose_control_was_unloaded_is_changed_and_taken_down_without_it() {
    let Some(place) = Place::new() else { return };
    let before = place.state();
    if !place.up_with_its_control() {
        return;
    }
    weir_kernel::unload("ctcp").unwrap();
    let changed = place.weir("change 1 --rate 300mbit --card 10gbit");
    let told = text(&changed.stderr);
    assert!(changed.status.success(), "{told}");
    assert!(told.contains("weir_ctcp is not loaded, so circuit 1 is shaped but has no window"), "{told}");
    assert!(place.done("list").starts_with("up       1: 300 Mbit/s"));
    place.done("down 1");
    place.done("cancel 1");
    assert_eq!(place.state(), before);
}

#[cfg(feature = "kernel")]
#[test]
fn one_command_plans_a_circuit_sends_over_it_and_removes_it() {
    let Some(place) = Place::new() else { return };
    let before = place.state();
    let path = |name: &str| place.folder.path().join(name).display().to_string();
    let key = |name: &str| {
        let made = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["circuit", "keygen", &path(name)])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        text(&made.stdout).trim().to_owned()
    };
    let (sender, receiver) = (key("sender.key"), key("receiver.key"));
    std::fs::create_dir(path("in")).unwrap();
    let payload: Vec<u8> =
        (0..20_000_000u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(path("big.dat"), &payload).unwrap();
    let (keys, into) = (path("receiver.key"), path("in"));
    let serve = [
        "circuit",
        "serve",
        "--key",
        &keys,
        "--allow",
        &sender,
        "--into",
        &into,
        "--listen",
        "10.1.0.2:7765",
    ];
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(serve)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    };
    let mut serving = place.receiver.inside(start).unwrap();
    // Its first line says that it listens.
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(serving.stdout.take().unwrap()), &mut line)
        .unwrap();
    let circuit = "--rate 200mbit --rtt 2ms --device v0 --card 10gbit";
    let asked = format!(
        "send {} 10.1.0.2 --key {} --peer {receiver} --json {circuit}",
        path("big.dat"),
        path("sender.key")
    );
    let output = place.weir(&asked);
    serving.kill().unwrap();
    serving.wait().unwrap();
    let told = text(&output.stderr);
    if told.contains("may not load") || told.contains("lacks") {
        println!("skipped: {told}");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return;
    }
    assert!(output.status.success(), "{told}");
    assert!(told.contains("to 10.1.0.2 is up"), "{told}");
    let end: Value = serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap();
    assert_eq!((&end["control"], &end["sent_bytes"]), (&"weir_ctcp".into(), &20_000_000.into()), "{end}");
    // 200 Mbit/s are 191.3 of payload; a machine that is busy is slower.
    assert!(end["goodput_bit_per_s"].as_u64().unwrap() < 200_000_000, "{end}");
    assert!(std::fs::read(path("in/big.dat")).unwrap() == payload, "the file has arrived");
    assert_eq!(place.state(), before);
    assert!(weir_kernel::circuits().is_err(), "the control has gone with the circuit");
}

/// Runs a command and kills it at a random time, up to a little after its usual end. Returns whether it was still running.
fn kill(place: &Place, arguments: &str, takes: Duration, random: &mut Random) -> bool {
    let mut victim = place
        .inside(|| place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let longest = u64::try_from(takes.as_nanos()).unwrap() * 11 / 10;
    std::thread::sleep(Duration::from_nanos(random.below(longest.max(1))));
    let hit = victim.try_wait().unwrap().is_none();
    victim.kill().unwrap();
    victim.wait().unwrap();
    hit
}

#[test]
fn the_next_command_restores_the_device_whatever_was_killed() {
    let Some(place) = Place::new() else { return };
    let kills = std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut random = Random::stream(std::process::id().into(), "kills");
    // With the control if it can be loaded. The first run is not killed and shows how long the command takes.
    let trial = place.weir(&format!("up --to 10.9.0.0/24 --rate 1mbit {COMMON}"));
    let control = if trial.status.success() { "" } else { "--no-control" };
    if trial.status.success() {
        place.done("down 1");
    }
    place.inside(|| run("tc qdisc add dev v0 root handle 5: tbf rate 200mbit burst 20000 limit 200000"));
    let up = |to: u8| format!("up --to 10.{to}.0.0/24 --rate 100mbit {COMMON} --replace {control}");
    let empty = place.state();
    let (mut hits, mut attempts) = (0, 0);
    while hits < kills {
        let start = Instant::now();
        place.done(&up(1));
        let takes = start.elapsed();
        let one = place.state();
        let number =
            one.reservations.as_array().unwrap().iter().find(|it| it["state"] == "up").unwrap()["number"]
                .clone();
        // The second circuit: it is there whole, or not at all.
        hits += usize::from(kill(&place, &up(2), takes, &mut random));
        let after = place.state();
        if after != one {
            let found =
                after.reservations.as_array().unwrap().iter().find(|it| it["class"] == "7765:2").cloned();
            let second = found.unwrap_or_else(|| panic!("neither up nor as before: {after:?}\n{one:?}"));
            place.done(&format!("down {}", second["number"]));
            place.done(&format!("cancel {}", second["number"]));
        }
        assert_eq!(place.state(), one, "after {hits} kills");
        // ValueSelector down: it is up as before, or all is as it was.
        hits += usize::from(kill(&place, &format!("down {number}"), takes / 2, &mut random));
        let after = place.state();
        if after.shapers == one.shapers {
            assert_eq!(after, one);
            place.done(&format!("down {number}"));
        }
        place.done(&format!("cancel {number}"));
        assert_eq!(place.state(), empty, "after {hits} kills");
        // The first circuit.
        hits += usize::from(kill(&place, &up(1), takes, &mut random));
        let after = place.state();
        if after != empty {
            let found = after.reservations.as_array().unwrap().iter().find(|it| it["state"] == "up").cloned();
            let first = found.unwrap_or_else(|| panic!("neither up nor as before: {after:?}\n{empty:?}"));
            place.done(&format!("down {}", first["number"]));
            place.done(&format!("cancel {}", first["number"]));
        }
        assert_eq!(place.state(), empty, "after {hits} kills");
        attempts += 3;
        assert!(
            attempts < 20 * kills.max(5),
            "{hits} of {attempts} commands were running when they were killed"
        );
    }
    println!("{hits} kills of {attempts} commands");
}
