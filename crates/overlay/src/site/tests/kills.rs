//! Random kills of edges and interior nodes under admitted load, by seeds, each for a minute of its own. `make soak` runs thirty of them.

use super::network::{End, Faults, Network};
use crate::admission::{Event, Standing};
use crate::proxy::tcp::Gone;
use crate::site::Service;
use crate::utility::Rule;
use std::collections::BTreeSet;
use weir_base::{Random, Rate, Span, Time};

const SITES: usize = 9;
/// Connections and flows enter and leave here. Neither of the two is killed.
const HERE: usize = 0;
const THERE: usize = 8;
/// An edge that is killed: connections end here too.
const EDGE: usize = 4;
/// Seconds from one kill to the next, and milliseconds for which its victim stays away.
const PERIOD: u64 = 15;
const AWAY: (u64, u64) = (3200, 4800);
/// A connection is given up this long after its other edge was killed.
const RESET: Span = Span::from_secs(5);
/// A flow that starts by itself and stops within this time has probed.
const PROBE: Span = Span::from_secs(3);

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// Inelastic flows of 500 kbit/s that fit beside whatever is killed, and one of 4 Mbit/s that does not always. Connections take what is left.
fn services() -> Vec<Service> {
    serde_json::from_value(serde_json::json!([
        { "name": "large", "from": "10.0.0.9/32", "admit": { "kind": "strap", "priority": 1.0 }, "rate": "4 Mbit/s" },
        { "name": "video", "ports": 6000, "admit": { "kind": "strap", "priority": 3.0 }, "rate": "500 kbit/s" },
    ]))
    .unwrap()
}

/// A ring with chords: without one node the others are still joined.
fn network(seed: u64) -> Network {
    let mut random = Random::stream_of(9, "overlay kills", seed);
    let mut network = Network::new(SITES, services(), seed);
    let mut links: BTreeSet<(usize, usize)> = (0..SITES).map(|a| (a, (a + 1) % SITES)).collect();
    links.extend((0..SITES).map(|a| (a, (a + 2 + random.below(3) as usize) % SITES)));
    for (a, b) in links.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect::<BTreeSet<_>>() {
        let rate = Rate::from_bits_per_sec(1000 * (2000 + random.below(3000)));
        network.link(a, b, rate, Span::from_millis(1 + random.below(49)));
    }
    network.faults = Faults { loss: 0.01, repeat: 0.01, jitter: Span::from_millis(3) };
    network
}

/// The latest decisions about the inelastic flows of a service, which enter at edges that are never killed.
fn decisions(network: &Network, service: &str) -> Vec<Vec<Event>> {
    let told = [HERE, THERE].into_iter().flat_map(|site| network.site(site).unwrap().told());
    told.filter(|flow| flow.service == Some(service))
        .map(|flow| flow.events.iter().copied().collect())
        .collect()
}

/// The decisions after a time that neither begin nor end a probe.
fn lasting(events: &[Event], from: Time) -> usize {
    let is_probe = |at: usize| {
        let (Some(first), Some(next)) = (events.get(at), events.get(at + 1)) else { return false };
        let starts_itself = first.standing == Standing::On && first.reason.rule == Rule::Restart;
        starts_itself && next.standing != Standing::On && next.at.since(first.at) < PROBE
    };
    let lasts = |at: &usize| events[*at].at >= from && !is_probe(*at) && !(*at > 0 && is_probe(at - 1));
    (0..events.len()).filter(lasts).count()
}

fn minute(seed: u64) {
    let mut random = Random::stream_of(9, "overlay kills", 1000 + seed);
    let mut network = network(seed);
    network.run(at(2000));
    // It lasts for 40 s of the minute.
    let whole = network.connect([HERE, THERE], [5_000_000, 100_000]);
    let mut edge = network.connect([HERE, EDGE], [u64::MAX / 2; 2]);
    for (number, sites) in (1..).zip([[HERE, THERE], [HERE, THERE], [THERE, HERE]]) {
        network.program(sites, number, Rate::from_bits_per_sec(500_000));
    }
    network.program([HERE, THERE], 9, Rate::from_mbit_per_sec(4));
    for kill in 0..3 {
        let begin = 10_000 + 1000 * PERIOD * kill + random.below(1000);
        network.run(at(begin));
        let victim = if random.chance(0.4) { EDGE } else { 1 + random.below(SITES as u64 - 2) as usize };
        let what = format!("seed {seed}, kill of {victim} at {begin} ms");
        let read = |network: &Network, at: usize| {
            network.connections[at].each_ref().map(|end| end.host.as_ref().map_or(0, |host| host.received))
        };
        network.kill(victim);
        network.run(at(begin + AWAY.0 + random.below(AWAY.1 - AWAY.0)));
        network.start(victim);
        network.run(at(begin + 6000));
        let gone = network.connections[edge][0].gone;
        if victim == EDGE {
            let (when, why) = gone.unwrap_or_else(|| panic!("{what}: the connection to it is still there"));
            assert!(why == Gone::Silent && when.since(at(begin)) <= RESET, "{what}: {why:?} at {when}");
            edge = network.connect([HERE, EDGE], [u64::MAX / 2; 2]);
        } else {
            assert_eq!(gone, None, "{what}: a connection between other sites has ended");
        }
        let before = read(&network, edge);
        network.run(at(10_000 + 1000 * PERIOD * (kill + 1)));
        let after = read(&network, edge);
        assert!(after[0] > before[0] && after[1] > before[1], "{what}: nothing comes: {before:?} {after:?}");
        let off: Vec<_> = decisions(&network, "video")
            .into_iter()
            .filter(|events| events.last().is_some_and(|event| event.standing != Standing::On))
            .collect();
        assert!(off.is_empty(), "{what}: 10 s after it is back flows are off: {off:?}");
    }
    network.run(at(60_000));
    // Every byte is checked as it is read.
    for (end, total) in [(0, 100_000), (1, 5_000_000)] {
        let End { host, gone, .. } = &network.connections[whole][end];
        let host = host.as_ref().unwrap();
        assert_eq!((host.received, host.saw_end, *gone), (total, true, None), "seed {seed}: end {end}");
    }
    for events in ["video", "large"].into_iter().flat_map(|service| decisions(&network, service)) {
        let lasting = lasting(&events, at(10_000));
        assert!(lasting <= 3, "seed {seed}: {lasting} decisions in a minute: {events:?}");
    }
    for site in 0..SITES {
        let site = network.site(site).unwrap();
        assert!(site.node().held() < 1500, "seed {seed}: {} packets wait", site.node().held());
    }
}

/// Two minutes, or as many as `WEIR_OVERLAY_MINUTES` says when the test is built.
#[test]
fn kills_under_admitted_load_cost_no_byte_of_a_stream_between_other_edges_and_flows_that_fit_stay_or_return()
{
    let minutes = option_env!("WEIR_OVERLAY_MINUTES").and_then(|minutes| minutes.parse().ok());
    (0..minutes.unwrap_or(2)).for_each(minute);
}
