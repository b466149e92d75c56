//! The labs that `weir reproduce --rerun` has completed so far. After an interruption each lab's rerun goes on by itself; this
//! keeps the same command from running the completed labs once more.

use crate::failure::Failure;
use crate::run::build;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;
use weir_plan::Lab;

/// The file in the folder of all labs; it is removed after the last lab.
const FILE: &str = ".weir-rerun.json";

/// A rerun of several labs.
pub(crate) struct Session {
    folder: PathBuf,
    state: State,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct State {
    build: String,
    /// The command's arguments.
    asked: String,
    /// The labs that are complete: their folders, and digests of what was run.
    done: BTreeMap<String, String>,
}

impl Session {
    /// The session of this command: the one that an interruption left, or a new one.
    pub(crate) fn open(folder: &Path, asked: String) -> Session {
        let build = build().to_owned();
        let before =
            fs::read(folder.join(FILE)).ok().and_then(|text| serde_json::from_slice::<State>(&text).ok());
        let state = before.filter(|before| (&before.build, &before.asked) == (&build, &asked));
        let state = state.unwrap_or(State { build, asked, done: BTreeMap::new() });
        Session { folder: folder.into(), state }
    }

    /// Whether this lab, as it is now, is complete.
    pub(crate) fn has(&self, folder: &str, lab: &Lab) -> bool {
        self.state.done.get(folder).is_some_and(|done| *done == digest(lab))
    }

    /// Records that a lab is complete.
    pub(crate) fn completed(&mut self, folder: &str, lab: &Lab) -> Result<(), Failure> {
        self.state.done.insert(folder.into(), digest(lab));
        let text = serde_json::to_vec(&self.state).map_err(|error| Failure::failed(error.to_string()))?;
        weir_engine::atomic_write(&self.folder, FILE, &text).map_err(|error| self.failed(&error))
    }

    /// Ends the session: all labs are complete.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match fs::remove_file(self.folder.join(FILE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(&error)),
            _ => Ok(()),
        }
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::failed(format!("{}: {error}", self.folder.join(FILE).display()))
    }
}

fn digest(lab: &Lab) -> String {
    format!("{:016x}", XxHash64::oneshot(0, lab.source().as_bytes()))
}
