//! Hosts' cards whose queue is the kernel's own shaper.

use crate::{DUMBBELL, go, lab};
use weir_engine::{Engine, EngineError};
use weir_live::Live;

/// A host with a card of 50 Mbit/s and this queue, before a link of 100 Mbit/s.
fn card(queue: &str, traffic: &str) -> weir_plan::Run {
    let dumbbell = DUMBBELL.replace("10 Mbit/s", "100 Mbit/s");
    lab(&format!(
        "{dumbbell}[nic.dtn]\nrate = \"50 Mbit/s\"\nshaper = \"kernel\"\nqueue = {queue}\n[traffic.a]\nhost = \"dtn\"\n{traffic}"
    ))
}

/// Packets that the card of `dtn` has sent and refused.
fn shaped(outcome: &weir_engine::Outcome) -> (u64, u64) {
    let of = |what: &str| outcome.environment["shaped_packets"]["dtn"][what].as_u64().unwrap();
    (of("sent"), of("refused"))
}

const TBF: &str = r#"{ kind = "tbf", rate = "8 Mbit/s", burst = "3000 B", limit = "15 kB" }"#;

pub(crate) fn what_it_refuses_is_no_loss() {
    // Ten flows: TCP lets each have some packets in the queue, which has room for ten in all.
    let transfer = "flows = 10\ncc = \"newreno\"\nworkload = { kind = \"transfer\", size = \"144.8 kB\" }\n";
    for queue in [TBF, "{ kind = \"tail-drop\", limit = \"10 packets\" }"] {
        let (tally, outcome) = go(&card(queue, transfer));
        for flow in &tally.flows {
            assert_eq!((flow.sum.read_bytes, flow.last.retransmissions), (144_800, 0), "{queue}");
        }
        let (sent, refused) = shaped(&outcome);
        // A hundred segments of each flow, and the packets that open and close connections.
        assert!(sent >= 1020, "{queue}: {sent}");
        assert!(refused > 0, "{queue}: ten flows want more than the queue holds");
        let dropped: u64 = tally.links.iter().map(|link| link.dropped).sum();
        assert_eq!(dropped, 0, "{queue}: nothing is dropped in the fabric");
    }
}

pub(crate) fn each_class_has_its_flows() {
    let class = |name: &str, rate: u64, flow: u64| {
        format!(
            "{{ name = \"{name}\", rate = \"{rate} kbit/s\", burst = \"1514 B\", cburst = \"1514 B\", flows = [{flow}] }}"
        )
    };
    let queue =
        format!("{{ kind = \"htb\", classes = [{}, {}] }}", class("slow", 800, 0), class("fast", 8000, 1));
    let traffic = "flows = 2\nworkload = { kind = \"udp\", rate = \"4 Mbit/s\", packet = \"1200 B\", source = \"socket\" }\n";
    let (tally, outcome) = go(&card(&queue, traffic));
    let received = [0, 1].map(|flow| tally.flows[flow].sum.read_bytes);
    // A fifth of the first flow's 4 Mbit/s passes, and all of the second's.
    assert!(received[0] * 4 < received[1] && received[0] > 0, "{received:?}");
    assert!(shaped(&outcome).0 > 0);
}

pub(crate) fn what_the_kernel_lacks_is_refused() {
    let refusal = |run: &weir_plan::Run| match Live.check(run) {
        Err(EngineError::Unable { what, help }) => format!("{what}; {help}"),
        other => panic!("{other:?}"),
    };
    let bulk = "cc = \"newreno\"\n";
    let told = refusal(&card("\"pie\"", bulk));
    assert!(told.contains("the host dtn has a card, and the kernel's shaper has no queue `pie`"), "{told}");
    let without =
        lab(&format!("{DUMBBELL}[nic.dtn]\nrate = \"50 Mbit/s\"\n[traffic.a]\nhost = \"dtn\"\n{bulk}"));
    let told = refusal(&without);
    assert!(told.contains("write shaper = \"kernel\" in [nic.dtn], or use `--on sim`"), "{told}");
    let of_several = lab(&format!(
        "{DUMBBELL}[nic.capture]\nhosts = 2\nrate = \"50 Mbit/s\"\n[traffic.a]\nhost = \"capture\"\nflows = 2\n{bulk}"
    ));
    let told = refusal(&of_several);
    assert!(told.contains("the host capture-1 has a card") && told.contains("in [nic.capture]"), "{told}");
    let exact = "workload = { kind = \"udp\", rate = \"4 Mbit/s\" }\n";
    assert!(refusal(&card(TBF, exact)).contains("write source = \"socket\""));
    let overhead = r#"{ kind = "tbf", overhead = "0 B" }"#;
    assert!(refusal(&card(overhead, bulk)).contains("overhead of 0 B; it counts 14 B"));
}

pub(crate) fn each_of_several_hosts_has_its_own() {
    let run = lab(&format!(
        "{}[nic.capture]\nrate = \"8 Mbit/s\"\nhosts = 2\nshaper = \"kernel\"\n\
         [traffic.a]\nhost = \"capture\"\nflows = 4\ncc = \"newreno\"\nworkload = {{ kind = \"ensembles\", size = \"20 KiB\" }}\n",
        DUMBBELL.replace("10 Mbit/s", "100 Mbit/s")
    ));
    let (tally, outcome) = go(&run);
    // One application drives the four flows from two namespaces: no frame begins before all have taken the one before.
    let read = [0, 1, 2, 3].map(|flow: usize| tally.flows[flow].sum.read_bytes);
    assert!(read.iter().all(|read| *read >= 20 * 1024), "{read:?}");
    for host in ["capture-1", "capture-2"] {
        let sent = outcome.environment["shaped_packets"][host]["sent"].as_u64().unwrap();
        assert!(sent > (read[0] + read[1]).min(read[2] + read[3]) / 1500 / 2, "{host}: {sent}");
    }
}
