//! A lab: its file read with everything it extends, its settings, and its tree of runs, all checked before anything runs.

use crate::cell::Cell;
use crate::commands::{self, Commanded};
use crate::diagnostic::{Diagnostics, Fault, Origin, Sources};
use crate::entries::{self, Entry};
use crate::names::Names;
use crate::only::Only;
use crate::plot::{self, Plot};
use crate::reading::Reading;
use crate::run::Run;
use crate::traces::Traces;
use crate::tree::SECTIONS;
use crate::tree::Table;
use crate::vary::{self, Choice, Level};
use crate::{schema, size};
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use weir_base::Span;
use weir_record::Param;

/// A lab that was read and found sound.
#[derive(Debug, Clone)]
pub struct Lab {
    name: String,
    title: Option<String>,
    source: String,
    /// All levels, and those of the part that is run.
    whole: Vec<Level>,
    levels: Vec<Level>,
    only: Only,
    cells: Vec<Cell>,
    /// Sections that other crates read, and the texts that they are in.
    sections: Table,
    sources: Sources,
    plots: Vec<Plot>,
    files: Vec<PathBuf>,
    traces: Traces,
    for_live: bool,
}

/// The form in which a lab is read; by default as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// Applies the settings of `[full]`, to reproduce a study in full.
    pub full: bool,
    /// Applies the settings of `[live]` after those of `[full]`, to reproduce a study on real Linux.
    pub live: bool,
}

/// The tree of a lab in numbers, for `--dry-run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Each level with the labels of its choices, outermost first.
    pub levels: Vec<(String, Vec<String>)>,
    /// How many cells the tree has: the product of its levels.
    pub cells: u64,
    /// How often each cell is run.
    pub repeats: u32,
    /// Duration of all runs together.
    pub simulated: Span,
    /// About how many data packets all runs send over the lab's links.
    pub packets: u64,
    /// About how many flows all runs have.
    pub flows: u64,
    /// About how many samples of links and flows all runs record.
    pub records: u64,
}

/// Number of problems after which no further cells are checked.
const MOST_FAULTS: usize = 10;

impl Lab {
    /// Reads a lab file, what it extends, and settings from the command line (`PATH=VALUE`), and checks the whole tree.
    ///
    /// # Errors
    /// Everything found wrong, each with its place and a suggestion.
    pub fn load(path: &Path, settings: &[String]) -> Result<Lab, Diagnostics> {
        Lab::load_as(path, settings, Form::default())
    }

    /// The same in this form of the lab. Settings from the command line are applied after the form's.
    ///
    /// # Errors
    /// As [`Lab::load`].
    pub fn load_as(path: &Path, settings: &[String], form: Form) -> Result<Lab, Diagnostics> {
        let mut reading = Reading::default();
        let root = reading.file(path, None)?;
        Lab::build(reading, root, path, settings, form)
    }

    /// Reads a lab from a text. `name` is the file name in diagnostics; without its extension it is also the lab's name, unless
    /// the text gives one. Files that the text `extends` are looked for in `folder`.
    ///
    /// # Errors
    /// As [`Lab::load`].
    pub fn from_str(text: &str, name: &str, folder: &Path, settings: &[String]) -> Result<Lab, Diagnostics> {
        let mut reading = Reading::default();
        let root = reading.text(name, text.into(), folder)?;
        Lab::build(reading, root, Path::new(name), settings, Form::default())
    }

    /// Applies the settings, spells out the tree and checks it.
    pub(crate) fn build(
        mut reading: Reading,
        mut root: Table,
        path: &Path,
        settings: &[String],
        form: Form,
    ) -> Result<Lab, Diagnostics> {
        reading.form(&mut root, "full", form.full)?;
        let for_live = reading.form(&mut root, "live", form.live)?;
        for setting in settings {
            reading.setting(&mut root, setting)?;
        }
        // A lab without a format was refused before.
        let home = root.locate(&["format"]).unwrap_or(Origin::new(0, 0..0));
        let too_much = size::of_text(&root);
        if !too_much.is_empty() {
            return Err(reading.fail(too_much));
        }
        let (name, title) = reading.names(&root, path)?;
        let mut faults = Vec::new();
        let whole = vary::levels(&root, &mut faults);
        let only = Only::read(&root, &whole).unwrap_or_else(|found| {
            faults.extend(found);
            Only::default()
        });
        let levels = only.levels(&whole);
        if faults.is_empty() {
            faults.extend(size::of_tree(&levels, &root, home));
        }
        if !faults.is_empty() {
            return Err(reading.fail(faults));
        }
        let traces =
            Traces::load(&root, |file| reading.folder(file)).map_err(|faults| reading.fail(faults))?;
        let of_the_tree = || schema::check(&of_the_tree(&root));
        let cells = cells(&root, &levels, home, &traces)
            .map_err(|faults| reading.fail([of_the_tree(), faults].concat()))?;
        let plots = plot::read(&root, &names_of(&levels, &cells)).map_err(|faults| {
            let explained = of_the_tree();
            reading.fail(if explained.is_empty() { faults } else { explained })
        })?;
        let (source, files) =
            (reading.source(&root, &name, &traces), [reading.files(), &traces.paths()].concat());
        let sources = reading.sources().clone();
        let mut sections = root;
        sections.0.retain(|key, _| SECTIONS.contains(&key.as_str()));
        Ok(Lab {
            source,
            name,
            title,
            whole,
            levels,
            only,
            cells,
            sections,
            sources,
            plots,
            files,
            traces,
            for_live,
        })
    }

