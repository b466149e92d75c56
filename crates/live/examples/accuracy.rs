//! Measures the accuracy of the live engine on this machine against its required bounds. Run by `make accuracy`, as root, on a
//! machine with nothing else to do; it refuses a busy one.
//!
//!     accuracy [--runs N] [--anyway] [--out FILE]

use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use weir_base::Span;
use weir_engine::{Engine, Watch};
use weir_live::doctor::{Status, examine};
use weir_live::{Live, Tally, ping};
use weir_plan::{Lab, Run};
use weir_record::Distribution;

/// `nobody` on every Linux system.
const NOBODY: u32 = 65534;
/// Argument of the process that runs as an ordinary user.
const AS_USER: &str = "--as-user";
/// Echoes of one measurement, and the pause between them.
const ECHOES: u16 = 500;
const PAUSE: Span = Span::from_millis(5);
/// Findings of `weir doctor` that make the whole measurement invalid.
const DECISIVE: [&str; 3] = ["clock lateness", "foreign load", "steal"];

type Failure = Box<dyn std::error::Error>;

/// A number that must be reached: name, unit, bound, whether more is better, and where it is found in a measurement.
struct Bar {
    name: &'static str,
    bound: f64,
    more: bool,
    key: &'static str,
}

const BARS: [Bar; 9] = [
    Bar {
        name: "100 Mbit/s, 20 ms, one CUBIC: goodput, Mbit/s",
        bound: 94.0,
        more: true,
        key: "hundred.goodput",
    },
    Bar { name: "the same: lateness p99, us", bound: 100.0, more: false, key: "hundred.p99" },
    Bar { name: "the same: lateness p99.9, us", bound: 1000.0, more: false, key: "hundred.p999" },
    Bar { name: "idle echo: p99 above the configured 20 ms, ms", bound: 0.3, more: false, key: "echo.p99" },
    Bar {
        name: "workload ping to a host: median away from the kernel's own echo, %",
        bound: 5.0,
        more: false,
        key: "echo.host_off",
    },
    Bar { name: "the same to an echo station, %", bound: 5.0, more: false, key: "echo.station_off" },
    Bar {
        name: "1 Gbit/s, 20 ms, 16 CUBIC, 10 s: throughput, Mbit/s",
        bound: 900.0,
        more: true,
        key: "gigabit.throughput",
    },
    Bar { name: "the same: packets lost outside the queue", bound: 0.0, more: false, key: "gigabit.leaked" },
    Bar {
        name: "as an ordinary user, 100 Mbit/s: goodput, Mbit/s",
        bound: 94.0,
        more: true,
        key: "user.goodput",
    },
];

/// Values that are measured too, without a bound.
const REPORTED: [(&str, &str); 5] = [
    ("1 Gbit/s: lateness p50, us", "gigabit.p50"),
    ("1 Gbit/s: lateness p99, us", "gigabit.p99"),
    ("1 Gbit/s: the pump's share of a core", "gigabit.share"),
    ("100 Mbit/s: the pump's share of a core", "hundred.share"),
    ("as an ordinary user: lateness p99, us", "user.p99"),
];

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let privilege = weir_linux::enter();
    if arguments.first().is_some_and(|first| first == AS_USER) {
        privilege?;
        println!("{}", bulk("100 Mbit/s", 1)?);
        return Ok(());
    }
    let value_of = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1));
    let runs: usize = value_of("--runs").map_or(Ok(5), |text| text.parse())?;
    let checks = examine(privilege);
    let state: Vec<String> =
        checks.iter().map(|check| format!("- {}: {}", check.name, check.finding)).collect();
    let idle = !checks.iter().any(|check| check.status == Status::Bad && DECISIVE.contains(&check.name));
    if !idle && !arguments.iter().any(|argument| argument == "--anyway") {
        return Err(format!("this machine is busy; numbers would mean nothing:\n{}", state.join("\n")).into());
    }
    let mut measured = vec![];
    for run in 1..=runs {
        eprintln!("measurement {run} of {runs}");
        measured.push(json!({
            "hundred": bulk("100 Mbit/s", 1)?,
            "gigabit": bulk("1 Gbit/s", 16)?,
            "echo": echo()?,
            "user": as_user()?,
        }));
    }
    let report = report(&measured, &state, idle);
    match value_of("--out") {
        Some(path) => std::fs::write(path, report)?,
        None => std::io::stdout().write_all(report.as_bytes())?,
    }
    Ok(())
}

/// CUBIC flows at this rate, 20 ms and a queue of one BDP: ten seconds after two of warming up. At 1 Gbit/s there are sixteen,
/// since one alone leaves slow start at half the rate (HyStart's train of ACKs is half an RTT long by then) and takes longer
/// than the run to come up; that is CUBIC's accuracy, not the engine's.
fn dumbbell(rate: &str, flows: u32) -> Result<Run, Failure> {
    let text = format!(
        "format = 1\n[run]\nduration = \"12 s\"\nwarmup = \"2 s\"\n[dumbbell]\nrate = \"{rate}\"\nrtt = \"20 ms\"\n\
         queue = {{ kind = \"tail-drop\", limit = \"1 bdp\" }}\n[traffic.cubic]\ncc = \"cubic\"\n\
         flows = {flows}\n"
    );
    let lab = Lab::from_str(&text, "accuracy.toml", ".".as_ref(), &[]).map_err(|e| e.render(false, 100))?;
    lab.runs().into_iter().next().ok_or_else(|| "a lab without runs".into())
}

