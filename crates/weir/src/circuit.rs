//! `weir circuit`: plans for paths whose rate is reserved, the reservations of this host, and the circuits that are up.

mod aligned;
mod args;
mod entry;
mod host;
mod late;
mod own;
mod probe;
mod send;
mod serve;
mod session;
mod shaped;
mod up;
mod watch;

pub(crate) use args::CircuitArgs;

use crate::failure::{Failure, terminal_width};
use crate::{print, print_json, say};
use args::{Asked, CircuitAction, PlanArgs, ReserveArgs};
use entry::Up;
use host::Host;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::SystemTime;
use weir_base::{Rate, Span};
use weir_circuit::{
    Calendar, Card, Circuit, Conflict, Guarantee, Plan, Refusal, Request, Store, StoreError, Timers, Utc,
};
use weir_report::fit::folded;

/// The file of a host's reservations, unless another one is named.
const STORE: &str = "/var/lib/weir/circuits.sqlite";

/// Runs the subcommand.
pub(crate) fn circuit(action: &CircuitAction) -> Result<(), Failure> {
    match action {
        CircuitAction::Plan(args) => plan(args),
        CircuitAction::Reserve(args) => reserve(args),
        CircuitAction::Up(args) => up::up(args),
        CircuitAction::Down(args) => up::down(args),
        CircuitAction::Change(args) => up::change(args),
        CircuitAction::Watch(args) => watch::watch(args),
        CircuitAction::Keygen(args) => crate::transfer::keygen(&args.file),
        CircuitAction::Serve(args) => serve::serve(args),
        CircuitAction::Send(args) => send::send(args),
        CircuitAction::List { all, store, json } => list(*all, &store.store, *json),
        CircuitAction::Cancel { numbers, store } => cancel(numbers, &store.store),
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::bad_input(refusal.to_string(), refusal.help())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::bad_input(error.to_string(), error.help())
    }
}

fn plan(args: &PlanArgs) -> Result<(), Failure> {
    let (rate, rtt, measured) = measured(args)?;
    let plan = Plan::of(&Request {
        mtu: args.mtu,
        layer: args.counts.into(),
        ip: args.ip,
        guarantee: if args.semi { Guarantee::Semi } else { Guarantee::Full },
        priority: args.priority.into(),
        card: args.card,
        timers: args.hz.map(Timers::Tick).or(args.late.map(Timers::Late)).unwrap_or_default(),
        offloads: !args.no_offloads,
        window_percent: args.window_percent,
        ..Request::new(rate, rtt)
    })?;
    if args.json {
        let mut document = serde_json::to_value(&plan).unwrap_or_default();
        document["settings"] = json!(plan.rows());
        document["measured_rate_bit_per_s"] = json!(measured.map(Rate::bits_per_sec));
        return print_json(&document);
    }
    let rows = plan.rows();
    let label = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let width = terminal_width();
    let mut text = {
        let probed = match (&args.probe, measured) {
            (None, _) => String::new(),
            (Some(host), None) => format!(", the round trip measured to {host}"),
            (Some(host), Some(most)) => {
                let most = format!("{:.1} Mbit/s", most.mbit_per_sec());
                format!(", the round trip measured to {host}, which received frames at {most}")
            }
        };
        let rate = match args.rate {
            Some(rate) => rate.to_string(),
            None => format!("{:.1} Mbit/s", rate.mbit_per_sec()),
        };
        format!("A circuit of {rate} and {rtt}{probed}\n\n")
    };
    for row in rows {
        let indent = label + 2;
        let reason = folded(&format!("{} ({})", row.reason, row.source), indent, width);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:label$}  {}\n{:indent$}{reason}", row.name, row.value, "");
    }
    text += "\nNumbers in brackets are sections of F. Alali, \"A Cross-Layer Design for Large Data Transfers\", 2016.\n";
    print(&text)
}

