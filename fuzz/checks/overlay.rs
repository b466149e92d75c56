//! Whatever messages and packets reach an overlay node, it neither panics nor stands still, and what it holds stays bounded. What it reads
//! it writes again so that it reads back the same.

use weir_base::{Bytes, Rate, Span, Time};
use weir_overlay::forward::Reason;
use weir_overlay::message::header::Header;
use weir_overlay::message::{Hello, Message};
use weir_overlay::{
    Admitted, Body, Config, Context, Discard, GroupId, Inner, Key, Node, NodeId, Output, Packet, Signal, Wire,
};

/// A body of so many bytes.
#[derive(Debug, Clone)]
struct Load(u32);

impl Body for Load {
    fn bytes(&self) -> u32 {
        self.0
    }
    fn behind(&mut self, _: usize) {}
    fn duplicate(&self, _: Option<Load>) -> Load {
        self.clone()
    }
}

/// Counts what a node says, and checks that it can be read.
#[derive(Default)]
struct Said {
    bytes: usize,
}

impl Output<Load> for Said {
    fn send(&mut self, _: usize, header: &[u8], packet: Packet<Load>, _: Reason) {
        let context = |_| {
            Some(Context {
                to: packet.to,
                receivers: packet.receivers,
                is_sensitive: false,
                inner: Inner::default(),
            })
        };
        assert!(Header::decode(header, context).is_ok() || matches!(packet.to, Key::Group(_)));
        self.bytes += header.len();
    }
    fn signal(&mut self, _: usize, datagram: &[u8], _: Signal) {
        let mut rest = datagram;
        while !rest.is_empty() {
            (_, rest) = Message::decode(rest).expect("a node writes whole messages");
        }
        self.bytes += datagram.len();
    }
    fn deliver(&mut self, _: Packet<Load>, _: &Context) {}
    fn discard(&mut self, _: Load, _: Discard) {}
}

/// What is read is written, and read again. Values may be rounded once, so the second writing is compared with the third.
fn again(bytes: &[u8]) {
    let Ok((message, _)) = Message::decode(bytes) else { return };
    let write = |message: &Message| {
        let mut bytes = vec![];
        message.encode(&mut bytes);
        bytes
    };
    let once = write(&message);
    let (read, rest) = Message::decode(&once).expect("what was written is read");
    assert!(rest.is_empty() && write(&read) == once);
}

fn hello(node: u8, heard: Option<u32>) -> Vec<u8> {
    let node = NodeId::new(node).expect("a small number");
    let mut bytes = vec![];
    Message::Hello(Hello { node, epoch: 1, heard }).encode(&mut bytes);
    bytes
}

/// Drives a node with two neighbours. A piece is a byte for its kind, a byte for its length, and as many bytes as that.
pub(crate) fn check(data: &[u8]) {
    let own = NodeId::new(0).expect("0 is a node");
    let mut node: Node<Load, Wire> = Node::new(own, 1, Config::default()).expect("the defaults are right");
    for _ in 0..2 {
        let rate = Rate::from_mbit_per_sec(10);
        node.connect(Wire::new(rate, Span::from_millis(10), 0.0, Bytes::new(28))).expect("it has room");
    }
    node.join(GroupId(1));
    let flows = [Key::Node(NodeId::new(1).expect("1 is a node")), Key::Group(GroupId(1))]
        .map(|to| node.open_flow(to, None, false, Inner::default()));
    let (mut now, mut out) = (Time::ZERO, Said::default());
    for port in 0..2 {
        node.message(port, &hello(port as u8 + 1, Some(1)), now, &mut out);
    }
    let mut rest = data;
    while let [kind, length, after @ ..] = rest {
        let (piece, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        again(piece);
        let port = usize::from(kind & 1);
        match kind >> 1 & 7 {
            0..=2 => node.message(port, piece, now, &mut out),
            3 | 4 => node.packet(port, piece, Load(100 + u32::from(*length)), now, &mut out),
            5 => node.admit(flows[port], Admitted::default(), Load(1000), now, &mut out),
            6 => node.message(port, &hello(port as u8 + 1, Some(1)), now, &mut out),
            _ => now += Span::from_micros(1 << (length % 24)),
        }
        let mut left = 1000;
        while node.next_time(now) <= now {
            node.on_timer(now, &mut out);
            left -= 1;
            assert!(left > 0, "it never rests");
        }
    }
    assert!(node.held() <= data.len(), "it holds no more than came");
}
