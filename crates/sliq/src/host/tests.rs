//! Hosts in memory: each host's packets are passed to the other one, or dropped.

mod coordinated;

use super::*;
use crate::handshake::{Keys, REQUEST};
use weir_endpoint::{Message, Stream};

const CLIENT: &str = "10.0.0.1:1000";
const SERVER: &str = "10.0.0.2:2000";

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// A client, and a server that allows it.
struct Pair {
    keys: Keys,
    server_key: [u8; KEY],
    client: Host,
    server: Host,
    parameters: Parameters,
    identity: Option<Identity>,
    stamp: u64,
}

fn controllers() -> Vec<weir_control::Config> {
    vec!["cubic".parse().unwrap()]
}

fn pair() -> Pair {
    pair_of(Parameters::default(), None)
}

fn pair_of(parameters: Parameters, identity: Option<Identity>) -> Pair {
    let (keys, server) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let server_key = server.public;
    let accepts = Accepts {
        responder: Some(Responder::new(server, [0; KEY], &[keys.public], &[7; KEY])),
        parameters: parameters.clone(),
        controllers: controllers(),
        messages: false,
        mtu: Bytes::new(1500),
        seed: 1,
        identity,
    };
    let (client, server) = (Host::new(None), Host::new(Some(accepts)));
    Pair { keys, server_key, client, server, parameters, identity, stamp: 0 }
}

/// All packets that a host sends now: address and bytes of each.
fn sent(host: &mut Host, now: Time) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut all = vec![];
    host.on_timer(now);
    while let Some(number) = host.moved() {
        let peer = host.peer(number).unwrap();
        let mut packet = vec![];
        while host.transmit(number, &mut packet, now).is_some() {
            all.push((peer, std::mem::take(&mut packet)));
        }
        host.settle(number, now);
    }
    all.extend(std::iter::from_fn(|| host.reply()));
    all
}

impl Pair {
    fn ask(&mut self, connection: u32, peer: [u8; KEY], now: Time) -> usize {
        let (parameters, controllers) = (&self.parameters, &controllers());
        let setup = setup(at(SERVER).ip(), false, Bytes::new(1500), 2, self.stamp);
        let of = LinkSetup { parameters, controllers, setup, connection, identity: self.identity };
        self.stamp += 1;
        let mut link = Link::ask(&of, &self.keys, &peer, self.stamp).unwrap();
        link.open(now);
        self.client.add(link, connection, at(SERVER), None).unwrap()
    }

    /// Passes packets between the two until neither sends any more. `lose` tells whether a packet is lost.
    fn talk(&mut self, now: Time, mut lose: impl FnMut(&[u8]) -> bool) {
        loop {
            let (there, back) = (sent(&mut self.client, now), sent(&mut self.server, now));
            if there.is_empty() && back.is_empty() {
                return;
            }
            for (to, mut packet) in there {
                assert_eq!(to, at(SERVER));
                if !lose(&packet) {
                    self.server.receive(at(CLIENT), &mut packet, Ecn::NotEct, now);
                }
            }
            for (to, mut packet) in back {
                assert_eq!(to, at(CLIENT));
                if !lose(&packet) {
                    self.client.receive(at(SERVER), &mut packet, Ecn::NotEct, now);
                }
            }
        }
    }
}

fn read(host: &mut Host, number: usize) -> Vec<u8> {
    let mut all = vec![];
    host.link(number).unwrap().read(&mut |_, read| all.extend_from_slice(read.head));
    all
}

fn write(host: &mut Host, number: usize, bytes: &[u8], now: Time) {
    let message = Message { bytes: bytes.len() as u64, head: bytes };
    assert_eq!(host.link(number).unwrap().write(Stream(0), message, now), bytes.len() as u64);
    host.look_at(number);
}

