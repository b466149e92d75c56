//! The links of a live run as other processes see and change them (`weir link`). Each run answers questions in the network namespace that
//! weir was started in.

mod links;
mod request;

pub(crate) use links::Links;
pub use request::Request;

use serde_json::{Value, json};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_linux::question;

/// Beginning of the sockets' names; the process id follows, and a number if the process has several runs.
const PREFIX: &str = "weir/link:";
/// Most runs of one process at once.
const MOST_RUNS: u32 = 64;

/// The socket at which a run answers.
#[derive(Debug)]
pub(crate) struct Listener(question::Listener);

impl Listener {
    /// Takes a name for a run of this process.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open() -> io::Result<Listener> {
        let process = std::process::id();
        let names = (2..=MOST_RUNS).map(|number| format!("{process}.{number}"));
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for name in std::iter::once(process.to_string()).chain(names) {
            match question::Listener::open(&format!("{PREFIX}{name}")) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
                opened => return opened.map(Listener),
            }
        }
        Err(last)
    }

    /// Answers until the run is over. To be called on a thread of its own.
    pub(crate) fn serve(&self, links: &mut Links<'_>, over: &AtomicBool) {
        let is_over = || over.load(Ordering::Acquire);
        self.0.serve(is_over, |request| {
            let answer = match request.map(Request::parse) {
                Some(Ok(request)) => links.obey(&request),
                Some(Err(why)) => refusal(&why, "`weir link --help` shows what can be asked"),
                None => refusal(
                    "these links belong to another user",
                    "run the command as the user who started the run, or as root",
                ),
            };
            serde_json::to_vec(&answer).unwrap_or_default()
        });
    }
}

/// The answer to a request that is not obeyed.
fn refusal(error: &str, help: &str) -> Value {
    json!({ "error": error, "help": help })
}

/// The runs whose links can be asked for in this network namespace, by name.
pub fn running() -> Vec<String> {
    question::names(PREFIX)
}

/// Asks a run; the answer is a table, with `error` and `help` if the request was refused.
///
/// # Errors
/// The run has ended, does not answer in time, or is another user's.
pub fn ask(name: &str, request: &Request) -> io::Result<Value> {
    let answer = question::ask(&format!("{PREFIX}{name}"), request.to_string().as_bytes())?;
    Ok(serde_json::from_slice(&answer)?)
}
