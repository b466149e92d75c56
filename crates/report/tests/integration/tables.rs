//! The terminal's tables, as users see them.

use serde_json::json;
use weir_record::compare::{Rule, compare};
use weir_record::{RunSummary, Summary, Trip};

/// A run with made-up metrics: `delay` ms of queue, `share` percent of the link for the first of two groups.
fn run(engine: &str, params: &[(&str, &str)], repeat: u32, delay: f64, share: f64) -> RunSummary {
    let spread = |mean: f64| json!({ "count": 9000, "mean": mean, "p1": mean / 8.0, "p25": mean / 2.0, "p50": mean, "p75": 1.3 * mean, "p99": 2.0 * mean });
    let group = |name: &str, share: f64| {
        json!({ "name": name, "controller": name, "transport": "tcp", "flows": 1, "goodput_mbps": share / 10.0,
            "goodput_share_percent": share / 0.95, "rtt_ms": spread(20.0 + delay) })
    };
    let levels: serde_json::Map<_, _> =
        params.iter().map(|(level, value)| (level.to_string(), json!(value))).collect();
    let values: Vec<&str> = params.iter().map(|(_, value)| *value).collect();
    serde_json::from_value(json!({
        "id": format!("{engine}-{}-{repeat}", values.join("-")), "engine": engine, "seed": 1, "repeat": repeat, "params": levels,
        "duration_s": 12.0, "warmup_s": 3.0,
        "metrics": { "utilisation_percent": 98.25, "queue_delay_ms": spread(delay), "drop_probability_percent": 0.3125,
            "mark_probability_percent": 0.0, "retransmission_percent": 0.354 },
        "groups": [group("cubic", share), group("reno", 95.0 - share)],
        "pairs": [], "flows": [], "queues": [], "warnings": [], "invalid": []
    }))
    .unwrap()
}

fn summary(runs: Vec<RunSummary>) -> Summary {
    Summary { lab: "quickstart".into(), weir_version: "0.1.0".into(), planned_runs: runs.len(), runs }
}

fn quickstart() -> Summary {
    let of = |engine, delay| {
        [
            run(engine, &[("queue", "tail drop, 4 BDP")], 1, 4.0 * delay, 62.0),
            run(engine, &[("queue", "PIE")], 1, delay, 55.0),
        ]
    };
    let ([a, b], [c, d]) = (of("sim", 14.8), of("live", 15.3));
    summary(vec![a, c, b, d])
}

fn agreement(repeats: u32) -> Summary {
    let mut runs = Vec::new();
    for rate in ["10 Mbit/s", "100 Mbit/s"] {
        for queue in ["1 bdp", "pie"] {
            for cc in ["newreno v newreno", "newreno v cubic"] {
                for repeat in 1..=repeats {
                    for (engine, delay) in [("sim", 14.0), ("live", 14.6)] {
                        let delay = if queue == "pie" { delay } else { 1.3 * delay * delay / 14.0 };
                        let wobble = 0.1 * f64::from(repeat) * if engine == "sim" { 1.0 } else { 1.1 };
                        let params = [("rate", rate), ("queue", queue), ("cc", cc)];
                        runs.push(run(engine, &params, repeat, delay + wobble, 50.0 + wobble));
                    }
                }
            }
        }
    }
    summary(runs)
}

