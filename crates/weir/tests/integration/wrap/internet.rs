//! `--internet`, on a host that is a namespace with another one behind its default route, so that no real Internet is needed.

use super::*;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_linux::device::index_of_name;
use weir_linux::namespace::{Namespace, set_sysctl};
use weir_linux::netlink::{End, Netlink};
use weir_linux::nft::{Table, try_masquerade};

/// The device of the host's default route. Names of devices may contain dots.
const UPLINK: &str = "up.link";
const FORWARDING: &str = "/proc/sys/net/ipv4/conf/up.link/forwarding";
const JOURNALS: &str = "/run/weir/internet";
const SERVER: [u8; 4] = [203, 0, 113, 9];
const HOST: [u8; 4] = [192, 0, 2, 2];

/// A host and what is beyond it, with a server there that answers each connection, and each datagram, with the address that it came from.
struct Host {
    host: Namespace,
    beyond: Namespace,
    tcp: u16,
    udp: u16,
    place: Place,
    _alone: MutexGuard<'static, ()>,
}

impl Host {
    /// `None` if it cannot be made. One at a time, since the folder of journals is looked at.
    fn new() -> Option<Host> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let permitted = if rustix::process::geteuid().is_root() {
            try_masquerade()
        } else {
            Err(std::io::ErrorKind::PermissionDenied.into())
        };
        if let Err(error) = permitted {
            println!("skipped: --internet is for root, on a kernel that masquerades: {error}");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            return None;
        }
        let (host, beyond) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let join = || {
            set_sysctl("ipv4.conf.all.forwarding", "0")?;
            let near = End { name: UPLINK, mac: [2, 0, 0, 0, 1, 1], namespace: None };
            let far = End { name: "eth0", mac: [2, 0, 0, 0, 1, 2], namespace: Some(beyond.as_fd()) };
            Netlink::open()?.add_veth(&near, &far, 1500)
        };
        host.inside(join).unwrap();
        let set_up = |device: &str, own: [u8; 4], other: [u8; 4], mac| {
            let mut netlink = Netlink::open()?;
            netlink.set_up(index_of_name("lo").unwrap())?;
            let index = index_of_name(device).unwrap();
            netlink.set_up(index)?;
            netlink.add_address(index, own.into())?;
            netlink.add_neighbour(index, other.into(), mac)
        };
        host.inside(|| {
            set_up(UPLINK, HOST, SERVER, [2, 0, 0, 0, 1, 2])?;
            Netlink::open()?.add_route(index_of_name(UPLINK).unwrap(), None, SERVER.into())
        })
        .unwrap();
        // What is beyond knows the way to the host, and to nobody behind it.
        beyond
            .inside(|| {
                set_up("eth0", SERVER, HOST, [2, 0, 0, 0, 1, 1])?;
                let to = std::net::IpAddr::from(HOST).into();
                Netlink::open()?.add_prefix_route(index_of_name("eth0").unwrap(), &to, None)
            })
            .unwrap();
        let (tcp, udp) = serve(&beyond);
        Some(Host { host, beyond, tcp, udp, place: Place::new(), _alone: alone })
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.place.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.host.inside(|| command.spawn()).unwrap()
    }

    fn weir(&self, args: &[&str]) -> Output {
        self.spawn(args).wait_with_output().unwrap()
    }

    /// Whether the host forwards what arrives at the device of its default route.
    fn forwards(&self) -> bool {
        self.host.inside(|| std::fs::read_to_string(FORWARDING)).unwrap() == "1\n"
    }

    /// The devices that weir has made on the host.
    fn devices(&self) -> Vec<String> {
        let table = self.host.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
        let names = table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
        names.filter(|name| name.starts_with("weir")).collect()
    }

    /// Whether the host has no table of a process.
    fn has_no_table_of(&self, process: u32) -> bool {
        let name = format!("weir{process}");
        let source = std::net::IpAddr::from(HOST).into();
        self.host.inside(|| Ok(Table::masquerade(&name, &source, None, None).is_ok())).unwrap()
    }

    /// Asserts that nothing of a process is left, and forwarding is off as before.
    fn is_as_found(&self, process: u32) {
        assert!(!self.forwards(), "forwarding is on");
        assert!(!Path::new(JOURNALS).exists(), "a journal is left");
        // The kernel removes a namespace, with its devices, in the background.
        let begun = Instant::now();
        while !self.devices().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?} are left", self.devices());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(self.has_no_table_of(process), "a table is left");
    }
}

/// Answers TCP and UDP at ports of a namespace, as long as the test's process lasts.
fn serve(beyond: &Namespace) -> (u16, u16) {
    let (tcp, udp) =
        beyond.inside(|| Ok((TcpListener::bind("0.0.0.0:0")?, UdpSocket::bind("0.0.0.0:0")?))).unwrap();
    let ports = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    std::thread::spawn(move || {
        while let Ok((mut connection, from)) = tcp.accept() {
            // Who does not wait for the answer gets none.
            let _ = std::io::Write::write_all(&mut connection, format!("{}\n", from.ip()).as_bytes());
        }
    });
    std::thread::spawn(move || {
        while let Ok((_, from)) = udp.recv_from(&mut [0; 100]) {
            let _ = udp.send_to(from.ip().to_string().as_bytes(), from);
        }
    });
    ports
}