#[test]
fn data_written_before_the_handshake_arrives_sealed_and_replies_return() {
    let mut pair = pair();
    let number = pair.ask(77, pair.server_key, ms(0));
    write(&mut pair.client, number, b"to be kept secret", ms(0));
    pair.talk(ms(1), |packet| {
        assert!(!packet.windows(6).any(|part| part == b"secret"));
        false
    });
    let there = 0;
    assert_eq!((pair.server.len(), pair.server.key(there)), (1, Some(pair.keys.public)));
    assert_eq!(read(&mut pair.server, there), b"to be kept secret");
    write(&mut pair.server, there, b"understood", ms(2));
    pair.talk(ms(2), |_| false);
    assert_eq!(read(&mut pair.client, number), b"understood");
    // A connection that one end has ended is over for both, and is removed after a while.
    pair.client.link(number).unwrap().end();
    pair.client.look_at(number);
    pair.talk(ms(3), |_| false);
    assert!(pair.client.link(number).unwrap().is_over() && pair.server.link(there).unwrap().is_over());
    pair.talk(ms(3) + LINGER, |_| false);
    assert_eq!((pair.client.len(), pair.server.len()), (0, 0));
}

#[test]
fn lost_requests_replies_and_first_packets_are_retransmitted() {
    for lost in 0..6 {
        let mut pair = pair();
        let number = pair.ask(77, pair.server_key, ms(0));
        let mut count = 0;
        for step in 0..40 {
            pair.talk(ms(100 * step), |_| {
                count += 1;
                count == lost + 1
            });
        }
        assert!(pair.client.link(number).unwrap().is_open(), "without packet {lost}");
        assert!(pair.server.link(0).unwrap().is_open(), "without packet {lost}");
    }
}

#[test]
fn a_host_sends_fewer_bytes_than_it_received_until_the_address_is_validated() {
    let mut pair = pair();
    pair.ask(77, pair.server_key, ms(0));
    let requests = sent(&mut pair.client, ms(0));
    assert_eq!(requests.iter().map(|(_, request)| request.len()).collect::<Vec<_>>(), [REQUEST]);
    // Somebody sends the same request from another address, repeatedly.
    let mut bytes = 0;
    for time in 0..20_000 {
        if time % 100 == 0 {
            pair.server.receive(at("192.0.2.9:9"), &mut requests[0].1.clone(), Ecn::NotEct, ms(time));
        }
        bytes += sent(&mut pair.server, ms(time)).iter().map(|(_, reply)| reply.len()).sum::<usize>();
    }
    assert!(bytes > 0 && bytes < 200 * REQUEST, "{bytes} bytes");
    assert_eq!(pair.server.len(), 0, "nothing remains");
}

#[test]
fn forged_truncated_and_reflected_packets_create_no_connection_and_change_none() {
    let mut pair = pair();
    let number = pair.ask(77, pair.server_key, ms(0));
    pair.talk(ms(0), |_| false);
    write(&mut pair.client, number, b"first", ms(1));
    let good = sent(&mut pair.client, ms(1)).remove(0).1;
    for at_byte in 0..good.len() {
        let mut forged = good.clone();
        forged[at_byte] ^= 0x10;
        pair.server.receive(at(CLIENT), &mut forged, Ecn::NotEct, ms(1));
        pair.server.receive(at(CLIENT), &mut good[..at_byte].to_vec(), Ecn::NotEct, ms(1));
    }
    // The packet is reflected to its sender.
    pair.client.receive(at(SERVER), &mut good.clone(), Ecn::NotEct, ms(1));
    assert!(read(&mut pair.server, 0).is_empty() && sent(&mut pair.server, ms(1)).is_empty());
    assert_eq!(pair.server.len(), 1);
    pair.server.receive(at(CLIENT), &mut good.clone(), Ecn::NotEct, ms(1));
    pair.server.receive(at(CLIENT), &mut good.clone(), Ecn::NotEct, ms(1));
    assert_eq!(read(&mut pair.server, 0), b"first");
}

