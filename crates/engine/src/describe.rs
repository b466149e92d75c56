//! A run described for metrics: names, groups, and the greatest rates and least delays of its paths.

use crate::ceiling::{ceiling, flows_of};
use crate::cell_id;
use crate::premises::premises;
use std::collections::BTreeMap;
use weir_base::{Rate, Span};
use weir_fabric::Paths;
use weir_plan::Run;
use weir_record::{FlowInfo, GroupInfo, LinkInfo, RouteInfo, RunInfo, Sharing, StationInfo, WindowInfo};
use weir_workload::Role;

/// A run on an engine, described for metrics.
pub fn run_info(engine: &str, run: &Run) -> RunInfo {
    let paths = Paths::new(&run.network);
    let link = |(index, link): (usize, &weir_plan::Link)| LinkInfo {
        name: link.name.clone(),
        rate: link.rate,
        delay: link.delay,
        queue: link.queue.name().into(),
        instrumented: link.instrumented,
        groups: (0..)
            .zip(&run.groups)
            .filter(|(_, group)| {
                let crosses = |pair: &weir_plan::Pair| paths.crosses(pair.from, pair.to, index);
                link.instrumented && group.pairs.iter().any(crosses)
            })
            .map(|(number, _)| number)
            .collect(),
    };
    let group = |group: &weir_plan::Group| GroupInfo {
        name: group.name.as_str().into(),
        controller: group.controller().map(|controller| controller.name().into()),
        transport: group.transport.as_ref().map_or("command", |transport| transport.name()).into(),
        handshake: group.transport.as_ref().is_some_and(weir_transport::Config::has_handshake),
        workload: group.workload.name().into(),
        rtt: group.rtt(),
        route: route(run, &paths, group),
        random_arrivals: group.workload.has_random_arrivals(),
        deadline: group.workload.deadline(),
        probes: matches!(group.workload.role(), Role::Echo(_)),
        sharing: sharing(group),
        // What a run is held against is computed as it ends (crate::yardsticks).
        deadline_capacity: None,
        optimum: Vec::new(),
    };
    let flow = |flow: &weir_plan::Flow| FlowInfo {
        name: flow.name.as_str().into(),
        group: flow.group as u32,
        start: flow.start,
        stop: flow.stop,
    };
    let window = |window: &weir_plan::Window| WindowInfo {
        name: window.name.clone(),
        from: window.from,
        to: window.to,
        tolerance: window.tolerance,
        phase: false,
    };
    let station = |station: &weir_plan::Station| StationInfo {
        name: station.name.clone(),
        kind: station.station.name().into(),
        at: run.network.nodes[station.at].name.clone(),
        links: station.links.iter().map(|&link| run.network.links[link].name.clone()).collect(),
    };
    RunInfo {
        id: cell_id(engine, &run.id),
        lab: run.lab.clone(),
        engine: engine.into(),
        seed: run.seed,
        repeat: run.repeat,
        params: run.params.clone(),
        duration: run.duration,
        warmup: run.warmup,
        windows: run.windows.iter().map(window).chain(phases(run)).collect(),
        sample: run.sample,
        bottleneck: bottleneck(run, &paths),
        links: run.network.links.iter().enumerate().map(link).collect(),
        stations: run.stations.iter().map(station).collect(),
        groups: run.groups.iter().map(group).collect(),
        flows: run.flows.iter().map(flow).collect(),
        premises: premises(run, &paths),
    }
}

/// How a group's flows share a path. `None` if they do not send as fast as the path allows.
fn sharing(group: &weir_plan::Group) -> Option<Sharing> {
    let takes_all =
        group.workload.role() == Role::OneWay && group.workload.wanted(Span::from_secs(1)).is_none();
    let is_coordinated = || {
        let transport = group.transport.as_ref();
        group.workload.is_shared() || transport.is_some_and(|transport| transport.application().is_some())
    };
    takes_all.then(|| if is_coordinated() { Sharing::Coordinated } else { Sharing::Single })
}

/// Largest number of phases of a run.
const MOST_PHASES: usize = 8;

/// The periods between the changes of a run's links, after the warm-up: a mean over changing conditions describes none of
/// them. Empty if the lab names windows itself, if no link changes, or if there are more than [`MOST_PHASES`] phases.
fn phases(run: &Run) -> Vec<WindowInfo> {
    let links = || run.instrumented_links().map(|(_, link)| link);
    let changes = links().flat_map(|link| link.schedule.iter().map(|change| change.at));
    let outages = links().flat_map(|link| link.outages.iter().flat_map(|out| [out.at, out.at + out.length]));
    let within = |at: &Span| run.warmup < *at && *at < run.duration;
    let mut bounds: Vec<Span> = changes.chain(outages).filter(within).collect();
    bounds.extend([run.warmup, run.duration]);
    bounds.sort();
    bounds.dedup();
    if !run.windows.is_empty() || !(3..=MOST_PHASES + 1).contains(&bounds.len()) {
        return vec![];
    }
    let phase = |(number, bounds): (usize, &[Span])| WindowInfo {
        name: format!("phase-{number}"),
        from: bounds[0],
        to: bounds[1],
        tolerance: weir_record::SETTLING_TOLERANCE,
        phase: true,
    };
    (1..).zip(bounds.windows(2)).map(phase).collect()
}

