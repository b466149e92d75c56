//! The trace files that a lab names: each is looked for beside the file that names it, read once, and kept as long as the
//! lab. A lab's source names copies of them, which stand beside it in a result folder.

use crate::diagnostic::{Fault, Origin};
use crate::ordinary;
use crate::tree::SECTIONS;
use crate::tree::{Item, Node, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_fabric::{Playback, Trace};

/// Largest trace file.
const LARGEST_FILE: u64 = 256 << 20;
/// Folder of the copies, beside the lab's source.
const FOLDER: &str = "traces";

/// A file that was read and found sound.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    name: String,
    path: PathBuf,
    digest: String,
    bytes: Arc<[u8]>,
    trace: Arc<Trace>,
}

/// All traces of a lab, by the name that the lab gives them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traces(BTreeMap<String, Recording>);

impl Traces {
    /// Reads every trace that the lab names. `folder` gives the folder in which a text's files are looked for, by the text's
    /// number.
    ///
    /// # Errors
    /// A fault for each trace that cannot be read, at the place that names it.
    pub(crate) fn load<'a>(root: &Table, folder: impl Fn(usize) -> &'a Path) -> Result<Traces, Vec<Fault>> {
        let (mut traces, mut faults) = (Traces::default(), Vec::new());
        let mut folders: BTreeMap<String, &Path> = BTreeMap::new();
        each_name(root, &mut |name, origin| {
            let beside = folder(origin.file);
            if *folders.entry(name.into()).or_insert(beside) != beside {
                let help = "give one of them another name: in labs that extend each other, a name stands for one file";
                faults.push(Fault::new(origin, format!("\"{name}\" names files in two folders"), help));
            } else if !traces.0.contains_key(name) {
                match Recording::read(&beside.join(name), name, origin) {
                    Ok(recording) => drop(traces.0.insert(name.into(), recording)),
                    Err(fault) => faults.push(fault),
                }
            }
        });
        if faults.is_empty() { Ok(traces) } else { Err(faults) }
    }

    /// Whether the lab names no trace.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The trace of this name, as a run has it.
    pub(crate) fn get(&self, name: &str, repeat: bool) -> Option<Playback> {
        let recording = self.0.get(name)?;
        let (file, digest) = (recording.name.clone(), recording.digest.clone());
        Some(Playback { file, digest, repeat, recording: Some(Arc::clone(&recording.trace)) })
    }

    /// The files, by the names that the lab gives them.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.0.values().map(|recording| recording.path.clone()).collect()
    }

    /// The copies: the path of each relative to the lab's source, and its content.
    pub(crate) fn files(&self) -> impl Iterator<Item = (String, &[u8])> {
        self.0.values().map(|recording| (recording.place(), &*recording.bytes))
    }

    /// Replaces the traces' names in the lab by those of the copies.
    pub(crate) fn name_copies(&self, root: &mut Table) {
        each_name_mut(root, &mut |name| {
            if let Some(recording) = self.0.get(name) {
                *name = recording.place();
            }
        });
    }
}

impl Recording {
    fn read(path: &Path, name: &str, origin: Origin) -> Result<Recording, Fault> {
        let beside = "a trace is looked for beside the lab that names it";
        let unread = |error: &dyn std::fmt::Display| {
            Fault::new(origin, format!("cannot read the trace {name}: {error}"), beside)
        };
        let bytes = ordinary::read(path, LARGEST_FILE).map_err(|error| unread(&error))?;
        let help = "a trace has a whole number of milliseconds in each line, or seconds, a comma and a rate";
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Fault::new(origin, format!("the trace {name} is not text"), help))?;
        let trace = Trace::parse(text)
            .map_err(|error| Fault::new(origin, format!("the trace {name} is not valid: {error}"), help))?;
        Ok(Recording {
            name: file_part(name).into(),
            path: path.canonicalize().map_err(|error| unread(&error))?,
            digest: format!("{:016x}", twox_hash::XxHash64::oneshot(0, &bytes)),
            bytes: bytes.into(),
            trace: Arc::new(trace),
        })
    }

    /// The path of its copy: below its digest, so that it keeps its name and clashes with no other file.
    fn place(&self) -> String {
        format!("{FOLDER}/{}/{}", self.digest, self.name)
    }
}

/// A file's own name.
pub(crate) fn file_part(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

/// Sections that may name traces.
fn may_name(section: &str) -> bool {
    !["run", "traffic"].contains(&section) && !SECTIONS.contains(&section)
}

/// Whether the last of these keys is that of a trace: `rate = { trace = .. }`, at any depth and in any form.
fn is_trace(keys: &[String]) -> bool {
    keys.last().is_some_and(|last| last == "trace") && keys.iter().any(|key| key == "rate")
}

/// Calls `found` with each trace's name and its place. The recursion is as deep as the parser lets a file nest.
fn each_name(root: &Table, found: &mut dyn FnMut(&str, Origin)) {
    fn node(value: &Node, keys: &mut Vec<String>, found: &mut dyn FnMut(&str, Origin)) {
        match &value.item {
            Item::String(name) if is_trace(keys) => found(name, value.origin),
            Item::Array(values) => values.iter().for_each(|value| node(value, keys, found)),
            Item::Table(inner) => table(inner, keys, found),
            _ => {}
        }
    }
    fn table(inner: &Table, keys: &mut Vec<String>, found: &mut dyn FnMut(&str, Origin)) {
        for (key, entry) in &inner.0 {
            let depth = keys.len();
            keys.extend(key.split('.').map(String::from));
            node(&entry.value, keys, found);
            keys.truncate(depth);
        }
    }
    for (key, entry) in root.0.iter().filter(|(key, _)| may_name(key)) {
        node(&entry.value, &mut vec![key.clone()], found);
    }
}

/// The same, to change the names.
fn each_name_mut(root: &mut Table, change: &mut dyn FnMut(&mut String)) {
    fn node(value: &mut Node, keys: &mut Vec<String>, change: &mut dyn FnMut(&mut String)) {
        match &mut value.item {
            Item::String(name) if is_trace(keys) => change(name),
            Item::Array(values) => values.iter_mut().for_each(|value| node(value, keys, change)),
            Item::Table(inner) => {
                for (key, entry) in &mut inner.0 {
                    let depth = keys.len();
                    keys.extend(key.split('.').map(String::from));
                    node(&mut entry.value, keys, change);
                    keys.truncate(depth);
                }
            }
            _ => {}
        }
    }
    for (key, entry) in root.0.iter_mut().filter(|(key, _)| may_name(key)) {
        node(&mut entry.value, &mut vec![key.clone()], change);
    }
}
