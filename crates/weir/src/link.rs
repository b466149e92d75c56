//! `weir link`: the links of wrapped commands and live runs, shown and changed while they work.

use crate::cli::LinkAction;
use crate::failure::Failure;
use crate::{print, print_json};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::io::ErrorKind;
use weir_base::terminal::printable_line;
use weir_live::control::{Request, ask, running};

/// Runs the subcommand.
pub(crate) fn link(action: &LinkAction) -> Result<(), Failure> {
    match action {
        LinkAction::List { json } => list(*json),
        LinkAction::Show { name, json } => show(name, *json),
        LinkAction::Set { name, settings } => set(name, settings),
    }
}

/// Most characters of a title that are shown.
const WIDEST: usize = 100;

/// A run that answers, and its links.
struct Running {
    name: String,
    about: Value,
}

impl Running {
    fn links(&self) -> &[Value] {
        self.about["links"].as_array().map_or(&[], Vec::as_slice)
    }

    /// What runs, in a line that fits on a terminal.
    fn title(&self) -> String {
        let title = plain(&self.about["title"]);
        let mut short: String = title.chars().take(WIDEST).collect();
        if short.len() < title.len() {
            short.push_str("...");
        }
        short
    }

    fn link(&self, name: &str) -> Option<&Value> {
        self.links().iter().find(|link| link["name"] == name)
    }
}

/// All runs that answer this user.
fn all() -> Vec<Running> {
    let of = |name: String| {
        let about = ask(&name, &Request::Show).ok().filter(|about| about.get("error").is_none())?;
        Some(Running { name, about })
    };
    running().into_iter().filter_map(of).collect()
}

fn list(as_json: bool) -> Result<(), Failure> {
    let all = all();
    if as_json {
        let document = |run: &Running| {
            let mut one = Map::from_iter([("run".to_owned(), Value::from(run.name.as_str()))]);
            one.extend(run.about.as_object().cloned().unwrap_or_default());
            Value::from(one)
        };
        return print_json(&all.iter().map(document).collect::<Vec<_>>());
    }
    if all.is_empty() {
        return print("no wrapped command and no live run of yours is running here\n");
    }
    let mut text = String::new();
    for run in &all {
        let up = run.about["up_s"].as_f64().unwrap_or(0.0);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}  {}, for {up:.0} s", run.name, run.title());
        let width = run.links().iter().map(|link| plain(&link["name"]).len()).max().unwrap_or(0);
        for link in run.links() {
            let _ = writeln!(text, "  {:width$}  {}", plain(&link["name"]), settings(link));
        }
    }
    print(&text)
}

fn show(name: &str, as_json: bool) -> Result<(), Failure> {
    let (run, link) = find(name)?;
    let about = run.link(&link).cloned().unwrap_or_default();
    let changes: Vec<&Value> = run.about["changes"].as_array().into_iter().flatten().collect();
    if as_json {
        return print_json(&json!({ "run": run.name, "link": about, "changes": changes }));
    }
    let mut text = format!("{}:{link}  {}\n", run.name, run.title());
    for (key, value) in about.as_object().into_iter().flatten().filter(|(key, _)| *key != "name") {
        let _ = writeln!(text, "  {key:9}  {}", plain(value));
    }
    for change in changes {
        let _ = writeln!(text, "  changed at {}", plain(change));
    }
    print(&text)
}

fn set(name: &str, words: &[String]) -> Result<(), Failure> {
    let (run, link) = find(name)?;
    let request = Request::Set { link, change: words.join(" ") };
    let answer = ask(&run.name, &request).map_err(|error| unanswered(&run.name, &error))?;
    if let Some(error) = answer["error"].as_str() {
        return Err(match answer["help"].as_str() {
            Some(help) => Failure::bad_input(error, help),
            // Diagnostics have their suggestions with them.
            None => Failure::bad_input(error.trim_end(), "`weir link set --help` names what can be changed"),
        });
    }
    print(&format!("{}\n", settings(&answer["link"])))
}

/// The run that has a link of this name, and the link's own name: `NAME`, or `RUN:NAME`.
fn find(name: &str) -> Result<(Running, String), Failure> {
    let mut all = all();
    let link = match name.split_once(':') {
        Some((run, link)) => {
            all.retain(|other| other.name == run);
            link
        }
        None => name,
    };
    let names: Vec<String> = all.iter().flat_map(Running::links).map(|link| plain(&link["name"])).collect();
    if all.is_empty() {
        let help = "`weir link list` shows what runs; only runs of the same user are found";
        return Err(Failure::bad_input(format!("nothing runs here that has the link `{name}`"), help));
    }
    all.retain(|run| run.link(link).is_some());
    match all.len() {
        0 => {
            let help = weir_plan::suggest(link, names.iter().map(String::as_str));
            Err(Failure::bad_input(format!("there is no link `{link}`"), help))
        }
        1 => Ok((all.remove(0), link.to_owned())),
        several => {
            let each: Vec<String> = all.iter().map(|run| format!("{}:{link}", run.name)).collect();
            let help = format!("name one of them: {}", each.join(", "));
            Err(Failure::bad_input(format!("{several} runs have a link `{link}`"), help))
        }
    }
}

fn unanswered(run: &str, error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
            Failure::failed(format!("the run {run} has ended"))
        }
        _ => Failure::failed(format!("the run {run} does not answer: {error}")),
    }
}

/// A link's settings in a line.
fn settings(link: &Value) -> String {
    let all = link.as_object().into_iter().flatten().filter(|(key, _)| *key != "name");
    all.map(|(key, value)| format!("{key} {}", plain(value))).collect::<Vec<_>>().join(", ")
}

/// A value without quotes, and without what a terminal would obey.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| printable_line(text).into_owned())
}
