//! Whatever reaches the connections of a UDP socket, nothing panics and no host sends forever; a host without the right key
//! gets no more bytes than it has sent, and no bytes are read that were not written. The packets are plain, behind a header of
//! the Coordination Protocol, or behind a sealed one that two aggregation points rewrite.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Once, OnceLock};
use weir_base::{Bytes, Ecn, Span, Time};
use weir_coord::participation::{Coordination, Identity};
use weir_coord::seal::Key;
use weir_coord::{Config, FiveTuple, Packet, Point, Side, Verdict};
use weir_endpoint::{Endpoint, Message, Stream};
use weir_sliq::handshake::{Keys, Responder};
use weir_sliq::host::{Accepts, Host, setup};
use weir_sliq::link::{Link, LinkSetup};
use weir_sliq::{FastStart, Parameters};

/// The participants: two hosts and a stranger.
const CLIENT: usize = 0;
const SERVER: usize = 1;
const STRANGER: usize = 2;
const CONNECTION: u32 = 7;
/// All bytes that are ever written.
const WRITTEN: u8 = b'w';

fn address(who: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, who as u8], 9))
}

/// The private and the public keys of both hosts, made once.
fn keys(who: usize) -> Keys {
    static KEYS: OnceLock<[Keys; 2]> = OnceLock::new();
    let both = KEYS.get_or_init(|| [(); 2].map(|()| Keys::generate().expect("the system has randomness")));
    let Keys { public, .. } = both[who];
    Keys::new((*both[who].private()).into(), public)
}

fn parameters(member: Member) -> Parameters {
    let coordination = (member != Member::None).then(|| Coordination::of(1));
    Parameters { search_mtu: true, fast_start: FastStart::Always, coordination, ..Parameters::default() }
}

/// How the connection takes part in an application.
#[derive(Clone, Copy, PartialEq)]
enum Member {
    /// It does not.
    None,
    /// As a flow whose packets no aggregation point rewrites.
    Bare,
    /// As a flow with a key, between two aggregation points.
    Keyed,
}

impl Member {
    fn identity(self) -> Option<Identity> {
        let key = (self == Member::Keyed).then_some(APPLICATION);
        (self != Member::None).then_some(Identity { flow: 0, key, epoch: 0 })
    }

    fn points(self) -> Option<[Point; 2]> {
        (self == Member::Keyed).then(|| [point(CLIENT, SERVER), point(SERVER, CLIENT)])
    }
}

/// The key of the application.
const APPLICATION: Key = Key::new([3; 16]);

/// The aggregation point of a host.
fn point(own: usize, other: usize) -> Point {
    let text = format!(
        "[[application]]\nid = 1\nname = \"files\"\nlocal = [\"10.0.0.{own}/32\"]\nlocal_ports = 9\n\
         remote = [\"10.0.0.{other}/32\"]\nremote_ports = 9\n"
    );
    let mut config = Config::from_toml(&text).expect("the configuration is right");
    config.peer_key = Some(Key::new([4; 16]));
    config.application[0].key = Some(APPLICATION);
    Point::new(&config, 1, 1).expect("the configuration is right")
}

fn controllers() -> Vec<weir_control::Config> {
    vec![weir_control::Config::Cubic(Default::default())]
}

/// A client's connection to a server, and the packets under way.
struct Hosts {
    hosts: [Host; 2],
    link: usize,
    /// Receiver, sender and bytes of each packet.
    pipe: VecDeque<(usize, usize, Vec<u8>)>,
    points: Option<[Point; 2]>,
    /// Bytes that the stranger has sent and received.
    stranger: [usize; 2],
    now: Time,
}

impl Hosts {
    /// A new connection.
    fn new(member: Member) -> Hosts {
        let identity = member.identity();
        let accepts = Accepts {
            responder: Some(Responder::new(keys(SERVER), [0; 32], &[keys(CLIENT).public], &[1; 32])),
            parameters: parameters(member),
            controllers: controllers(),
            messages: false,
            mtu: Bytes::new(1500),
            seed: 1,
            identity,
        };
        let (mut client, parameters, controllers) = (Host::new(None), parameters(member), controllers());
        let of = LinkSetup {
            parameters: &parameters,
            controllers: &controllers,
            setup: setup(address(SERVER).ip(), false, Bytes::new(1500), 2, 0),
            connection: CONNECTION,
            identity,
        };
        let mut link = Link::ask(&of, &keys(CLIENT), &keys(SERVER).public, 1).expect("it is a key");
        link.open(Time::ZERO);
        let link = client.add(link, CONNECTION, address(SERVER), None).expect("it is the first");
        let hosts = [client, Host::new(Some(accepts))];
        let points = member.points();
        Hosts { hosts, link, pipe: VecDeque::new(), points, stranger: [0; 2], now: Time::ZERO }
    }

