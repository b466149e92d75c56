//! Whatever arrives at either end of a SLIQ connection, nothing panics and no end sends forever; bytes that are read as a
//! packet are written as the same bytes.

use weir_base::{Bytes, Ecn, Span, Time};
use weir_endpoint::{Body, Datagram, Endpoint, Message, Setup, Stream};
use weir_sliq::wire::{Frame, Header};
use weir_transport::{Config, End};

/// Two ends with a stream under a deadline, and packets between them.
struct Pair {
    ends: [End; 2],
    /// The packets under way to each end.
    pipes: [Vec<Datagram>; 2],
    /// The first bytes of a packet that was sent: the mark and the connection.
    known: Vec<u8>,
    now: Time,
}

impl Pair {
    fn new() -> Pair {
        let text = r#"{ "kind": "sliq", "second": "copa", "search_mtu": true, "fast_start": "always", "stream": { "delivery": "arq-fec", "deadline": "100 ms" } }"#;
        let config: Config = serde_json::from_str(text).expect("it is a transport");
        let setup = Setup {
            settings: None,
            datagrams: true,
            admitted: false,
            ecn: Ecn::NotEct,
            mtu: Bytes::new(1500),
            ip_header: 20,
            seed: 1,
            flow: 0,
        };
        Pair { ends: config.ends(&setup), pipes: [vec![], vec![]], known: Vec::new(), now: Time::ZERO }
    }

    fn send(&mut self) {
        for from in 0..2 {
            let mut body = Body::Datagram(Datagram::default());
            let mut left = 10_000;
            while self.ends[from].transmit(&mut body, self.now).is_some() {
                left -= 1;
                assert!(left > 0, "it never stops sending");
                let Body::Datagram(datagram) = &body else { panic!("not a datagram") };
                assert!(datagram.payload() <= 1472);
                self.known = datagram.head[..4].to_vec();
                self.pipes[1 - from].push(datagram.clone());
            }
        }
    }

    fn deliver(&mut self, to: usize, datagram: Datagram) {
        self.ends[to].receive(&Body::Datagram(datagram), Ecn::NotEct, self.now);
        self.ends[to].on_timer(self.now);
        self.ends[to].read(&mut |_, _| {});
    }
}

/// Reads bytes as a packet, and writes the packet as the same bytes.
fn packet(data: &[u8]) {
    let mut written = Vec::new();
    let Some((header, mut rest)) = Header::read(data) else { return };
    header.write(&mut written);
    while let Some((frame, after)) = Frame::read(rest) {
        frame.write(&mut written);
        rest = after;
        if frame.payload().is_some() {
            break;
        }
    }
    assert_eq!(written, data[..data.len() - rest.len()]);
}

/// Drives two ends. A step is a byte for its kind, a byte for its amount, and as many bytes as that.
pub(crate) fn check(data: &[u8]) {
    packet(data);
    let mut pair = Pair::new();
    pair.ends[0].open(pair.now);
    pair.send();
    let mut rest = data;
    while let [what, much, after @ ..] = rest {
        let to = usize::from(what & 1);
        let (bytes, after) = after.split_at(usize::from(*much).min(after.len()));
        rest = after;
        match what >> 1 & 7 {
            // The packets under way arrive, or are lost.
            0 | 1 => {
                for datagram in std::mem::take(&mut pair.pipes[to]) {
                    pair.deliver(to, datagram);
                }
            }
            2 => pair.pipes[to].clear(),
            // Bytes arrive as they are, or as a packet of this connection.
            3 => pair.deliver(to, Datagram { head: bytes.to_vec(), zeros: u32::from(*much) }),
            4 | 5 => {
                let head = [&pair.known[..], bytes].concat();
                pair.deliver(to, Datagram { head, zeros: 0 });
                rest = after;
            }
            6 => {
                let message = Message { bytes: 1 + u64::from(*much) * 20, head: bytes };
                pair.ends[to].write(Stream(0), message, pair.now);
            }
            _ => pair.now += Span::from_micros(u64::from(*much) * u64::from(*much) * 20),
        }
        pair.ends.iter_mut().for_each(|end| end.on_timer(pair.now));
        pair.send();
    }
}
