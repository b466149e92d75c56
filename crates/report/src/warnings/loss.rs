//! Warns of controllers that take the random losses of a path for congestion, so that their own formula keeps them well below the link.

use crate::lab::{Link, Run};
use crate::number::rough_with;
use weir_plan::Run as Planned;
use weir_record::metrics::queue::LINK_CAPACITY;

/// All flows of a group together carry less than this share of the link, by the formula.
const FAR: f64 = 0.5;

/// A sentence for each group whose controller's formula gives its flows less than [`FAR`] of a link that loses packets at random.
pub(super) fn response(plan: &Planned, link: &Link<'_>, run: &Run) -> Vec<String> {
    let planned = plan.network.links.iter().find(|other| other.name == link.name());
    let Some((planned, capacity)) = planned.zip(link.number(&LINK_CAPACITY)) else { return vec![] };
    let loss = planned.loss.mean();
    if loss <= 0.0 {
        return vec![];
    }
    let capped = |group: &weir_plan::Group| {
        let settings = group.settings.as_ref()?;
        let flows = run.groups().find(|shown| *shown.summary.name == *group.name)?.summary.flows;
        // A source that offers a rate of its own, or short flows, need no more than that.
        let always_sends = group.workload.role().is_stream()
            && !group.workload.has_random_arrivals()
            && group.workload.wanted(plan.duration).is_none();
        let carries = link.queue.carries.iter().any(|name| **name == *group.name);
        let window =
            weir_control::window_at(&settings.cc, loss, group.rtt()).filter(|_| always_sends && carries)?;
        let mbps = window * 8.0 * planned.mtu.get() as f64 / group.rtt().as_secs_f64() / 1e6;
        (mbps * (flows as f64) < FAR * capacity).then(|| {
            let (percent, mbps) = (rough_with(100.0 * loss, "%"), rough_with(mbps, "Mbit/s"));
            let (name, link, rtt) = (&group.name, link.name(), rough_with(group.rtt().as_millis_f64(), "ms"));
            let controller = crate::naming::spelled(settings.cc.name());
            format!(
                "{controller} takes every loss for congestion, and link {link} loses {percent} of all packets at random: at that rate of loss \
                 and {rtt} its own formula gives each flow of {name} about {mbps}, whatever the link carries ({}).",
                rough_with(capacity, "Mbit/s")
            )
        })
    };
    plan.groups.iter().filter_map(capped).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NET, group, link, planned, told};
    use weir_record::RunSummary;

    #[test]
    fn a_loss_based_controller_over_a_lossy_path_is_told_what_its_formula_gives() {
        let texts = |loss: &str, traffic: &str| {
            let run = planned(&format!("{NET}loss = \"{loss}\"\n[traffic.data]\n{traffic}\n"));
            told(
                &run,
                RunSummary {
                    queues: vec![link("tail-drop", &["data"], &[])],
                    groups: vec![group("data", 1, &[])],
                    ..RunSummary::default()
                },
            )
        };
        // sqrt(1.5 / 0.04) are 6.1 packets of 1,500 bytes in 40 ms: 1.84 Mbit/s of 5.
        let text = texts("4 %", "cc = \"cubic\"").remove(0);
        assert!(text.starts_with("CUBIC takes every loss for congestion, and link down loses 4 %"), "{text}");
        assert!(
            text.contains("each flow of data about 1.8 Mbit/s, whatever the link carries (5 Mbit/s)"),
            "{text}"
        );
        assert_eq!(texts("4 %", "cc = \"copa\"\ntransport = \"sliq\""), [""; 0], "Copa does not");
        assert_eq!(
            texts("0.01 %", "cc = \"cubic\""),
            [""; 0],
            "the formula gives more than the link carries"
        );
        assert_eq!(texts("4 %", "[traffic.data.workload]\nkind = \"udp\"\nrate = \"1 Mbit/s\""), [""; 0]);
    }
}
