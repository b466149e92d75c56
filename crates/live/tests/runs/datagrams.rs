//! Datagrams, and all transports over IPv6.

use super::*;

pub(crate) fn injected_datagrams_are_received() {
    let run = lab(&format!(
        "{DUMBBELL}[traffic.load]\nstop = \"2 s\"\n\
         workload = {{ kind = \"udp\", rate = \"1.2 Mbit/s\", packet = \"1500 B\", ecn = \"ect1\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    // 100 a second, from 0 s on and before 2 s.
    assert_eq!(outcome.audit.sent, 200);
    assert_eq!(tally.flows[0].sum.received_packets, 200);
    assert_eq!(tally.flows[0].sum.read_bytes, 200 * 1472);
}

pub(crate) fn socket_datagrams_carry_their_codepoint() {
    let run = lab(&format!(
        "{DUMBBELL}queue = {{ kind = \"pie\", target = \"1 ms\", tupdate = \"1 ms\", max_burst = \"0 s\", \
         mark_ecnth = 1.0 }}\n[traffic.load]\n\
         workload = {{ kind = \"udp\", rate = \"12 Mbit/s\", packet = \"1200 B\", ecn = \"ect0\", source = \"socket\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    assert!(tally.flows[0].sum.received_ce > 0, "an ECT(0) datagram is marked, not dropped");
    assert!(tally.flows[0].sum.read_bytes > 0 && tally.flows[0].sum.read_bytes % 1172 == 0);
    assert!(outcome.environment.contains_key("datagram_gap_error_us"));
}

/// Whether this kernel has IPv6.
fn has_ipv6() -> bool {
    let has = std::path::Path::new("/proc/sys/net/ipv6").exists();
    if !has {
        println!("IPv6: skipped, this kernel has none");
    }
    has
}

pub(crate) fn a_transfer_over_ipv6() {
    if !has_ipv6() {
        return;
    }
    // 1000 full segments: 1500 bytes less 40 of IPv6, 20 of TCP and 12 of timestamps. Nothing was lost, so none was
    // retransmitted.
    let run = lab(&format!(
        "{DUMBBELL}[traffic.a]\nip = 6\ncc = \"newreno\"\nworkload = {{ kind = \"transfer\", size = \"1.428 MB\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    assert_eq!(tally.flows[0].sum.read_bytes, 1_428_000);
    assert_eq!(events(&tally, 0), [Started, Opened, Completed]);
    assert_eq!(outcome.environment["ignored_frames"], 0, "no neighbour, router or group is asked for");
    let (_, down) = run.instrumented_links().next().unwrap();
    assert_eq!(down.name, "down");
    let sum = &tally.flows[0].sum;
    // The data, and SYN, ACK of the handshake and FIN in addition; the kernel may send pieces of a segment at the ends of its
    // writes.
    assert!((1_500_000..1_515_000).contains(&sum.received_bytes), "{sum:?}");
    assert_eq!(sum.retransmitted, 0);
    assert!(sum.rtt_count > 0, "the taps read TCP behind an IPv6 header");
}

pub(crate) fn marks_reach_the_receiver_over_ipv6() {
    if !has_ipv6() {
        return;
    }
    let run = lab(&format!(
        "{DUMBBELL}queue = {{ kind = \"pie\", target = \"2 ms\", tupdate = \"2 ms\", max_burst = \"0 s\", \
         mark_ecnth = 1.0 }}\n[traffic.a]\nip = 6\ncc = \"newreno\"\necn = true\n"
    ));
    let (tally, _) = go(&run);
    let marked: u64 = run.instrumented_links().map(|(index, _)| tally.links[index].marked).sum();
    let received = tally.flows[0].sum.received_ce;
    assert!(received > 0 && received <= marked, "{received} of {marked}");
}

pub(crate) fn datagrams_over_ipv6() {
    if !has_ipv6() {
        return;
    }
    let run = lab(&format!(
        "{DUMBBELL}[traffic.load]\nip = 6\nstop = \"2 s\"\n\
         workload = {{ kind = \"udp\", rate = \"1.2 Mbit/s\", packet = \"1500 B\", ecn = \"ect1\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    assert_eq!(outcome.audit.sent, 200);
    assert_eq!(tally.flows[0].sum.read_bytes, 200 * 1452);
    let run = lab(&format!(
        "{DUMBBELL}queue = {{ kind = \"pie\", target = \"1 ms\", tupdate = \"1 ms\", max_burst = \"0 s\", \
         mark_ecnth = 1.0 }}\n[traffic.load]\nip = 6\n\
         workload = {{ kind = \"udp\", rate = \"12 Mbit/s\", packet = \"1200 B\", ecn = \"ect0\", source = \"socket\" }}\n"
    ));
    let (tally, _) = go(&run);
    assert!(tally.flows[0].sum.received_ce > 0, "an ECT(0) datagram is marked, not dropped");
    assert!(tally.flows[0].sum.read_bytes > 0 && tally.flows[0].sum.read_bytes % 1152 == 0);
}

pub(crate) fn on_off_datagrams_are_sent() {
    // 100 a second, on for 250 ms and off for 250 ms: 25 in each of the six on-times.
    let run = lab(&format!(
        "{DUMBBELL}[traffic.noise]\nworkload = {{ kind = \"onoff\", rate = \"1.2 Mbit/s\", on = \"250 ms\", \
         off = \"250 ms\", times = \"fixed\" }}\n"
    ));
    let (tally, outcome) = go(&run);
    assert_eq!((outcome.audit.sent, tally.flows[0].sum.received_packets), (150, 150));
}
