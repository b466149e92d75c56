//! A lab: its file read with everything it extends, its settings, and its tree of runs, all checked before anything runs.

use crate::cell::Cell;
use crate::diagnostic::{Diagnostics, Fault, Origin, Sources};
use crate::file::Claim;
use crate::read::read;
use crate::run::{Param, Run};
use crate::tree::{self, Item, Node, Path, Table};
use crate::vary::{self, Choice, Level};
use crate::{limits, names};
use std::fmt;
use std::io::Read;
use weir_base::Span;

/// A lab that was read and found sound.
#[derive(Debug, Clone)]
pub struct Lab {
    name: String,
    title: Option<String>,
    source: String,
    levels: Vec<Level>,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

/// The tree of a lab in numbers, for `--dry-run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Each level with the labels of its choices, outermost first.
    pub levels: Vec<(String, Vec<String>)>,
    /// How many cells the tree has: the product of its levels.
    pub cells: u64,
    /// How often each is run.
    pub repeats: u32,
    /// Time that all runs last together.
    pub simulated: Span,
    /// About how many data packets all runs send over the lab's links.
    pub packets: u64,
}

/// Largest lab file.
const LARGEST_FILE: u64 = 16 << 20;
/// Deepest row of files that extend each other.
const MOST_EXTENDED: usize = 32;
/// Most flows of all runs together.
const MOST_FLOWS: u64 = 20_000_000;
/// So many problems are told at once.
const MOST_FAULTS: usize = 10;

impl Lab {
    /// Reads a lab file, what it extends, and settings from the command line (`PATH=VALUE`), and checks the whole tree.
    ///
    /// # Errors
    /// Everything found wrong, each with its place and a suggestion.
    pub fn load(path: &std::path::Path, settings: &[String]) -> Result<Lab, Diagnostics> {
        let stem = path.file_stem().map_or("lab".into(), |stem| stem.to_string_lossy().into_owned());
        let mut reading = Reading::default();
        let root = reading.file(path, None)?;
        reading.finish(root, &plain_name(&stem), settings)
    }

    /// Reads a lab from a text. `name` is its file's name in diagnostics, and, without its extension, the lab's own unless
    /// the text gives one. What it `extends` is looked for in `folder`.
    ///
    /// # Errors
    /// As [`Lab::load`].
    pub fn from_str(
        text: &str,
        name: &str,
        folder: &std::path::Path,
        settings: &[String],
    ) -> Result<Lab, Diagnostics> {
        let stem = std::path::Path::new(name)
            .file_stem()
            .map_or("lab".into(), |stem| stem.to_string_lossy().into_owned());
        let mut reading = Reading::default();
        let root = reading.text(name, text.into(), folder)?;
        reading.finish(root, &plain_name(&stem), settings)
    }

    /// Its name: fit for a folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it shows, in a sentence, if it says so.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The lab as it runs, as one file: with all that it extends and all settings. It reads back to the same runs.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What is expected of its results.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// All runs, in the order of the tree: the first level outermost, repeats innermost.
    pub fn runs(&self) -> Vec<Run> {
        let choices = choices(&self.levels);
        let mut runs = Vec::new();
        for (cell, choices) in self.cells.iter().zip(choices) {
            for repeat in 1..=cell.timing.repeats {
                let id = vary::id(choices.iter().map(|(_, choice)| choice.slug.as_str()), repeat);
                let param = |(level, choice): &(&Level, &Choice)| Param {
                    level: level.name.clone(),
                    value: choice.label.clone(),
                };
                runs.push(cell.run(id, &self.name, choices.iter().map(param).collect(), repeat));
            }
        }
        runs
    }

