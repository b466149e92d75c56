//! Single flows of two results (the two engines' runs of a cell, say) held beside each other: which flows these are, where each
//! pair parts, and this in words for the page and the terminal. [`weir_record::trajectory`] computes the values.

mod page;
mod words;

use crate::ReportError;
use serde::Serialize;
use std::collections::BTreeMap;
use weir_engine::{FinishedRun, Results, captured, segments_of};
use weir_plan::address::port_of;
use weir_record::trajectory::packets::{Packets, compare};
use weir_record::trajectory::{Held, SampleParting, Tolerance, Trajectory};
use weir_record::{Param, Records};

/// Largest number of pairs: more than a reader looks at one by one.
const MOST_PAIRS: usize = 40;

/// Runs of a result, by their indices in [`Results::runs`].
pub struct Chosen<'a> {
    /// The result.
    pub results: &'a Results,
    /// The indices.
    pub runs: Vec<usize>,
}

impl<'a> Chosen<'a> {
    /// The runs of a result that fulfil a condition.
    pub fn of(results: &'a Results, is_chosen: impl Fn(&FinishedRun) -> bool) -> Chosen<'a> {
        let runs = (0..results.runs.len()).filter(|&run| is_chosen(&results.runs[run])).collect();
        Chosen { results, runs }
    }

    fn run(&self, place: usize) -> &'a FinishedRun {
        &self.results.runs[place]
    }
}

/// Pairs of single flows.
#[derive(Debug, Serialize)]
pub struct Trajectories {
    /// The names of the reference and of the other.
    pub names: [String; 2],
    /// The pairs, in the order of the reference's runs.
    pub pairs: Vec<FlowPair>,
    /// Number of further pairs that are not shown.
    pub further: usize,
}

/// One flow in both.
#[derive(Debug, Serialize)]
pub struct FlowPair {
    /// The cell.
    pub cell: Vec<Param>,
    /// The group, which has this one flow.
    pub group: String,
    /// The repeat.
    pub repeat: u32,
    /// Whether one of the two runs is invalid: no repeat of the cell has two valid runs.
    pub invalid: bool,
    /// Where each quantity parts.
    pub parts: Vec<Parted>,
    /// The comparison of each link of which both runs have a capture with packets of the flow.
    pub links: Vec<LinkPackets>,
    /// The links of which a capture would show packets of the flow, if there is none.
    #[serde(skip)]
    pub to_capture: Vec<String>,
    /// The samples of both.
    #[serde(skip)]
    pub held: Held,
}

/// A quantity that parts.
#[derive(Debug, Serialize)]
pub struct Parted {
    /// Its name, with the unit.
    pub quantity: String,
    /// The bound that its difference passes.
    pub tolerance: Tolerance,
    /// Where.
    #[serde(flatten)]
    pub at: SampleParting,
}

/// What the captures of a link show.
#[derive(Debug, Serialize)]
pub struct LinkPackets {
    /// The link.
    pub link: String,
    /// The comparison, or why there is none.
    #[serde(flatten)]
    pub found: Found,
}

/// A comparison of captures, or why there is none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// The comparison.
    Packets(Packets),
    /// A capture that cannot be read.
    Unread(String),
}

/// A flow to be held: its runs' places in the results, and its number in each.
struct Wanted {
    runs: [usize; 2],
    flows: [u32; 2],
    group: String,
    invalid: bool,
}

impl Trajectories {
    /// Holds the single flows of each cell beside each other: those of groups with one flow in both. Of a cell's repeats the first
    /// one counts that is valid on both sides, or else the first one that both have.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn new(sides: [&Chosen<'_>; 2], names: [&str; 2]) -> Result<Trajectories, ReportError> {
        let mut wanted = wanted(sides);
        let further = wanted.len().saturating_sub(MOST_PAIRS);
        wanted.truncate(MOST_PAIRS);
        let [reference, other] = [0, 1].map(|side| read(sides[side], side, &wanted));
        let (reference, other) = (reference?, other?);
        let mut pairs = vec![];
        for wanted in wanted {
            let of = |side: usize, found: &BTreeMap<(usize, u32), Trajectory>| {
                found.get(&(wanted.runs[side], wanted.flows[side])).cloned()
            };
            if let Some((a, b)) = of(0, &reference).zip(of(1, &other)) {
                pairs.extend(pair(sides, &wanted, [&a, &b]));
            }
        }
        Ok(Trajectories { names: names.map(String::from), pairs, further })
    }
}

/// A cell by its levels and labels.
type Cell = Vec<(String, String)>;

fn cell_of(run: &FinishedRun) -> Cell {
    run.info.params.iter().map(|param| (param.level.clone(), param.value.clone())).collect()
}

