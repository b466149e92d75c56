//! Fills the data of the pages from a result folder: a summary's metrics by their names, and values that only the plan knows
//! (an AQM's target, the groups that cross a link). Nothing is computed twice.

use crate::environment::{audit, facts};
use crate::model::{FlowNumbers, GroupNumbers, Lab, LinkNumbers, PacketNumbers, RunNumbers};
use crate::network;
use weir_base::Span;
use weir_engine::FinishedRun;
use weir_plan::Run;
use weir_record::compare::{Compared, Rule, compare};
use weir_record::{
    Distribution, FlowSummary, GroupSummary, Metrics, PairSummary, QueueSummary, RunSummary, Summary, Value,
};

/// A lab before any of its runs: levels in the order of the tree, groups in that of the plan.
pub(crate) fn outline(lab: &weir_plan::Lab, runs: &[&Run], engines: usize) -> Lab {
    let mut groups: Vec<String> = Vec::new();
    for group in runs.iter().flat_map(|run| &run.groups) {
        if !groups.contains(&group.name) {
            groups.push(group.name.clone());
        }
    }
    Lab {
        name: lab.name().into(),
        title: lab.title().map(String::from),
        network: network::network(runs),
        source: lab.source().into(),
        version: env!("CARGO_PKG_VERSION").into(),
        levels: lab.tree().levels.into_iter().map(|(level, _)| level).collect(),
        groups,
        planned: runs.len() * engines,
        ..Lab::default()
    }
}

/// Comparison of the simulator with the live engine, the reference. `None` unless both ran.
pub(crate) fn agreement(summary: &Summary) -> Option<Compared> {
    let of = |engine: &'static str| summary.runs.iter().filter(move |run| run.engine == engine);
    let both = of("live").next().is_some() && of("sim").next().is_some();
    let runs = |engine| -> Vec<RunSummary> { of(engine).cloned().collect() };
    both.then(|| compare(&runs("live"), &runs("sim"), &Rule::defaults()))
}

/// The numbers of one run; without `run`, only those in its summary.
pub(crate) fn numbers(summary: &RunSummary, run: Option<&FinishedRun>) -> RunNumbers {
    let bottleneck = run.and_then(|run| {
        let link = &run.info.links.get(run.info.bottleneck? as usize)?.name;
        summary.queues.iter().position(|queue| queue.link == *link)
    });
    let links: Vec<LinkNumbers> = summary.queues.iter().map(|queue| link(queue, run)).collect();
    let window_s = summary.duration_s - summary.warmup_s;
    // Transfers and flows with random arrivals: their completion time is what matters.
    let to_complete = |group: usize| {
        let group = run.and_then(|run| run.info.groups.get(group));
        group.is_some_and(|group| group.random_arrivals || group.workload == "transfer")
    };
    let groups = summary.groups.iter().enumerate();
    let groups = groups.map(|(index, of)| group(of, &links, window_s, to_complete(index))).collect();
    let pair =
        |metric: &str| summary.pairs.first().and_then(|pair: &PairSummary| number(&pair.metrics, metric));
    let outcome = run.map(|run| &run.file.outcome);
    let (environment, settings) = outcome.map(|outcome| facts(&outcome.environment)).unwrap_or_default();
    let mut numbers = RunNumbers {
        id: plain_id(&summary.id, &summary.engine).into(),
        number: run.map_or(0, |run| run.number),
        engine: summary.engine.clone(),
        params: summary.params.iter().map(|param| param.value.clone()).collect(),
        repeat: summary.repeat,
        seed: summary.seed,
        duration_s: summary.duration_s,
        warmup_s: summary.warmup_s,
        links,
        bottleneck,
        stations: summary.stations.clone(),
        groups,
        flows: summary.flows.iter().map(flow).collect(),
        jain: number(&summary.metrics, "jain_index"),
        rate_ratio: pair("rate_ratio"),
        window_ratio: pair("window_ratio"),
        windows: crate::windows::numbers(summary),
        invalid: summary.invalid.clone(),
        oracles: summary.oracles.clone(),
        warnings: summary.warnings.clone(),
        audit: outcome.map(|outcome| audit(&outcome.audit)),
        environment,
        settings,
    };
    if let Some(run) = run {
        numbers.warnings.extend(crate::warnings::warnings(&run.file.run, &numbers));
    }
    numbers
}

/// A run's id without the engine's name, which folders and summaries put before it; both engines share it.
pub(crate) fn plain_id<'a>(id: &'a str, engine: &str) -> &'a str {
    id.strip_prefix(engine).and_then(|rest| rest.strip_prefix('-')).unwrap_or(id)
}

