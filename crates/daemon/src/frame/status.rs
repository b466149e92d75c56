//! The status of daemons. Each answers questions under a name: that of its command, and its own.

use crate::failure::Failure;
use crate::output::{print, print_json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use weir_linux::question;

/// Beginning of the sockets' names.
const PREFIX: &str = "weir-";

/// What a daemon has counted and measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Status {
    /// What it is; the frame sets it, and the time.
    pub kind: String,
    /// Where it is, after its kind: `between a and b`.
    pub place: String,
    /// What distinguishes it from others of its kind: a name and a value.
    pub labels: Vec<(String, String)>,
    /// Seconds since it was started.
    pub up_s: f64,
    /// What it has counted.
    pub counters: Counters,
    /// What its parts are, `application` for example.
    pub part: String,
    /// Its parts.
    pub parts: Vec<Part>,
    /// What a page shows below them, and Prometheus is not told: it comes and goes.
    pub details: Details,
}

/// Things that come and go, flows for example.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Details {
    /// What one of them is; empty if there are none.
    pub name: String,
    /// Each of them.
    pub rows: Vec<Part>,
}

impl Status {
    /// The status of a transfer's end: its place, and the bytes and files that it has counted.
    pub(crate) fn of_transfer(at: &str, counted: [(&str, u64); 2]) -> Status {
        Status {
            place: format!("at {at}"),
            labels: vec![("at".into(), at.to_owned())],
            counters: Counters {
                name: "transferred".into(),
                meaning: "What was transferred.".into(),
                values: counted.map(|(name, count)| (name.to_owned(), count)).to_vec(),
            },
            part: "session".into(),
            ..Status::default()
        }
    }
}

impl Status {
    /// Sets a counter.
    pub(crate) fn count(&mut self, name: &str, to: u64) {
        self.counters.values.iter_mut().filter(|(own, _)| own == name).for_each(|(_, count)| *count = to);
    }
}

/// Counters of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// What they count: `packets`.
    pub name: String,
    /// A sentence that says so.
    pub meaning: String,
    /// Each counter's name and value.
    pub values: Vec<(String, u64)>,
}

impl Part {
    /// A session with another host, and the bytes that it has received.
    pub(crate) fn session(from: &str, received: u64) -> Part {
        Part {
            labels: vec![("from".into(), from.into())],
            values: vec![("received_bytes".into(), received as f64)],
        }
    }
}

/// A part of a daemon, a connection for example.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Part {
    /// What distinguishes it from the others.
    pub labels: Vec<(String, Value)>,
    /// Measured values, with their unit in the name.
    pub values: Vec<(String, f64)>,
}

/// A status that one thread writes and others read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board(Arc<Mutex<Status>>);

impl Board {
    /// Changes it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What it says.
    pub(crate) fn read(&self) -> Status {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A label's value as a word.
pub(super) fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Status {
    /// The status as a JSON document.
    pub fn document(&self) -> Value {
        let own = self.labels.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        let mut all: Map<String, Value> = own.collect();
        all.insert("up_s".into(), self.up_s.into());
        if !self.counters.name.is_empty() {
            all.insert(self.counters.name.clone(), serde_json::json!(self.counters.values));
        }
        if !self.part.is_empty() {
            let of = |part: &Part| {
                let mut one: Map<String, Value> = part.labels.iter().cloned().collect();
                one.insert("values".into(), serde_json::json!(part.values));
                Value::from(one)
            };
            all.insert(format!("{}s", self.part), self.parts.iter().map(of).collect());
        }
        Value::from(all)
    }

    /// The status as text, without the counters that are zero.
    pub fn text(&self) -> String {
        let Status { kind, place, up_s, counters, part, parts, .. } = self;
        let mut text = format!("{kind} {place}, for {up_s:.0} s\n");
        let counted: Vec<_> = counters.values.iter().filter(|(_, count)| *count > 0).collect();
        let width = |names: &mut dyn Iterator<Item = usize>| names.max().unwrap_or(0);
        let label = width(&mut counted.iter().map(|(name, _)| name.len()));
        for (name, count) in counted {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {name:label$}  {count:>12}");
        }
        for one in parts {
            let labels: Vec<String> = one.labels.iter().map(|(_, value)| word(value)).collect();
            let _ = writeln!(text, "  {part} {}", labels.join(", "));
            let label = width(&mut one.values.iter().map(|(name, _)| name.len()));
            for (name, value) in &one.values {
                let value = if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.3}") };
                let _ = writeln!(text, "    {name:label$}  {value:>12}");
            }
        }
        text
    }
}

/// The name under which a daemon of this command and name answers.
fn address(command: &str, name: &str) -> String {
    format!("{PREFIX}{}:{name}", command.replace(' ', "-"))
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// The socket at which a daemon answers.
pub(super) struct Listener(question::Listener);

impl Listener {
    /// Takes the name of a daemon.
    ///
    /// # Errors
    /// Another process of this command has it.
    pub(super) fn open(command: &str, kind: &str, name: &str) -> Result<Listener, Failure> {
        let listener = question::Listener::open(&address(command, name));
        listener.map(Listener).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Failure::bad_input(
                format!("{} {kind} is already running at {name}", article(kind)),
                "`weir status` lists the running ones",
            ),
            _ => Failure::bad_input(
                format!("{kind} cannot be named {name:?}: {error}"),
                "choose a shorter name",
            ),
        })
    }