/// The rate and the round trip to plan for, and the measured rate, if one was measured.
fn measured(args: &PlanArgs) -> Result<(Rate, Span, Option<Rate>), Failure> {
    let Some(host) = &args.probe else {
        return Ok((args.rate.unwrap_or_default(), args.rtt.unwrap_or_default(), None));
    };
    let host = crate::transfer::address(host)?;
    let rtt = probe::round_trip(host)?;
    let measured = probe::rate(host).unwrap_or_else(|error| {
        say(&format!("note: the rate to {host} cannot be measured: {error}"));
        None
    });
    let Some(rate) = args.rate.or(measured) else {
        let help = "run `weir circuit serve` there, or give the rate with --rate";
        return Err(Failure::bad_input(format!("{host} does not report the rate of a burst"), help));
    };
    Ok((rate, rtt, measured))
}

/// The time by the clock of this machine.
fn now() -> Utc {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Utc::from_secs(since_1970.map_or(0, |since| since.as_secs()))
}

/// A request with this rate, round trip and card, and defaults for the rest: its check refuses values that no plan has.
fn request(rate: Rate, rtt: Span, card: Option<Rate>) -> Request {
    Request { card, ..Request::new(rate, rtt) }
}

/// The circuit that is asked for, and the card that is to carry it.
fn asked(args: &Asked, now: Utc) -> Result<(Circuit, Card), Failure> {
    request(args.rate, args.rtt, args.card).check()?;
    let card =
        Card { rate: card_rate(&args.device, args.card)?, background: args.background.unwrap_or_default() };
    let from = args.from.unwrap_or(now);
    let until = match (args.until, args.lasts) {
        (Some(until), _) => until,
        (None, Some(lasts)) => from.after(lasts).ok_or_else(|| {
            let message = format!("from {from}, {lasts} end after the year 9999");
            Failure::bad_input(message, format!("write --for {} or less", Utc::last().since(from)))
        })?,
        (None, None) => from,
    };
    let circuit = Circuit {
        device: args.device.clone(),
        destination: args.to,
        rate: args.rate,
        rtt: args.rtt,
        guarantee: if args.semi { Guarantee::Semi } else { Guarantee::Full },
        from,
        until,
    };
    Ok((circuit, card))
}

fn reserve(args: &ReserveArgs) -> Result<(), Failure> {
    let now = now();
    let (circuit, card) = asked(&args.asked, now)?;
    let path = &args.store.store;
    if path == Path::new(STORE) {
        make_folder(path)?;
    }
    let mut store = Store::open(path)?;
    let reserved = store.reserve(&circuit, &card, now).map_err(|error| in_the_way(&mut store, error))?;
    if let Some(behind) = reserved.clock_behind {
        say(&format!(
            "weir: the clock is {behind} behind the time of the last reservation: correct it if it was set back by mistake"
        ));
    }
    if args.json {
        return print_json(&row(reserved.number, &circuit, now, None));
    }
    print(&format!("{}\n", told(reserved.number, &circuit)))
}

/// The card's rate: the given one, or the one that the device reports.
fn card_rate(device: &str, given: Option<Rate>) -> Result<Rate, Failure> {
    // dev_valid_name in net/core/dev.c: at most 15 bytes, no slash, no colon, no space.
    let unfit = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if device.is_empty() || device.len() > 15 || device == "." || device == ".." || device.contains(unfit) {
        let message = format!("{device:?} cannot be the name of a device");
        return Err(Failure::bad_input(message, "`ip link` lists the devices"));
    }
    if let Some(rate) = given {
        return Ok(rate);
    }
    // Megabits a second, or -1 where the device has none (Documentation/ABI/testing/sysfs-class-net).
    let folder = Path::new("/sys/class/net").join(device);
    if !folder.exists() {
        let message = format!("there is no device {device}");
        return Err(Failure::bad_input(
            message,
            "`ip link` lists the devices; --card gives the rate of a device that does not exist yet",
        ));
    }
    let speed = std::fs::read_to_string(folder.join("speed")).unwrap_or_default();
    match speed.trim().parse::<u64>() {
        Ok(megabits) if megabits > 0 => Ok(Rate::from_mbit_per_sec(megabits)),
        _ => Err(Failure::bad_input(
            format!("{device} does not report its rate"),
            "give it with --card, for example --card 10gbit",
        )),
    }
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::bad_input(
            format!("cannot make {}: {error}", folder.display()),
            "run as root, or name another file with --store",
        )
    })
}