    /// Passes a packet to the aggregation points. Returns who receives it; `None` if a point refuses it.
    fn pass(&mut self, from: usize, to: usize, packet: &mut [u8]) -> Option<usize> {
        let Some(points) = &mut self.points else { return Some(to) };
        let (here, there) = (address(from), address(to));
        let tuple = FiveTuple {
            source: here.ip(),
            source_port: here.port(),
            destination: there.ip(),
            destination_port: there.port(),
        };
        let length = 28 + packet.len() as u32;
        for (point, side) in [(from, Side::Local), (to, Side::Path)] {
            let packet = Packet { side, tuple, length, payload: &mut *packet, checksum: None };
            match points[point].handle(packet, self.now) {
                Verdict::Forward => {}
                Verdict::Return => return Some(from),
                // An older connection of the host, or more questions than are answered.
                Verdict::Refuse(_) => return None,
                verdict => panic!("{verdict:?}"),
            }
        }
        Some(to)
    }

    /// Lets both hosts send all their waiting packets.
    fn send(&mut self) {
        for from in [CLIENT, SERVER] {
            let host = &mut self.hosts[from];
            host.on_timer(self.now);
            let mut sent: Vec<(SocketAddr, Vec<u8>)> = std::iter::from_fn(|| host.reply()).collect();
            while let Some(number) = host.moved() {
                if let Some(link) = host.link(number) {
                    link.read(&mut |_, read| assert!(read.head.iter().all(|byte| *byte == WRITTEN)));
                }
                let Some(peer) = host.peer(number) else { continue };
                let mut packet = vec![];
                while host.transmit(number, &mut packet, self.now).is_some() {
                    sent.push((peer, std::mem::take(&mut packet)));
                    assert!(sent.len() < 10_000, "it never stops sending");
                }
                host.settle(number, self.now);
            }
            for (peer, mut packet) in sent {
                let Some(to) = [CLIENT, SERVER].into_iter().find(|to| address(*to) == peer) else {
                    self.stranger[1] += packet.len();
                    continue;
                };
                if let Some(receiver) = self.pass(from, to, &mut packet) {
                    self.pipe.push_back((receiver, to + from - receiver, packet));
                }
            }
        }
        assert!(self.stranger[1] <= self.stranger[0], "a stranger gets more than it has sent");
        assert!(self.hosts[CLIENT].len() <= 1);
    }

    fn deliver(&mut self, to: usize, from: usize, mut packet: Vec<u8>) {
        if from == STRANGER {
            self.stranger[0] += packet.len();
        }
        // Routers may mark any packet.
        let ecn = if self.now.as_nanos().is_multiple_of(3) { Ecn::Ce } else { Ecn::Ect0 };
        self.hosts[to].receive(address(from), &mut packet, ecn, self.now);
    }

    fn write(&mut self, who: usize, length: usize) {
        let bytes = vec![WRITTEN; length];
        let number = if who == CLIENT { self.link } else { 0 };
        if let Some(link) = self.hosts[who].link(number) {
            link.write(Stream(0), Message { bytes: length as u64, head: &bytes }, self.now);
            self.hosts[who].look_at(number);
        }
    }
}

/// Drives both hosts. A step is a byte for its kind, a byte for its amount, and as many bytes as that.
pub(crate) fn check(data: &[u8]) {
    static OPENS: Once = Once::new();
    // Three times all packets arrive: the connection opens, or nothing of it is checked.
    OPENS.call_once(|| {
        for mut hosts in connections() {
            (0..3).for_each(|_| drive(&mut hosts, &[0, 9]));
            assert!(hosts.hosts[CLIENT].link(hosts.link).is_some_and(|link| link.is_open()));
        }
    });
    connections().iter_mut().for_each(|hosts| drive(hosts, data));
}

/// A connection of each kind.
fn connections() -> [Hosts; 3] {
    [Member::None, Member::Bare, Member::Keyed].map(Hosts::new)
}

fn drive(hosts: &mut Hosts, data: &[u8]) {
    hosts.send();
    let mut rest = data;
    while let [what, much, after @ ..] = rest {
        let (who, much) = (usize::from(what & 1), usize::from(*much));
        let (bytes, after) = after.split_at(much.min(after.len()));
        rest = after;
        match what >> 1 & 7 {
            // The next packets arrive: as they are, twice, changed, from elsewhere, or not at all.
            kind @ 0..=4 => {
                let count = if kind == 0 { much } else { 1 };
                for _ in 0..count {
                    let Some((to, from, mut packet)) = hosts.pipe.pop_front() else { break };
                    match kind {
                        1 => hosts.deliver(to, from, packet.clone()),
                        2 => bytes.iter().zip(&mut packet).for_each(|(byte, other)| *other ^= byte),
                        3 => {
                            hosts.deliver(to, STRANGER, packet);
                            continue;
                        }
                        4 => continue,
                        _ => {}
                    }
                    hosts.deliver(to, from, packet);
                }
            }
            5 => hosts.deliver(who, if much % 2 == 0 { STRANGER } else { 1 - who }, bytes.to_vec()),
            6 => hosts.write(who, much * 20),
            _ => hosts.now += Span::from_micros((much * much * 100) as u64),
        }
        hosts.send();
    }
}
