//! Stations in whole runs: their effect on traffic, their records, and that every packet is accounted for.

use crate::simulate::{number, simulate};
use weir_record::RunSummary;

fn state(run: &RunSummary, station: &str, name: &str) -> f64 {
    run.stations.iter().find(|of| of.name == station).unwrap().state[name]
}

#[test]
fn a_policer_passes_its_rate_of_an_unresponsive_flow_and_drops_the_rest() {
    // 1000 packets of 1000 bytes a second for 10 s; half of that is the policer's rate, and 20 packets its burst.
    let run = simulate(
        "[run]\nduration = \"10 s\"\nwarmup = \"0 s\"\nstart_jitter = \"0 s\"\nhost_jitter = \"0 s\"\n\
         [dumbbell]\nrate = \"100 Mbit/s\"\nrtt = \"20 ms\"\n\
         [stations.cop]\nat = \"left\"\nlinks = [\"down\"]\nkind = \"policer\"\nrate = \"4 Mbit/s\"\nburst = \"20 kB\"\n\
         [traffic.a]\nworkload = { kind = \"udp\", rate = \"8 Mbit/s\", packet = \"1000 B\" }\n",
    )
    .remove(0);
    let [seen, green, red] =
        ["seen_packets", "green_packets", "red_packets"].map(|name| state(&run, "cop", name));
    assert_eq!((seen, green + red, state(&run, "cop", "discarded_packets")), (10_000.0, 10_000.0, red));
    // 5000 packets' worth of tokens in 10 s, less the last packet's millisecond, and the 20 of the burst.
    assert!((5_018.0..=5_020.0).contains(&green), "{green}");
    assert_eq!((run.stations[0].kind.as_str(), run.stations[0].at.as_str()), ("policer", "left"));
    assert!(number(run.metrics.get("dropped_packets")) == 0.0, "the queue drops none");
}

#[test]
fn dctcp_without_codepoints_learns_of_congestion_by_loss_alone() {
    let lab = |station: &str| {
        format!(
            "[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n\
             queue = {{ kind = \"step\", threshold = \"20 packets\", limit = \"100 packets\" }}\n\
             {station}\n[traffic.a]\ncc = \"dctcp\"\n"
        )
    };
    let of = |run: &RunSummary, name| number(run.metrics.get(name));
    let seen = simulate(&lab("")).remove(0);
    assert!(of(&seen, "marked_packets") > 900.0 && of(&seen, "dropped_packets") == 0.0);
    let bleached = "[stations.box]\nat = \"left\"\nlinks = [\"down\"]\nkind = \"ecn-bleacher\"";
    let blind = simulate(&lab(bleached)).remove(0);
    assert!(of(&blind, "marked_packets") == 0.0 && of(&blind, "dropped_packets") > 0.0);
    // Every ECN-capable data packet and handshake packet in the direction down.
    assert!(state(&blind, "box", "rewritten_ect0_packets") > 15_000.0);
    // Marks are cleared behind the queue: it marks packets, and no endpoint learns of it.
    let behind = "[stations.box]\nat = \"right\"\nlinks = [\"down\"]\nkind = \"ecn-bleacher\"";
    let untold = simulate(&lab(behind)).remove(0);
    assert!(of(&untold, "marked_packets") > 1000.0 && of(&untold, "dropped_packets") > 0.0);
    assert!(state(&untold, "box", "rewritten_ce_packets") >= of(&untold, "marked_packets"));
}
