//! The network and the sessions that are asked about: from CSV, or from a lab.

use super::CapacityArgs;
use crate::failure::Failure;
use crate::say;
use std::path::Path;

use weir_engine::capacity;
use weir_optimum::{Network, Session, read_csv};
use weir_plan::{Lab, Network as Fabric, suggest};

/// Largest CSV file: a hundred thousand links with names of 64 characters.
const LARGEST_FILE: u64 = 32 << 20;

/// A network and its sessions, with the name of the file.
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) network: Network,
    pub(crate) sessions: Vec<Session>,
}

impl Input {
    /// Reads the file, and picks and weighs the sessions.
    pub(crate) fn read(args: &CapacityArgs) -> Result<Input, Failure> {
        let is_csv = args.file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
        let (network, mut sessions) = if is_csv { csv(args)? } else { lab(args)? };
        pick(&mut sessions, &args.session)?;
        weigh(&mut sessions, &args.weight)?;
        let name = args.file.file_name().unwrap_or(args.file.as_os_str()).to_string_lossy().into_owned();
        Ok(Input { name, network, sessions })
    }
}

fn csv(args: &CapacityArgs) -> Result<(Network, Vec<Session>), Failure> {
    if !args.set.is_empty() {
        return Err(Failure::bad_input("--set changes labs, not CSV", "change the file"));
    }
    let network = read_csv(&text_of(&args.file)?).map_err(|error| {
        Failure::bad_input(format!("{}: {error}", args.file.display()), error.help.clone())
    })?;
    if args.from.len() != args.to.len() || args.from.is_empty() {
        let message =
            format!("{} sources and {} lists of receivers make no sessions", args.from.len(), args.to.len());
        return Err(Failure::bad_input(
            message,
            "write --from NODE --to NODE[,NODE...], once for each session",
        ));
    }
    let node = |name: &str| {
        network.node(name).ok_or_else(|| {
            let names = network.nodes().iter().map(|node| node.name.as_str());
            Failure::bad_input(format!("there is no node `{name}`"), suggest(name, names))
        })
    };
    let mut sessions = Vec::new();
    for (number, (from, to)) in (1..).zip(args.from.iter().zip(&args.to)) {
        let receivers = to.split(',').map(|name| node(name.trim())).collect::<Result<_, _>>()?;
        sessions.push(Session::new(number.to_string(), node(from.trim())?, receivers));
    }
    Ok((network, sessions))
}

fn text_of(file: &Path) -> Result<String, Failure> {
    let about = |what: String, help: &str| Failure::bad_input(format!("{}: {what}", file.display()), help);
    let length = std::fs::metadata(file).map(|data| data.len());
    let length =
        length.map_err(|error| about(error.to_string(), "name a file that exists and that you can read"))?;
    if length > LARGEST_FILE {
        return Err(about(format!("{length} bytes are too many"), "ask for a part of the network"));
    }
    std::fs::read_to_string(file).map_err(|error| about(error.to_string(), "write it as UTF-8 text"))
}

fn lab(args: &CapacityArgs) -> Result<(Network, Vec<Session>), Failure> {
    if !args.from.is_empty() {
        let help = "remove them; --session picks among the groups";
        return Err(Failure::bad_input("--from and --to name sessions of CSV; a lab has its own", help));
    }
    let lab = Lab::load(&args.file, &args.set)?;
    let runs = lab.runs();
    let Some(run) = runs.first() else {
        return Err(Failure::bad_input("the lab has no run", "let its tree have a cell"));
    };
    if !run.params.is_empty() {
        say(&format!("note: the lab varies; this is about its first run, {}", run.id));
    }
    warn(&run.network);
    let network = capacity::network_of(&run.network)
        .map_err(|error| Failure::bad_input(error.to_string(), "ask for a smaller lab"))?;
    Ok((network, capacity::sessions_of(run)))
}

/// Says what of the links the answer leaves out.
fn warn(network: &Fabric) {
    let changes = |link: &&weir_plan::Link| {
        !link.schedule.is_empty()
            || !link.outages.is_empty()
            || link.traces().next().is_some()
            || link.wifi.is_some()
    };
    let names: Vec<&str> = network.links.iter().filter(changes).map(|link| link.name.as_str()).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        say(&format!(
            "note: these links change during the run; the rate and the delay at its start count: {names}"
        ));
    }
}

/// Keeps the sessions that were asked for.
fn pick(sessions: &mut Vec<Session>, names: &[String]) -> Result<(), Failure> {
    for name in names {
        index_of(sessions, name)?;
    }
    if !names.is_empty() {
        sessions.retain(|session| names.contains(&session.name));
    }
    Ok(())
}

fn weigh(sessions: &mut [Session], weights: &[String]) -> Result<(), Failure> {
    for text in weights {
        let wrong = || {
            let help = "write --weight SESSION=NUMBER with a number above 0";
            Failure::bad_input(format!("--weight {text} is no weight of a session"), help)
        };
        let (name, number) = text.split_once('=').ok_or_else(wrong)?;
        let index = index_of(sessions, name)?;
        let number: f64 = number.parse().map_err(|_| wrong())?;
        if !(number.is_finite() && number > 0.0) {
            return Err(wrong());
        }
        sessions[index].weight = number;
    }
    Ok(())
}

fn index_of(sessions: &[Session], name: &str) -> Result<usize, Failure> {
    sessions.iter().position(|session| session.name == name).ok_or_else(|| {
        let names = sessions.iter().map(|session| session.name.as_str());
        Failure::bad_input(format!("there is no session `{name}`"), suggest(name, names))
    })
}
