//! Quotas of neighbours: site 0 has two of them, and one of these floods.

use super::{HERE, Said, THERE, datagram, id, link, places, site};
use crate::cat::Reported;
use crate::site::{Places, Plain, Site, quota};
use weir_base::{Bytes, Span, Time};

/// A host of a third site.
const FAR: u32 = 0x0a03_0001;

/// Site 0 between sites 1 and 2, which have a link to it alone.
struct Middle {
    sites: [Site<Reported, Plain>; 3],
    now: Time,
    /// What has been delivered at site 0, by the lowest byte of its payload.
    delivered: Vec<u8>,
    /// The last packet that site 1 has sent.
    packet: Vec<u8>,
    /// Whether the link from site 0 to site 2 takes nothing.
    is_full: bool,
}

impl Middle {
    fn new(quota: serde_json::Value) -> Middle {
        let wide = || {
            Places::new(vec![
                ("10.1.0.0/16".parse().unwrap(), id(0)),
                ("10.2.0.0/16".parse().unwrap(), id(1)),
                ("10.3.0.0/16".parse().unwrap(), id(2)),
            ])
        };
        let quota: quota::Config = serde_json::from_value(quota).unwrap();
        let mut sites = [0, 1, 2].map(|number| site(number, wide(), vec![]));
        sites[0] = Site::new(sites[0].config.clone(), Plain).unwrap();
        sites[0].connect(link(), id(1), Some(&quota));
        sites[0].connect(link(), id(2), None);
        Middle { sites, now: Time::ZERO, delivered: vec![], packet: vec![], is_full: false }
    }

    /// A millisecond: each site does what is due, and sites 1 and 2 send these datagrams. Of the packet that site 1 sent last, as many copies come as said.
    fn tick(&mut self, sent: [Option<Vec<u8>>; 2], copies: usize) {
        self.now += Span::from_millis(1);
        let now = self.now;
        let waiting = Bytes::new(if self.is_full { 1 << 20 } else { 0 });
        for (site, port, waiting) in
            [(0, 0, Bytes::ZERO), (0, 1, waiting), (1, 0, Bytes::ZERO), (2, 0, Bytes::ZERO)]
        {
            *self.sites[site].node_mut().cat_mut(port).unwrap() = Reported { waiting, ..link() };
        }
        let mut to_middle: Vec<(usize, Vec<u8>)> = vec![];
        for (at, datagram) in (0..2).zip(sent) {
            let mut said = Said::default();
            let site = &mut self.sites[at + 1];
            site.refill(now, &mut said);
            datagram.iter().for_each(|datagram| site.from_program(datagram, now, &mut said));
            site.on_timer(now, &mut said);
            to_middle.extend(said.packets.into_iter().map(|packet| (at, packet)));
        }
        if let Some((_, packet)) =
            to_middle.iter().find(|(at, packet)| *at == 0 && crate::message::header::is_packet(packet[0]))
        {
            self.packet.clone_from(packet);
        }
        to_middle.extend((0..copies).map(|_| (0, self.packet.clone())));
        let mut back = Ported::default();
        for (port, packet) in to_middle {
            self.sites[0].from_neighbour(port, &packet, now, &mut back);
        }
        self.sites[0].refill(now, &mut back);
        self.sites[0].on_timer(now, &mut back);
        for (port, packet) in back.packets {
            self.sites[port + 1].from_neighbour(0, &packet, now, &mut Said::default());
        }
        self.delivered.extend(back.delivered.iter().filter_map(|datagram| datagram.last()));
    }

    fn delivered(&self, last: u8) -> usize {
        self.delivered.iter().filter(|byte| **byte == last).count()
    }
}

/// What a site says, with the link over which it goes.
#[derive(Default)]
struct Ported {
    packets: Vec<(usize, Vec<u8>)>,
    delivered: Vec<Vec<u8>>,
}

impl crate::site::Outside for Ported {
    fn packet(&mut self, port: usize, header: &[u8], body: &[u8], _: bool) {
        self.packets.push((port, [header, body].concat()));
    }
    fn signal(&mut self, port: usize, datagram: &[u8], _: crate::node::Signal) {
        self.packets.push((port, datagram.to_vec()));
    }
    fn deliver(&mut self, datagram: &[u8]) {
        self.delivered.push(datagram.to_vec());
    }
    fn deliver_to_network(&mut self, _: usize, _: &[u8]) {}
    fn segment(&mut self, _: &crate::Inner, _: &[u8]) {}
}

#[test]
fn a_neighbour_that_floods_is_held_to_its_quota_and_others_lose_nothing() {
    let mut middle = Middle::new(serde_json::json!({ "packets": 1000 }));
    (0..1500).for_each(|_| middle.tick([None, None], 0));
    // Site 1 sends a packet, of which its node then sends a hundred copies each millisecond. Site 2 sends one a millisecond.
    middle.tick([Some(datagram(THERE, HERE, &[1])), Some(datagram(FAR, HERE, &[2]))], 0);
    (1..1000).for_each(|_| middle.tick([None, Some(datagram(FAR, HERE, &[2]))], 100));
    (0..20).for_each(|_| middle.tick([None, None], 0));
    assert_eq!(middle.delivered(2), 1000);
    // A burst of 90 and 1000 a second, of which messages take some.
    let flood = middle.delivered(1);
    assert!((900..=1110).contains(&flood), "{flood}");
    let site = &middle.sites[0];
    assert_eq!((site.over_quota(0) > 98_000, site.over_quota(1)), (true, 0));
    assert_eq!(site.counts().over_quota, site.over_quota(0));
    // It stays a neighbour.
    assert_eq!([0, 1].map(|port| site.node().neighbour(port)), [1, 2].map(|number| Some(id(number))));
}

#[test]
fn packets_that_a_neighbour_has_passed_on_are_held_up_to_its_quota() {
    let mut middle = Middle::new(serde_json::json!({ "queue": "64 KiB" }));
    (0..1500).for_each(|_| middle.tick([None, None], 0));
    // They go on to site 2, whose link takes nothing now.
    middle.is_full = true;
    let far = datagram(THERE, FAR, &[7; 1000]);
    middle.tick([Some(far), None], 0);
    middle.tick([None, None], 200);
    let site = &middle.sites[0];
    let held = site.node().held();
    assert!((60..=65).contains(&held), "{held}");
    assert_eq!(site.over_quota(0), 201 - held as u64);
    // When they have gone there is room again.
    middle.is_full = false;
    (0..200).for_each(|_| middle.tick([None, None], 0));
    assert_eq!(middle.sites[0].node().held(), 0);
    let before = middle.sites[0].over_quota(0);
    middle.tick([None, None], 30);
    assert_eq!(middle.sites[0].over_quota(0), before);
}

#[test]
fn a_link_without_a_quota_takes_all() {
    let mut plain = site(0, places(), vec![]);
    for _ in 0..10_000 {
        plain.from_neighbour(0, &[0xff; 1200], Time::ZERO, &mut Said::default());
    }
    assert_eq!(plain.over_quota(0), 0);
    assert_eq!(plain.over_quota(9), 0);
}
