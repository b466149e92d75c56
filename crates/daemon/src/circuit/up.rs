//! Sets circuits up at a device of this host.

use super::asked::{STORE, in_the_way, make_folder, now};
use super::entry::{Up, control, tree};
use super::host::{Host, raised};
use super::shaped::{check_replaceable, is_ours};
use crate::failure::Failure;
use crate::output::say;
use weir_circuit::{Card, Circuit, Plan, Store};
use weir_linux::namespace::sysctl;
use weir_shaper::{Device, Problem};

/// Capabilities that a command needs to change shapers, and those that it also needs to load a control: numbers of
/// linux/capability.h, each with its purpose.
const FOR_SHAPERS: [(u32, &str); 1] = [(12, "CAP_NET_ADMIN to change shapers and buffers")];
const FOR_CONTROLS: [(u32, &str); 3] = [
    (39, "CAP_BPF to load the congestion control"),
    (38, "CAP_PERFMON for its reads of the kernel's memory"),
    (21, "CAP_SYS_ADMIN to mount the file system that keeps it"),
];

/// Refuses a user without the needed capabilities.
///
/// # Errors
/// Names those that are missing.
pub fn check_capabilities(controls: bool) -> Result<(), Failure> {
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

/// Sets a circuit up at its device; with a card it is reserved too.
///
/// # Errors
/// It cannot be reserved or set up; then nothing of it remains.
pub fn set_up(
    device: &mut Device,
    up: Up,
    circuit: &Circuit,
    card: Option<&Card>,
    replace: bool,
) -> Result<Up, Failure> {
    check_capabilities(up.controlled)?;
    let path = up.store.clone();
    if path == std::path::Path::new(STORE) {
        make_folder(&path)?;
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

/// The commands that would set a circuit up: those of this host, then those of the receiver.
///
/// # Errors
/// The device's state cannot be read, or the circuit has no plan.
pub fn commands(device: &mut Device, up: &Up, plan: &Plan) -> Result<Vec<String>, Failure> {
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
    let [least, first, most] = plan.tcp_rmem;
    lines.push(format!("# on the receiving host in {}, unless its values are larger:", up.destination));
    lines.push(format!("sysctl -w net.ipv4.tcp_rmem=\"{least} {first} {most}\""));
    Ok(lines)
}

/// Prints notes for the user, apart from the data on standard output.
pub fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say(&format!("note: {note}")));
}
