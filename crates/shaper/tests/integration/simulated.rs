//! The simulated TBF and HTB against the kernel's: the same datagrams at the same times depart in the same order, and the same are dropped.
//!
//! Datagrams come in bursts, at times that are measured as they are sent and then given to the simulated queue. A decision of the kernel
//! within a millisecond of a departure could go either way, so such an attempt is repeated with other lengths. With WEIR_SHAPER_TIMES=1
//! there is one burst after another at 10 Mbit/s, and the differences between the departure times are printed.

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};
use weir_base::{Bytes, Ecn, FlowId, Packet, Random, Rate, Span, Time};
use weir_linux::namespace::{Namespace, set_sysctl};
use weir_queue::{DropReason, Fate, Link};
use weir_shaper::{Class, Device, Handle, Match, Step, Tbf};

const ROOT: Handle = Handle::new(0x7765, 0);
/// Headers of UDP and IPv4, which count in the packet's length; then the shortest and longest payload of a datagram.
const HEADERS: u32 = 28;
const SHORTEST: u64 = 100;
const LONGEST: u64 = 1472;
/// Uncertainty of all times, in the kernel and in the processes.
const UNSURE: Span = Span::from_millis(1);
const ATTEMPTS: u64 = 20;

pub(crate) const TESTS: [(&str, fn()); 2] = [
    ("tbf_departs_in_the_order_of_the_kernels_and_drops_the_same", tbf),
    ("htb_departs_in_the_order_of_the_kernels_and_drops_the_same", htb),
];

/// A datagram that is sent: to which of two hosts, the length of its packet, and when.
#[derive(Debug, Clone, Copy)]
struct Datagram {
    host: u32,
    length: u32,
    at: Time,
}

#[derive(Debug)]
struct Simulated {
    number: usize,
    sent: Datagram,
    arrived: Time,
}

impl Packet for Simulated {
    fn wire_length(&self) -> u32 {
        self.sent.length
    }
    fn flow(&self) -> FlowId {
        FlowId(self.sent.host)
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn arrive(&mut self, now: Time) {
        self.arrived = now;
    }
    fn arrived(&self) -> Time {
        self.arrived
    }
    fn class(&self) -> Ecn {
        Ecn::NotEct
    }
}

#[derive(Default)]
struct Dropped(Vec<usize>);

impl Fate<Simulated> for Dropped {
    fn dropped(&mut self, packet: Simulated, _: DropReason, _: Time) {
        self.0.push(packet.number);
    }
    fn marked(&mut self, _: &Simulated, _: Time) {}
}

/// The packets that depart, with their times, and the packets that are dropped.
fn simulate(config: &weir_queue::Config, sent: &[Datagram]) -> (Vec<(usize, Time)>, Vec<usize>) {
    let link = Link { rate: Rate::from_mbit_per_sec(100_000), base_rtt: None, mtu: Bytes::new(1500) };
    let mut queue = config.build(&link, Random::stream(1, "queue"));
    let (mut left, mut dropped) = (vec![], Dropped::default());
    let mut now = Time::ZERO;
    let ends = sent.iter().skip(1).map(|next| next.at).chain([Time::NEVER]);
    for ((number, datagram), end) in sent.iter().enumerate().zip(ends) {
        now = now.max(datagram.at);
        let mut packet = Simulated { number, sent: *datagram, arrived: now };
        packet.arrive(now);
        queue.enqueue(packet, now, &mut dropped);
        while let Some(at) = queue.departs(now).filter(|at| *at < end) {
            now = now.max(at);
            left.extend(queue.dequeue(now, &mut dropped).map(|packet| (packet.number, now)));
        }
    }
    dropped.0.sort_unstable();
    (left, dropped.0)
}

/// Two namespaces with a pair of devices; the steps are made at the sender's device.
struct Bed {
    sender: Namespace,
    receiver: Namespace,
}

impl Bed {
    fn new() -> Bed {
        use std::os::fd::{AsFd, AsRawFd};
        let (sender, receiver) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let there = format!("/proc/{}/fd/{}", std::process::id(), receiver.as_fd().as_raw_fd());
        let run = |command: String| {
            let mut words = command.split_whitespace();
            assert!(Command::new(words.next().unwrap()).args(words).status().unwrap().success(), "{command}");
        };
        let set_up = |far: Option<&str>, device: &str, host: u8| {
            let _ = set_sysctl("ipv6.conf.all.disable_ipv6", "1");
            if let Some(far) = far {
                run(format!("ip link add name v0 txqueuelen 1000 type veth peer name v1 netns {far}"));
            }
            run(format!("ip address add 10.1.0.{host}/24 dev {device}"));
            run(format!("ip address add 10.2.0.{host}/24 dev {device}"));
            run(format!("ip link set dev {device} up"));
            Ok(())
        };
        sender.inside(|| set_up(Some(&there), "v0", 1)).unwrap();
        receiver.inside(|| set_up(None, "v1", 2)).unwrap();
        Bed { sender, receiver }
    }

