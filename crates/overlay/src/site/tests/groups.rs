//! Groups: members by the node's device, and hosts of a network behind the node.

use super::super::igmp::tests::{joins, leaves};
use super::{HERE, Pair, Said, datagram, id, link, places, site};
use crate::cat::Reported;
use crate::site::datagram::read;
use crate::site::{Config, Places, Plain, Site};

const GROUP: u32 = 0xef01_0001;
/// A group that the overlay does not carry.
const OTHER: u32 = 0xe100_0001;

fn with_groups() -> Places {
    places().with_groups(vec!["239.1.0.0/16".parse().unwrap()])
}

#[test]
fn a_datagram_to_a_group_reaches_the_sites_whose_hosts_have_joined_it() {
    let mut pair = Pair::new([0, 1].map(|number| site(number, with_groups(), vec![])));
    pair.ticks(1500);
    let hear = |pair: &mut Pair, said: Vec<u8>| {
        let now = pair.now;
        pair.sites[1].from_program(&said, now, &mut Said::default());
    };
    hear(&mut pair, joins(GROUP));
    hear(&mut pair, joins(OTHER));
    assert_eq!(pair.sites[1].node().joined(), [crate::GroupId(GROUP)]);
    pair.ticks(1500);
    pair.tick(&[datagram(HERE, GROUP, b"to all"), datagram(HERE, OTHER, b"to none")]);
    pair.ticks(50);
    assert_eq!(pair.delivered[1].len(), 1);
    let come = read(&pair.delivered[1][0]).unwrap();
    assert_eq!((come.inner.source, come.inner.destination, come.body), (HERE, GROUP, &b"to all"[..]));
    let counts = pair.sites[0].counts();
    assert_eq!((counts.unknown, counts.foreign, pair.sites[1].counts().foreign), (1, 0, 0));
    hear(&mut pair, leaves(GROUP));
    assert!(pair.sites[1].node().joined().is_empty());
    pair.ticks(1500);
    pair.tick(&[datagram(HERE, GROUP, b"to nobody")]);
    pair.ticks(50);
    assert_eq!(pair.delivered[1].len(), 1);
}

/// A site with two networks, in which its node has these addresses.
fn with_networks(number: u8) -> Site<Reported, Plain> {
    let networks = vec![HERE + 0x100, HERE + 0x200];
    let config = Config { networks, ..site(number, with_groups(), vec![]).config };
    let mut site = Site::new(config, Plain).unwrap();
    site.connect(link(), id(1 - number), None);
    site
}

#[test]
fn hosts_of_a_network_are_asked_join_and_leave_and_get_what_goes_to_their_groups() {
    let mut pair = Pair::new([site(0, with_groups(), vec![]), with_networks(1)]);
    let mut asked = Said::default();
    pair.sites[1].on_timer(pair.now, &mut asked);
    // Both networks are asked as the node starts.
    assert_eq!(
        asked.to_networks.iter().map(|(at, query)| (*at, query[24])).collect::<Vec<_>>(),
        [(0, 0x11), (1, 0x11)]
    );
    pair.ticks(1500);
    let hear = |pair: &mut Pair, network, said: Vec<u8>| {
        let now = pair.now;
        pair.sites[1].from_network(network, &said, now, &mut Said::default());
    };
    hear(&mut pair, 1, joins(GROUP));
    hear(&mut pair, 1, joins(OTHER));
    hear(&mut pair, 7, joins(GROUP));
    assert_eq!(pair.sites[1].node().joined(), [crate::GroupId(GROUP)]);
    pair.ticks(1500);
    pair.tick(&[datagram(HERE, GROUP, b"to all")]);
    pair.ticks(50);
    let [(1, ref come)] = pair.to_networks[1][..] else { panic!("{:?}", pair.to_networks[1]) };
    assert_eq!((read(come).unwrap().inner.destination, read(come).unwrap().body), (GROUP, &b"to all"[..]));
    // The device has no member.
    assert!(pair.delivered[1].is_empty());
    // A second member by the device keeps the group when the host has left.
    let now = pair.now;
    pair.sites[1].from_program(&joins(GROUP), now, &mut Said::default());
    hear(&mut pair, 1, leaves(GROUP));
    pair.ticks(3000);
    let queries = pair.to_networks[1].drain(..).filter(|(at, query)| (*at, query[24]) == (1, 0x11)).count();
    assert_eq!(queries, 2);
    assert_eq!(pair.sites[1].node().joined(), [crate::GroupId(GROUP)]);
    pair.tick(&[datagram(HERE, GROUP, b"to the device")]);
    pair.ticks(50);
    assert_eq!((pair.delivered[1].len(), pair.to_networks[1].len()), (1, 0));
    pair.sites[1].from_program(&leaves(GROUP), pair.now, &mut Said::default());
    assert!(pair.sites[1].node().joined().is_empty());
}

#[test]
fn a_host_of_a_network_sends_to_members_of_other_sites_and_of_its_own() {
    let mut pair = Pair::new([with_networks(0), site(1, with_groups(), vec![])]);
    pair.ticks(1500);
    let now = pair.now;
    pair.sites[1].from_program(&joins(GROUP), now, &mut Said::default());
    pair.sites[0].from_program(&joins(GROUP), now, &mut Said::default());
    [0, 1]
        .into_iter()
        .for_each(|at| pair.sites[0].from_network(at, &joins(GROUP), now, &mut Said::default()));
    pair.ticks(1500);
    let mut said = Said::default();
    for (to, payload) in [(GROUP, b"to all"), (OTHER, b"no one")] {
        pair.sites[0].from_network(0, &datagram(HERE + 0x105, to, payload), pair.now, &mut said);
    }
    // Its own network has it already; the other one and the device get a copy with one link less to live.
    let [(1, ref copy)] = said.to_networks[..] else { panic!("{:?}", said.to_networks) };
    assert_eq!(
        (read(copy).unwrap().body, copy[8], &said.delivered),
        (&b"to all"[..], 63, &vec![copy.clone()])
    );
    pair.coming[1].append(&mut said.packets);
    pair.ticks(50);
    let [ref come] = pair.delivered[1][..] else { panic!("{:?}", pair.delivered[1]) };
    assert_eq!(read(come).unwrap().inner.source, HERE + 0x105);
    // A source of another site is refused, and goes to nobody here.
    let mut said = Said::default();
    pair.sites[0].from_network(0, &datagram(super::THERE, GROUP, b"forged"), pair.now, &mut said);
    assert!(said.to_networks.is_empty() && said.delivered.is_empty() && said.packets.is_empty());
    let counts = pair.sites[0].counts();
    assert_eq!((counts.foreign, counts.unknown), (1, 0));
}
