//! A circuit that is asked for: its reservation as the command line gives it, the rate of its card, and the reservations in its way.

use super::args::Asked;
use crate::failure::Failure;
use std::path::Path;
use std::time::SystemTime;
use weir_base::{Rate, Span};
use weir_circuit::{Card, Circuit, Conflict, Guarantee, Request, Store, StoreError, Utc};

/// The file of a host's reservations, unless another one is named.
pub const STORE: &str = "/var/lib/weir/circuits.sqlite";

/// The time by the clock of this machine.
pub fn now() -> Utc {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Utc::from_secs(since_1970.map_or(0, |since| since.as_secs()))
}

/// A request with this rate, round trip and card, and defaults for the rest: its check refuses values that no plan has.
pub fn request(rate: Rate, rtt: Span, card: Option<Rate>) -> Request {
    Request { card, ..Request::new(rate, rtt) }
}

/// The circuit that is asked for, and the card that is to carry it.
///
/// # Errors
/// No plan has these values, the device or its rate is unknown, or the circuit would end after the year 9999.
pub fn asked(args: &Asked, now: Utc) -> Result<(Circuit, Card), Failure> {
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

/// The card's rate: the given one, or the one that the device reports.
///
/// # Errors
/// The name cannot be a device's, or the device is not there or reports no rate.
pub fn card_rate(device: &str, given: Option<Rate>) -> Result<Rate, Failure> {
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

/// Makes the folder of a file of reservations.
///
/// # Errors
/// The system's.
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::bad_input(
            format!("cannot make {}: {error}", folder.display()),
            "run as root, or name another file with --store",
        )
    })
}

/// Names the reservations that are in the way.
pub fn in_the_way(store: &mut Store, error: StoreError) -> Failure {
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
pub fn told(number: u64, circuit: &Circuit) -> String {
    let Circuit { device, destination, rate, rtt, guarantee, from, until } = circuit;
    let promise = if *guarantee == Guarantee::Semi { ", semi-guaranteed" } else { "" };
    format!("{number}: {rate} to {destination} by {device}, {rtt}, from {from} until {until}{promise}")
}