    /// The tree in numbers.
    pub fn tree(&self) -> Tree {
        let labels = |level: &Level| level.choices.iter().map(|choice| choice.label.clone()).collect();
        let repeats = self.cells.first().map_or(1, |cell| cell.timing.repeats);
        let once = self.cells.iter().fold(Span::ZERO, |sum, cell| sum + cell.timing.duration);
        let packets = self.cells.iter().map(Cell::packets).fold(0, u64::saturating_add);
        Tree {
            levels: self.levels.iter().map(|level| (level.name.clone(), labels(level))).collect(),
            cells: self.cells.len() as u64,
            repeats,
            simulated: once * repeats.into(),
            packets: packets.saturating_mul(repeats.into()),
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
            writeln!(f, "{}{level}: {}", "  ".repeat(depth), labels.join(" | "))?;
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

/// A file's stem with what a name cannot have replaced.
fn plain_name(stem: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = stem.chars().map(fit).take(40).collect();
    match name.trim_start_matches(['-', '_']) {
        "" => "lab".into(),
        name => name.into(),
    }
}

/// The texts read so far.
#[derive(Default)]
struct Reading {
    sources: Sources,
    /// Canonical paths of the files being read, outermost first.
    open: Vec<std::path::PathBuf>,
    /// Whether the lab is more than the text of one file.
    composed: bool,
}

impl Reading {
    fn fail(&self, faults: Vec<Fault>) -> Diagnostics {
        self.sources.diagnose(faults)
    }

    /// Reads a file and what it extends. `asked` is where its name was written.
    fn file(&mut self, path: &std::path::Path, asked: Option<Origin>) -> Result<Table, Diagnostics> {
        let shown = path.display().to_string();
        let unread = |reading: &Reading, why: String, help: &str| match asked {
            Some(origin) => reading.fail(vec![Fault::new(origin, why, help)]),
            None => Diagnostics::of_file(why, help),
        };
        let bytes = match bytes_of(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let help =
                    "`weir new FILE` writes a lab to start from; a lab's `extends` is looked for beside it";
                return Err(unread(self, format!("cannot read the lab {shown}: {error}"), help));
            }
        };
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(unread(
                self,
                format!("{shown} is larger than 16 MiB"),
                "a lab file is a few kilobytes of TOML",
            ));
        }
        let canonical = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if self.open.contains(&canonical) || self.open.len() >= MOST_EXTENDED {
            let files: Vec<String> =
                self.open.iter().chain([&canonical]).map(|path| file_name(path)).collect();
            let why = format!("the labs extend each other in a circle: {}", files.join(" -> "));
            return Err(unread(self, why, "remove one of the `extends`"));
        }
        self.open.push(canonical);
        let text = self.utf8(&shown, bytes)?;
        let folder = path.parent().map(std::path::Path::to_path_buf).unwrap_or_default();
        let table = self.text(&shown, text, &folder)?;
        self.open.pop();
        Ok(table)
    }

    fn utf8(&mut self, shown: &str, bytes: Vec<u8>) -> Result<String, Diagnostics> {
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let file = self.sources.add(shown, text);
            let origin = Origin::new(file, at..at + char::REPLACEMENT_CHARACTER.len_utf8());
            self.fail(vec![Fault::new(
                origin,
                "this is not UTF-8",
                "save the file as UTF-8; TOML knows no other encoding",
            )])
        })
    }

    /// Reads a text and what it extends.
    fn text(&mut self, shown: &str, text: String, folder: &std::path::Path) -> Result<Table, Diagnostics> {
        let file = self.sources.add(shown, text);
        let mut table = tree::parse(self.sources.text(file), file).map_err(|faults| self.fail(faults))?;
        self.format(&table, file)?;
        let Some(extends) = table.get("extends").cloned() else { return Ok(table) };
        let Some(base) = extends.as_str() else {
            let message = format!("`extends` is a file's name, and this is {}", extends.what());
            return Err(self.fail(vec![Fault::new(
                extends.origin,
                message,
                "write extends = \"other.toml\"",
            )]));
        };
        self.composed = true;
        let mut whole = self.file(&folder.join(base), Some(extends.origin))?;
        table.remove("extends");
        whole.remove("name");
        whole.overlay(table);
        Ok(whole)
    }

    fn format(&self, table: &Table, file: usize) -> Result<(), Diagnostics> {
        let fault = match table.get("format") {
            Some(Node { item: Item::Integer(1), .. }) => return Ok(()),
            Some(node) => Fault::new(node.origin, "this build reads labs of format 1", "write format = 1"),
            None => {
                let first_line = self.sources.text(file).lines().next().map_or(0, str::len);
                Fault::new(
                    Origin::new(file, 0..first_line),
                    "the lab does not say its format",
                    "begin it with format = 1",
                )
            }
        };
        Err(self.fail(vec![fault]))
    }

    /// Applies the settings, spells out the tree and checks it.
    fn finish(mut self, mut root: Table, stem: &str, settings: &[String]) -> Result<Lab, Diagnostics> {
        for setting in settings {
            self.setting(&mut root, setting)?;
        }
        // Every lab has a format, or would not have come here.
        let home = root.locate(&["format"]).unwrap_or(Origin::new(0, 0..0));
        let (name, title) = self.names(&root, stem)?;
        let mut faults = Vec::new();
        let levels = vary::levels(&root, &mut faults);
        if faults.is_empty() {
            faults.extend(too_many(&levels, &root, home));
        }
        if !faults.is_empty() {
            return Err(self.fail(faults));
        }
        let cells = cells(&root, &levels, home).map_err(|faults| self.fail(faults))?;
        let claims = claims(&root, &levels, &cells).map_err(|faults| self.fail(faults))?;
        let lab = Lab { source: self.source(&root, &name), name, title, levels, cells, claims };
        Ok(lab)
    }

    /// Applies `PATH=VALUE`. A level that varies the same path is taken out of the tree.
    fn setting(&mut self, root: &mut Table, setting: &str) -> Result<(), Diagnostics> {
        self.composed = true;
        let file = self.sources.add("--set", setting.into());
        let whole = Origin::new(file, 0..setting.len());
        let help = "write --set PATH=VALUE, for example --set run.duration=\"5 s\"";
        let Some((path, value)) = split_setting(setting) else {
            return Err(self.fail(vec![Fault::new(whole, "a setting is a path, `=` and a value", help)]));
        };
        let start = setting.len() - value.len();
        let parsed = Path::parse(path.trim_end(), file, 0).and_then(|path| match path.first() {
            "format" | "extends" => {
                Err(Fault::new(whole, format!("`{}` cannot be set here", path.first()), help))
            }
            _ => Ok(path),
        });
        let path = parsed.map_err(|fault| self.fail(vec![fault]))?;
        let value = tree::parse_value(value, file, start).map_err(|faults| self.fail(faults))?;
        pin(root, &path).map_err(|fault| self.fail(vec![fault]))?;
        root.set(&path, value).map_err(|fault| self.fail(vec![fault]))
    }

    fn names(&self, root: &Table, stem: &str) -> Result<(String, Option<String>), Diagnostics> {
        let text = |key: &str, what: &str| match root.get(key).map(|node| (node, node.as_str())) {
            Some((node, None)) => {
                let message = format!("the lab's {key} is {}", node.what());
                Err(self.fail(vec![Fault::new(node.origin, message, format!("write {key} = \"{what}\""))]))
            }
            Some((_, Some(text))) => Ok(Some(text.to_string())),
            None => Ok(None),
        };
        let name = text("name", "my-lab")?;
        if let (Some(name), Some(node)) = (&name, root.get("name"))
            && let Some((message, help)) = limits::bad_name("lab", name)
        {
            return Err(self.fail(vec![Fault::new(node.origin, message, help)]));
        }
        Ok((name.unwrap_or_else(|| stem.into()), text("title", "What this lab shows")?))
    }

    /// The lab as one file: the text itself where that is all of it, with the name it goes by.
    fn source(&self, root: &Table, name: &str) -> String {
        let mut named = root.clone();
        if self.composed {
            let origin = Origin::new(0, 0..0);
            let value = Node { item: Item::String(name.into()), origin };
            // A path of one key can always be set.
            let _ = named.set(&Path(vec![("name".into(), origin)]), value);
            return tree::to_toml(&named);
        }
        let text = self.sources.text(0);
        if root.get("name").is_some() {
            return text.into();
        }
        let format = root.locate(&["format"]).map_or(0, |origin| origin.end);
        let line = format + text[format..].find('\n').map_or(text.len() - format, |end| end + 1);
        let (before, after) = text.split_at(line);
        let newline = if before.ends_with('\n') { "" } else { "\n" };
        format!("{before}{newline}name = {}\n{after}", tree::quoted(name))
    }
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// What a file holds, up to a little more than the largest lab.
fn bytes_of(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Splits `PATH=VALUE` at the first `=` outside quotes.
fn split_setting(setting: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in setting.char_indices() {
        match (quote, c) {
            (None, '=') => return Some((&setting[..at], setting[at + 1..].trim_start())),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

/// A setting from the command line takes the level out of the tree that varies the same; inside labels it cannot.
fn pin(root: &mut Table, path: &Path) -> Result<(), Fault> {
    let Some(entry) = root.0.iter_mut().find(|entry| entry.key == "vary") else { return Ok(()) };
    let Item::Table(levels) = &mut entry.value.item else { return Ok(()) };
    let sets = |key: &str| {
        Path::parse(key, 0, 0).is_ok_and(|other| other.starts_with(path) || path.starts_with(&other))
    };
    let exactly =
        |key: &str| Path::parse(key, 0, 0).is_ok_and(|other| other.0.len() == path.0.len() && sets(key));
    levels.0.retain(|level| !(matches!(level.value.item, Item::Array(_)) && exactly(&level.key)));
    for level in &levels.0 {
        let labels = level.value.as_table();
        let inside = labels.is_some_and(|labels| {
            labels
                .0
                .iter()
                .any(|label| label.value.as_table().is_some_and(|settings| settings.keys().any(sets)))
        });
        if inside || (labels.is_none() && sets(&level.key) && path.first() != "vary") {
            let key = path.0.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(".");
            let origin = path.origin().unwrap_or(entry.named);
            let help = format!("set vary.\"{0}\" instead, for example --set 'vary.\"{0}\"=[..]'", level.key);
            return Err(Fault::new(
                origin,
                format!("the level `{}` of the tree varies {key}", level.key),
                help,
            ));
        }
    }
    Ok(())
}

fn too_many(levels: &[Level], root: &Table, home: Origin) -> Option<Fault> {
    let cells =
        levels.iter().try_fold(1u64, |product, level| product.checked_mul(level.choices.len() as u64));
    if cells.is_some_and(|cells| cells <= vary::MOST_RUNS) {
        return None;
    }
    let origin = root.entry("vary").map_or(home, |entry| entry.named);
    let count = cells.map_or("more than can be counted".into(), |cells| cells.to_string());
    let help = format!("take values or levels out, down to {} runs", vary::MOST_RUNS);
    Some(Fault::new(origin, format!("the tree has {count} cells"), help))
}

/// Every cell of the tree, checked.
fn cells(root: &Table, levels: &[Level], home: Origin) -> Result<Vec<Cell>, Vec<Fault>> {
    let mut base = root.clone();
    base.remove("vary");
    let (mut cells, mut faults) = (Vec::new(), Vec::new());
    let (mut runs, mut flows) = (0u64, 0u64);
    for choices in choices(levels) {
        let mut settings = base.clone();
        let mut wrong = Vec::new();
        for (path, value) in choices.iter().flat_map(|(_, choice)| &choice.settings) {
            wrong.extend(settings.set(path, value.clone()).err());
        }
        if wrong.is_empty() {
            match Cell::read(&settings, home) {
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
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        if faults.len() >= MOST_FAULTS {
            break;
        }
    }
    if faults.is_empty() && (runs > vary::MOST_RUNS || flows > MOST_FLOWS) {
        let path = if runs > vary::MOST_RUNS { "run" } else { "traffic" };
        let message = format!("the tree has {runs} runs with {flows} flows in all");
        let help = format!(
            "a tree may have {} runs and {MOST_FLOWS} flows: take values, repeats or flows out",
            vary::MOST_RUNS
        );
        faults.push(Fault::new(
            root.locate(&[path, "repeats"]).or(root.locate(&[path])).unwrap_or(home),
            message,
            help,
        ));
    }
    if faults.is_empty() { Ok(cells) } else { Err(faults) }
}

/// `[expect]`, checked against the tree.
fn claims(root: &Table, levels: &[Level], cells: &[Cell]) -> Result<Vec<Claim>, Vec<Fault>> {
    let Some(expect) = root.get("expect") else { return Ok(Vec::new()) };
    let help = "write [[expect]], and under it metric, value, tolerance and source";
    let Item::Array(entries) = &expect.item else {
        let message = format!("`expect` is {}, not a list of claims", expect.what());
        return Err(vec![Fault::new(expect.origin, message, help)]);
    };
    let (mut claims, mut faults) = (Vec::new(), Vec::new());
    for entry in entries {
        match read::<Claim>(entry) {
            Ok(claim) => {
                faults.extend(claim_faults(&claim, entry, levels, cells));
                claims.push(claim);
            }
            Err(mut fault) => {
                fault.help.get_or_insert(help.into());
                faults.push(fault.at(entry.origin));
            }
        }
    }
    if faults.is_empty() { Ok(claims) } else { Err(faults) }
}

fn claim_faults(claim: &Claim, entry: &Node, levels: &[Level], cells: &[Cell]) -> Vec<Fault> {
    let place = |path: &[&str]| entry.as_table().and_then(|table| table.locate(path)).unwrap_or(entry.origin);
    let mut faults = Vec::new();
    for (level, label) in &claim.cells {
        let Some(found) = levels.iter().find(|other| other.name == *level) else {
            let help = crate::diagnostic::suggest(level, levels.iter().map(|level| level.name.as_str()));
            faults.push(Fault::new(
                place(&["where", level]),
                format!("the tree has no level `{level}`"),
                help,
            ));
            continue;
        };
        let labels = found.choices.iter().map(|choice| choice.label.as_str());
        if !labels.clone().any(|other| other == label) {
            let help = crate::diagnostic::suggest(label, labels);
            faults.push(Fault::new(
                place(&["where", level]),
                format!("the level `{level}` has no \"{label}\""),
                help,
            ));
        }
    }
    if let Some(of) = &claim.of {
        let groups = cells.iter().flat_map(|cell| &cell.groups).map(|group| group.name.as_str());
        let links = cells
            .iter()
            .flat_map(|cell| &cell.network.links)
            .filter(|link| link.measured)
            .map(|link| link.name.as_str());
        let mut known: Vec<&str> = groups.chain(links).collect();
        known.dedup();
        let flow = |name: &&str| {
            of.strip_prefix(*name)
                .and_then(|rest| rest.strip_prefix('-'))
                .is_some_and(|n| n.parse::<u64>().is_ok())
        };
        if !known.contains(&of.as_str()) && !known.iter().any(|name| flow(name)) {
            known.sort_unstable();
            known.dedup();
            let help = crate::diagnostic::suggest(of, known.iter().copied());
            faults.push(Fault::new(place(&["of"]), format!("no group, flow or link is called `{of}`"), help));
        }
    }
    if claim.metric.is_empty() || names(claim.metric.split(' ')).contains(' ') {
        faults.push(Fault::new(
            place(&["metric"]),
            "this is not a metric's name",
            "`weir list metrics` shows them all",
        ));
    }
    faults
}
