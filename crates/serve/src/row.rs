//! A row of the list: what is known of a result, and the text that a search looks through.

use crate::verdict::Verdict;
use serde::Serialize;
use std::path::Path;
use weir_engine::notes::{Note, notes};
use weir_engine::pins::is_pinned;
use weir_engine::{Count, Extent, Glance, Holder, Overview, check_lengths, overview, writer};

/// Most characters of a reason that are shown.
const MOST_SHOWN: usize = 300;

/// A result in the list.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Row {
    /// Its folder, relative to the one that is served; `.` is that folder itself.
    pub(crate) path: String,
    /// Its lab's name; the folder's name if the lab cannot be read.
    pub(crate) lab: String,
    /// Its lab's title.
    title: Option<String>,
    /// The engines that ran it.
    pub(crate) engines: Vec<&'static str>,
    /// When its last run ended, in seconds since 1970; 0 if there is none.
    pub(crate) ended: i64,
    /// What varied: each level with its labels.
    levels: Vec<Level>,
    /// Number of runs that are there.
    runs: usize,
    /// Number of runs that its tree plans on these engines.
    planned: usize,
    /// Number of runs whose numbers should not be trusted.
    pub(crate) invalid: usize,
    /// Its state.
    pub(crate) state: State,
    /// More about its state, in words.
    why: String,
    /// What is judged about it.
    verdict: Option<Verdict>,
    /// Its notes, the oldest first.
    notes: Vec<Note>,
    /// Whether somebody has pinned it.
    pub(crate) pinned: bool,
    /// Size of its files, in bytes; `None` until they have been looked at.
    pub(crate) bytes: Option<u64>,
    /// Whether it has a report.
    report: bool,
    /// The text that a search looks through, in small letters.
    #[serde(skip)]
    text: String,
}

/// A level of a tree that varies.
#[derive(Debug, Clone, Serialize)]
struct Level {
    level: String,
    labels: Vec<String>,
}

/// The state of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// All runs are there.
    #[default]
    Complete,
    /// Something is missing, and nobody makes it.
    Unfinished,
    /// A process writes into it.
    Running,
    /// It cannot be read.
    Damaged,
}

impl Row {
    /// Reads what a result folder, which is `root` or below it, says of itself.
    pub(crate) fn read(root: &Path, folder: &Path, glance: &Glance) -> Row {
        let below = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy();
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
        let mut row = Row {
            path: if below.is_empty() { ".".into() } else { below.into_owned() },
            lab: name.into_owned(),
            ended: glance.ended,
            ..Row::default()
        };
        // A pipe would make its reader wait, and a link may lead to a file that is not the result's.
        if let Some(odd) = &glance.odd {
            row.fail(folder, &strange(odd));
            row.text = row.searched();
            return row;
        }
        row.pinned = is_pinned(folder);
        row.report = folder.join("index.html").is_file();
        let (about, writer) = (overview(folder), writer(folder));
        let notes = notes(folder);
        let source = about.as_ref().map_or("", |about| about.lab.source()).to_lowercase();
        match (&about, &notes) {
            (Ok(about), _) => row.tell(folder, about),
            (Err(error), _) => row.fail(folder, &error.to_string()),
        }
        match notes {
            Ok(notes) => row.notes = notes,
            // A folder without a lab has no notes; that is told already.
            Err(error) if about.is_ok() => row.fail(folder, &error.to_string()),
            Err(_) => {}
        }
        if let Some(writer) = writer {
            row.write_by(about.ok().as_ref(), &writer);
        }
        row.text = row.searched() + &source;
        row
    }

    /// The row after a look at all files: with their size, and with what is wrong with them.
    pub(crate) fn checked(&self, folder: &Path) -> Row {
        let mut row = self.clone();
        let extent = match Extent::of(folder) {
            Ok(extent) => extent,
            Err(error) => {
                row.fail(folder, &error.to_string());
                return row;
            }
        };
        row.bytes = Some(extent.bytes);
        // Files come and go while a process writes.
        if matches!(row.state, State::Running | State::Damaged) {
            return row;
        }
        if let Some(odd) = &extent.odd {
            row.fail(folder, &strange(odd));
        } else if let Err(error) = check_lengths(folder, &extent) {
            row.fail(folder, &error.to_string());
        }
        row
    }

    /// Tells what the folder says of itself.
    fn tell(&mut self, folder: &Path, about: &Overview) {
        self.lab = about.lab.name().into();
        self.title = about.lab.title().map(String::from);
        self.engines.clone_from(&about.engines);
        let levels = about.lab.tree().levels.into_iter().filter(|(_, labels)| labels.len() > 1);
        self.levels = levels.map(|(level, labels)| Level { level, labels }).collect();
        Count { there: self.runs, planned: self.planned } = about.count;
        self.invalid = about.invalid.len();
        self.verdict = Verdict::of(folder, &about.lab);
        let missing = match about.rerun {
            Some(rerun) => format!("a --rerun was interrupted: it has {rerun}; the same command finishes it"),
            None if !about.count.is_complete() => {
                format!("{}; the same command runs the others", about.count)
            }
            None if !about.is_summarised => {
                "summary.json is missing or older than the runs; `weir report` writes it".into()
            }
            None => return,
        };
        (self.state, self.why) = (State::Unfinished, missing);
    }

    /// Says how far the process is that writes into the folder. What is read meanwhile may be half of an older state and half of a newer
    /// one, so that nothing is damaged for that.
    fn write_by(&mut self, about: Option<&Overview>, writer: &Holder) {
        let done = match about {
            Some(Overview { rerun: Some(rerun), .. }) => format!("{rerun} of a --rerun"),
            Some(about) => about.count.to_string(),
            None => "it begins or ends".into(),
        };
        (self.state, self.why) = (State::Running, format!("{done}; {writer}"));
    }

    /// Says why the folder cannot be read.
    fn fail(&mut self, folder: &Path, why: &str) {
        let short = why.replace(&format!("{}/", folder.display()), "");
        let line = short.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        (self.state, self.why) = (State::Damaged, line.chars().take(MOST_SHOWN).collect());
    }

    /// The text of the row in small letters, without its lab's.
    fn searched(&self) -> String {
        let mut words: Vec<&str> = vec![&self.path, &self.lab, &self.why];
        words.extend(self.title.as_deref());
        words.extend(&self.engines);
        words.extend(
            self.levels
                .iter()
                .flat_map(|level| std::iter::once(&level.level).chain(&level.labels))
                .map(String::as_str),
        );
        words.extend(self.verdict.as_ref().map(|verdict| verdict.text.as_str()));
        words.extend(self.notes.iter().map(|note| note.text.as_str()));
        words.join("\n").to_lowercase() + "\n"
    }

    /// Whether the row has this text, which is in small letters.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.text.contains(word)
    }
}

/// Why a result with this in its folder is not read.
fn strange(odd: &Path) -> String {
    format!("{} is neither a file nor a folder; nothing is read where one is", odd.display())
}
