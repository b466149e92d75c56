//! `weir circuit watch`: what each circuit carries, second by second.

use super::args::WatchArgs;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weir_base::{Bytes, Rate, Span};
use weir_daemon::circuit::{Host, Up, check_capabilities, now, tell};
use weir_daemon::{Failure, print, write};
use weir_shaper::{Counters, Device, Handle};

/// The counters of each circuit, and when they were read.
type Counted = BTreeMap<(String, Handle), (Instant, Counters)>;

pub(crate) fn watch(args: &WatchArgs) -> Result<(), Failure> {
    check_capabilities(false)?;
    let start = Instant::now();
    let mut before = Counted::new();
    for second in 0.. {
        let due = start + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // Circuits may come and go meanwhile.
        let (host, notes) = Host::lock()?;
        tell(&notes);
        let mut counted = Counted::new();
        for shaped in host.devices() {
            let mut device = Device::open(&shaped.name)?;
            let handles: Vec<Handle> = shaped.circuits.iter().map(Up::handle).collect();
            let counters = device.counters(&handles)?;
            let at = Instant::now();
            for (up, counters) in shaped.circuits.iter().zip(counters) {
                let Some(counters) = counters else { continue };
                let place = (shaped.name.clone(), up.handle());
                if let Some((then, older)) = before.get(&place) {
                    line(up, &shaped.name, at.duration_since(*then), older, &counters, args.json)?;
                }
                counted.insert(place, (at, counters));
            }
        }
        if second == 0 && counted.is_empty() {
            return print(if args.json { "" } else { "no circuit is up\n" });
        }
        before = counted;
        if args.duration.is_some_and(|duration| Span::from_secs(second) >= duration) {
            break;
        }
    }
    Ok(())
}

/// One second of one circuit.
fn line(
    up: &Up,
    device: &str,
    passed: Duration,
    older: &Counters,
    newer: &Counters,
    as_json: bool,
) -> Result<(), Failure> {
    let plan = up.plan()?;
    let passed =
        Span::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)).max(Span::from_nanos(1));
    let sent = Bytes::new(newer.bytes.saturating_sub(older.bytes));
    let refused = newer.drops.saturating_sub(older.drops);
    let rate = Rate::from_bytes_in(sent, passed);
    let payload =
        rate.bits_per_sec() as f64 * plan.headers.payload.get() as f64 / plan.headers.frame.get() as f64;
    let share = payload / plan.ceiling.bits_per_sec() as f64;
    if as_json {
        let document = json!({
            "at": now(),
            "number": up.number,
            "device": device,
            "destination": up.destination,
            "sent_bit_per_s": rate.bits_per_sec(),
            "goodput_bit_per_s": payload as u64,
            "share_of_ceiling": share,
            "refused_packets": refused,
            "waiting_bytes": newer.backlog,
        });
        return write(&format!("{document}\n"));
    }
    print(&format!(
        "{:>4}  {:18} {:>9.3} Mbit/s of payload  {:>5.1} % of {}  {refused} refused  {} waiting\n",
        up.number,
        up.destination,
        payload / 1e6,
        share * 100.0,
        plan.told_ceiling(),
        Bytes::new(newer.backlog),
    ))
}