    /// Its name: fit for a folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its title: what it shows, in a sentence. `None` if it has none.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The lab as it runs, as one file: with all that it extends and all settings. It reads back to the same runs, with its
    /// [`Lab::attachments`] beside it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The files that it was read from: its own, then those that it extends, then the traces that they name; their canonical
    /// paths.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The files that its source names: the path of each relative to the source, and its content.
    pub fn attachments(&self) -> impl Iterator<Item = (String, &[u8])> {
        self.traces.files()
    }

    /// Whether it has a section `[live]`, with settings for real Linux.
    pub fn is_for_live(&self) -> bool {
        self.for_live
    }

    /// The entries of a section that another crate reads (`expect`), a list of tables. `help` says how one is written.
    ///
    /// # Errors
    /// The section is not a list of tables.
    pub fn entries(&self, section: &str, help: &str) -> Result<Vec<Entry<'_>>, Diagnostics> {
        entries::entries(&self.sections, section, help).map_err(|fault| self.refuse(vec![fault]))
    }

    /// Faults of such a section as diagnostics, each with its place.
    pub fn refuse(&self, faults: Vec<Fault>) -> Diagnostics {
        self.sources.diagnose(faults)
    }

    /// The names of the whole tree, also outside the part that `[only]` keeps.
    pub fn names(&self) -> Names<'_> {
        names_of(&self.whole, &self.cells)
    }

    /// Whether `[only]` keeps the cells with this label on this level.
    pub fn keeps(&self, level: &str, label: &str) -> bool {
        self.only.has(level, label)
    }

    /// The plots in which its report compares its cells.
    pub fn plots(&self) -> &[Plot] {
        &self.plots
    }

    /// The commands that its live runs execute, each once, in the order of the tree.
    pub fn commands(&self) -> Vec<Commanded> {
        commands::of(&self.cells)
    }

    /// All runs, in the order of the tree: the first level outermost, repeats innermost.
    pub fn runs(&self) -> Vec<Run> {
        self.runs_where(|_| true)
    }

    /// The runs whose numbers in that order are wanted: of a large tree, a part costs less than the whole.
    pub fn runs_where(&self, wanted: impl Fn(usize) -> bool) -> Vec<Run> {
        let (mut runs, mut next) = (Vec::new(), 0);
        for (cell, choices) in self.cells.iter().zip(choices(&self.levels)) {
            for repeat in 1..=cell.timing.repeats {
                let number = next;
                next += 1;
                if !wanted(number) {
                    continue;
                }
                let param = |(level, choice): &(&Level, &Choice)| Param {
                    level: level.name.clone(),
                    value: choice.label.clone(),
                };
                let params = choices.iter().map(param).collect();
                runs.push(cell.run(run_id(&choices, repeat), &self.name, params, repeat));
            }
        }
        runs
    }

    /// The ids of all runs, in the same order.
    pub fn ids(&self) -> impl Iterator<Item = String> + '_ {
        self.cells
            .iter()
            .zip(choices(&self.levels))
            .flat_map(|(cell, choices)| (1..=cell.timing.repeats).map(move |repeat| run_id(&choices, repeat)))
    }

    /// Number of runs of its tree on one engine.
    pub fn run_count(&self) -> usize {
        self.cells.iter().map(|cell| cell.timing.repeats as usize).sum()
    }

    /// The tree in numbers.
    pub fn tree(&self) -> Tree {
        let labels = |level: &Level| level.choices.iter().map(|choice| choice.label.clone()).collect();
        let repeats = self.cells.first().map_or(1, |cell| cell.timing.repeats);
        let once = self.cells.iter().fold(Span::ZERO, |sum, cell| sum + cell.timing.duration);
        let sum = |of: fn(&Cell) -> u64| self.cells.iter().map(of).fold(0, u64::saturating_add);
        let (packets, flows, records) = (sum(Cell::packets), sum(Cell::flows), sum(Cell::records));
        Tree {
            levels: self.levels.iter().map(|level| (level.name.clone(), labels(level))).collect(),
            cells: self.cells.len() as u64,
            repeats,
            simulated: once * repeats.into(),
            packets: packets.saturating_mul(repeats.into()),
            flows: flows.saturating_mul(repeats.into()),
            records: records.saturating_mul(repeats.into()),
        }
    }
}