#[test]
fn clients_beyond_the_limit_of_open_handshakes_need_a_cookie_and_all_connect() {
    let mut pair = pair();
    let asked = EXCHANGES + 20;
    let numbers: Vec<usize> = (0..asked).map(|id| pair.ask(id, pair.server_key, ms(0))).collect();
    let mut cookies = 0;
    pair.talk(ms(0), |packet| {
        cookies += u32::from(packet[0] == 0x54);
        false
    });
    assert_eq!(cookies, 20);
    assert!(numbers.iter().all(|number| pair.client.link(*number).unwrap().is_open()));
    assert_eq!(pair.server.len(), asked as usize);
}

#[test]
fn unknown_clients_and_requests_for_another_host_get_no_connection() {
    let mut pair = pair();
    let other = Keys::generate().unwrap().public;
    let number = pair.ask(1, other, ms(0));
    pair.keys = Keys::generate().unwrap();
    let stranger = pair.ask(2, pair.server_key, ms(0));
    for step in 0..200 {
        pair.talk(ms(100 * step), |_| false);
    }
    assert_eq!(pair.server.len(), 0);
    for number in [number, stranger] {
        assert!(pair.client.link(number).is_none_or(|link| link.is_over() && !link.is_open()));
    }
}

#[test]
fn a_host_without_keys_accepts_only_clients_on_its_own_machine() {
    let accepts = Accepts {
        responder: None,
        parameters: Parameters::default(),
        controllers: controllers(),
        messages: false,
        mtu: Bytes::new(1500),
        seed: 1,
        identity: None,
    };
    let (mut server, mut client) = (Host::new(Some(accepts)), Host::new(None));
    let (parameters, controllers) = (Parameters::default(), controllers());
    let setup = setup(at("127.0.0.1:9").ip(), false, Bytes::new(1500), 2, 0);
    let of = LinkSetup {
        parameters: &parameters,
        controllers: &controllers,
        setup,
        connection: 5,
        identity: None,
    };
    let mut link = Link::plain(&of);
    link.open(ms(0));
    let number = client.add(link, 5, at("127.0.0.1:9"), None).unwrap();
    let (_, open) = sent(&mut client, ms(0)).remove(0);
    server.receive(at("192.0.2.9:9"), &mut open.clone(), Ecn::NotEct, ms(0));
    assert_eq!(server.len(), 0);
    server.receive(at("127.0.0.1:7"), &mut open.clone(), Ecn::NotEct, ms(0));
    for (_, mut packet) in sent(&mut server, ms(0)) {
        client.receive(at("127.0.0.1:9"), &mut packet, Ecn::NotEct, ms(0));
    }
    assert!(client.link(number).unwrap().is_open() && server.link(0).unwrap().is_open());
}

#[test]
fn a_peer_that_moves_is_followed_once_its_new_address_is_validated() {
    let mut pair = pair();
    let number = pair.ask(77, pair.server_key, ms(0));
    pair.talk(ms(0), |_| false);
    let moved = at("10.9.9.9:5");
    // The server has much to send, and the client's next packets come from a new address.
    write(&mut pair.server, 0, &[7; 4000], ms(1));
    write(&mut pair.client, number, b"from elsewhere", ms(1));
    let mut bytes = [0usize; 2];
    for step in 0..20 {
        let now = ms(1 + 20 * step);
        for (_, mut packet) in sent(&mut pair.client, now) {
            bytes[0] += packet.len();
            pair.server.receive(moved, &mut packet, Ecn::NotEct, now);
        }
        let proved = pair.server.peer(0) == Some(moved);
        for (to, mut packet) in sent(&mut pair.server, now) {
            // Packets to the old address are lost.
            if to == moved {
                bytes[1] += packet.len();
                assert!(proved || bytes[1] <= bytes[0], "more than has come from there");
                pair.client.receive(at(SERVER), &mut packet, Ecn::NotEct, now);
            }
        }
    }
    assert_eq!(pair.server.peer(0), Some(moved));
    assert_eq!(read(&mut pair.server, 0), b"from elsewhere");
    assert_eq!(read(&mut pair.client, number), [7; 4000]);
    // The connection has moved; no second one exists.
    assert_eq!(pair.server.len(), 1);
}

