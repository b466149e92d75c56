//! Warnings of runs that trip an oracle (`weir_record::Trip`): what was seen, what is certain otherwise, and what is at fault. A live
//! run has no simulator, so that its kernel or its machine is.

use crate::number::{count, rough, rough_with};
use weir_record::{LEAST_USED_PERCENT, Trip};

/// What is at fault in a run of this engine.
fn culprit(engine: &str) -> &'static str {
    match engine {
        "live" => "the kernel or this machine is at fault here",
        _ => "the simulator or the controller is at fault here",
    }
}

/// The warning of an oracle that a run of this engine trips.
pub(crate) fn sentence(trip: &Trip, engine: &str) -> String {
    let culprit = culprit(engine);
    match trip {
        Trip::Estimate { group, times, for_s } => format!(
            "The bandwidth estimate of group {group} is {} times the rate of its slowest link for {}: {culprit}.",
            rough(*times),
            rough_with(*for_s, "s")
        ),
        Trip::Unused { group, link, used_percent } => format!(
            "The flow of group {group} uses {} of link {link} in the second half of the run. It is alone, nothing is lost at random, and \
             all buffers are large enough for {}: {culprit}.",
            rough_with(*used_percent, "%"),
            rough_with(LEAST_USED_PERCENT, "%")
        ),
        Trip::Retransmissions { retransmitted, lost } => format!(
            "{} segments are retransmitted, but queues and links drop only {} packets, and no link changes their order: {culprit}.",
            count(*retransmitted),
            count(*lost)
        ),
        Trip::Startup { group, round_trips } => format!(
            "Group {group} is still in BBR's STARTUP after {} round trips. If its send buffer limits it, {}, and a larger send_buffer \
             ends STARTUP; if not, {culprit}.",
            rough(*round_trips),
            match engine {
                "live" => "Linux does so by design",
                _ => "real Linux does the same",
            }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Run;
    use std::path::Path;
    use weir_record::RunSummary;

    fn told(engine: &str, oracles: Vec<Trip>) -> Vec<String> {
        let lab =
            "format = 1\n[dumbbell]\nrate = \"5 Mbit/s\"\nrtt = \"40 ms\"\n[traffic.bbr]\ncc = \"bbr\"\n";
        let lab = weir_plan::Lab::from_str(lab, "lab.toml", Path::new("."), &[]).unwrap();
        let summary = RunSummary { engine: engine.into(), oracles, ..RunSummary::default() };
        let numbers = Run { summary: summary.into(), ..Run::default() };
        let texts = crate::warnings::warnings(&lab.runs()[0], &numbers);
        texts.into_iter().map(|text| text.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn a_run_that_trips_no_oracle_has_no_warning() {
        assert_eq!(told("sim", vec![]), [""; 0]);
    }

    #[test]
    fn an_estimate_above_the_rate_of_the_link_causes_a_warning() {
        let trip = Trip::Estimate { group: "bbr".into(), times: 1.3214, for_s: 2.0 };
        assert_eq!(
            told("sim", vec![trip.clone()]),
            [
                "The bandwidth estimate of group bbr is 1.3 times the rate of its slowest link for 2 s: the simulator or the controller is \
              at fault here."
            ]
        );
        assert!(told("live", vec![trip])[0].ends_with("the kernel or this machine is at fault here."));
    }

    #[test]
    fn a_link_that_its_only_flow_does_not_use_causes_a_warning() {
        let trip = Trip::Unused { group: "bbr".into(), link: "down".into(), used_percent: 45.2 };
        assert_eq!(
            told("sim", vec![trip]),
            [
                "The flow of group bbr uses 45 % of link down in the second half of the run. It is alone, nothing is lost at random, and \
              all buffers are large enough for 80 %: the simulator or the controller is at fault here."
            ]
        );
    }

    #[test]
    fn retransmissions_that_no_loss_explains_cause_a_warning() {
        let trip = Trip::Retransmissions { retransmitted: 900, lost: 340 };
        let text = told("live", vec![trip]).remove(0);
        assert!(
            text.starts_with("900 segments are retransmitted, but queues and links drop only 340"),
            "{text}"
        );
        assert!(text.ends_with("the kernel or this machine is at fault here."), "{text}");
    }

    #[test]
    fn a_flow_that_stays_in_startup_causes_a_warning_that_tells_of_the_send_buffer() {
        let trip = Trip::Startup { group: "bbr".into(), round_trips: 88.0 };
        assert_eq!(
            told("sim", vec![trip]),
            [
                "Group bbr is still in BBR's STARTUP after 88 round trips. If its send buffer limits it, real Linux does the same, and a \
              larger send_buffer ends STARTUP; if not, the simulator or the controller is at fault here."
            ]
        );
    }
}