impl Tree {
    /// How many runs it has.
    pub fn runs(&self) -> u64 {
        self.cells * u64::from(self.repeats)
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, (level, labels)) in self.levels.iter().enumerate() {
            writeln!(f, "{}{level}: {}", "  ".repeat(depth), abbreviated(labels))?;
        }
        let many = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (cells, repeats, runs) =
            (many(self.cells, "cell"), many(self.repeats.into(), "repeat"), many(self.runs(), "run"));
        let seconds = self.simulated.as_secs_f64();
        writeln!(
            f,
            "{cells} x {repeats} = {runs}: {seconds} s of traffic, about {} data packets",
            self.packets
        )
    }
}

/// The names in the tree of these levels and cells.
fn names_of<'a>(levels: &'a [Level], cells: &'a [Cell]) -> Names<'a> {
    let mut names = Names::of(levels);
    for cell in cells {
        cell.windows.iter().for_each(|window| names.add_window(&window.name));
        cell.groups
            .iter()
            .zip(&cell.flows)
            .for_each(|(group, flows)| names.add_group(&group.name, flows.count));
        let links = cell.network.links.iter().filter(|link| link.instrumented);
        links.for_each(|link| names.add_link(&link.name));
    }
    names
}

/// Labels in a row; of more than 12, the first three and the last.
fn abbreviated(labels: &[String]) -> String {
    match labels {
        [first, second, third, .., last] if labels.len() > 12 => {
            format!("{first} | {second} | {third} | ... | {last} ({} in all)", labels.len())
        }
        _ => labels.join(" | "),
    }
}

/// The id of a run of the cell with these choices.
fn run_id(choices: &[(&Level, &Choice)], repeat: u32) -> String {
    vary::id(choices.iter().map(|(_, choice)| choice.slug.as_str()), repeat)
}

/// The product of the levels, the first outermost.
fn choices(levels: &[Level]) -> impl Iterator<Item = Vec<(&Level, &Choice)>> {
    let total: usize = levels.iter().map(|level| level.choices.len()).product();
    (0..total).map(move |mut number| {
        let mut choice: Vec<_> = levels
            .iter()
            .rev()
            .map(|level| {
                let chosen = &level.choices[number % level.choices.len()];
                number /= level.choices.len();
                (level, chosen)
            })
            .collect();
        choice.reverse();
        choice
    })
}

/// Sections that are about the tree, which no cell reads.
const OF_THE_TREE: [&str; 2] = ["only", "plot"];

fn of_the_tree(root: &Table) -> Table {
    let mut sections = root.clone();
    sections.0.retain(|key, _| OF_THE_TREE.contains(&key.as_str()));
    sections
}

/// Every cell of the tree, checked.
fn cells(root: &Table, levels: &[Level], home: Origin, traces: &Traces) -> Result<Vec<Cell>, Vec<Fault>> {
    let mut base = root.clone();
    base.0.retain(|key, _| {
        key != "vary" && !OF_THE_TREE.contains(&key.as_str()) && !SECTIONS.contains(&key.as_str())
    });
    let (mut faults, mut told) = (Vec::new(), HashSet::<Fault>::new());
    let mut cells = Vec::new();
    let (mut runs, mut flows) = (0u64, 0u64);
    for choices in choices(levels) {
        let mut settings = base.clone();
        let mut wrong = Vec::new();
        for (path, value) in choices.iter().flat_map(|(_, choice)| &choice.settings) {
            wrong.extend(settings.set(path, value.clone()).err());
        }
        if wrong.is_empty() {
            match Cell::read(&settings, home, traces) {
                Ok(cell) => {
                    runs += u64::from(cell.timing.repeats);
                    flows =
                        flows.saturating_add(cell.flow_count().saturating_mul(cell.timing.repeats.into()));
                    cells.push(cell);
                }
                Err(found) => wrong = found,
            }
        }
        for fault in wrong {
            if told.insert(fault.clone()) {
                faults.push(fault);
            }
        }
        if faults.len() >= MOST_FAULTS {
            break;
        }
    }
    if faults.is_empty() && (runs > size::MOST_RUNS || flows > size::MOST_FLOWS) {
        let path = if runs > size::MOST_RUNS { "run" } else { "traffic" };
        let message = format!("the tree has {runs} runs with {flows} flows in all");
        let help = format!(
            "a tree may have {} runs and {} flows: remove values, repeats or flows",
            size::MOST_RUNS,
            size::MOST_FLOWS
        );
        faults.push(Fault::new(
            root.locate(&[path, "repeats"]).or(root.locate(&[path])).unwrap_or(home),
            message,
            help,
        ));
    }
    if faults.is_empty() { Ok(cells) } else { Err(faults) }
}
