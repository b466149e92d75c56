//! What a process that runs a part of a lab tells of the runs beside their records: the summary of each, and its series as a script of the
//! report. They are computed while the records are in memory, so that the process that holds the result folder need not read these.
//!
//! They travel in a file beside the part's `runs`: a list of summaries as a line of JSON, then the scripts, one after the other.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use weir_engine::{Engine, FinishedRun, FolderError, Outcome, Progress};
use weir_plan::Lab;
use weir_record::{Records, RunSummary, View};
use weir_report::Scripting;

/// The name of the file.
const FILE: &str = "digest";

/// Runs a part of a lab as [`weir_engine::run_part`] does, and writes its digest. `groups` are the names of the lab's traffic groups in the
/// order of their colours in the report, or `None` if there is no report. Returns the runs that failed, each with the reason.
///
/// # Errors
/// The folder cannot be written, or there is not enough space.
pub fn run_part(
    lab: &Lab,
    runs: &[usize],
    size: Option<usize>,
    engine: &dyn Engine,
    build: &str,
    out: &Path,
    groups: Option<&[String]>,
) -> Result<Vec<(String, String)>, FolderError> {
    let scripting = |groups: &[String]| Scripting::new(groups.iter().map(String::as_str), lab.run_count());
    let digest = Digest { scripting: groups.map(scripting), runs: Mutex::default() };
    let tally = weir_engine::run_part(lab, runs, size, engine, build, out, &digest)?;
    let path = out.join(FILE);
    let written = digest.bytes().map_err(io::Error::other).and_then(|bytes| fs::write(&path, bytes));
    written.map_err(|error| FolderError::Io { path: path.display().to_string(), error })?;
    Ok(tally.failed)
}

/// A digest while its part is run.
struct Digest {
    /// `None` if there is no report.
    scripting: Option<Scripting>,
    /// The finished runs by number.
    runs: Mutex<BTreeMap<usize, Told>>,
}

/// What is told of a run: its summary, and its script if there is a report.
pub(crate) type Told = (RunSummary, Option<Vec<u8>>);

/// A run in the list.
#[derive(Serialize, Deserialize)]
struct Entry<S> {
    summary: S,
    /// Length of its script in bytes; `None` if there is no report.
    script: Option<usize>,
}

impl Progress for Digest {
    fn share(&self, _: usize, _: f64) {}
    fn ended(&self, _: usize, _: Result<&Outcome, &str>) {}

    fn recorded(&self, run: &FinishedRun, records: &Records) {
        let view = View::after(run.info.warmup, &run.info, records);
        let summary = run.summary(&view, records);
        let script = self.scripting.as_ref().map(|scripting| scripting.script(run, &summary, &view, records));
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(run.number, (summary, script));
    }
}

impl Digest {
    fn bytes(self) -> serde_json::Result<Vec<u8>> {
        let runs = self.runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        let length = |script: &Option<Vec<u8>>| script.as_ref().map(Vec::len);
        let entries = runs.values().map(|(summary, script)| Entry { summary, script: length(script) });
        let mut bytes = serde_json::to_vec(&entries.collect::<Vec<_>>())?;
        bytes.push(b'\n');
        runs.values()
            .filter_map(|(_, script)| script.as_ref())
            .for_each(|script| bytes.extend_from_slice(script));
        Ok(bytes)
    }
}

/// The summaries and scripts of a part's runs by id. `None` if there is no digest that can be read: they are computed from the records then.
pub(crate) fn read(part: &Path) -> Option<HashMap<String, Told>> {
    parsed(&fs::read(part.join(FILE)).ok()?)
}

fn parsed(bytes: &[u8]) -> Option<HashMap<String, Told>> {
    let (list, mut scripts) = bytes.split_at_checked(bytes.iter().position(|byte| *byte == b'\n')? + 1)?;
    let mut runs = HashMap::new();
    for Entry { summary, script } in serde_json::from_slice::<Vec<Entry<RunSummary>>>(list).ok()? {
        let mut next = |length| {
            let (script, rest) = scripts.split_at_checked(length)?;
            scripts = rest;
            Some(script.to_vec())
        };
        let script = match script {
            Some(length) => Some(next(length)?),
            None => None,
        };
        runs.insert(summary.id.clone(), (summary, script));
    }
    scripts.is_empty().then_some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::StationSummary;

    /// A digest of two runs with numbers that have no short decimal form.
    fn digest() -> Digest {
        let state = [1.0 / 3.0, 0.1 + 0.2, f64::MIN_POSITIVE / 3.0, 1e300 / 7.0, -2.0_f64.powi(-40) / 3.0];
        let named = state.iter().enumerate().map(|(number, value)| (format!("value {number}"), *value));
        let station = StationSummary {
            name: "box".into(),
            kind: "policer".into(),
            at: "r0".into(),
            state: named.collect(),
        };
        let summary = |id: &str, warmup_s| RunSummary {
            id: id.into(),
            seed: u64::MAX,
            warmup_s,
            stations: vec![station.clone()],
            warnings: vec!["a line\nand another".into()],
            ..RunSummary::default()
        };
        let runs = [
            (7, (summary("sim-b", 1.234567891), Some(b"weir.run(\"b\");\n\xff".to_vec()))),
            (3, (summary("sim-a", 0.1), Some(vec![]))),
        ];
        Digest { scripting: None, runs: Mutex::new(runs.into()) }
    }

    #[test]
    fn a_digest_is_read_as_it_was_written_to_the_last_bit() {
        let wanted = digest().runs.into_inner().unwrap();
        let mut found = parsed(&digest().bytes().unwrap()).unwrap();
        for (_, (summary, script)) in wanted {
            let (read, text) = found.remove(&summary.id).unwrap();
            let bits = |summary: &RunSummary| -> Vec<u64> {
                summary.stations[0].state.values().map(|value| value.to_bits()).collect()
            };
            assert_eq!(bits(&read), bits(&summary));
            assert_eq!((read, text), (summary, script));
        }
        assert!(found.is_empty());
    }

    #[test]
    fn a_digest_that_is_cut_or_damaged_is_none() {
        let bytes = digest().bytes().unwrap();
        for length in 0..bytes.len() {
            assert!(parsed(&bytes[..length]).is_none(), "cut at {length}");
        }
        assert!(parsed(&[&bytes[..], b"x"].concat()).is_none());
        assert!(parsed(b"[{\"summary\":{}}]\n").is_none());
    }
}
