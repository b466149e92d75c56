//! Sentences, compared with the numbers from which they are made.

use super::*;
use crate::lab::LinkPlan;
use std::sync::Arc;
use weir_base::Ecn;
use weir_record::compare::{Bound, Estimate};
use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::metrics::message::FRAMES_ON_TIME;
use weir_record::metrics::queue::{LINK_CAPACITY, UTILISATION};
use weir_record::metrics::rate::{GOODPUT, READ};
use weir_record::{ClassSummary, Distribution, Metric, Metrics, QueueSummary, RunSummary, Value};

fn metrics(values: impl IntoIterator<Item = (Metric, Value)>) -> Metrics {
    values.into_iter().map(|(metric, value)| (metric.name, value)).collect()
}

/// A group that takes this share, in percent, of a link of 10 Mbit/s for 8 s.
fn group(name: &str, controller: &str, share: f64) -> GroupSummary {
    GroupSummary {
        name: name.into(),
        controller: (!controller.is_empty()).then(|| controller.into()),
        transport: "tcp".into(),
        flows: 1,
        completes: false,
        metrics: metrics(
            [(GOODPUT, share / 10.0), (READ, share * 1e5)].map(|(metric, n)| (metric, Value::Number(n))),
        ),
    }
}

fn link(queue: &str, mean: f64, used: f64) -> QueueSummary {
    QueueSummary {
        link: "down".into(),
        queue: queue.into(),
        carries: ["a", "b", "near", "far", "voice"].map(Into::into).into(),
        metrics: packets(mean, used),
        classes: vec![],
    }
}

fn packets(mean: f64, used: f64) -> Metrics {
    let (p1, p25, p50, p75, p99) = (0.0, mean, mean, mean, mean * 2.0);
    let delay = Value::Distribution(Distribution { count: 1000, mean, p1, p25, p50, p75, p99 });
    metrics([(UTILISATION, Value::Number(used)), (QUEUE_DELAY, delay), (LINK_CAPACITY, Value::Number(10.0))])
}

fn cell(queue: &str, mean: f64, params: &[&str]) -> Run {
    let summary = RunSummary {
        engine: "sim".into(),
        duration_s: 8.0,
        queues: vec![link(queue, mean, 99.0)],
        groups: vec![group("a", "cubic", 62.0), group("b", "newreno", 34.0)],
        ..RunSummary::default()
    };
    let target_ms = (queue == "pie").then_some(15.0);
    Run {
        id: params.join("-"),
        summary: Arc::new(summary),
        params: params.iter().map(|value| value.to_string()).collect(),
        bottleneck: Some(0),
        planned: vec![LinkPlan { target_ms, rate_mbps: Some(10.0), ..LinkPlan::default() }; 4],
        ..Run::default()
    }
}

/// A run's summary, to be changed.
fn summary(run: &mut Run) -> &mut RunSummary {
    Arc::make_mut(&mut run.summary)
}

/// The text with plain spaces instead of no-break ones.
fn plain(text: String) -> String {
    text.replace('\u{a0}', " ")
}

#[test]
fn a_runs_sentence_gives_queue_delays_and_shares() {
    assert_eq!(
        plain(run(&cell("pie", 15.2, &[]))),
        "PIE at link down held a delay of 15 ms; CUBIC took 62 % of link down, NewReno 34 %."
    );
}

#[test]
fn a_missed_target_is_not_described_as_held() {
    let above = plain(run(&cell("pie", 31.0, &[])));
    assert!(
        above.starts_with("PIE at link down had a delay of 31 ms, above its target of 15 ms;"),
        "{above}"
    );
    let below = plain(run(&cell("pie", 4.0, &[])));
    assert!(
        below.starts_with("The queue delay at link down was 4 ms, below PIE’s target of 15 ms;"),
        "{below}"
    );
    let near = plain(run(&cell("pie", 17.0, &[])));
    assert!(near.starts_with("PIE at link down held a delay of 17 ms (its target is 15 ms);"), "{near}");
}