/// A command that waits until the file `go` is there; it makes the file `ready-NAME` first.
fn waiting(name: &str) -> String {
    format!("touch ready-{name}; while [ ! -e go-{name} ]; do sleep 0.02; done")
}

fn soon(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn servers_beyond_the_host_are_reached_over_the_link_under_the_hosts_address() {
    let Some(host) = Host::new() else { return };
    let program = format!(
        "
def connect():
    with socket.create_connection(('203.0.113.9', {}), 10) as s: return s.makefile().readline().strip()
def ask():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10)
    s.sendto(b'?', ('203.0.113.9', {}))
    return s.recv(100).decode()
def echo():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)
    s.settimeout(10)
    s.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]), ('203.0.113.9', 0))
    return s.recv(100)[0]
for work in (connect, ask, echo): print(*took(work))
print(*took(lambda: socket.socket(socket.AF_INET6).connect(('2001:db8::7', 9))))
print(open('/proc/sys/net/ipv4/ip_forward').read().strip())
",
        host.tcp, host.udp
    );
    let program = python(&program);
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let options = ["wrap", "--quiet", "--link", "rate=9mbit rtt=40ms", "--internet", "--"];
    let output = host.weir(&[&options[..], &words].concat());
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let told = text(&output.stdout);
    let lines: Vec<&str> = told.lines().collect();
    let (times, results): (Vec<f64>, Vec<&str>) = lines[..4].iter().map(|line| timed(line)).unzip();
    // The connection's first bytes need two round trips.
    assert!(times[0] >= 80.0 && times[1..].iter().all(|ms| *ms >= 40.0), "{told}");
    assert_eq!(results, ["192.0.2.2", "192.0.2.2", "0", "Network is unreachable"], "{told}");
    host.is_as_found(0);
}

#[test]
fn servers_beyond_the_host_are_reached_over_the_link_of_their_prefix() {
    let Some(host) = Host::new() else { return };
    let program = format!(
        "
def connect():
    with socket.create_connection(('203.0.113.9', {}), 10) as s: return s.makefile().readline().strip()
print(*took(connect))
",
        host.tcp
    );
    let program = python(&program);
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    // Whatever takes the other link is lost.
    let links = ["--link", "rate=9mbit rtt=4ms loss=100%", "--link", "to=203.0.113.0/24 rate=9mbit rtt=40ms"];
    let output = host.weir(&[&["wrap", "--quiet", "--internet"], &links[..], &["--"], &words].concat());
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let told = text(&output.stdout);
    let (ms, result) = timed(told.trim());
    assert!(ms >= 80.0 && result == "192.0.2.2", "{told}");
    host.is_as_found(0);
}

#[test]
fn a_command_at_the_far_end_has_the_way_too_and_without_the_option_nobody_has() {
    let Some(host) = Host::new() else { return };
    let connect = format!("exec 3<> /dev/tcp/203.0.113.9/{} && cat <&3 >", host.tcp);
    let serve = format!("bash -c '{connect} served'");
    let options = ["--link", "rate=9mbit rtt=4ms", "--internet", "--serve", &serve];
    let output = host.weir(&wrapped(&options, "while [ ! -s served ]; do sleep 0.02; done"));
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(host.place.path("served")).unwrap(), "192.0.2.2\n");
    let without = host.weir(&wrapped(&["--link", "rate=9mbit rtt=4ms"], &format!("bash -c '{connect} got'")));
    assert!(text(&without.stderr).contains("Network is unreachable"), "{}", text(&without.stderr));
    host.is_as_found(0);
}

#[test]
fn forwarding_is_switched_off_by_the_last_of_several_commands() {
    let Some(host) = Host::new() else { return };
    let start = |name: &str| {
        let child = host.spawn(&wrapped(&["--link", "rate=9mbit rtt=4ms", "--internet"], &waiting(name)));
        soon("the command runs", || host.place.path(&format!("ready-{name}")).exists());
        child
    };
    let end = |child: Child, name: &str| {
        std::fs::write(host.place.path(&format!("go-{name}")), "").unwrap();
        let process = child.id();
        assert_eq!(status(&child.wait_with_output().unwrap()), 0);
        process
    };
    let (first, second) = (start("a"), start("b"));
    assert_eq!(host.devices().len(), 2);
    assert!(host.forwards());
    end(first, "a");
    assert!(host.forwards(), "the second command still needs it");
    let process = end(second, "b");
    host.is_as_found(process);
    // Forwarding that was on stays on.
    host.host.inside(|| std::fs::write(FORWARDING, "1")).unwrap();
    let output = host.weir(&wrapped(&["--link", "rate=9mbit rtt=4ms", "--internet"], "true"));
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert!(host.forwards());
}

