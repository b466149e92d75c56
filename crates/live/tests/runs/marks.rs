//! Codepoints: which ends set them, see them and answer them.

use crate::{DUMBBELL, STEP, controls, go, go_with, lab};
use weir_engine::{Capture, Engine, EngineError};
use weir_live::Live;

pub(crate) fn marks_reach_the_receiver() {
    let run = lab(&format!(
        "{DUMBBELL}queue = {{ kind = \"pie\", target = \"2 ms\", tupdate = \"2 ms\", max_burst = \"0 s\", \
         mark_ecnth = 1.0 }}\n[traffic.a]\ncc = \"newreno\"\necn = true\n"
    ));
    let (tally, _) = go(&run);
    let link = run
        .instrumented_links()
        .map(|(index, _)| index)
        .max_by_key(|index| tally.links[*index].marked)
        .unwrap();
    assert!(tally.links[link].marked > 0, "PIE marks a flow that keeps its queue above the target");
    let received = tally.flows[0].sum.received_ce;
    assert!(
        received > 0 && received <= tally.links[link].marked,
        "{received} of {}",
        tally.links[link].marked
    );
}

/// How many packets of each codepoint a capture of raw IP holds.
pub(crate) fn codepoints(capture: &[u8]) -> [usize; 4] {
    let mut counts = [0; 4];
    traffic_classes(capture).iter().for_each(|class| counts[usize::from(class & 3)] += 1);
    counts
}

/// The TOS byte of each packet in a capture of raw IP. Their IPv4 headers must add up.
fn traffic_classes(capture: &[u8]) -> Vec<u8> {
    let mut classes = vec![];
    let mut rest = &capture[24..];
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let (packet, next) = behind.split_at(length);
        classes.push(packet[1]);
        let sum: u32 =
            packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the header's checksum");
        rest = next;
    }
    classes
}

pub(crate) fn dscps_are_on_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let run = lab(&format!(
        "{DUMBBELL}queue = {{ kind = \"strict-priority\", bands = [{{ dscp = [\"EF\"] }}, {{}}] }}\n\
         [traffic.file]\ncc = \"newreno\"\ndscp = \"CS1\"\nworkload = {{ kind = \"transfer\", size = \"144.8 kB\" }}\n\
         [traffic.voice]\ndscp = \"EF\"\nworkload = {{ kind = \"udp\", rate = \"1 Mbit/s\", ecn = \"ect0\" }}\n\
         [traffic.echo]\ndscp = 40\nworkload = {{ kind = \"ping\", interval = \"50 ms\" }}\n"
    ));
    let file = folder.path().join("link.pcap");
    let (link, _) = run.instrumented_links().next().unwrap();
    let capture = Capture::create(link, &file).unwrap();
    let (tally, _) = go_with(&run, Some(capture.clone()));
    capture.finish().unwrap();
    assert_eq!(tally.flows[0].sum.read_bytes, 144_800);
    let classes = traffic_classes(&std::fs::read(&file).unwrap());
    let count = |class: u8| classes.iter().filter(|known| **known == class).count();
    // 100 segments, the handshake and the FIN; datagrams with EF and ECT(0); requests of echoes with CS5. Nothing else.
    assert!(count(8 << 2) >= 102, "{classes:?}");
    assert!(count(46 << 2 | 2) > 10 && count(40 << 2) > 2, "{classes:?}");
    assert_eq!(count(8 << 2) + count(46 << 2 | 2) + count(40 << 2), classes.len(), "{classes:?}");
}

pub(crate) fn ect1_is_on_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let data_sent_as = |ecn: &str| {
        let run = lab(&format!(
            "{DUMBBELL}[traffic.a]\ncc = \"newreno\"\necn = {ecn}\nwindow_scaling = false\n\
             workload = {{ kind = \"transfer\", size = \"144.8 kB\" }}\n"
        ));
        let file = folder.path().join("link.pcap");
        let (link, _) = run.instrumented_links().next().unwrap();
        let capture = Capture::create(link, &file).unwrap();
        let (tally, outcome) = go_with(&run, Some(capture.clone()));
        capture.finish().unwrap();
        assert_eq!(tally.flows[0].sum.read_bytes, 144_800);
        assert_eq!(tally.flows[0].sum.retransmitted, 0);
        let told =
            outcome.warnings.iter().any(|warning| warning.contains("100 packets were relabelled ECT(1)"));
        let sysctls = &outcome.environment["sysctls"];
        assert!(sysctls.as_object().unwrap().values().all(|host| host["ipv4.tcp_window_scaling"] == "0"));
        (codepoints(&std::fs::read(&file).unwrap())[1..].to_vec(), told)
    };
    // 100 segments, as ECT(1), ECT(0) and CE. The handshake and the FIN are not ECN-capable.
    assert_eq!(data_sent_as("\"ect1\""), (vec![100, 0, 0], true));
    assert_eq!(data_sent_as("true"), (vec![0, 100, 0], false));
}

pub(crate) fn feedback_is_refused() {
    for workload in ["bulk", "web", "requests", "http"] {
        let workload = match workload {
            "web" => "{ kind = \"web\", rate = 10 }".to_owned(),
            "http" => "{ kind = \"http\", size = \"1 kB\" }".to_owned(),
            plain => format!("\"{plain}\""),
        };
        let run = lab(&format!(
            "{DUMBBELL}[traffic.a]\ncc = \"cubic\"\nfeedback = \"accurate\"\nworkload = {workload}\n"
        ));
        let Err(EngineError::Unable { what, help }) = Live.check(&run) else {
            panic!("{workload} was taken")
        };
        assert!(what.contains("group a") && what.contains("Accurate ECN"), "{what}");
        assert!(help.contains("--on sim") && help.contains("classic"), "{help}");
    }
}

pub(crate) fn marks_reach_dctcp() {
    let Some(_alone) = controls() else { return };
    let run = lab(&format!("{DUMBBELL}{STEP}[traffic.a]\ncc = \"dctcp\"\necn = true\n"));
    let (tally, outcome) = go(&run);
    assert_eq!(outcome.environment["loaded_controls"], serde_json::json!(["weir_dctcp"]));
    let sum = &tally.flows[0].sum;
    assert!(sum.received_ce > 20, "{} marks", sum.received_ce);
    // The kernel may probe for a loss (TLP) where there was none.
    assert_eq!(outcome.audit.dropped, 0);
    // 3 s of 10 Mbit/s are 3.6 MB of payload, and four fifths of it 2.9 MB.
    assert!(sum.read_bytes > 2_900_000, "{} bytes", sum.read_bytes);
}

pub(crate) fn prague_paces() {
    let Some(_alone) = controls() else { return };
    let run =
        lab(&format!("{DUMBBELL}{STEP}[traffic.a]\ncc = \"prague\"\nfeedback = \"dctcp\"\necn = \"ect1\"\n"));
    let (tally, outcome) = go(&run);
    let mut loaded: Vec<_> = outcome.environment["loaded_controls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    loaded.sort_unstable();
    assert_eq!(loaded, ["weir_dctcp", "weir_prague"], "the receiver echoes marks as DCTCP's does");
    assert!(outcome.warnings.iter().any(|warning| warning.contains("relabelled ECT(1)")));
    let sum = &tally.flows[0].sum;
    assert!(sum.received_ce > 20, "{} marks", sum.received_ce);
    assert_eq!(outcome.audit.dropped, 0);
    assert!(sum.read_bytes > 2_900_000, "{} bytes", sum.read_bytes);
}
