//! Circuit TCP in the running kernel: each destination has its circuit, and a destination without one is under H-TCP. Losses are
//! tested in crates/live/tests. The test is skipped, with a message, if loading is not permitted; with WEIR_REQUIRE_LIVE=1 that is a
//! failure.
#![cfg(feature = "bpf")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_control::Config;
use weir_kernel::{Circuit, Held, Problem};

/// How long a connection may take to follow its circuit, which it looks up once a second.
const PATIENCE: Duration = Duration::from_secs(20);

fn ip(arguments: &str) {
    assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success(), "{arguments}");
}

/// A circuit with a round trip of 40 ms.
fn circuit(address: &str, length: u8, rate: &str) -> Circuit {
    let json = format!(r#"{{ "kind": "ctcp", "rate": "{rate}", "rtt": "40 ms" }}"#);
    let config: Config = serde_json::from_str(&json).unwrap();
    Circuit { address: address.parse().unwrap(), length, config }
}

/// A connection to an address under Circuit TCP, and its other end.
struct Ends(TcpStream, TcpStream);

impl Ends {
    fn to(address: &str) -> Ends {
        let address: IpAddr = address.parse().unwrap();
        let listener = TcpListener::bind(SocketAddr::new(address, 0)).unwrap();
        let family = if address.is_ipv4() {
            rustix::net::AddressFamily::INET
        } else {
            rustix::net::AddressFamily::INET6
        };
        let socket = rustix::net::socket(family, rustix::net::SocketType::STREAM, None).unwrap();
        rustix::net::sockopt::set_tcp_congestion(&socket, "weir_ctcp").unwrap();
        rustix::net::connect(&socket, &listener.local_addr().unwrap()).unwrap();
        Ends(TcpStream::from(socket), listener.accept().unwrap().0)
    }

    /// Sends a megabyte; returns the sender's control, its window in segments, and the payload of a segment.
    fn sends(&mut self) -> (String, u64, u64) {
        let Ends(client, server) = self;
        let mut sender = client.try_clone().unwrap();
        let sending = std::thread::spawn(move || sender.write_all(&vec![7; 1 << 20]));
        server.read_exact(&mut vec![0; 1 << 20]).unwrap();
        sending.join().unwrap().unwrap();
        let port = client.local_addr().unwrap().port();
        let ss = Command::new("ss").args(["-tinH", &format!("sport = :{port}")]).output().unwrap();
        let text = String::from_utf8(ss.stdout).unwrap();
        let about = text.lines().nth(1).unwrap();
        let number = |name: &str| {
            let told = about.split_whitespace().find_map(|word| word.strip_prefix(name));
            told.unwrap_or_else(|| panic!("no {name} in {about}")).parse::<u64>().unwrap()
        };
        (about.split_whitespace().next().unwrap().to_owned(), number("cwnd:"), number("mss:"))
    }

    /// Sends until the connection is under this control and `is_right` accepts the payload of a segment and the window in segments.
    fn comes_to(&mut self, control: &str, is_right: impl Fn(u64, u64) -> bool) {
        let start = Instant::now();
        loop {
            let (has, cwnd, mss) = self.sends();
            if has == control && is_right(mss, cwnd) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{has} has {cwnd} segments of {mss}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// 130 % of the bandwidth-delay product of 40 ms and this many Mbit/s, in segments of a given payload.
fn window_of(megabits: u64) -> impl Fn(u64) -> u64 {
    move |mss| (megabits * 125_000 * 40 / 1000 * 130 / 100).div_ceil(mss + 66)
}

/// Names in the kernel are the same for the whole system: one test at a time. `None` if loading is not permitted.
fn permitted() -> Option<(Held, MutexGuard<'static, ()>)> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match weir_kernel::hold(&"ctcp".parse().unwrap()) {
        Ok(held) => Some((held, alone)),
        Err(problem @ (Problem::Forbidden(_) | Problem::Missing { .. })) => {
            println!("skipped: {problem}");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            None
        }
        Err(problem) => panic!("{problem}"),
    }
}

#[test]
fn circuits_and_htcp_are_pinned_and_removed_with_circuit_tcp() {
    let Some((held, _alone)) = permitted() else { return };
    let ctcp = weir_kernel::control("ctcp").unwrap();
    weir_kernel::load(ctcp, &serde_json::Map::new(), &[]).unwrap();
    drop(held);
    let pinned =
        || ["ctcp", "ctcp-htcp", "ctcp-circuits"].map(|name| Path::new("/run/weir/bpf").join(name).exists());
    assert_eq!(pinned(), [true; 3]);
    weir_kernel::set_circuit(&circuit("10.0.0.0", 8, "1 Gbit/s")).unwrap();
    assert_eq!(weir_kernel::circuits().unwrap(), [circuit("10.0.0.0", 8, "1 Gbit/s")]);
    weir_kernel::unload("ctcp").unwrap();
    assert_eq!(pinned(), [false; 3]);
    assert!(matches!(weir_kernel::circuits(), Err(Problem::NotLoaded("weir_ctcp"))));
}

#[test]
fn a_destination_with_a_circuit_gets_its_window_and_one_without_is_under_htcp() {
    let Some((held, _alone)) = permitted() else { return };
    let inside = || {
        // SAFETY: only the network namespace of this thread changes; no descriptor loses its meaning.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
        ip("link set lo mtu 1500 up");
        let all = [
            circuit("127.1.0.0", 16, "100 Mbit/s"),
            circuit("127.1.2.0", 24, "200 Mbit/s"),
            circuit("::1", 128, "50 Mbit/s"),
        ];
        all.iter().for_each(|circuit| weir_kernel::set_circuit(circuit).unwrap());
        let mut has = weir_kernel::circuits().unwrap();
        has.sort_by_key(|circuit| (circuit.address, circuit.length));
        assert_eq!(has, all);

        // The longest prefix decides; the window is set by the end of the first megabyte.
        for (address, megabits) in [("127.1.1.1", 100), ("127.1.2.1", 200), ("::1", 50)] {
            let (control, cwnd, mss) = Ends::to(address).sends();
            assert_eq!((control.as_str(), cwnd), ("weir_ctcp", window_of(megabits)(mss)), "{address}");
        }
        assert_eq!(Ends::to("127.2.0.1").sends().0, "weir_htcp");

        // A transfer follows its circuit.
        let mut ends = Ends::to("127.1.1.1");
        ends.sends();
        weir_kernel::set_circuit(&circuit("127.1.0.0", 16, "150 Mbit/s")).unwrap();
        ends.comes_to("weir_ctcp", |mss, cwnd| cwnd == window_of(150)(mss));
        assert!(weir_kernel::remove_circuit("127.1.0.0".parse().unwrap(), 16).unwrap());
        assert!(!weir_kernel::remove_circuit("127.1.0.0".parse().unwrap(), 16).unwrap());
        // H-TCP begins with half of the window; it may have grown when it is read.
        ends.comes_to("weir_htcp", |mss, cwnd| {
            (window_of(150)(mss) / 2..=window_of(150)(mss)).contains(&cwnd)
        });
    };
    std::thread::spawn(inside).join().unwrap();
    drop(held);
}
