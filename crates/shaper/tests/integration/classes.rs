//! HTB classes that are added, changed and removed at a device while circuits beside them carry traffic: no packet of that traffic is
//! lost.
//!
//! Three circuits carry datagrams at half of their rate, through a class each. Meanwhile WEIR_CLASSES other classes (by default 50; 1000
//! in `make soak`) are added with a queue and a filter each, changed, and removed. The test is skipped, with a message, if no namespace
//! can be made.

use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_base::{Bytes, Rate};
use weir_linux::namespace::{Namespace, set_sysctl};
use weir_shaper::{Class, Device, Handle, Match, Step};

const ROOT: Handle = Handle::new(0x7765, 0);
/// The circuits with traffic, and the payload of their datagrams; headers of Ethernet, IPv4 and UDP are 42 bytes.
const BUSY: u16 = 3;
const PAYLOAD: usize = 1000;
/// 20 datagrams each 10 ms are 2000 a second, 16.7 Mbit/s of frames.
const AT_ONCE: usize = 20;
const APART: Duration = Duration::from_millis(10);
const RATE: u64 = 33_400_000;

/// A test: its name, which states what it shows, and its function.
pub(crate) const TESTS: [(&str, fn()); 1] =
    [("classes_that_come_change_and_go_take_nothing_from_the_others", others_come_change_and_go)];

fn class(minor: u16) -> Handle {
    Handle::new(ROOT.major(), minor)
}

/// A class of this rate.
fn htb(minor: u16, rate: u64) -> Step {
    let (handle, rate, burst) = (class(minor), Rate::from_bits_per_sec(rate), Bytes::new(30_000));
    let quantum = Bytes::new(60_000);
    Step::Class(Class { handle, parent: ROOT, rate, ceil: rate, burst, cburst: burst, quantum, prio: 0 })
}

fn leaf(minor: u16) -> Step {
    Step::Bfifo { handle: Handle::new(minor, 0), parent: class(minor), limit: Bytes::new(1_000_000) }
}

/// All steps for a circuit to 10.a.b.0/24.
fn circuit(minor: u16, rate: u64) -> [Step; 3] {
    let [a, b] = minor.to_be_bytes();
    let matches = Match { address: [10, a, b, 0].into(), length: 24, port: None };
    [htb(minor, rate), leaf(minor), Step::Filter { parent: ROOT, matches, class: class(minor) }]
}

fn apply(device: &mut Device, steps: &[Step]) {
    steps.iter().for_each(|step| device.apply(step).unwrap_or_else(|problem| panic!("{problem}")));
}

fn run(command: &str) {
    let mut words = command.split_whitespace();
    assert!(Command::new(words.next().unwrap()).args(words).status().unwrap().success(), "{command}");
}

/// Two hosts with a pair of devices, and an address in each circuit.
fn hosts() -> [Namespace; 2] {
    let [sender, receiver] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    let there = format!("/proc/{}/fd/{}", std::process::id(), receiver.as_fd().as_raw_fd());
    let set_up = |device: &str, host: u8| {
        let _ = set_sysctl("ipv6.conf.all.disable_ipv6", "1");
        (1..=BUSY).for_each(|circuit| run(&format!("ip address add 10.0.{circuit}.{host}/24 dev {device}")));
        run(&format!("ip link set dev {device} up"));
        Ok(())
    };
    let pair = format!("ip link add name v0 txqueuelen 1000 type veth peer name v1 netns {there}");
    let set_up_sender = || {
        run(&pair);
        set_up("v0", 1)
    };
    sender.inside(set_up_sender).unwrap();
    receiver.inside(|| set_up("v1", 2)).unwrap();
    [sender, receiver]
}

/// Sends numbered datagrams until `over` is set; returns how many.
fn send(outbox: &UdpSocket, circuit: u16, over: &AtomicBool) -> u64 {
    let (start, mut sent) = (Instant::now(), 0u64);
    for round in 0.. {
        std::thread::sleep((APART * round).saturating_sub(start.elapsed()));
        if over.load(Ordering::Acquire) {
            break;
        }
        for _ in 0..AT_ONCE {
            let mut bytes = [0; PAYLOAD];
            bytes[..8].copy_from_slice(&sent.to_be_bytes());
            outbox.send_to(&bytes, format!("10.0.{circuit}.2:9000")).unwrap();
            sent += 1;
        }
    }
    sent
}