/// The flows to be held, in the order of the reference's runs.
fn wanted(sides: [&Chosen<'_>; 2]) -> Vec<Wanted> {
    let mut partners: BTreeMap<(Cell, u32), Vec<usize>> = BTreeMap::new();
    for &place in &sides[1].runs {
        let run = sides[1].run(place);
        partners.entry((cell_of(run), run.info.repeat)).or_default().push(place);
    }
    // For each cell two runs, and whether one of them is invalid.
    let mut chosen: Vec<([usize; 2], bool)> = vec![];
    let mut known: BTreeMap<Cell, usize> = BTreeMap::new();
    for &place in &sides[0].runs {
        let run = sides[0].run(place);
        let cell = cell_of(run);
        // If both results have both engines, runs of one engine are compared.
        let same = |partner: &&usize| sides[1].run(**partner).file.engine == run.file.engine;
        let found = partners.get(&(cell.clone(), run.info.repeat));
        let Some(&partner) = found.and_then(|all| all.iter().find(same).or(all.first())) else { continue };
        let is_invalid = |run: &FinishedRun| !run.file.outcome.invalid.is_empty();
        let invalid = is_invalid(run) || is_invalid(sides[1].run(partner));
        match known.get(&cell).map(|&cell| &mut chosen[cell]) {
            None => {
                known.insert(cell, chosen.len());
                chosen.push(([place, partner], invalid));
            }
            Some(before) if before.1 && !invalid => *before = ([place, partner], false),
            Some(_) => {}
        }
    }
    chosen.into_iter().flat_map(|(runs, invalid)| singles(sides, runs, invalid)).collect()
}

/// The groups with one flow in both runs.
fn singles(sides: [&Chosen<'_>; 2], runs: [usize; 2], invalid: bool) -> Vec<Wanted> {
    let [reference, other] = [0, 1].map(|side| &sides[side].run(runs[side]).info);
    let only = |info: &weir_record::RunInfo, name: &str| -> Option<u32> {
        let group = info.groups.iter().position(|group| *group.name == *name && !group.random_arrivals)?;
        let mut flows = (0..).zip(&info.flows).filter(|(_, flow)| flow.group as usize == group);
        let (number, _) = flows.next()?;
        flows.next().is_none().then_some(number)
    };
    let groups = reference.groups.iter().map(|group| group.name.to_string());
    groups
        .filter_map(|group| {
            let flows = [only(reference, &group)?, only(other, &group)?];
            Some(Wanted { runs, flows, group, invalid })
        })
        .collect()
}

/// Reads the trajectories of one side, by run and flow.
fn read(
    side: &Chosen<'_>,
    which: usize,
    wanted: &[Wanted],
) -> Result<BTreeMap<(usize, u32), Trajectory>, ReportError> {
    let flows = |run: usize| {
        wanted.iter().filter(move |flow| flow.runs[which] == run).map(move |flow| flow.flows[which])
    };
    let read = |run: usize, finished: &FinishedRun, records: &Records| {
        let of = |flow| Some(((run, flow), Trajectory::of(&finished.info, records, flow)?));
        Ok::<_, ReportError>(flows(run).filter_map(of).collect::<Vec<_>>())
    };
    let found = side.results.each(|run| flows(run).next().is_some(), read)?;
    Ok(found.into_iter().flatten().collect())
}

/// Holds two trajectories beside each other. `None` if they have no quantity in common.
fn pair(sides: [&Chosen<'_>; 2], wanted: &Wanted, trajectories: [&Trajectory; 2]) -> Option<FlowPair> {
    let held = Held::new(trajectories[0], trajectories[1]);
    if held.lines.is_empty() {
        return None;
    }
    let parted = held.lines.iter().filter_map(|line| {
        let (quantity, tolerance) = (line.name.to_string(), line.tolerance);
        Some(Parted { quantity, tolerance, at: line.parts? })
    });
    let parts = parted.collect();
    let runs = [0, 1].map(|side| sides[side].run(wanted.runs[side]));
    let is_tcp =
        runs[0].info.groups.iter().any(|group| *group.name == *wanted.group && &*group.transport == "tcp");
    let links = if is_tcp { packets(runs, wanted, trajectories) } else { vec![] };
    let instrumented = runs[0].file.run.instrumented_links();
    let to_capture = match is_tcp && links.is_empty() {
        true => instrumented.take(2).map(|(_, link)| link.name.clone()).collect(),
        false => vec![],
    };
    Some(FlowPair {
        cell: runs[0].info.params.clone(),
        group: wanted.group.clone(),
        repeat: runs[0].info.repeat,
        invalid: wanted.invalid,
        parts,
        links,
        to_capture,
        held,
    })
}

/// Compares the captures of each link of which both runs have one; the link with the earliest difference comes first.
fn packets(runs: [&FinishedRun; 2], wanted: &Wanted, trajectories: [&Trajectory; 2]) -> Vec<LinkPackets> {
    let [reference, other] = runs.map(captured);
    let mut links = vec![];
    for (link, file) in reference {
        let Some((_, others)) = other.iter().find(|(known, _)| *known == link) else { continue };
        let read = |file: &std::path::Path, side: usize| {
            segments_of(file, port_of(wanted.flows[side] as usize))
                .map_err(|error| format!("{}: {error}", file.display()))
        };
        let starts = trajectories.map(Trajectory::start);
        let found = read(&file, 0).and_then(|a| Ok(compare([&a, &read(others, 1)?], starts)));
        let found = match found {
            Ok(compared) => compared.map(Found::Packets),
            Err(reason) => Some(Found::Unread(reason)),
        };
        links.extend(found.map(|found| LinkPackets { link, found }));
    }
    links.sort_by(|a, b| a.earliest().total_cmp(&b.earliest()));
    links
}

impl LinkPackets {
    /// The time of the first difference in the engine that has it first; the end of time without one.
    fn earliest(&self) -> f64 {
        match &self.found {
            Found::Packets(Packets::Differ(parting)) => {
                parting.sides.iter().map(|side| side.after_s).fold(f64::INFINITY, f64::min)
            }
            _ => f64::INFINITY,
        }
    }
}
