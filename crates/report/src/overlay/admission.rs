//! Which flows an overlay admitted and when, and by whom and why others were stopped: a run's decisions as bands over time and in words.

use crate::number::{number, number_with};
use std::collections::BTreeMap;
use weir_engine::FinishedRun;
use weir_record::Records;

/// Largest number of decisions in a run's script. Where there are more, flows with fewer stops are left out.
const MOST: usize = 6000;
/// Largest number of flows with bands: more are no picture.
const FLOWS: usize = 120;
/// How a flow stands that is admitted, and that has ended.
const ON: &str = "on";
const ENDED: &str = "ended";

/// The decisions of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Admission {
    /// Flows about which something was decided, in the run's order.
    pub flows: Vec<Decided>,
    /// Number of flows that are left out.
    pub more: usize,
}

/// The decisions about a flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decided {
    /// Its name.
    pub name: String,
    /// Its group's index in the run.
    pub group: usize,
    /// What was decided, in the order of time.
    pub stands: Vec<Stand>,
}

/// How a flow stands from a time on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stand {
    /// Seconds from the start of the run.
    pub at_s: f64,
    /// How it stands, as the table of decisions names it.
    pub standing: String,
    /// Who decided, in words.
    pub by: &'static str,
    /// The reason with its numbers, a clause.
    pub why: String,
}

impl Decided {
    /// Whether it ever stood in some way, rather than only ended.
    fn is_shown(&self) -> bool {
        self.stands.iter().any(|stand| stand.standing != ENDED)
    }

    fn stops(&self) -> usize {
        self.stands.iter().filter(|stand| stand.standing != ON && stand.standing != ENDED).count()
    }
}

/// The decisions of a run; `None` if there are none.
pub(super) fn admission(run: &FinishedRun, records: &Records) -> Option<Admission> {
    let mut all: BTreeMap<u32, Decided> = BTreeMap::new();
    for decision in &records.decisions {
        let Some(flow) = run.info.flows.get(decision.flow as usize) else { continue };
        let new = || Decided { name: flow.name.to_string(), group: flow.group as usize, stands: vec![] };
        let stand = Stand {
            at_s: decision.at.as_secs_f64(),
            standing: decision.standing.to_string(),
            by: if &*decision.by == "planner" { "the planner" } else { "the flow itself" },
            why: why(&decision.rule, &decision.standing, decision.value, decision.bound),
        };
        all.entry(decision.flow).or_insert_with(new).stands.push(stand);
    }
    all.retain(|_, flow| flow.is_shown());
    let count = all.len();
    let mut flows: Vec<(u32, Decided)> = all.into_iter().collect();
    // Those first that were stopped most often.
    flows.sort_by_key(|(number, flow)| (std::cmp::Reverse(flow.stops()), *number));
    let mut decisions = 0;
    let kept = flows.iter().take(FLOWS).take_while(|(_, flow)| {
        decisions += flow.stands.len();
        decisions <= MOST
    });
    flows.truncate(kept.count());
    flows.sort_by_key(|(number, _)| *number);
    let flows: Vec<Decided> = flows.into_iter().map(|(_, flow)| flow).collect();
    (count > 0).then(|| Admission { more: count - flows.len(), flows })
}

/// A rate in bit/s, in words.
fn rate(value: f64) -> String {
    number_with(value.max(0.0) / 1e6, "Mbit/s")
}

/// A depth in bits, in words.
fn depth(value: f64) -> String {
    number_with(value / 1e3, "kbit")
}

/// Why a flow stands as it does: the rule's numbers in a clause (docs/overlay.md has the rules).
fn why(rule: &str, standing: &str, value: f64, bound: f64) -> String {
    let is_on = standing == ON;
    // Longer than any run: no path leads there.
    let is_path = value < 1e12;
    match rule {
        "time" if standing == ENDED => "its time was over".into(),
        "time" => "its time had come".into(),
        "size" => format!("it had sent its {}", number_with(bound, "bytes")),
        "price" => format!("the price was {}, and it holds on up to {}", depth(value), depth(bound)),
        "loss" => format!("it lost {} %, and tolerates {} %", number(value), number(bound)),
        "floor" if is_on => format!("it would have {}, and its floor is {}", rate(value), rate(bound)),
        "floor" => format!("its mean rate of {} was below its floor of {}", rate(value), rate(bound)),
        "backlog" => {
            format!("its packets waited for {} s, and {} s are tolerated", number(value), number(bound))
        }
        "restart" => format!("it tried again {} s after it had stopped", number(value)),
        "fit" if is_on => format!("its {} fitted into the {} that were left", rate(value), rate(bound)),
        "fit" => format!("its {} did not fit into the {} that were left", rate(value), rate(bound)),
        "price-if-admitted" => {
            format!("the price with it would be {}, and it holds on up to {}", depth(value), depth(bound))
        }
        "probe" => "it was the next one to probe".into(),
        "rotation" => "another flow of its destination was the one to probe".into(),
        "stable" => format!("it had been on for {} s", number(value)),
        "unreachable" if is_path => {
            format!("the fastest path takes {} ms, and its deadline is {} ms", number(value), number(bound))
        }
        "unreachable" => "no path leads to its receiver".into(),
        "thrash" => {
            format!("{} flows of its destination came and went, and {} may", number(value), number(bound))
        }
        "coupled" => format!("{} flows of its set were off", number(value)),
        other => format!("{other}: {} against {}", number(value), number(bound)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_overlay::utility::Rule;

    #[test]
    fn every_rule_has_words() {
        for rule in Rule::ALL {
            for standing in ["on", "off", "triaged", "ended"] {
                let words = why(rule.name(), standing, 3e6, 2e6);
                assert!(!words.starts_with(&format!("{}:", rule.name())), "{words}");
            }
        }
    }

    #[test]
    fn a_reason_has_its_numbers_in_the_units_that_a_reader_knows() {
        // Numbers and units are held together by a space that does not break.
        let words = |rule, standing, value, bound| why(rule, standing, value, bound).replace('\u{a0}', " ");
        let fit = words("fit", "off", 3.4e6, 2.2e6);
        assert_eq!(fit, "its 3.40 Mbit/s did not fit into the 2.20 Mbit/s that were left");
        let none_left = words("fit", "off", 3.4e6, -5.0);
        assert_eq!(none_left, "its 3.40 Mbit/s did not fit into the 0 Mbit/s that were left");
        let slow = words("unreachable", "unreachable", 60.0, 50.0);
        assert_eq!(slow, "the fastest path takes 60.0 ms, and its deadline is 50.0 ms");
        assert_eq!(words("unreachable", "unreachable", 1.8e13, 50.0), "no path leads to its receiver");
        assert_eq!(words("time", "ended", 40.0, 40.0), "its time was over");
        let price = words("price", "triaged", 372_752.0, 342_448.0);
        assert_eq!(price, "the price was 373 kbit, and it holds on up to 342 kbit");
    }
}
