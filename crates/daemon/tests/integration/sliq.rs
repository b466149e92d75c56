//! SLIQ between two sockets of this machine: the server reads what the client writes to its connections, and writes it back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_base::{Bytes, Span, Time};
use weir_daemon::sliq::{Application, Now, drive};
use weir_endpoint::{Endpoint, Message, Stream};
use weir_linux::namespace::Namespace;
use weir_linux::udp::UdpPort;
use weir_sliq::Parameters;
use weir_sliq::handshake::{Keys, Responder};
use weir_sliq::host::{Accepts, Host, setup};
use weir_sliq::link::{Link, LinkSetup};

const STREAM: Stream = Stream(0);

/// The bytes of a connection; each connection has its own.
fn content(number: usize, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(2_654_435_761 + number as u64) >> 13) as u8).collect()
}

fn message(head: &[u8]) -> Message<'_> {
    Message { bytes: head.len() as u64, head }
}

/// Writes back what it reads, until told to stop.
struct Echo<'a> {
    waiting: BTreeMap<usize, Vec<u8>>,
    stop: &'a AtomicBool,
    look: Time,
}

impl Application for Echo<'_> {
    fn on_moved(&mut self, number: usize, host: &mut Host, now: Time) {
        let waiting = self.waiting.entry(number).or_default();
        let Some(link) = host.link(number) else { return };
        link.read(&mut |_, read| {
            assert_eq!(read.bytes, read.head.len() as u64);
            waiting.extend_from_slice(read.head);
        });
        let taken = link.write(STREAM, message(waiting), now);
        waiting.drain(..taken as usize);
        if link.finished() && waiting.is_empty() {
            link.close(None, now);
        }
    }
    fn on_over(&mut self, number: usize, _: &mut Host, _: Time) {
        self.waiting.remove(&number);
    }
    fn next_timer(&self) -> Time {
        self.look
    }
    fn on_timer(&mut self, _: &mut Host, now: Time) {
        self.look = now + Span::from_millis(20);
    }
    fn is_done(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Writes the bytes of each connection, reads them back, and ends it.
#[derive(Default)]
struct Ask<'a> {
    /// Called when half of a connection's bytes have come back.
    half: Option<Box<dyn FnOnce() + 'a>>,
    /// Whether another socket is used from then on.
    moves: bool,
    /// For each connection: its bytes, how many are written, and the bytes that came back.
    all: BTreeMap<usize, (Vec<u8>, usize, Vec<u8>)>,
    over: usize,
}

impl Application for Ask<'_> {
    fn on_moved(&mut self, number: usize, host: &mut Host, now: Time) {
        let (Some((content, written, back)), Some(link)) = (self.all.get_mut(&number), host.link(number))
        else {
            return;
        };
        link.read(&mut |_, read| back.extend_from_slice(read.head));
        if back.len() >= content.len() / 2
            && let Some(half) = self.half.take()
        {
            half();
        }
        if *written < content.len() {
            *written += link.write(STREAM, message(&content[*written..]), now) as usize;
            if *written == content.len() {
                link.close(None, now);
            }
        }
        if link.finished() {
            link.end();
        }
    }
    fn on_over(&mut self, number: usize, _: &mut Host, _: Time) {
        let (content, _, back) = &self.all[&number];
        assert!(content == back, "{number}: {} of {} bytes came back, or others", back.len(), content.len());
        self.over += 1;
    }
    fn is_done(&self) -> bool {
        self.over == self.all.len() || (self.moves && self.half.is_none())
    }
}

/// `connections` connections send `length` bytes there and back.
fn there_and_back(connections: usize, length: usize, sealed: bool, offload: bool) {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    over([(); 2].map(|()| UdpPort::bind(any, offload).unwrap()), None, connections, length, sealed, || {});
}

