//! What a node allocates: nothing for a packet that it forwards. A counting allocator counts what the node in the middle of a small
//! network asks for, once its queues, contexts and gradients have their space. Calls in which messages come or go are told apart.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weir_base::{Bytes, Rate, Span, Time};
use weir_overlay::message::header::LONGEST;
use weir_overlay::node::Signal;
use weir_overlay::{
    Admitted, Body, Config, Context, Discard, FlowAt, GroupId, Inner, Key, Node, NodeId, Output, Packet, Wire,
};

thread_local! {
    static COUNTED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to the system's allocator as they are; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNTED.set(COUNTED.get() + 1);
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNTED.set(COUNTED.get() + 1);
        // SAFETY: the caller's block.
        unsafe { System.realloc(at, layout, size) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's block.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Debug, Clone, Copy)]
struct Load(u32);

impl Body for Load {
    fn bytes(&self) -> u32 {
        self.0
    }
    fn behind(&mut self, _: usize) {}
    fn duplicate(&self, _: Option<Load>) -> Load {
        *self
    }
}

/// What a call of a node said, in space that is there.
struct Said {
    packets: Vec<(usize, [u8; LONGEST], usize, Load)>,
    signals: Vec<(usize, Vec<u8>)>,
    /// Allocations of the test's own.
    own: u64,
}

impl Output<Load> for Said {
    fn send(&mut self, port: usize, header: &[u8], packet: Packet<Load>, _: weir_overlay::forward::Reason) {
        let mut space = [0; LONGEST];
        space[..header.len()].copy_from_slice(header);
        self.packets.push((port, space, header.len(), packet.body));
    }
    fn signal(&mut self, port: usize, datagram: &[u8], _: Signal) {
        let before = COUNTED.get();
        self.signals.push((port, datagram.to_vec()));
        self.own += COUNTED.get() - before;
    }
    fn deliver(&mut self, _: Packet<Load>, _: &Context) {}
    fn discard(&mut self, _: Load, why: Discard) {
        assert_ne!(why, Discard::Malformed);
    }
}

enum Event {
    Packet { to: usize, port: usize, header: [u8; LONGEST], length: usize, load: Load },
    Signal { to: usize, port: usize, datagram: Vec<u8> },
    Timer(usize),
    Source(usize),
}

/// A star: node 1 in the middle, sources at node 0, receivers at nodes 2 and 3.
struct Net {
    nodes: Vec<Node<Load, Wire>>,
    ends: BTreeMap<(usize, usize), (usize, usize)>,
    free_at: BTreeMap<(usize, usize), Time>,
    flows: Vec<FlowAt>,
    due: BinaryHeap<Reverse<(Time, u64)>>,
    events: BTreeMap<u64, Event>,
    count: u64,
    now: Time,
    /// When each node's timer is due.
    armed: [Time; 4],
    said: Said,
    /// Of node 1: packets sent, and allocations in calls in which no message comes or goes, and in the others.
    forwarded: u64,
    allocated: [u64; 2],
}

const RATE: Rate = Rate::from_mbit_per_sec(10);
const DELAY: Span = Span::from_millis(2);
const MIDDLE: usize = 1;

impl Net {
    fn new() -> Net {
        let node = |number| Node::new(NodeId::new(number).unwrap(), 1, Config::default()).unwrap();
        let said = Said { packets: Vec::with_capacity(4096), signals: Vec::with_capacity(256), own: 0 };
        let mut net = Net {
            nodes: (0..4).map(node).collect(),
            ends: BTreeMap::new(),
            free_at: BTreeMap::new(),
            flows: Vec::new(),
            due: BinaryHeap::new(),
            events: BTreeMap::new(),
            count: 0,
            now: Time::ZERO,
            armed: [Time::ZERO; 4],
            said,
            forwarded: 0,
            allocated: [0; 2],
        };
        for other in [0, 2, 3] {
            let wire = || Wire::new(RATE, DELAY, 0.0, Bytes::new(28));
            let ends = [MIDDLE, other].map(|node| (node, net.nodes[node].connect(wire()).unwrap()));
            net.ends.insert(ends[0], ends[1]);
            net.ends.insert(ends[1], ends[0]);
        }
        [2, 3].iter().for_each(|node| net.nodes[*node].join(GroupId(7)));
        for to in [Key::Group(GroupId(7)), Key::Node(NodeId::new(2).unwrap())] {
            let flow = net.nodes[0].open_flow(to, None, false, Inner::default());
            net.flows.push(flow);
        }
        (0..4).for_each(|node| net.schedule(Time::ZERO, Event::Timer(node)));
        (0..2).for_each(|flow| net.schedule(Time::ZERO + Span::from_secs(1), Event::Source(flow)));
        net
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.due.push(Reverse((at, self.count)));
        self.events.insert(self.count, event);
    }

    fn run(&mut self, until: Time) {
        while let Some(Reverse((at, number))) = self.due.peek().copied().filter(|due| due.0.0 <= until) {
            self.due.pop();
            self.now = at;
            match self.events.remove(&number).unwrap() {
                Event::Packet { to, port, header, length, load } => {
                    self.call(to, |node, now, said| node.packet(port, &header[..length], load, now, said));
                }
                Event::Signal { to, port, datagram } => {
                    self.call_with(to, true, |node, now, said| node.message(port, &datagram, now, said));
                }
                // A timer that was set anew since is not due.
                Event::Timer(node) if self.armed[node] > at => {}
                Event::Timer(node) => {
                    self.armed[node] = Time::NEVER;
                    self.call(node, |node, now, said| node.on_timer(now, said));
                }
                Event::Source(flow) => {
                    // 4.4 Mbit/s to the group and as much to node 2, whose link is nearly full.
                    let at = self.flows[flow];
                    self.call(0, |node, now, said| {
                        node.admit(at, Admitted::default(), Load(1024), now, said)
                    });
                    self.schedule(self.now + Span::from_micros(1860), Event::Source(flow));
                }
            }
        }
    }

    fn call(&mut self, at: usize, act: impl FnOnce(&mut Node<Load, Wire>, Time, &mut Said)) {
        self.call_with(at, false, act);
    }

    fn call_with(
        &mut self,
        at: usize,
        has_message: bool,
        act: impl FnOnce(&mut Node<Load, Wire>, Time, &mut Said),
    ) {
        let now = self.now;
        self.said.own = 0;
        let before = COUNTED.get();
        act(&mut self.nodes[at], now, &mut self.said);
        if at == MIDDLE {
            let allocated = COUNTED.get() - before - self.said.own;
            self.allocated[usize::from(has_message || !self.said.signals.is_empty())] += allocated;
            self.forwarded += self.said.packets.len() as u64;
        }
        let packets = std::mem::take(&mut self.said.packets);
        for &(port, header, length, load) in &packets {
            let (to, to_port) = self.ends[&(at, port)];
            let arrival = self.sent(at, port, length as u64 + 1024);
            self.schedule(arrival, Event::Packet { to, port: to_port, header, length, load });
        }
        self.said.packets = packets;
        self.said.packets.clear();
        let mut signals = std::mem::take(&mut self.said.signals);
        for (port, datagram) in signals.drain(..) {
            let (to, to_port) = self.ends[&(at, port)];
            let arrival = self.sent(at, port, datagram.len() as u64);
            self.schedule(arrival, Event::Signal { to, port: to_port, datagram });
        }
        self.said.signals = signals;
        let next = self.nodes[at].next_time(now);
        if next < self.armed[at] {
            self.armed[at] = next;
            self.schedule(next, Event::Timer(at));
        }
    }

    fn sent(&mut self, from: usize, port: usize, bytes: u64) -> Time {
        let free_at = self.free_at.entry((from, port)).or_insert(Time::ZERO);
        *free_at = (*free_at).max(self.now) + RATE.time_to_send(Bytes::new(bytes + 28));
        *free_at + DELAY
    }
}

#[test]
fn a_node_allocates_nothing_for_packets_that_it_forwards() {
    let mut net = Net::new();
    net.run(Time::ZERO + Span::from_secs(10));
    (net.forwarded, net.allocated) = (0, [0; 2]);
    net.run(Time::ZERO + Span::from_secs(20));
    // Three copies of what two flows send, 537 packets a second each.
    assert!(net.forwarded > 15_000, "{} packets", net.forwarded);
    assert_eq!(net.allocated[0], 0, "{} packets; {} in calls with messages", net.forwarded, net.allocated[1]);
}
