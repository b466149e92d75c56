//! Echo requests: to a host and to a station, through a network of known delay, rate and loss.

use crate::simulate::{number, simulate};
use weir_record::RunSummary;

const LAB: &str = "[run]\nduration = \"20 s\"\nwarmup = \"0 s\"\nstart_jitter = \"0 s\"\nhost_jitter = \"0 s\"\n\
    [dumbbell]\nrate = \"8 Mbit/s\"\nrtt = \"20 ms\"\n";

/// The mean echo time, in milliseconds, of the run's first group.
fn echo_time(run: &RunSummary) -> f64 {
    run.groups[0].metrics.get("echo_time_ms").distribution().unwrap().mean
}

fn lost(run: &RunSummary) -> f64 {
    number(run.groups[0].metrics.get("echoes_lost_percent"))
}

#[test]
fn an_echo_takes_the_base_rtt_and_its_serialisation_each_way() {
    // 84 bytes at 8 Mbit/s: 84 us, twice.
    let run = simulate(&format!("{LAB}[traffic.rtt]\nworkload = \"ping\"\n")).remove(0);
    assert!((echo_time(&run) - 20.168).abs() < 1e-9, "{}", echo_time(&run));
    assert_eq!(lost(&run), 0.0);
}

#[test]
fn a_station_answers_as_a_host_does() {
    let station =
        "[stations.far]\nat = \"right\"\nkind = \"echo\"\n[traffic.rtt]\nworkload = \"ping\"\nto = \"far\"\n";
    let run = simulate(&format!("{LAB}{station}")).remove(0);
    assert!((echo_time(&run) - 20.168).abs() < 1e-9, "{}", echo_time(&run));
    // 20 s of one each 100 ms.
    assert_eq!(run.stations[0].state["answered_packets"], 200.0);
}

#[test]
fn echoes_that_a_link_loses_are_lost_and_echoes_that_wait_in_a_queue_are_late() {
    // Every tenth request is dropped. A request counts as lost only if its two seconds pass before
    // the run ends: 181 of the 200 requests are sent early enough.
    let drops: Vec<String> = (0..20).map(|ten| (10 * ten + 1).to_string()).collect();
    let lab = LAB.replace("rtt =", &format!("drop = {{ down = [{}] }}\nrtt =", drops.join(", ")));
    let run = simulate(&format!("{lab}[traffic.rtt]\nworkload = \"ping\"\n")).remove(0);
    let lost = lost(&run);
    // 180 of the others are answered, and 18 or 19 of the dropped ones have timed out.
    assert!((9.0..=9.6).contains(&lost), "{lost}");
    let beside = "[traffic.rtt]\nworkload = \"ping\"\n[traffic.load]\ncc = \"reno\"\n";
    let busy = simulate(&format!("{LAB}{beside}")).remove(0);
    assert_eq!(number(busy.metrics.get("jain_index")), 1.0, "echo requests compete with nobody");
    assert!(echo_time(&busy) > 25.0, "{}", echo_time(&busy));
}

#[test]
fn flows_of_one_group_can_have_different_rtts() {
    let lab = format!("{LAB}[traffic.rtt]\nworkload = \"ping\"\nrtt = [\"20 ms\", \"50 ms\", \"80 ms\"]\n");
    let run = simulate(&lab).remove(0);
    let time = |flow: usize| run.flows[flow].metrics.get("echo_time_ms").distribution().unwrap().mean.round();
    let times: Vec<f64> = (0..3).map(time).collect();
    assert_eq!(times, [20.0, 50.0, 80.0]);
}