/// The path of a group's packets, with the greatest rate and the least delays that its links ever have.
fn route(run: &Run, paths: &Paths, group: &weir_plan::Group) -> RouteInfo {
    let links = |from: usize, to: usize| {
        paths.links(from, to).into_iter().map(|link| &run.network.links[link]).collect::<Vec<_>>()
    };
    let delay = |links: &[&weir_plan::Link]| {
        let least = |link: &weir_plan::Link| {
            let changed = link.schedule.iter().filter_map(|change| change.delay);
            changed.fold(link.delay, Span::min)
        };
        links.iter().fold(Span::ZERO, |sum, link| sum + least(link))
    };
    let twice = |link: &weir_plan::Link| {
        link.duplicate > 0.0 || link.schedule.iter().any(|change| change.duplicate.is_some())
    };
    let of_pair = |pair: &weir_plan::Pair| {
        let (there, back) = (links(pair.from, pair.to), links(pair.to, pair.from));
        RouteInfo {
            rate: match group.overlay {
                Some(_) => None,
                None => there.iter().filter_map(|link| fastest(link)).min(),
            },
            there: delay(&there),
            back: delay(&back),
            duplicates: there.iter().any(|link| twice(link)),
            // Flows of the overlay take many paths at once.
            ceiling: if group.pairs.len() == 1 && group.overlay.is_none() {
                ceiling(run, group, &there)
            } else {
                None
            },
            together: None,
        }
    };
    // The best of several paths: the greater rate, unbounded if one path has none, and the least delays.
    let best = |one: RouteInfo, other: RouteInfo| RouteInfo {
        rate: one.rate.zip(other.rate).map(|(one, other)| one.max(other)),
        there: one.there.min(other.there),
        back: one.back.min(other.back),
        duplicates: one.duplicates || other.duplicates,
        ceiling: None,
        together: None,
    };
    let ways = group.pairs.iter().map(of_pair).reduce(best);
    let together = if group.overlay.is_none() { together(run, paths, group) } else { None };
    RouteInfo { together, ..ways.unwrap_or_default() }
}

/// Greatest total rate of a group's flows: the rate of the slowest link that all its pairs cross, or the sum of the rates of
/// each pair's slowest link, whichever is less. `None` if neither is bounded.
fn together(run: &Run, paths: &Paths, group: &weir_plan::Group) -> Option<Rate> {
    let rate = |link: &usize| fastest(&run.network.links[*link]);
    let mut common: Option<Vec<usize>> = None;
    let mut slowest: Option<BTreeMap<usize, Rate>> = Some(BTreeMap::new());
    for pair in &group.pairs {
        let links = paths.links(pair.from, pair.to);
        let rated = links.iter().filter_map(|link| Some((rate(link)?, *link)));
        slowest = slowest.zip(rated.min()).map(|(mut slowest, (rate, link))| {
            slowest.insert(link, rate);
            slowest
        });
        match &mut common {
            None => common = Some(links),
            Some(common) => common.retain(|link| links.contains(link)),
        }
    }
    let common = common.iter().flatten().filter_map(rate).min();
    let apart =
        slowest.map(|slowest| slowest.values().map(|rate| rate.bits_per_sec()).fold(0, u64::saturating_add));
    common.into_iter().chain(apart.map(Rate::from_bits_per_sec)).min()
}

/// The greatest rate that a link ever has. `None` if the link has no rate, or if a recording gives it: no rate bounds the
/// bursts of a recording.
fn fastest(link: &weir_plan::Link) -> Option<Rate> {
    let changed = link.schedule.iter().filter_map(|change| change.rate);
    let traced = link.traces().next().is_some();
    link.rate.filter(|_| !traced).map(|rate| changed.fold(rate, Rate::max))
}

/// The instrumented link that the run's own queue metrics describe: the slowest that a group's data crosses, the first of
/// several equals. A link is as slow as its shaper if that is slower. If only some of a group's pairs cross a link, parallel links carry the others: the link then counts with
/// its rate times the number of all pairs over the number of pairs that cross it.
fn bottleneck(run: &Run, paths: &Paths) -> Option<u32> {
    let mut slowness: BTreeMap<usize, (bool, u128)> = BTreeMap::new();
    for group in &run.groups {
        let flows = flows_of(run, group);
        let mut crossing: BTreeMap<usize, u128> = BTreeMap::new();
        for link in group.pairs.iter().flat_map(|pair| paths.links(pair.from, pair.to)) {
            *crossing.entry(link).or_default() += 1;
        }
        for (link, crossing) in crossing {
            let beside = |rate: Rate| u128::from(rate.bits_per_sec()) * group.pairs.len() as u128 / crossing;
            // A link without a rate builds no queue: any other is slower.
            let weir_plan::Link { rate, queue, .. } = &run.network.links[link];
            let rate = rate.iter().copied().chain(queue.shaping(&flows).map(|shaping| shaping.rate)).min();
            let slow = (rate.is_none(), rate.map_or(0, beside));
            slowness.entry(link).and_modify(|known| *known = slow.min(*known)).or_insert(slow);
        }
    }
    let candidates = run.instrumented_links().filter_map(|(link, _)| Some((*slowness.get(&link)?, link)));
    candidates.min().map(|(_, link)| link as u32)
}
