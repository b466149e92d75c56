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

/// The link of the card of `dtn`.
fn of_card(run: &weir_plan::Run) -> (usize, &weir_plan::Link) {
    let node = run.network.nodes.iter().position(|node| node.name == "dtn").unwrap();
    run.network.links.iter().enumerate().find(|(_, link)| link.from == node).unwrap()
}

const TBF: &str = r#"{ kind = "tbf", rate = "8 Mbit/s", burst = "3000 B", limit = "15 kB" }"#;

pub(crate) fn what_it_refuses_is_no_loss() {
    // Ten flows: TCP lets each have some packets in the queue, which has room for ten in all.
    let transfer = "flows = 10\ncc = \"newreno\"\nworkload = { kind = \"transfer\", size = \"144.8 kB\" }\n";
    for queue in [TBF, "{ kind = \"tail-drop\", limit = \"10 packets\" }"] {
        let run = card(queue, transfer);
        let (tally, outcome) = go(&run);
        for flow in &tally.flows {
            assert_eq!((flow.sum.read_bytes, flow.last.retransmissions), (144_800, 0), "{queue}");
        }
        let (sent, refused) = shaped(&outcome);
        // A hundred segments of each flow, and the packets that open and close connections.
        assert!(sent >= 1020, "{queue}: {sent}");
        assert!(refused > 0, "{queue}: ten flows want more than the queue holds");
        let (card, _) = of_card(&run);
        let others = tally.links.iter().enumerate().filter(|(link, _)| *link != card);
        let dropped: u64 = others.map(|(_, link)| link.dropped).sum();
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

/// How often a run is repeated if its observer was not called at some events. On a busy machine that is up to one in a hundred of them
/// (docs/observe.md); the last run may miss so many, and then must say that it is invalid.
const ATTEMPTS: usize = 5;

pub(crate) fn its_queue_is_recorded() {
    // Frames of 1,214 bytes, twice as many as 8 Mbit/s carry, of which 15,000 bytes hold 12. The last one leaves within a second.
    let traffic = "stop = \"2 s\"\nworkload = { kind = \"udp\", rate = \"16 Mbit/s\", packet = \"1200 B\", source = \"socket\" }\n";
    let run = card(TBF, traffic);
    let (card, _) = of_card(&run);
    let is_of_card = |why: &String| why.starts_with("the card of dtn: ");
    for attempt in 1..=ATTEMPTS {
        let (tally, outcome) = go(&run);
        if let Some(why) = outcome.warnings.iter().find(|why| why.contains("have no records")) {
            println!("skipped: {why}");
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
            return;
        }
        let missed = outcome.invalid.iter().find(|why| is_of_card(why));
        if let Some(why) = missed.filter(|_| attempt < ATTEMPTS) {
            println!("again: {why}");
            continue;
        }
        let link = &tally.links[card];
        let (sent, refused) = shaped(&outcome);
        let received = tally.flows[0].sum.received_packets;
        // A valid run misses a thousandth at most.
        let share = if missed.is_none() { 1000 } else { 100 };
        let close = |counted: u64, truth: u64| counted.abs_diff(truth) * share <= link.arrived;
        assert!(close(link.dropped, refused), "{} dropped, the kernel counts {refused}", link.dropped);
        assert!(close(link.delay.count(), sent), "{} delays, the kernel counts {sent}", link.delay.count());
        assert!(close(link.arrived, link.dropped + received), "{link:?}, {received} received");
        assert!(close(link.sent_bytes / 1200, received), "{} bytes, without Ethernet's", link.sent_bytes);
        assert!(refused > 500 && received > 500, "{refused} refused, {received} received");
        // What finds 11 frames before it waits until all but the bucket's 3,000 bytes of them have left at 8 Mbit/s.
        let least = weir_base::Span::from_nanos((11 * 1214 - 3000) * 1000);
        let median = link.delay.percentile(0.5).unwrap();
        assert!(median >= least, "{median:?}, but {least:?} for a full queue");
        return;
    }
}