    /// Sends bursts of datagrams of these hosts and lengths, `apart` from each other; returns when each was sent, and which arrived when,
    /// in order of arrival.
    fn send(
        &self,
        steps: &[Step],
        bursts: &[Vec<(u32, u32)>],
        apart: Duration,
    ) -> (Vec<Datagram>, Vec<(usize, Time)>) {
        let count: usize = bursts.iter().map(Vec::len).sum();
        let inbox = self.receiver.inside(|| UdpSocket::bind("0.0.0.0:9000")).unwrap();
        inbox.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
        let outbox = self.sender.inside(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
        // The neighbours are resolved before the shaper is installed.
        for host in [1, 2] {
            outbox.send_to(&[0xff; 8], format!("10.{host}.0.2:9000")).unwrap();
            inbox.recv(&mut [0; 8]).unwrap();
        }
        let shape = || {
            let mut device = Device::open("v0").unwrap();
            if device.snapshot().unwrap().root().is_some() {
                device.apply(&Step::RemoveRoot).unwrap();
            }
            steps.iter().for_each(|step| device.apply(step).unwrap());
            Ok(())
        };
        self.sender.inside(shape).unwrap();
        let zero = Instant::now();
        let now = || Time::ZERO + Span::from_nanos(u64::try_from(zero.elapsed().as_nanos()).unwrap());
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (mut arrived, mut buffer) = (vec![], [0; 2048]);
                while let Ok(read) = inbox.recv(&mut buffer) {
                    assert!(read >= 4);
                    arrived.push((
                        u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]) as usize,
                        now(),
                    ));
                    if arrived.len() == count {
                        break;
                    }
                }
                arrived
            });
            let mut sent = vec![];
            for (burst, due) in bursts.iter().zip(0..) {
                std::thread::sleep((apart * due).saturating_sub(zero.elapsed()));
                for (host, length) in burst {
                    let mut bytes = vec![0; (length - HEADERS) as usize];
                    bytes[..4].copy_from_slice(&(sent.len() as u32).to_be_bytes());
                    sent.push(Datagram { host: *host, length: *length, at: now() });
                    // A packet that the shaper drops is no error of the test.
                    outbox.send_to(&bytes, format!("10.{}.0.2:9000", host + 1)).unwrap();
                }
            }
            (sent, receiving.join().unwrap())
        })
    }
}

/// Bursts of datagrams of random lengths, to one or two hosts.
fn bursts(random: &mut Random, counts: &[usize], hosts: u64) -> Vec<Vec<(u32, u32)>> {
    let mut one = || {
        let length = SHORTEST + random.below(LONGEST - SHORTEST);
        (u32::try_from(random.below(hosts)).unwrap(), u32::try_from(length).unwrap() + HEADERS)
    };
    counts.iter().map(|count| (0..*count).map(|_| one()).collect()).collect()
}

/// Whether the kernel could have decided otherwise: a datagram arrives, or another host's packet departs, within the uncertainty of a
/// departure.
fn is_close(sent: &[Datagram], left: &[(usize, Time)], bursts: &[Vec<(u32, u32)>], unsure: Span) -> bool {
    let apart = |one: Time, other: Time| one.max(other).since(one.min(other));
    let mut first = 0;
    let long = bursts.iter().any(|burst| {
        let datagrams = &sent[first..first + burst.len()];
        first += burst.len();
        datagrams.last().unwrap().at.since(datagrams[0].at) > unsure
    });
    // A packet that departs as it arrives does so in the kernel too.
    let late: Vec<&(usize, Time)> = left.iter().filter(|(number, at)| *at > sent[*number].at).collect();
    let arrivals = late.iter().any(|(_, at)| sent.iter().any(|datagram| apart(datagram.at, *at) < unsure));
    let hosts = late.windows(2).any(|two| {
        let [(one, at), (other, then)] = two else { return false };
        sent[*one].host != sent[*other].host && apart(*at, *then) < unsure
    });
    long || arrivals || hosts
}

/// Bursts for which every decision is certain if they are sent on time.
fn clear_bursts(
    random: &mut Random,
    config: &weir_queue::Config,
    counts: &[usize],
    apart: Duration,
    hosts: u64,
) -> Vec<Vec<(u32, u32)>> {
    let apart = Span::from_nanos(u64::try_from(apart.as_nanos()).unwrap());
    for _ in 0..10_000 {
        let bursts = bursts(random, counts, hosts);
        let due = |(number, burst): (u64, &Vec<(u32, u32)>)| {
            let at = Time::ZERO + apart * number;
            burst
                .iter()
                .map(move |(host, length)| Datagram { host: *host, length: *length, at })
                .collect::<Vec<_>>()
        };
        let sent: Vec<Datagram> = (0..).zip(&bursts).flat_map(due).collect();
        if !is_close(&sent, &simulate(config, &sent).0, &bursts, UNSURE * 3) {
            return bursts;
        }
    }
    panic!("no bursts of these numbers are clear");
}

