//! SLIQ over UDP sockets in the hosts' namespaces.

use crate::{DUMBBELL, go, lab};
use weir_engine::{Engine, EngineError};
use weir_live::Live;
use weir_record::FlowEventKind::{Completed, Opened, Started};

pub(crate) fn a_transfer_arrives_whole() {
    for seal in ["none", "noise"] {
        let run = lab(&format!(
            "{DUMBBELL}loss = {{ down = 0.05, up = 0.05 }}\n[traffic.a]\ncc = \"copa\"\n\
             transport = {{ kind = \"sliq\", seal = \"{seal}\" }}\n\
             workload = {{ kind = \"transfer\", size = \"300 kB\" }}\n"
        ));
        let (tally, outcome) = go(&run);
        assert_eq!(tally.flows[0].sum.read_bytes, 300_000, "{seal}");
        for kind in [Started, Opened, Completed] {
            assert!(tally.when(0, kind).is_some(), "{seal}: {kind:?} in {:?}", tally.flows[0].events);
        }
        assert!(tally.transport_samples > 0 && tally.links[0].lost > 0, "{seal}");
        let flow = &tally.flows[0];
        assert!(flow.last.retransmissions > 0, "{seal}");
        assert_eq!(flow.sum.retransmitted, flow.last.retransmissions, "{seal}");
        assert_eq!(outcome.environment["ignored_frames"], 0, "{seal}: nothing stray on the wire");
    }
}

pub(crate) fn streams_share_a_connection() {
    for seal in ["none", "noise"] {
        streams_share(seal);
    }
}

fn streams_share(seal: &str) {
    let group = |name: &str, priority: u8, start: &str, workload: &str| {
        format!(
            "[traffic.{name}]\ncc = \"copa\"\nstart = \"{start}\"\n\
             transport = {{ kind = \"sliq\", seal = \"{seal}\", connection = \"c\", stream = {{ priority = {priority} }} }}\n\
             workload = {workload}\n"
        )
    };
    let transfer = "{ kind = \"transfer\", size = \"300 kB\" }";
    let frames =
        "{ kind = \"frames\", fps = 50, size = \"1000 B\", deadline = \"150 ms\", source = \"socket\" }";
    let run = lab(&format!(
        "{DUMBBELL}loss = {{ down = 0.05, up = 0.05 }}\n{}{}{}",
        group("late", 5, "200 ms", transfer),
        group("early", 3, "0 s", transfer),
        group("frames", 0, "100 ms", frames),
    ));
    let (tally, outcome) = go(&run);
    for flow in 0..2 {
        assert_eq!(tally.flows[flow].sum.read_bytes, 300_000, "{flow}");
        assert!(tally.flows[flow].events.iter().any(|(_, kind)| *kind == Completed), "{flow}");
    }
    assert!(tally.flows[2].messages.len() > 100, "{}", tally.flows[2].messages.len());
    // Samples of the connection itself belong to the flow that began first.
    assert!(!tally.flows[1].last.srtt.is_zero());
    assert_eq!(outcome.environment["ignored_frames"], 0, "nothing stray on the wire");
}

pub(crate) fn messages_arrive() {
    let run = lab(&format!(
        "{DUMBBELL}loss = {{ down = 0.1, up = 0.1 }}\n[traffic.a]\ncc = \"copa\"\n\
         transport = {{ kind = \"sliq\", seal = \"noise\", stream = {{ delivery = \"arq-fec\", deadline = \"100 ms\" }} }}\n\
         workload = {{ kind = \"frames\", fps = 100, size = \"1000 B\", deadline = \"100 ms\", source = \"socket\" }}\n"
    ));
    let (tally, _) = go(&run);
    // 300 in 3 s; what is still under way at the end has no fate.
    assert!(tally.flows[0].messages.len() > 200, "{}", tally.flows[0].messages.len());
    assert!(tally.links[0].lost > 0);
}

pub(crate) fn what_sockets_cannot_do_is_refused() {
    let run = lab(&format!(
        "{DUMBBELL}[traffic.a]\ntransport = \"sliq\"\n\
         workload = {{ kind = \"frames\", fps = 10, size = \"1000 B\", deadline = \"100 ms\" }}\n"
    ));
    let Err(EngineError::Unable { what, .. }) = Live.check(&run) else { panic!("it is not refused") };
    assert!(what.contains("leave sockets"), "{what}");
}