#[test]
fn a_packet_forwarded_from_another_address_does_not_move_the_connection() {
    let mut pair = pair();
    let number = pair.ask(77, pair.server_key, ms(0));
    pair.talk(ms(0), |_| false);
    write(&mut pair.client, number, b"once", ms(1));
    let elsewhere = at("10.9.9.9:5");
    let (_, packet) = sent(&mut pair.client, ms(1)).remove(0);
    pair.server.receive(elsewhere, &mut packet.clone(), Ecn::NotEct, ms(1));
    let (there, others): (Vec<_>, Vec<_>) =
        sent(&mut pair.server, ms(1)).into_iter().partition(|(to, _)| *to == elsewhere);
    assert_eq!(there.iter().map(|(_, packet)| packet.len()).collect::<Vec<_>>(), [CHALLENGE]);
    assert!(CHALLENGE <= packet.len() && others.iter().all(|(to, _)| *to == at(CLIENT)));
    // From now on the packet is a replay, whatever its source address.
    for from in [elsewhere, at(CLIENT), at("192.0.2.1:1")] {
        pair.server.receive(from, &mut packet.clone(), Ecn::NotEct, ms(300));
    }
    assert!(sent(&mut pair.server, ms(300)).iter().all(|(to, _)| *to == at(CLIENT)));
    assert_eq!((pair.server.peer(0), read(&mut pair.server, 0)), (Some(at(CLIENT)), b"once".to_vec()));
}

#[test]
fn a_third_party_that_forwards_a_handshake_receives_no_more_bytes_than_it_sent() {
    let mut pair = pair();
    let number = pair.ask(77, pair.server_key, ms(0));
    let (elsewhere, mut bytes) = (at("10.9.9.9:5"), [0usize; 2]);
    // The request arrives from a stranger's address, and then from the client's, which gets the answer.
    let (_, request) = sent(&mut pair.client, ms(0)).remove(0);
    pair.server.receive(elsewhere, &mut request.clone(), Ecn::NotEct, ms(0));
    bytes[0] += request.len();
    pair.server.receive(at(CLIENT), &mut request.clone(), Ecn::NotEct, ms(0));
    let mut deliver = |pair: &mut Pair, sent_on: bool, now: Time| {
        for (to, mut packet) in sent(&mut pair.server, now) {
            if to == elsewhere {
                bytes[1] += packet.len();
            } else {
                pair.client.receive(at(SERVER), &mut packet, Ecn::NotEct, now);
            }
        }
        for (_, mut packet) in sent(&mut pair.client, now) {
            let from = if sent_on { elsewhere } else { at(CLIENT) };
            bytes[0] += if from == elsewhere { packet.len() } else { 0 };
            pair.server.receive(from, &mut packet, Ecn::NotEct, now);
        }
        assert!(bytes[1] <= bytes[0], "{bytes:?}");
    };
    deliver(&mut pair, true, ms(1));
    write(&mut pair.server, 0, &[7; 4000], ms(2));
    write(&mut pair.client, number, b"hello", ms(2));
    for step in 0..10 {
        deliver(&mut pair, true, ms(3 + 200 * step));
    }
    // The client's own packets arrive, and its address is confirmed.
    write(&mut pair.client, number, b" again", ms(2100));
    for step in 0..20 {
        deliver(&mut pair, false, ms(2200 + 200 * step));
    }
    assert_eq!((pair.server.len(), pair.server.peer(0)), (1, Some(at(CLIENT))));
    assert_eq!(read(&mut pair.client, number), [7; 4000]);
    assert_eq!(read(&mut pair.server, 0), b"hello again");
}