#[test]
fn an_invalid_run_says_so_first() {
    let mut invalid = cell("tail-drop", 38.0, &[]);
    summary(&mut invalid).invalid = vec!["lateness p99 was 2.1 ms.".into()];
    let text = plain(run(&invalid));
    let start = "Invalid, so its numbers are not reliable (lateness p99 was 2.1 ms): Tail drop";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn even_shares_are_called_even_and_the_unused_part_of_a_link_is_given() {
    let mut run = cell("tail-drop", 38.0, &[]);
    summary(&mut run).groups = vec![group("a", "cubic", 35.0), group("b", "newreno", 36.0)];
    summary(&mut run).queues = vec![link("tail-drop", 38.0, 72.0)];
    assert_eq!(
        plain(super::run(&run)),
        "Tail drop at link down had a queue delay of 38 ms (p99 76 ms); NewReno and CUBIC shared evenly (36 % and 35 % \
         of link down); 28 % of link down stayed unused."
    );
}

#[test]
fn groups_with_the_same_controller_are_distinguished_by_their_names() {
    let mut run = cell("pie", 15.0, &[]);
    summary(&mut run).groups =
        vec![group("near", "cubic", 80.0), group("far", "cubic", 15.0), group("voice", "", 1.0)];
    let text = plain(super::run(&run));
    assert!(text.ends_with("near (CUBIC) took 80 % of link down, far (CUBIC) 15 %, voice 1 %."), "{text}");
}

#[test]
fn each_link_that_carries_data_is_named_and_each_group_belongs_to_its_own() {
    let mut run = cell("pie", 15.0, &[]);
    let named = |name: &str, carries: &[&str], delay: f64| QueueSummary {
        link: name.into(),
        carries: carries.iter().map(|name| (*name).into()).collect(),
        ..link("pie", delay, 95.0)
    };
    summary(&mut run).queues = vec![named("down", &["a"], 15.0), named("up", &["b"], 30.0)];
    assert_eq!(
        plain(super::run(&run)),
        "PIE at link down held a delay of 15 ms; PIE at link up had a delay of 30 ms, above its target of 15 ms; CUBIC took \
         62 % of link down; NewReno took 34 % of link up."
    );
    // A link that carries only acknowledgements is not in the sentence.
    summary(&mut run).queues[1].carries.clear();
    assert!(
        plain(super::run(&run))
            .starts_with("PIE at link down held a delay of 15 ms; CUBIC took 62 % of link down")
    );
    // With more than three links, the sentence is about the one with the longest queue.
    summary(&mut run).queues = ["h1", "h2", "h3", "h4"].map(|name| named(name, &["a"], 15.0)).into();
    summary(&mut run).queues[2] = named("h3", &["a"], 17.0);
    assert!(
        plain(super::run(&run)).starts_with("PIE at link h3 held a delay of 17 ms (its target is 15 ms)")
    );
}

#[test]
fn l4s_packets_and_classic_packets_are_distinguished() {
    let mut run = cell("dualpi2", 8.0, &[]);
    let classes = [(Ecn::NotEct, 14.0, 48.0), (Ecn::Ect1, 0.5, 48.0), (Ecn::Ect0, 3.0, 0.1)];
    summary(&mut run).queues[0].classes =
        classes.map(|(class, delay, used)| ClassSummary { class, metrics: packets(delay, used) }).into();
    assert!(plain(super::run(&run)).starts_with(
        "In DualPI2 at link down, L4S packets waited 0.50 ms and classic packets 14 ms; CUBIC took"
    ));
}

#[test]
fn a_run_without_numbers_claims_nothing() {
    assert_eq!(run(&Run::default()), "Nothing was measured in this run.");
    let mut silent = cell("pie", 15.0, &[]);
    summary(&mut silent).queues.clear();
    summary(&mut silent).groups = vec![group("a", "cubic", 0.0)];
    assert_eq!(run(&silent), "No application received anything.");
}

#[test]
fn a_lab_names_its_extremes_and_counts_its_invalid_runs() {
    let mut lab = Lab { levels: vec!["queue".into()], ..Lab::default() };
    lab.runs =
        vec![cell("pie", 15.0, &["pie"]), cell("tail-drop", 48.0, &["tail-drop"]), cell("x", 99.0, &["x"])];
    summary(&mut lab.runs[2]).invalid = vec!["stalls".into()];
    assert_eq!(
        plain(super::lab(&lab)),
        "One of 3 runs is invalid, and marked so. Shares of link down: CUBIC 62 %, NewReno 34 %; queue delay at link down: \
         15 ms with PIE, 48 ms with tail drop, 99 % used (2 cells, in the simulator)."
    );
}

/// A cell whose group `a` sends frames, of which this share is on time.
fn call(queue: &str, on_time: Option<f64>) -> Run {
    let mut run = cell(queue, 15.0, &[queue]);
    let group = &mut summary(&mut run).groups[0];
    group.metrics = metrics(on_time.map(|share| (FRAMES_ON_TIME, Value::Number(share))));
    run
}

#[test]
fn a_headline_answers_what_the_groups_are_for() {
    let mut lab = Lab { levels: vec!["queue".into()], ..Lab::default() };
    lab.runs = vec![call("pie", Some(97.0)), call("tail-drop", Some(61.0))];
    let text = plain(super::lab(&lab));
    assert!(text.starts_with("Frames of a on time: 97 % with PIE, 61 % with tail drop; "), "{text}");
    // Of many cells the least and the greatest are told, and how many have no value.
    let more = ["red", "codel", "fq-codel"].map(|queue| call(queue, (queue == "red").then_some(99.0)));
    lab.runs.extend(more);
    let text = plain(super::lab(&lab));
    let start = "Frames of a on time: from 61 % (tail drop) to 99 % (RED), and 2 of 5 cells: no value; ";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn transfers_that_do_not_complete_are_in_the_headline() {
    let mut lab = Lab { levels: vec!["rate".into()], ..Lab::default() };
    lab.runs = [("1 Mbit/s", None), ("9 Mbit/s", Some(2.0))]
        .map(|(rate, took)| {
            let mut run = cell("pie", 15.0, &[rate]);
            let summary = summary(&mut run);
            summary.groups[0].completes = true;
            summary.groups[0].metrics =
                metrics(took.map(|seconds: f64| (COMPLETION_TIME, Value::Number(seconds))));
            run
        })
        .into();
    let text = plain(super::lab(&lab));
    let start = "Completion time of a: did not complete within 8 s with 1 Mbit/s, 2 s with 9 Mbit/s; ";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_comparison_names_the_level_that_mattered_most() {
    let mut lab = Lab { levels: vec!["queue".into(), "rate".into()], ..Lab::default() };
    lab.runs = vec![
        cell("pie", 14.0, &["pie", "10"]),
        cell("pie", 16.0, &["pie", "100"]),
        cell("tail-drop", 44.0, &["tail-drop", "10"]),
        cell("tail-drop", 40.0, &["tail-drop", "100"]),
    ];
    assert_eq!(
        plain(comparison(&lab)),
        "Queue delay depended most on queue: 15 ms with PIE; 42 ms with tail drop (means over all other levels)."
    );
}

#[test]
fn an_undecided_measure_is_never_counted_as_agreeing() {
    let row = |verdict, difference| Comparison {
        cell: None,
        metric: QUEUE_DELAY.name.into(),
        group: None,
        window: None,
        reference: Some(15.0),
        other: Some(15.0 + difference),
        difference: Estimate::of(&[difference / 15.0]),
        bound: Bound::Relative(0.15),
        verdict,
    };
    let two = [row(Verdict::Agree, 0.1), row(Verdict::Agree, 0.2)];
    assert_eq!(agreement(&two, ["live", "sim"]), "The two agree on all 2 measures.");
    let mixed = [row(Verdict::Agree, 0.1), row(Verdict::Differ, 4.0), row(Verdict::CannotTell, 2.0)];
    assert_eq!(
        plain(agreement(&mixed, ["live", "sim"])),
        "The two agree on 1 of 3 measures and differ on 1 (queue delay: live 15 ms, sim 19 ms); for 1 the repeats do \
         not suffice."
    );
}
