//! Whatever reaches the connections of a UDP socket, nothing panics and no host sends forever; a host without the right key
//! gets no more bytes than it has sent, and no bytes are read that were not written.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::OnceLock;
use weir_base::{Bytes, Ecn, Span, Time};
use weir_transport::coordination::{Coordination, Identity};
use weir_transport::sliq::handshake::{Keys, Responder};
use weir_transport::sliq::host::{Accepts, Host, setup};
use weir_transport::sliq::link::{Link, LinkSetup};
use weir_transport::sliq::{FastStart, Parameters};
use weir_transport::{Endpoint, Message, Stream};

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

fn parameters(coordinated: bool) -> Parameters {
    let coordination = coordinated.then(|| Coordination::of(1));
    Parameters { search_mtu: true, fast_start: FastStart::Always, coordination, ..Parameters::default() }
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
    /// Bytes that the stranger has sent and received.
    stranger: [usize; 2],
    now: Time,
}

impl Hosts {
    /// A new connection; with `coordinated`, it is a flow of an application.
    fn new(coordinated: bool) -> Hosts {
        let identity = coordinated.then_some(Identity { flow: 0, key: None, epoch: 0 });
        let accepts = Accepts {
            responder: Some(Responder::new(keys(SERVER), [0; 32], &[keys(CLIENT).public], &[1; 32])),
            parameters: parameters(coordinated),
            controllers: controllers(),
            messages: false,
            mtu: Bytes::new(1500),
            seed: 1,
            identity,
        };
        let (mut client, parameters, controllers) = (Host::new(None), parameters(coordinated), controllers());
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
        Hosts { hosts, link, pipe: VecDeque::new(), stranger: [0; 2], now: Time::ZERO }
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
            for (peer, packet) in sent {
                match [CLIENT, SERVER].into_iter().find(|to| address(*to) == peer) {
                    Some(to) => self.pipe.push_back((to, from, packet)),
                    None => self.stranger[1] += packet.len(),
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
    [false, true].map(Hosts::new).into_iter().for_each(|hosts| drive(hosts, data));
}

fn drive(mut hosts: Hosts, data: &[u8]) {
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