/// Compares the kernel with the simulated queue.
fn compare(name: &str, config: &str, steps: &[Step], counts: &[usize], apart: Duration, hosts: u64) {
    let config: weir_queue::Config = serde_json::from_str(config).unwrap();
    let bed = Bed::new();
    let mut random = Random::stream(7, name);
    for _ in 0..ATTEMPTS {
        let looks_at_times = std::env::var_os("WEIR_SHAPER_TIMES").is_some();
        let bursts = match looks_at_times {
            true => bursts(&mut random, counts, hosts),
            false => clear_bursts(&mut random, &config, counts, apart, hosts),
        };
        let (sent, arrived) = bed.send(steps, &bursts, apart);
        let (left, dropped) = simulate(&config, &sent);
        if looks_at_times {
            return times(name, &sent, &left, &arrived);
        }
        if is_close(&sent, &left, &bursts, UNSURE) {
            println!("{name}: too close to call, once more");
            continue;
        }
        let numbers = |all: &[(usize, Time)]| all.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        assert_eq!(numbers(&arrived), numbers(&left), "{name}: {dropped:?} are dropped of {sent:?}");
        if !dropped.is_empty() && left.len() > 8 {
            return;
        }
        println!("{name}: bursts were sent so late that they put nothing to the test, once more");
    }
    panic!("{name}: {ATTEMPTS} attempts were too close to call or too easy, or this machine was too busy");
}

/// Prints the differences between the departures, in time and in order.
fn times(name: &str, sent: &[Datagram], left: &[(usize, Time)], arrived: &[(usize, Time)]) {
    let same = left.iter().zip(arrived).filter(|((one, _), (other, _))| one == other).count();
    let mut apart: Vec<f64> = left
        .iter()
        .filter_map(|(number, at)| {
            let (_, then) = arrived.iter().find(|(other, _)| other == number)?;
            Some(then.max(at).since(*then.min(at)).as_nanos() as f64 / 1e6)
        })
        .collect();
    apart.sort_by(f64::total_cmp);
    let share = |p: f64| apart[((apart.len() - 1) as f64 * p) as usize];
    println!(
        "{name}: {} sent, {} and {} departed, {same} of them in the same place; apart in ms: median {:.3}, 99 % {:.3}, most {:.3}",
        sent.len(),
        left.len(),
        arrived.len(),
        share(0.5),
        share(0.99),
        share(1.0)
    );
}

/// 200 kbit/s, or 10 Mbit/s if times are printed.
fn rate() -> u64 {
    if std::env::var_os("WEIR_SHAPER_TIMES").is_some() { 10_000_000 } else { 200_000 }
}

fn bursts_of() -> (Vec<usize>, Duration) {
    match std::env::var_os("WEIR_SHAPER_TIMES") {
        Some(_) => (vec![20; 200], Duration::from_millis(15)),
        None => (vec![24, 10], Duration::from_millis(400)),
    }
}

fn tbf() {
    let rate = rate();
    let config =
        format!(r#"{{ "kind": "tbf", "rate": "{rate} bit/s", "burst": "3000 B", "limit": "15000 B" }}"#);
    let tbf = Tbf {
        rate: Rate::from_bits_per_sec(rate),
        burst: Bytes::new(3000),
        limit: Bytes::new(15_000),
        peakrate: None,
        mtu: Bytes::new(1514),
    };
    let (counts, apart) = bursts_of();
    compare("tbf", &config, &[Step::Tbf { handle: ROOT, parent: Handle::ROOT, tbf }], &counts, apart, 1);
}

fn htb() {
    // Two circuits: two thirds and one third.
    let shares = [rate() * 2 / 3, rate() / 3];
    let leaf = r#""queue": { "kind": "tail-drop", "limit": "6 packets" }"#;
    let class = |number: usize| {
        let rate = shares[number];
        format!(
            r#"{{ "name": "c{number}", "rate": "{rate} bit/s", "burst": "3000 B", "cburst": "3000 B", "flows": [{number}], {leaf} }}"#
        )
    };
    let config = format!(r#"{{ "kind": "htb", "classes": [{}, {}] }}"#, class(0), class(1));
    let mut steps = vec![Step::Htb { handle: ROOT, parent: Handle::ROOT, default: 0, direct_limit: 1000 }];
    for (minor, share) in (1..).zip(shares) {
        let (handle, rate) = (Handle::new(ROOT.major(), minor), Rate::from_bits_per_sec(share));
        let burst = Bytes::new(3000);
        let quantum = Bytes::new(1514);
        steps.push(Step::Class(Class {
            handle,
            parent: ROOT,
            rate,
            ceil: rate,
            burst,
            cburst: burst,
            quantum,
            prio: 0,
        }));
        steps.push(Step::Pfifo { handle: Handle::new(minor, 0), parent: handle, limit: 6 });
        let matches = Match { address: format!("10.{minor}.0.0").parse().unwrap(), length: 24, port: None };
        steps.push(Step::Filter { parent: ROOT, matches, class: handle });
    }
    let (counts, apart) = bursts_of();
    compare("htb", &config, &steps, &counts, apart, 2);
}
