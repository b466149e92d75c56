//! The daemons of a run: started in their namespaces, asked how they are, and gone with this value, or with this process, however it ends.
//! Their files and keys are in a folder in memory, which ends with them.

use super::dissolved::Dissolved;
use super::file::{GROUP_KEY, names, text};
use super::multicast::has_groups;
use crate::controls::unable;
use crate::testbed::Testbed;
use serde_json::Value;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use weir_base::{Bytes, not_started};
use weir_engine::EngineError;
use weir_linux::memory::Folder;
use weir_linux::privileges::CapabilitySet;
use weir_linux::process::{give_processor, inside, keep_rights, time_of};
use weir_linux::question;
use weir_plan::Run;

/// The program of daemons, which is this one.
const PROGRAM: &str = "weir";
/// Beginning of the names at which daemons answer, each in its own network namespace; the node's name follows.
pub const PREFIX: &str = "weir/overlay:";
/// The question how a node is.
const STATUS: &[u8] = b"\"status\"";
/// Room for the files of all daemons, and for what they say.
const ROOM: Bytes = Bytes::new(64 << 20);
/// Lines of what a daemon has said last that an error shows.
const LAST_LINES: usize = 8;
/// What a daemon needs of root's rights: devices, routes and tables, connections in the name of hosts, a real-time thread.
const RIGHTS: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_NICE);

/// The daemons of a run.
#[derive(Debug)]
pub(crate) struct Daemons<'a> {
    testbed: &'a Testbed,
    folder: Folder,
    all: Vec<Daemon>,
}

/// The daemon of a node.
#[derive(Debug)]
struct Daemon {
    name: String,
    child: Child,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that runs as a daemon: this one, or that of its name where another program has the engine.
fn program() -> Result<PathBuf, EngineError> {
    let own = std::env::current_exe().ok();
    let is_weir = own.as_deref().and_then(|path| path.file_stem()).is_some_and(|name| name == PROGRAM);
    if is_weir {
        // It is there even if its file was replaced.
        return Ok("/proc/self/exe".into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&folders).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file());
    found.ok_or_else(|| {
        unable(
            "the nodes of the overlay are daemons of the program `weir`, which is not in PATH".into(),
            "install it, or use `--on sim`",
        )
    })
}

impl<'a> Daemons<'a> {
    /// Starts the daemons of a run in their namespaces. They end with the calling thread at the latest.
    ///
    /// # Errors
    /// The program is not there, or cannot be started.
    pub(crate) fn start(
        planned: &Run,
        dissolved: &Dissolved,
        testbed: &'a Testbed,
    ) -> Result<Daemons<'a>, EngineError> {
        let failed =
            |error: io::Error| EngineError::Failed(format!("cannot start the overlay's daemons: {error}"));
        let program = program()?;
        let folder = Folder::new(ROOM).map_err(failed)?;
        let mut daemons = Daemons { testbed, folder, all: Vec::new() };
        if has_groups(planned) {
            daemons.key(&program, GROUP_KEY).map_err(failed)?;
        }
        let own = |number: usize| names(number)[1].clone();
        let keys = (0..dissolved.sites.len()).map(|number| daemons.key(&program, &own(number)));
        let keys = keys.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        for (number, site) in dissolved.sites.iter().enumerate() {
            let text = text(planned, dissolved, number, &keys);
            daemons.begin(&program, number, &site.name, &text).map_err(failed)?;
        }
        Ok(daemons)
    }

    /// Makes a file with a key. Returns the lines of it that all nodes are given.
    fn key(&self, program: &PathBuf, key: &str) -> io::Result<String> {
        let mut command = Command::new(program);
        command.args(["overlay", "keygen"]).arg(self.folder.path().join(key)).stdin(Stdio::null());
        self.folder.give(&mut command);
        let Output { status, stdout, stderr } = command.output().map_err(not_started)?;
        match status.success() {
            true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
            false => Err(io::Error::other(String::from_utf8_lossy(&stderr).into_owned())),
        }
    }

    fn begin(&mut self, program: &PathBuf, number: usize, name: &str, text: &str) -> io::Result<()> {
        let [file, _, log] = names(number).map(|name| self.folder.path().join(name));
        fs::write(&file, text)?;
        let said = File::create(log)?;
        let mut command = Command::new(program);
        command.args(["overlay", "node"]).arg(file).stdin(Stdio::null());
        command.stdout(said.try_clone()?).stderr(said);
        self.folder.give(&mut command);
        if !rustix::process::geteuid().is_root() {
            keep_rights(&mut command, RIGHTS);
        }
        give_processor(&mut command);
        inside(&mut command, &self.testbed.sites[number].namespace);
        let child = command.spawn().map_err(not_started)?;
        self.all.push(Daemon { name: name.to_owned(), child });
        Ok(())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// The process of a node's daemon.
    pub(crate) fn process(&self, number: usize) -> u32 {
        self.all[number].child.id()
    }

    /// The processor time of all daemons so far.
    pub(crate) fn used(&self) -> Duration {
        self.all.iter().map(|daemon| time_of(daemon.child.id())).sum()
    }

    /// The name at which a node answers.
    pub(crate) fn question(&self, number: usize) -> Asking {
        Asking(format!("{PREFIX}{}", self.all[number].name))
    }

    /// Asks a node how it is, from outside its namespace.
    ///
    /// # Errors
    /// It does not answer, or not yet.
    pub(crate) fn ask(&self, number: usize) -> io::Result<Value> {
        self.testbed.sites[number].namespace.inside(|| self.question(number).ask())
    }

    /// Why a daemon has ended, with what it has said last; `None` while all run.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let ended = self.all.iter_mut().enumerate().find_map(|(number, daemon)| {
            let status = daemon.child.try_wait().ok().flatten()?;
            Some((number, format!("the daemon of node {} ended ({status})", daemon.name)))
        });
        ended.map(|(number, what)| self.with_last_words(number, &what))
    }

    /// A sentence about a node, with the last lines that it has said.
    pub(crate) fn with_last_words(&self, number: usize, what: &str) -> String {
        let [_, _, log] = names(number);
        let said = fs::read(self.folder.path().join(log)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().collect();
        match lines[lines.len().saturating_sub(LAST_LINES)..].join("\n") {
            last if last.is_empty() => what.to_owned(),
            last => format!("{what}:\n{last}"),
        }
    }
}

/// A way to ask a node, for a thread inside its namespace.
#[derive(Debug, Clone)]
pub(crate) struct Asking(String);

impl Asking {
    /// Asks how it is.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub(crate) fn ask(&self) -> io::Result<Value> {
        let answer: Value = serde_json::from_slice(&question::ask(&self.0, STATUS)?)?;
        match answer["error"].as_str() {
            Some(error) => Err(io::Error::other(error.to_owned())),
            None => Ok(answer),
        }
    }
}