fn bulk(rate: &str, flows: u32) -> Result<Value, Failure> {
    let run = dumbbell(rate, flows)?;
    let mut tally = Tally::new(&run);
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    let outcome = Live.run(&run, &mut tally, &watch)?;
    let lateness = &outcome.environment["lateness_us"];
    Ok(json!({
        "goodput": (0..run.flows.len()).map(|flow| tally.goodput(flow).mbit_per_sec()).sum::<f64>(),
        "throughput": (0..run.flows.len()).map(|flow| tally.throughput(flow).mbit_per_sec()).sum::<f64>(),
        "p50": lateness["p50"],
        "p99": lateness["p99"],
        "p999": lateness["p99.9"],
        "leaked": outcome.audit.leaked,
        "share": outcome.environment["pump_core_share"]["mean"],
        "steal": outcome.environment["steal_cores"],
    }))
}

fn echo() -> Result<Value, Failure> {
    let run = dumbbell("100 Mbit/s", 1)?;
    let times = ping(&run, ECHOES, PAUSE)?;
    if times.len() < usize::from(ECHOES) {
        return Err(format!("of {ECHOES} echoes {} came back", times.len()).into());
    }
    let above = times.iter().map(|time| time.as_millis_f64() - run.groups[0].rtt().as_millis_f64());
    // Nearest rank among the times themselves: a histogram's buckets are 0.26 ms wide at 20 ms.
    let above = Distribution::of(above);
    let kernel = Distribution::of(times.iter().map(|time| time.as_millis_f64()));
    let kernel = kernel.map_or(f64::NAN, |kernel| kernel.p50);
    let [host, station] = ping_workload()?;
    let off = |median: f64| (median / kernel - 1.0).abs() * 100.0;
    Ok(json!({
        "p50": above.map(|above| above.p50),
        "p99": above.map(|above| above.p99),
        "host_off": off(host),
        "station_off": off(station),
    }))
}

/// The median echo times of the ping workload, in milliseconds: to a host and to an echo station over the same link.
fn ping_workload() -> Result<[f64; 2], Failure> {
    let text = format!(
        "format = 1\n[run]\nduration = \"5 s\"\nhost_jitter = \"0 s\"\n[dumbbell]\nrate = \"100 Mbit/s\"\nrtt = \"20 ms\"\n\
         [stations.responder]\nat = \"right\"\nkind = \"echo\"\n\
         [traffic.host]\nworkload = {{ kind = \"ping\", interval = \"{PAUSE}\" }}\n\
         [traffic.station]\nto = \"responder\"\nworkload = {{ kind = \"ping\", interval = \"{PAUSE}\" }}\n"
    );
    let lab = Lab::from_str(&text, "accuracy.toml", ".".as_ref(), &[]).map_err(|e| e.render(false, 100))?;
    let run = lab.runs().into_iter().next().ok_or("a lab without runs")?;
    let mut tally = Tally::new(&run);
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    Live.run(&run, &mut tally, &watch)?;
    let median = |flow: usize| {
        let times = tally.flows[flow].messages.iter().filter_map(|message| message.took);
        Distribution::of(times.map(|time| time.as_millis_f64())).map_or(f64::NAN, |times| times.p50)
    };
    Ok([median(0), median(1)])
}

/// The measurement at 100 Mbit/s by a process of user `nobody`.
fn as_user() -> Result<Value, Failure> {
    let output = Command::new("/proc/self/exe").arg(AS_USER).uid(NOBODY).gid(NOBODY).output()?;
    if !output.status.success() {
        return Err(format!("as an ordinary user: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The values of all measurements at `part.name`, sorted.
fn values(measured: &[Value], key: &str) -> Vec<f64> {
    let pointer = format!("/{}", key.replace('.', "/"));
    let mut values: Vec<f64> = measured.iter().filter_map(|m| m.pointer(&pointer)?.as_f64()).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn report(measured: &[Value], state: &[String], idle: bool) -> String {
    let mut text = String::from("# Accuracy of the live engine\n\n");
    text += &format!(
        "The median of {} measurements, with the smallest and the largest. A bound is reached when the median keeps it.\n\n",
        measured.len()
    );
    if !idle {
        text += "**The machine was busy: these numbers say little.**\n\n";
    }
    text += "| what | bound | median | smallest | largest | |\n|---|---|---|---|---|---|\n";
    let row = |name: &str, bound: &str, key: &str, verdict: &dyn Fn(f64) -> &'static str| {
        let values = values(measured, key);
        let median = values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
        let (least, most) = (values.first().unwrap_or(&f64::NAN), values.last().unwrap_or(&f64::NAN));
        format!("| {name} | {bound} | {median:.2} | {least:.2} | {most:.2} | {} |\n", verdict(median))
    };
    for bar in &BARS {
        let holds = |median: f64| if bar.more { median >= bar.bound } else { median <= bar.bound };
        let bound = format!("{} {}", if bar.more { ">=" } else { "<=" }, bar.bound);
        text += &row(bar.name, &bound, bar.key, &|median| if holds(median) { "reached" } else { "missed" });
    }
    for (name, key) in REPORTED {
        text += &row(name, "", key, &|_| "");
    }
    text += "\nThe machine when it began:\n\n";
    text + &state.join("\n") + "\n"
}