#[test]
fn other_hosts_cannot_use_the_hosts_forwarding() {
    let Some(host) = Host::new() else { return };
    let child = host.spawn(&wrapped(&["--link", "rate=9mbit rtt=4ms", "--internet"], &waiting("a")));
    soon("the command runs", || host.place.path("ready-a").exists());
    // Another network of the host, with a server that would answer.
    let other = Namespace::new().unwrap();
    let (here, there) = (std::net::IpAddr::from([10, 77, 0, 1]), std::net::IpAddr::from([10, 77, 0, 2]));
    let join = || {
        let near = End { name: "lan", mac: [2, 0, 0, 0, 2, 1], namespace: None };
        let far = End { name: "eth0", mac: [2, 0, 0, 0, 2, 2], namespace: Some(other.as_fd()) };
        Netlink::open()?.add_veth(&near, &far, 1500)
    };
    host.host.inside(join).unwrap();
    let set_up = |device: &str, own, other: std::net::IpAddr, mac| {
        let (mut netlink, index) = (Netlink::open()?, index_of_name(device).unwrap());
        netlink.set_up(index)?;
        netlink.add_address(index, own)?;
        netlink.add_neighbour(index, other, mac)?;
        netlink.add_prefix_route(index, &other.into(), None)
    };
    host.host.inside(|| set_up("lan", here, there, [2, 0, 0, 0, 2, 2])).unwrap();
    other.inside(|| set_up("eth0", there, here, [2, 0, 0, 0, 2, 1])).unwrap();
    let receiver = other.inside(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let port = receiver.local_addr().unwrap().port();
    host.beyond
        .inside(|| Netlink::open()?.add_route(index_of_name("eth0").unwrap(), Some(there), HOST.into()))
        .unwrap();
    let arrives = || {
        let send = || UdpSocket::bind("0.0.0.0:0")?.send_to(b"?", (there, port));
        assert_eq!(host.beyond.inside(send).unwrap(), 1);
        receiver.recv_from(&mut [0; 10]).is_ok()
    };
    assert!(host.forwards() && !arrives(), "the host forwards for others");
    std::fs::write(host.place.path("go-a"), "").unwrap();
    assert_eq!(status(&child.wait_with_output().unwrap()), 0);
    assert!(!arrives(), "forwarding is off");
    // A host that forwards of its own accord does it as before.
    host.host.inside(|| std::fs::write(FORWARDING, "1")).unwrap();
    assert!(arrives());
    let second = host.spawn(&wrapped(&["--link", "rate=9mbit rtt=4ms", "--internet"], &waiting("b")));
    soon("the second command runs", || host.place.path("ready-b").exists());
    assert!(arrives(), "it does so beside a command, too");
    std::fs::write(host.place.path("go-b"), "").unwrap();
    assert_eq!(status(&second.wait_with_output().unwrap()), 0);
}

#[test]
fn what_is_missing_for_the_internet_is_said_before_anything_runs() {
    let Some(host) = Host::new() else { return };
    let arguments = wrapped(&["--link", "rate=9mbit rtt=4ms", "--internet"], "touch was-here");
    let nowhere = Namespace::new().unwrap();
    let output = nowhere.inside(|| host.place.command(&arguments).output()).unwrap();
    assert_eq!(
        (status(&output), text(&output.stderr)),
        (
            2,
            "weir: --internet needs a default route (IPv4), and this host has none\n  help: `ip route` shows the routes; without \
             --internet the program reaches the far end alone\n"
                .into()
        )
    );
    let mut command = Command::new(copy_for_other_users(&host.place));
    command.args(&arguments).uid(65534).gid(65534).current_dir(host.place.path(""));
    let output = host.host.inside(|| command.output()).unwrap();
    let told = text(&output.stderr);
    assert_eq!(status(&output), 2, "{told}");
    assert!(told.contains("which only root may do\n  help: run it as root"), "{told}");
    assert!(!host.place.path("was-here").exists());
}

#[test]
fn the_command_after_a_kill_finds_the_host_as_it_was() {
    let Some(host) = Host::new() else { return };
    let kills = std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut random = weir_base::Random::stream(std::process::id().into(), "internet");
    let options = ["--link", "rate=9mbit rtt=4ms", "--internet", "--serve", "setsid sleep 3005 & sleep 3006"];
    let mut open = 0;
    for kill in 0..kills {
        let mut child = host.spawn(&wrapped(&options, "setsid sleep 3007 & sleep 3008"));
        std::thread::sleep(Duration::from_nanos(random.below(500_000_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        open += u32::from(host.forwards());
        // Any command will do; the next one with the Internet, too.
        let next = match kill % 2 {
            0 => host.weir(&["list", "controllers"]),
            _ => host.weir(&wrapped(&["--link", "rate=9mbit rtt=4ms", "--internet"], "true")),
        };
        assert_eq!(status(&next), 0, "{}", text(&next.stderr));
        host.is_as_found(child.id());
    }
    println!("{kills} kills, {open} of them while forwarding was on");
    assert!(kills < 20 || open > 0, "no kill was late enough");
}
