//! Whatever packets arrive at either end of a CP-RUDP stream, nothing panics, no end sends forever, and the bytes read are a
//! prefix of those written.

use weir_base::{Ecn, Span, Time};
use weir_coord::participation::Identity;
use weir_endpoint::{Body, Datagram, Endpoint, Message, Stream};
use weir_transport::rudp::{Parameters, carrier};

/// Two ends, the packets under way to each, and the bytes written at the first and read at the second.
struct Pair {
    ends: [Box<dyn Endpoint>; 2],
    pipes: [Vec<Vec<u8>>; 2],
    written: Vec<u8>,
    read: Vec<u8>,
    /// Whether bytes have arrived that neither end has sent.
    forged: bool,
    now: Time,
}

impl Pair {
    fn new(application: bool) -> Pair {
        let parameters = Parameters { application: application.then_some(1), ..Parameters::default() };
        let identity = Identity { flow: 0, key: None, epoch: 0 };
        let end = || carrier(&parameters, &identity, 600, 20);
        Pair {
            ends: [end(), end()],
            pipes: [vec![], vec![]],
            written: vec![],
            read: vec![],
            forged: false,
            now: Time::ZERO,
        }
    }

    fn send(&mut self) {
        for from in 0..2 {
            let mut body = Body::Datagram(Datagram::default());
            let mut left = 10_000;
            while self.ends[from].transmit(&mut body, self.now).is_some() {
                left -= 1;
                assert!(left > 0, "it never stops sending");
                let Body::Datagram(datagram) = &body else { panic!("not a datagram") };
                assert!(datagram.payload() <= 572 && datagram.zeros == 0);
                self.pipes[1 - from].push(datagram.head.clone());
            }
        }
    }

    fn deliver(&mut self, to: usize, head: Vec<u8>) {
        self.ends[to].receive(&Body::Datagram(Datagram { head, zeros: 0 }), Ecn::NotEct, self.now);
        let read = &mut self.read;
        self.ends[to].read(&mut |_, part| {
            assert_eq!(part.bytes, part.head.len() as u64);
            if to == 1 {
                read.extend_from_slice(part.head);
            }
        });
        assert!(self.forged || self.written.starts_with(&self.read));
    }
}

/// Drives two ends. A step is a byte for its kind, a byte for its amount, and as many bytes as that.
pub(crate) fn check(data: &[u8]) {
    let mut pair = Pair::new(data.first().is_some_and(|first| first & 128 != 0));
    pair.ends[0].open(pair.now);
    pair.send();
    let mut rest = data;
    while let [what, much, after @ ..] = rest {
        let to = usize::from(what & 1);
        let (bytes, after) = after.split_at(usize::from(*much).min(after.len()));
        rest = after;
        match what >> 1 & 7 {
            // The packets under way arrive in order, in reverse order, or without the first.
            0 => std::mem::take(&mut pair.pipes[to]).into_iter().for_each(|packet| pair.deliver(to, packet)),
            1 => {
                let packets = std::mem::take(&mut pair.pipes[to]);
                packets.into_iter().rev().for_each(|packet| pair.deliver(to, packet));
            }
            2 => {
                let packets = std::mem::take(&mut pair.pipes[to]);
                packets.into_iter().skip(1).for_each(|packet| pair.deliver(to, packet));
            }
            // A packet arrives with some of its bytes changed; or bytes arrive that are no packet.
            3 => {
                pair.forged = true;
                let mut packet = pair.pipes[to].first().cloned().unwrap_or_default();
                packet.iter_mut().rev().zip(bytes).for_each(|(to, byte)| *to ^= byte);
                pair.deliver(to, packet);
            }
            4 => {
                pair.forged = true;
                pair.deliver(to, bytes.to_vec());
            }
            5 => {
                let message = Message { bytes: bytes.len() as u64, head: bytes };
                let taken = pair.ends[0].write(Stream(0), message, pair.now) as usize;
                pair.written.extend_from_slice(&bytes[..taken]);
            }
            6 => pair.ends[to].close(None, pair.now),
            _ => pair.now += Span::from_micros(u64::from(*much) * u64::from(*much) * 40),
        }
        pair.ends.iter_mut().for_each(|end| end.on_timer(pair.now));
        pair.send();
    }
}
