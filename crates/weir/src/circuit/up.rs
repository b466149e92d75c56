//! `weir circuit up`, `down` and `change`.

use super::args::{ChangeArgs, DownArgs, PriorityName, UpArgs};
use super::entry::{Up, control, tree, wanted};
use super::host::{Host, raised};
use super::shaped::{check_replaceable, is_ours};
use super::{asked, card_rate, in_the_way, late, now, row, told};
use crate::failure::Failure;
use crate::{print, print_json, say};
use weir_base::Rate;
use weir_circuit::{Card, Circuit, Plan, Store};
use weir_live::namespace::sysctl;
use weir_shaper::{Device, Problem};

/// Capabilities that a command needs to change shapers, and those that it also needs to load a control: numbers of
/// linux/capability.h, each with its purpose.
const FOR_SHAPERS: [(u32, &str); 1] = [(12, "CAP_NET_ADMIN to change shapers and buffers")];
const FOR_CONTROLS: [(u32, &str); 3] = [
    (39, "CAP_BPF to load the congestion control"),
    (38, "CAP_PERFMON for its reads of the kernel's memory"),
    (21, "CAP_SYS_ADMIN to mount the file system that keeps it"),
];

/// Refuses a user without the needed capabilities, and names those that are missing.
pub(crate) fn check_capabilities(controls: bool) -> Result<(), Failure> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    // If the capabilities cannot be read, the kernel refuses by itself.
    let has = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(u64::MAX);
    let needs = FOR_SHAPERS.iter().chain(FOR_CONTROLS.iter().filter(|_| controls));
    let missing: Vec<&str> = needs.filter(|(bit, _)| has >> bit & 1 == 0).map(|(_, what)| *what).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("this user may not set circuits up; missing: {}", missing.join(", "));
    Err(Failure::bad_input(message, "run as root, or leave the congestion control out with --no-control"))
}

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
        late_ns: late::of(args.late).as_nanos(),
        ..wanted(number.unwrap_or(0), path, &circuit, mtu)
    };
    let plan = up.plan()?;
    if args.dry_run {
        return dry_run(&mut device, &up, &plan);
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

/// Sets a circuit up at its device; with a card it is reserved too.
pub(crate) fn set_up(
    device: &mut Device,
    up: Up,
    circuit: &Circuit,
    card: Option<&Card>,
    replace: bool,
) -> Result<Up, Failure> {
    check_capabilities(up.controlled)?;
    let path = up.store.clone();
    if path == std::path::Path::new(super::STORE) {
        super::make_folder(&path)?;
    }
    let (mut host, notes) = Host::lock()?;
    tell(&notes);
    host.check_destination(&up.destination)?;
    check_root(&host, device, replace)?;
    let up = Up { class: host.free_class(&circuit.device)?, ..up };
    let reserve = || match card {
        Some(card) => {
            let mut store = Store::open(&path)?;
            let made = store.reserve(circuit, card, now()).map_err(|error| in_the_way(&mut store, error))?;
            Ok(made.number)
        }
        None => Ok(up.number),
    };
    let (up, notes) = host.raise(device, up.clone(), card.is_some().then_some(circuit), reserve)?;
    tell(&notes);
    Ok(up)
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

/// Refuses to replace a discipline that somebody else has set, unless `replace` is given and the discipline can be restored.
fn check_root(host: &Host, device: &mut Device, replace: bool) -> Result<(), Failure> {
    let is = device.snapshot()?;
    let Some((handle, kind)) = is.root() else { return Ok(()) };
    if host.has_circuits_on(device) && is_ours(&is) {
        return Ok(());
    }
    if replace {
        return check_replaceable(device, &is);
    }
    let (kind, handle) = (kind.to_owned(), handle.to_string());
    Err(Problem::Foreign { device: device.name().to_owned(), kind, handle }.into())
}

/// Prints the commands that would do the same.
fn dry_run(device: &mut Device, up: &Up, plan: &Plan) -> Result<(), Failure> {
    let name = device.name().to_owned();
    let mut lines = vec![];
    let is = device.snapshot()?;
    let taken = is_ours(&is);
    let free = (1..).find(|class| !is.has_class(Up { class: *class, ..up.clone() }.handle())).unwrap_or(1);
    let up = Up { class: free, ..up.clone() };
    if let Some(wmem) = raised(&sysctl("ipv4.tcp_wmem").unwrap_or_default(), plan.tcp_wmem) {
        lines.push(format!("sysctl -w net.ipv4.tcp_wmem=\"{wmem}\""));
    }
    if up.controlled {
        lines.push(format!("weir kernel load {}", control(plan.control)?.name));
    }
    lines.extend((!taken).then(|| tree().tc(&name)));
    lines.extend(up.shape(plan).iter().chain([&up.filter()?]).map(|step| step.tc(&name)));
    if up.window(plan)?.is_some() {
        lines.push(format!("# and in the kernel: a window of {} for {}", plan.window, up.destination));
    }
    print(&(lines.join("\n") + "\n"))
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
    super::request(args.rate, old.rtt, Some(card.rate)).check()?;
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

/// Prints notes for the user, apart from the data on standard output.
pub(crate) fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say(&format!("note: {note}")));
}