fn longest(table: &str) -> usize {
    table.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn a_table_sets_the_engines_of_a_run_below_each_other() {
    insta::assert_snapshot!(weir_report::table(&quickstart(), 100));
}

#[test]
fn a_column_names_its_link_and_class() {
    let metrics = |delay: f64, used: f64| {
        json!({ "utilisation_percent": used, "drop_probability_percent": 1.0, "mark_probability_percent": 0.0,
            "queue_delay_ms": { "count": 9, "mean": delay, "p1": 0.0, "p25": delay, "p50": delay, "p75": delay, "p99": delay } })
    };
    let with = |base: serde_json::Value, more: serde_json::Value| {
        let mut base = base.as_object().unwrap().clone();
        base.extend(more.as_object().unwrap().clone());
        serde_json::Value::Object(base)
    };
    let classes = [
        with(metrics(14.0, 50.0), json!({ "class": "not-ect" })),
        with(metrics(0.5, 48.0), json!({ "class": "ect1" })),
    ];
    let down =
        json!({ "link": "down", "queue": "dualpi2", "carries": ["cubic", "reno"], "classes": classes });
    let up = json!({ "link": "up", "queue": "pie", "carries": ["up"], "classes": [] });
    let silent = json!({ "link": "back", "queue": "pie", "carries": [], "classes": [] });
    let queues =
        [with(metrics(7.0, 98.0), down), with(metrics(30.0, 60.0), up), with(metrics(99.0, 2.0), silent)];
    let mut summary = quickstart();
    for run in &mut summary.runs {
        run.queues = serde_json::from_value(json!(queues)).unwrap();
    }
    insta::assert_snapshot!(weir_report::table(&summary, 140));
}

#[test]
fn a_tree_is_headed_by_its_outer_levels() {
    insta::assert_snapshot!(weir_report::table(&agreement(1), 80));
}

#[test]
fn many_repeats_are_drawn_together() {
    insta::assert_snapshot!(weir_report::table(&agreement(5), 80));
}

#[test]
fn an_invalid_run_is_marked_and_its_reason_given() {
    let mut summary = quickstart();
    summary.runs[1].invalid = vec!["lateness p99 was 412 µs, above its bound of 200 µs".into()];
    insta::assert_snapshot!(weir_report::table(&summary, 80));
}

#[test]
fn a_run_that_trips_an_oracle_is_named_below_the_table() {
    let mut summary = quickstart();
    let trip = || Trip::Estimate { group: "cubic".into(), times: 1.3, for_s: 2.0 };
    summary.runs[1].oracles = vec![trip()];
    let table = weir_report::table(&summary, 400).replace('\u{a0}', " ");
    let text =
        "warning: live-tail drop, 4 BDP-1: The bandwidth estimate of group cubic is 1.3 times the rate";
    assert!(table.contains(text), "{table}");
    summary.runs[2].oracles = vec![trip()];
    let table = weir_report::table(&summary, 400);
    assert!(table.contains("warning: 2 runs have such a warning; the first, live-tail drop"), "{table}");
}

#[test]
fn a_narrow_terminal_omits_the_least_important_columns() {
    insta::assert_snapshot!(weir_report::table(&quickstart(), 46));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for summary in [quickstart(), agreement(1), agreement(5)] {
        for width in 36..=140 {
            let table = weir_report::table(&summary, width);
            assert!(longest(&table) <= width, "{width}:\n{table}");
        }
    }
}

/// A run of a call and of seven bulk groups.
fn many_groups() -> Summary {
    let mut summary = quickstart();
    for run in &mut summary.runs {
        let bulk = run.groups[0].clone();
        let named = |name: &str| weir_record::GroupSummary { name: name.into(), ..bulk.clone() };
        run.groups = (1..=7).map(|number| named(&format!("bulk-{number}"))).collect();
        let on_time = [("frames_on_time_percent", weir_record::Value::Number(97.0))];
        let call = weir_record::GroupSummary { metrics: on_time.into_iter().collect(), ..named("call") };
        run.groups.insert(0, call);
    }
    summary
}

#[test]
fn every_group_keeps_the_number_by_which_it_is_judged_at_any_width() {
    for width in [40, 60, 80, 200] {
        let table = weir_report::table(&many_groups(), width);
        let has = |name: &str| table.split_whitespace().any(|word| word == name);
        assert!(has("call") && table.contains("on time"), "{width}:\n{table}");
        assert!((1..=7).all(|number| has(&format!("bulk-{number}"))), "{width}:\n{table}");
        assert!(longest(&table) <= width, "{width}:\n{table}");
        // What has no room is named.
        let left_out = table.replace('\n', " ").contains("left out for want of room: used, delay, drop");
        assert_eq!(left_out, width < 200, "{width}:\n{table}");
    }
}

#[test]
fn columns_are_chosen_by_heading_or_metric() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let chosen = |wanted: &[&str]| {
        let columns = weir_report::Columns::read(&names(wanted)).unwrap();
        weir_report::table_of(&many_groups(), columns.as_ref(), 200)
    };
    let table = chosen(&["on-time", "queue_delay_ms:p99"]);
    assert!(table.contains("on time") && table.contains("queue delay p99"), "{table}");
    assert!(!table.contains("goodput") && !table.contains("left out"), "{table}");
    let all = weir_report::Columns::read(&names(&["all"])).unwrap();
    let narrow = weir_report::table_of(&many_groups(), all.as_ref(), 60);
    assert!(narrow.contains("retrans") && longest(&narrow) <= 60, "{narrow}");
    let why = weir_report::Columns::read(&names(&["speed"])).unwrap_err();
    assert!(why.contains("on-time") && why.contains("weir list metrics"), "{why}");
}

#[test]
fn an_empty_lab_says_so() {
    assert_eq!(weir_report::table(&Summary::default(), 80), "no run is finished\n");
}

#[test]
fn a_comparison_gives_both_means_the_interval_the_bound_and_the_verdict() {
    let all = agreement(5);
    let of = |engine: &str| -> Vec<RunSummary> {
        all.runs
            .iter()
            .filter(|run| run.engine == engine && run.params[0].value == "10 Mbit/s")
            .cloned()
            .collect()
    };
    let mut live = of("live");
    live[0].invalid = vec!["stalls".into()];
    let compared = compare(&live, &of("sim"), &Rule::defaults());
    insta::assert_snapshot!(weir_report::compare_table(&compared, ["live", "sim"], 100));
    let narrow = weir_report::compare_table(&compared, ["live", "sim"], 80);
    assert!(longest(&narrow) <= 80, "{narrow}");
}