/// Receives datagrams until none arrives for two seconds; returns their numbers.
fn receive(inbox: &UdpSocket) -> Vec<u64> {
    let (mut received, mut buffer) = (vec![], [0; 2 * PAYLOAD]);
    while let Ok(length) = inbox.recv(&mut buffer) {
        assert_eq!(length, PAYLOAD);
        received.push(u64::from_be_bytes(buffer[..8].try_into().unwrap()));
    }
    received
}

fn others_come_change_and_go() {
    let others: u16 = std::env::var("WEIR_CLASSES").map_or(50, |count| count.parse().unwrap());
    let [sender, receiver] = hosts();
    let inboxes = receiver
        .inside(|| {
            (1..=BUSY)
                .map(|circuit| {
                    let inbox = UdpSocket::bind(format!("10.0.{circuit}.2:9000"))?;
                    // Room for all datagrams that arrive while this machine is busy with something else.
                    rustix::net::sockopt::set_socket_recv_buffer_size_force(&inbox, 16 << 20)
                        .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&inbox, 16 << 20))?;
                    inbox.set_read_timeout(Some(Duration::from_secs(2)))?;
                    Ok(inbox)
                })
                .collect::<std::io::Result<Vec<_>>>()
        })
        .unwrap();
    let outbox = sender.inside(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    let mut device = sender.inside(|| Device::open("v0").map_err(std::io::Error::other)).unwrap();
    apply(&mut device, &[Step::Htb { handle: ROOT, parent: Handle::ROOT, default: 0, direct_limit: 1000 }]);
    (1..=BUSY).for_each(|circuit| apply(&mut device, &self::circuit(circuit, RATE)));
    let before = device.snapshot().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving: Vec<_> = inboxes.iter().map(|inbox| scope.spawn(move || receive(inbox))).collect();
        let (outbox, over) = (&outbox, &over);
        let sending: Vec<_> =
            (1..=BUSY).map(|circuit| scope.spawn(move || send(outbox, circuit, over))).collect();
        std::thread::sleep(Duration::from_millis(200));
        let minors = 256..256 + others;
        let timed = |what: &str, mut change: Box<dyn FnMut(u16) + '_>| {
            let start = Instant::now();
            minors.clone().for_each(&mut change);
            println!("{others} classes {what} in {:.3} s", start.elapsed().as_secs_f64());
        };
        timed(
            "with queue and filter added",
            Box::new(|minor| apply(&mut device, &circuit(minor, 1_000_000))),
        );
        timed("changed", Box::new(|minor| apply(&mut device, &[htb(minor, 2_000_000)])));
        timed(
            "removed",
            Box::new(|minor| {
                let filters = Step::RemoveFilters { parent: ROOT, class: class(minor) };
                apply(&mut device, &[filters, Step::RemoveClass { handle: class(minor) }]);
            }),
        );
        over.store(true, Ordering::Release);
        let sent: Vec<u64> = sending.into_iter().map(|it| it.join().unwrap()).collect();
        let received: Vec<Vec<u64>> = receiving.into_iter().map(|it| it.join().unwrap()).collect();
        for (mut received, sent) in received.into_iter().zip(&sent) {
            // Between the devices, a datagram that leaves by another processor may overtake others: the shaper does not cause this.
            received.sort_unstable();
            assert!(
                received.iter().copied().eq(0..*sent),
                "some are lost of {sent}: {} came",
                received.len()
            );
        }
        assert!(sent.iter().all(|sent| *sent >= 20 * AT_ONCE as u64), "{sent:?}");
    });
    let handles: Vec<Handle> = (1..=BUSY).map(class).collect();
    let refused: Vec<u64> = device.counters(&handles).unwrap().iter().map(|it| it.unwrap().drops).collect();
    assert_eq!(refused, [0; BUSY as usize]);
    assert_eq!(device.snapshot().unwrap(), before);
}