fn link(queue: &QueueSummary, run: Option<&FinishedRun>) -> LinkNumbers {
    let about = run.and_then(|run| run.info.links.iter().find(|link| link.name == queue.link));
    let planned = run.and_then(|run| run.file.run.network.links.iter().find(|link| link.name == queue.link));
    let counted = |metric: &str| count(&queue.metrics, metric).unwrap_or(0);
    LinkNumbers {
        name: queue.link.clone(),
        queue: queue.queue.clone(),
        target_ms: planned.and_then(|link| link.queue.target()).map(Span::as_millis_f64),
        carries: queue.carries.clone(),
        rate_mbps: about.and_then(|link| link.rate).map(|rate| rate.mbit_per_sec()),
        capacity_mbps: number(&queue.metrics, "link_capacity_mbps"),
        packets: packets(&queue.metrics),
        drop_reasons: ["dropped_full_packets", "dropped_signal_packets", "dropped_overload_packets"]
            .map(counted),
        probabilities: ["aqm_drop_probability_percent", "aqm_mark_probability_percent"]
            .map(|metric| distribution(&queue.metrics, metric)),
        lost: counted("link_lost_packets"),
        classes: queue.classes.iter().map(|class| (class.class, packets(&class.metrics))).collect(),
    }
}

fn packets(metrics: &Metrics) -> PacketNumbers {
    let counted = |metric: &str| count(metrics, metric).unwrap_or(0);
    PacketNumbers {
        utilisation_percent: number(metrics, "utilisation_percent"),
        delay_ms: distribution(metrics, weir_record::metrics::queue::QUEUE_DELAY.name),
        arrived: counted("arrived_packets"),
        dropped: counted("dropped_packets"),
        dropped_percent: number(metrics, "drop_probability_percent"),
        marked: counted("marked_packets"),
        marked_percent: number(metrics, "mark_probability_percent"),
    }
}

fn group(group: &GroupSummary, links: &[LinkNumbers], window_s: f64, to_complete: bool) -> GroupNumbers {
    let goodput_mbps = number(&group.metrics, "goodput_mbps");
    let crossed = links.iter().filter(|link| link.carries.contains(&group.name));
    let capacities = crossed.filter_map(|link| Some((link, link.capacity_mbps?)));
    let narrowest = capacities.min_by(|a, b| a.1.total_cmp(&b.1));
    let read_mbps = number(&group.metrics, "read_bytes").map(|bytes| 8e-6 * bytes / window_s);
    // Echo requests probe the link and have no share of it.
    let probes = number(&group.metrics, "echoes_lost_percent").is_some();
    let shares = read_mbps.zip(narrowest).filter(|_| !probes);
    GroupNumbers {
        name: group.name.clone(),
        controller: group.controller.clone(),
        transport: group.transport.clone(),
        flows: group.flows,
        goodput_mbps,
        link: narrowest.map(|(link, _)| link.name.clone()),
        share_percent: shares.map(|(read, (_, capacity))| 100.0 * read / capacity),
        flowshare: number(&group.metrics, "normalised_flowshare"),
        variation: number(&group.metrics, "rate_variation"),
        rtt_ms: distribution(&group.metrics, "rtt_ms"),
        base_rtt_ms: number(&group.metrics, "rtt_base_ms"),
        window_segments: number(&group.metrics, "cwnd_segments"),
        retransmissions: count(&group.metrics, "retransmissions"),
        retransmitted_percent: number(&group.metrics, "retransmission_percent"),
        completion_s: distribution(&group.metrics, "completion_time_s").map(|times| times.mean),
        waits: crate::waits::of(group, to_complete),
    }
}

fn flow(flow: &FlowSummary) -> FlowNumbers {
    FlowNumbers {
        name: flow.name.clone(),
        group: flow.group.clone(),
        goodput_mbps: number(&flow.metrics, "goodput_mbps"),
        rtt_mean_ms: number(&flow.metrics, "rtt_mean_ms"),
        retransmissions: count(&flow.metrics, "retransmissions"),
        completion_s: number(&flow.metrics, "completion_time_s"),
    }
}

pub(crate) fn number(metrics: &Metrics, name: &str) -> Option<f64> {
    metrics.get(name).scalar()
}

fn count(metrics: &Metrics, name: &str) -> Option<u64> {
    match metrics.get(name) {
        Value::Count(count) => Some(count),
        _ => None,
    }
}

fn distribution(metrics: &Metrics, name: &str) -> Option<Distribution> {
    metrics.get(name).distribution().copied()
}
