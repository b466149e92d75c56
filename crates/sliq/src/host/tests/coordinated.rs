//! Connections of hosts that are flows of an application.

use super::*;
use weir_base::Rate;
use weir_coord::header::{Flags, Report, Version, set_words};
use weir_coord::participation::Coordination;

fn parameters() -> Parameters {
    Parameters { coordination: Some(Coordination::of(1)), ..Parameters::default() }
}

fn identity(flow: u8) -> Option<Identity> {
    Some(Identity { flow, key: None, epoch: 9 })
}

#[test]
fn a_report_of_the_aggregation_point_sets_the_rate_of_its_connection() {
    let mut pair = pair_of(parameters(), identity(3));
    let number = pair.ask(1, pair.server_key, ms(0));
    pair.talk(ms(10), |packet| {
        let prefix = Prefix::read(packet).unwrap();
        assert_eq!((prefix.version, prefix.application, prefix.flow), (Version::One, 1, 3));
        false
    });
    assert!(pair.client.link(number).unwrap().is_open() && pair.server.link(0).unwrap().is_open());
    // No packet has left for a second, so one asks for reports. The first report is the flowshare in KiB/s.
    pair.client.look_at(number);
    let asks: Vec<_> =
        sent(&mut pair.client, ms(1100)).into_iter().filter(|(_, packet)| packet.len() == 20).collect();
    let [(peer, packet)] = &asks[..] else { panic!("{} packets", asks.len()) };
    assert!(Prefix::read(packet).unwrap().flags.has(Flags::REFLECT));
    let (peer, mut packet) = (*peer, packet.clone());
    set_words(Version::One, &mut packet, [Report { id: 1, value: 250 }.word(), 0, 0, 0]);
    let rate = |pair: &mut Pair| pair.client.link(number).unwrap().sample().unwrap().pacing_rate.unwrap();
    let before = rate(&mut pair);
    pair.client.receive(at("10.0.0.9:1"), &mut packet.clone(), Ecn::NotEct, ms(1100));
    assert_eq!(rate(&mut pair), before, "from somebody else");
    pair.client.receive(peer, &mut packet, Ecn::NotEct, ms(1100));
    assert_eq!(rate(&mut pair), Rate::from_bits_per_sec(250 * 1024 * 8));
}

#[test]
fn a_request_whose_flow_id_differs_from_the_hosts_is_not_answered() {
    for (server, client) in [
        ((parameters(), identity(3)), (parameters(), identity(4))),
        ((parameters(), identity(3)), (Parameters::default(), None)),
        ((Parameters::default(), None), (parameters(), identity(3))),
    ] {
        let mut pair = pair_of(server.0, server.1);
        (pair.parameters, pair.identity) = client;
        pair.ask(1, pair.server_key, ms(0));
        assert!(!sent(&mut pair.client, ms(0)).into_iter().any(|(_, mut packet)| {
            pair.server.receive(at(CLIENT), &mut packet, Ecn::NotEct, ms(0));
            !pair.server.is_empty() || pair.server.reply().is_some()
        }));
    }
}
