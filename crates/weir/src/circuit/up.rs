//! `weir circuit up`, `down` and `change`.

use super::args::{ChangeArgs, DownArgs, PriorityName, UpArgs};
use super::row;
use weir_base::Rate;
use weir_circuit::{Card, Circuit, Plan, Store};
use weir_daemon::circuit::{
    Host, Up, asked, card_rate, check_capabilities, commands, in_the_way, late, now, request, set_up, tell,
    told, wanted,
};
use weir_daemon::{Failure, print, print_json, say};
use weir_shaper::Device;

pub(crate) fn up(args: &UpArgs) -> Result<(), Failure> {
    let now = now();
    let path = &args.store.store;
    let (number, circuit, card) = match (&args.number, &args.asked) {
        (Some(number), _) => {
            let (calendar, _) = Store::open_existing(path)?.calendar()?;
            let found = calendar.circuits().find(|(it, _)| it == number);
            let Some((_, circuit)) = found else {
                return Err(weir_circuit::StoreError::Unknown(*number).into());
            };
            (Some(*number), circuit.clone(), None)
        }
        (None, Some(wanted)) => {
            // Checked first: a device that is not here cannot be shaped.
            drop(Device::open(&wanted.device)?);
            let (circuit, card) = asked(wanted, now)?;
            (None, circuit, Some(card))
        }
        (None, None) => {
            let help =
                "name a reservation (`weir circuit up 3`), or give --to, --device, --rate, --rtt and --for";
            return Err(Failure::bad_input("no circuit is named", help));
        }
    };
    check_time(&circuit, now)?;
    let mut device = Device::open(&circuit.device)?;
    let (mtu, _) = device.sizes()?;
    let up = Up {
        background: matches!(args.priority, PriorityName::Background),
        controlled: !args.no_control,
        streams: args.streams,
        late_ns: late(args.late).as_nanos(),
        ..wanted(number.unwrap_or(0), path, &circuit, mtu)
    };
    let plan = up.plan()?;
    if args.dry_run {
        return print(&(commands(&mut device, &up, &plan)?.join("\n") + "\n"));
    }
    let up = set_up(&mut device, up, &circuit, card.as_ref(), args.replace)?;
    if args.json {
        let mut document = row(up.number, &circuit, now, Some(&up));
        document["plan"] = serde_json::to_value(&plan).unwrap_or_default();
        return print_json(&document);
    }
    let Plan { window, tcp_rmem: [_, _, receive], .. } = &plan;
    let ceiling = plan.told_ceiling();
    let window = if up.controlled { format!("window {window}") } else { "no window".to_owned() };
    say(&format!("the receiver needs {receive} bytes as second and third value of net.ipv4.tcp_rmem"));
    print(&format!(
        "{}\n  up: class {}, {window}, at most {ceiling} of payload\n",
        told(up.number, &circuit),
        up.handle()
    ))
}

fn check_time(circuit: &Circuit, now: weir_circuit::Utc) -> Result<(), Failure> {
    if now >= circuit.until {
        return Err(Failure::bad_input(
            format!("the reservation ended at {}", circuit.until),
            "reserve the circuit for another time",
        ));
    }
    if now < circuit.from {
        return Err(Failure::bad_input(
            format!("the reservation begins at {}; it is {now}", circuit.from),
            "repeat the command then",
        ));
    }
    Ok(())
}

pub(crate) fn down(args: &DownArgs) -> Result<(), Failure> {
    check_capabilities(false)?;
    let (mut host, notes) = Host::lock()?;
    tell(&notes);
    let all = host.devices().iter().flat_map(|device| &device.circuits);
    let wanted: Vec<Up> = match args.all {
        true => all.cloned().collect(),
        false => {
            let of = |number: &u64| host.find(*number, &args.store.store).map(|(_, up)| up.clone());
            let found: Result<_, u64> = args.numbers.iter().map(|number| of(number).ok_or(*number)).collect();
            found.map_err(not_up)?
        }
    };
    let numbers: Vec<_> = wanted.iter().map(|up| (up.number, up.store.clone())).collect();
    tell(&host.lower(&numbers)?);
    let lines = wanted.iter().map(|up| format!("down: {}, to {}\n", up.number, up.destination));
    print(&lines.collect::<String>())
}

fn not_up(number: u64) -> Failure {
    Failure::bad_input(format!("circuit {number} is not up"), "`weir circuit list` shows those that are up")
}

pub(crate) fn change(args: &ChangeArgs) -> Result<(), Failure> {
    let path = &args.store.store;
    let (calendar, _) = Store::open_existing(path)?.calendar()?;
    let old =
        calendar.circuits().find(|(number, _)| *number == args.number).map(|(_, circuit)| circuit.clone());
    let old = old.ok_or(weir_circuit::StoreError::Unknown(args.number))?;
    let card = Card { rate: card_rate(&old.device, args.card)?, background: Rate::default() };
    request(args.rate, old.rtt, Some(card.rate)).check()?;
    let change = || {
        let mut store = Store::open_existing(path)?;
        store.change(args.number, args.rate, &card, now()).map_err(|error| in_the_way(&mut store, error))
    };
    match Host::look()? {
        Some((mut host, notes)) => {
            tell(&notes);
            tell(&host.change(args.number, path, change)?);
        }
        None => drop(change()?),
    }
    print(&format!("{}\n", told(args.number, &Circuit { rate: args.rate, ..old })))
}