/// Names the reservations that are in the way.
fn in_the_way(store: &mut Store, error: StoreError) -> Failure {
    let numbers = match &error {
        StoreError::Conflict(Conflict::Overlap { with }) => vec![*with],
        StoreError::Conflict(Conflict::Full { with, .. }) => with.clone(),
        _ => return error.into(),
    };
    let Ok((calendar, _)) = store.calendar() else { return error.into() };
    let which = calendar.circuits().filter(|(number, _)| numbers.contains(number));
    let which: String = which.map(|(number, circuit)| format!("\n  {}", told(number, circuit))).collect();
    Failure::bad_input(format!("{error}{which}"), error.help())
}

/// A reservation in words.
fn told(number: u64, circuit: &Circuit) -> String {
    let Circuit { device, destination, rate, rtt, guarantee, from, until } = circuit;
    let promise = if *guarantee == Guarantee::Semi { ", semi-guaranteed" } else { "" };
    format!("{number}: {rate} to {destination} by {device}, {rtt}, from {from} until {until}{promise}")
}

/// The state of a reservation at this time.
fn state(circuit: &Circuit, now: Utc, up: Option<&Up>) -> &'static str {
    match () {
        () if up.is_some() => "up",
        () if now >= circuit.until => "over",
        () if now >= circuit.from => "now",
        () => "to come",
    }
}

fn row(number: u64, circuit: &Circuit, now: Utc, up: Option<&Up>) -> Value {
    json!({
        "number": number,
        "device": circuit.device,
        "destination": circuit.destination,
        "rate_bit_per_s": circuit.rate.bits_per_sec(),
        "rtt_ms": circuit.rtt.as_millis_f64(),
        "guarantee": circuit.guarantee,
        "from": circuit.from,
        "until": circuit.until,
        "state": state(circuit, now, up),
        "class": up.map(|up| up.handle().to_string()),
    })
}

fn list(all: bool, path: &Path, as_json: bool) -> Result<(), Failure> {
    let host = Host::look()?;
    let host = host.map(|(host, notes)| {
        up::tell(&notes);
        host
    });
    let up = |number: u64| host.as_ref().and_then(|host| host.find(number, path)).map(|(_, up)| up);
    let (calendar, latest) = match Store::open_existing(path) {
        // Before the first reservation there is no file.
        Err(StoreError::Failed { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
            (Calendar::default(), Utc::default())
        }
        opened => opened?.calendar()?,
    };
    let now = now();
    if now < latest {
        say(&format!("weir: the clock reads {now}, but reservations were made at {latest}"));
    }
    let mut shown: Vec<(u64, &Circuit)> =
        calendar.circuits().filter(|(_, circuit)| all || now < circuit.until).collect();
    shown.sort_by_key(|(number, circuit)| (circuit.from, *number));
    if as_json {
        let rows: Vec<_> =
            shown.iter().map(|(number, circuit)| row(*number, circuit, now, up(*number))).collect();
        return print_json(&rows);
    }
    let lines = shown.iter().map(|(number, circuit)| {
        format!("{:8} {}\n", state(circuit, now, up(*number)), told(*number, circuit))
    });
    print(&lines.collect::<String>())
}

fn cancel(numbers: &[u64], path: &Path) -> Result<(), Failure> {
    if let Some((host, _)) = Host::look()?
        && let Some(number) = numbers.iter().find(|number| host.find(**number, path).is_some())
    {
        let message = format!("circuit {number} is up");
        return Err(Failure::bad_input(message, format!("take it down first: `weir circuit down {number}`")));
    }
    let mut store = Store::open_existing(path)?;
    let cancelled = store.cancel(numbers, now())?;
    let lines = numbers.iter().zip(&cancelled);
    print(
        &lines.map(|(number, circuit)| format!("cancelled {}\n", told(*number, circuit))).collect::<String>(),
    )
}
