//! `weir circuit`: plans for paths whose rate is reserved, the reservations of this host, and the circuits that are up.

mod args;
mod up;
mod watch;

pub(crate) use args::CircuitArgs;

use crate::failure::terminal_width;
use args::{CircuitAction, PlanArgs, ReserveArgs};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use weir_base::{Rate, Span};
use weir_circuit::{Calendar, Circuit, Guarantee, Plan, Request, Store, StoreError, Timers, Utc};
use weir_daemon::circuit::{self, Host, STORE, Up, asked, in_the_way, make_folder, now, probe, told};
use weir_daemon::{Failure, Run, print, print_json, say};
use weir_report::fit::folded;

/// Runs the subcommand.
pub(crate) fn circuit(action: &CircuitAction) -> Result<(), Failure> {
    match action {
        CircuitAction::Plan(args) => plan(args),
        CircuitAction::Reserve(args) => reserve(args),
        CircuitAction::Up(args) => up::up(args),
        CircuitAction::Down(args) => up::down(args),
        CircuitAction::Change(args) => up::change(args),
        CircuitAction::Watch(args) => watch::watch(args),
        CircuitAction::Keygen(args) => crate::keygen::keygen(&args.file),
        CircuitAction::Daemon(daemon) => daemon.run(),
        CircuitAction::List { all, store, json } => list(*all, &store.store, *json),
        CircuitAction::Cancel { numbers, store } => cancel(numbers, &store.store),
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
    let host = weir_daemon::transfer::address(host)?;
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
        circuit::tell(&notes);
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