    /// Answers until the process ends.
    pub(super) fn serve(&self, status: &dyn Fn() -> Status) {
        self.0.serve(
            || false,
            |asked| match asked {
                Some(_) => serde_json::to_vec(&status()).unwrap_or_default(),
                None => Vec::new(),
            },
        );
    }
}

/// The daemons of this network namespace: the command of each, with `-` for spaces, and its name.
fn running() -> Vec<(String, String)> {
    let of = |name: String| name.split_once(':').map(|(command, name)| (command.to_owned(), name.to_owned()));
    question::names(PREFIX).into_iter().filter_map(of).collect()
}

fn ask(command: &str, name: &str) -> io::Result<Status> {
    let text = question::ask(&address(command, name), b"")?;
    if text.is_empty() {
        return Err(io::Error::other("it answers only root and its own user"));
    }
    Ok(serde_json::from_slice(&text)?)
}

/// Shows the daemons of one command, or the one of this name.
///
/// # Errors
/// None has this name, or one does not answer.
pub(crate) fn show_of(command: &str, kind: &str, name: Option<&str>, json: bool) -> Result<(), Failure> {
    let all = running().into_iter().filter(|(of, _)| of == command).map(|(_, name)| name);
    let names = name.map_or_else(|| all.collect(), |name| vec![name.to_owned()]);
    let asked = names.iter().map(|name| {
        ask(command, name).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Failure::bad_input(
                format!("no {kind} is running at {name}"),
                "name the device towards its endpoints (--local); without a name all are shown",
            ),
            _ => Failure::failed(format!("the {kind} at {name} does not answer: {error}")),
        })
    });
    print_all(
        &asked.collect::<Result<Vec<_>, _>>()?,
        &format!("no {kind} is running here\n"),
        json,
        Status::document,
    )
}

/// Shows all daemons of this network namespace that answer this user.
///
/// # Errors
/// It cannot be printed.
pub fn show(json: bool) -> Result<(), Failure> {
    let all: Vec<Status> = running().iter().filter_map(|(command, name)| ask(command, name).ok()).collect();
    let document = |status: &Status| {
        let mut all = Map::from_iter([("kind".to_owned(), Value::from(status.kind.as_str()))]);
        all.extend(status.document().as_object().cloned().unwrap_or_default());
        Value::from(all)
    };
    print_all(&all, "nothing of weir runs here\n", json, document)
}

fn print_all(
    all: &[Status],
    none: &str,
    json: bool,
    document: impl Fn(&Status) -> Value,
) -> Result<(), Failure> {
    match all {
        all if json => print_json(&all.iter().map(document).collect::<Vec<_>>()),
        [] => print(none),
        some => print(&some.iter().map(Status::text).collect::<Vec<_>>().join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_daemon_answers_under_its_name_and_only_one_has_it() {
        let name = format!("test-{}", std::process::id());
        let listener = Listener::open("try it", "example", &name).unwrap();
        let again = Listener::open("try it", "example", &name).err().unwrap();
        assert!(again.message.contains("an example is already running at"), "{}", again.message);
        let part = Part { labels: vec![("id".into(), json!(7))], values: vec![("rtt_ms".into(), 0.5)] };
        let counters = Counters {
            name: "packets".into(),
            values: vec![("sent".into(), 2), ("lost".into(), 0)],
            ..Counters::default()
        };
        let status = Status {
            kind: "example".into(),
            place: "at x".into(),
            labels: vec![("at".into(), "x".into())],
            up_s: 3.0,
            counters,
            part: "flow".into(),
            parts: vec![part],
            ..Status::default()
        };
        let told = status.clone();
        std::thread::spawn(move || listener.serve(&move || told.clone()));
        assert!(running().contains(&("try-it".to_owned(), name.clone())));
        let asked = ask("try it", &name).unwrap();
        assert_eq!(asked, status);
        let expected = json!({ "at": "x", "up_s": 3.0, "packets": [["sent", 2], ["lost", 0]], "flows": [{ "id": 7, "values": [["rtt_ms", 0.5]] }] });
        assert_eq!(asked.document(), expected);
        assert_eq!(
            asked.text(),
            "example at x, for 3 s\n  sent             2\n  flow 7\n    rtt_ms         0.500\n"
        );
    }
}