/// The same over these sockets. `half` is called halfway; from then on the client uses `other`, if there is one.
fn over(
    ports: [UdpPort; 2],
    other: Option<UdpPort>,
    connections: usize,
    length: usize,
    sealed: bool,
    half: impl FnOnce(),
) {
    let (client, server) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let server_key = server.public;
    let responder = sealed.then(|| Responder::new(server, [0; 32], &[client.public], &[1; 32]));
    // Keepalives show the new address of an end that has nothing to send.
    let keepalive = Some(Span::from_millis(200));
    let parameters = Parameters { search_mtu: true, keepalive, ..Parameters::default() };
    let controllers = vec!["cubic".parse().unwrap()];
    let accepts = Accepts {
        responder,
        parameters: parameters.clone(),
        controllers: controllers.clone(),
        messages: false,
        mtu: Bytes::new(1500),
        seed: 1,
        identity: None,
    };
    let [mut near, mut far] = ports;
    let to = far.address();
    let (stop, clock) = (AtomicBool::new(false), Now::default());
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut echo = Echo { waiting: BTreeMap::new(), stop: &stop, look: Time::ZERO };
            drive(&mut far, &mut Host::new(Some(accepts)), &mut echo, clock).unwrap();
        });
        let mut host = Host::new(None);
        let mut ask = Ask { half: Some(Box::new(half)), moves: other.is_some(), ..Ask::default() };
        for id in 0..connections {
            let setup = setup(to.ip(), false, Bytes::new(1500), 2, id as u64);
            let (parameters, controllers) = (&parameters, &controllers[..]);
            let of = LinkSetup { parameters, controllers, setup, connection: id as u32, identity: None };
            let mut link = match sealed {
                true => Link::ask(&of, &client, &server_key, id as u64 + 1).unwrap(),
                false => Link::plain(&of),
            };
            link.open(clock.now());
            let number = host.add(link, id as u32, to, None).unwrap();
            ask.all.insert(number, (content(number, length), 0, vec![]));
        }
        drive(&mut near, &mut host, &mut ask, clock).unwrap();
        drop(near);
        if let Some(mut other) = other {
            assert!(ask.over == 0 && ask.half.is_none(), "it has not moved in the middle");
            ask.moves = false;
            drive(&mut other, &mut host, &mut ask, clock).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap();
    });
}

#[test]
fn a_megabyte_comes_back_sealed() {
    there_and_back(1, 1 << 20, true, true);
}

#[test]
fn a_megabyte_comes_back_plain_and_packet_by_packet() {
    there_and_back(1, 1 << 20, false, false);
}

#[test]
fn a_hundred_connections_share_two_sockets() {
    there_and_back(100, 20_000, true, true);
}

/// A namespace whose loopback device is up with this MTU; `None`, with a message, if namespaces are forbidden.
fn namespace(mtu: u32) -> Option<Namespace> {
    if !weir_linux::may_make_namespaces() {
        assert!(
            std::env::var_os("WEIR_REQUIRE_LIVE").is_none(),
            "this test must run, and namespaces are forbidden"
        );
        eprintln!("skipped: this process may not make network namespaces");
        return None;
    }
    let namespace = Namespace::new().unwrap();
    set_mtu(&namespace, mtu);
    Some(namespace)
}

fn set_mtu(namespace: &Namespace, mtu: u32) {
    let set = || Command::new("ip").args(["link", "set", "lo", "up", "mtu", &mtu.to_string()]).status();
    assert!(namespace.inside(set).unwrap().success());
}

#[test]
fn data_come_back_when_the_mtu_of_the_device_is_reduced() {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    for offload in [true, false] {
        let Some(namespace) = namespace(1500) else { return };
        let ports = [(); 2].map(|()| namespace.inside(|| UdpPort::bind(any, offload)).unwrap());
        over(ports, None, 1, 4 << 20, true, || set_mtu(&namespace, 1300));
    }
}

#[test]
fn a_connection_survives_a_change_of_its_endpoints_port_or_address() {
    for place in ["127.0.0.1:0", "127.0.0.2:0"] {
        let bind = |at: &str| UdpPort::bind(at.parse().unwrap(), true).unwrap();
        let ports = [bind("127.0.0.1:0"), bind("127.0.0.1:0")];
        over(ports, Some(bind(place)), 1, 4 << 20, true, || {});
    }
}
