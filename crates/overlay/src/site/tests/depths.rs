//! What a neighbour can do with messages about itself that are not true.

use super::{Said, id, link, site};
use crate::cat::Reported;
use crate::message::{Depth, Depths, Hello, Message, Range, Stamp};
use crate::packet::Key;
use crate::site::{Places, Plain, Site};
use weir_base::{Span, Time};

fn written(message: &Message) -> Vec<u8> {
    let mut bytes = vec![];
    message.encode(&mut bytes);
    bytes
}

/// What the node of this number says of itself to one that has started in epoch 1.
fn hello(number: u8) -> Vec<u8> {
    written(&Message::Hello(Hello { node: id(number), epoch: 1, heard: Some(1) }))
}

/// So many bytes wait for node 3.
fn depths(sequence: u32, total: u64) -> Vec<u8> {
    let mut depths = Depths::new(Stamp { epoch: 1, sequence }, Range::ALL);
    depths.nodes.set(id(3), Depth { total, sensitive: 0 });
    written(&Message::Depths(depths))
}

/// Site 0, whose links lead to nodes 1 and 2 by the keys that these have.
fn middle() -> Site<Reported, Plain> {
    let places = Places::new((0..4).map(|n| (format!("10.{n}.0.0/16").parse().unwrap(), id(n))).collect());
    let mut middle = Site::new(site(0, places, vec![]).config, Plain).unwrap();
    [1, 2].into_iter().for_each(|number| middle.connect(link(), id(number), None));
    middle
}

fn neighbours(middle: &Site<Reported, Plain>) -> [Option<u8>; 2] {
    [0, 1].map(|port| middle.node().neighbour(port).map(|id| id.number()))
}

#[test]
fn depths_are_those_of_the_neighbour_that_tells_them_and_are_passed_on_to_nobody() {
    let (mut middle, mut said, now) = (middle(), Said::default(), Time::ZERO + Span::from_secs(1));
    [0, 1].into_iter().for_each(|port| middle.from_neighbour(port, &hello(1 + port as u8), now, &mut said));
    assert_eq!(neighbours(&middle), [Some(1), Some(2)]);
    let told = |middle: &Site<Reported, Plain>| {
        [0, 1].map(|port| middle.node().advertised_by(port).unwrap().bin(Key::Node(id(3))).of(id(3), false))
    };
    middle.from_neighbour(0, &depths(1, 1_000), now, &mut said);
    middle.from_neighbour(1, &depths(1, 2_000), now, &mut said);
    assert_eq!(told(&middle), [1_000, 2_000]);
    // A message has no name of a node whose depths they are. So node 1 can only say of itself that nothing waits there, with whatever stamp.
    said.packets.clear();
    middle.from_neighbour(0, &depths(2, 0), now, &mut said);
    assert_eq!(told(&middle), [0, 2_000]);
    middle.from_neighbour(1, &depths(2, 500), now, &mut said);
    assert_eq!(told(&middle), [0, 500]);
    middle.on_timer(now + Span::from_millis(200), &mut said);
    // This node tells of its own queues, which are empty.
    let mut heard = 0;
    for packet in &said.packets {
        let mut rest = &packet[..];
        while let Ok((message, after)) = Message::decode(rest) {
            rest = after;
            let Message::Depths(depths) = message else { continue };
            heard += 1;
            assert!(depths.nodes.nodes().is_empty(), "{depths:?}");
        }
    }
    assert!(heard > 0);
}

#[test]
fn a_neighbour_with_the_name_of_another_node_is_none() {
    let (mut middle, mut said, now) = (middle(), Said::default(), Time::ZERO + Span::from_secs(1));
    // Node 1 says that it is node 3, to which all would go that is for node 3.
    middle.from_neighbour(0, &hello(3), now, &mut said);
    middle.from_neighbour(0, &depths(1, 0), now, &mut said);
    middle.from_neighbour(1, &hello(2), now, &mut said);
    assert_eq!(neighbours(&middle), [None, Some(2)]);
    assert_eq!(middle.node().counters().strangers, 1);
    middle.from_neighbour(0, &hello(1), now, &mut said);
    assert_eq!(neighbours(&middle), [Some(1), Some(2)]);
    // A neighbour that changes its name stays what it is.
    middle.from_neighbour(0, &hello(3), now, &mut said);
    assert_eq!(neighbours(&middle), [Some(1), Some(2)]);
}
