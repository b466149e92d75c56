//! `weir observe`: what the queue of a device of this host does, without a change to the kernel or the queue.

mod show;

use crate::failure::Failure;
use crate::{print, print_json, say};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;
use weir_base::Span;
use weir_kernel::{Problem, Watch};
use weir_linux::clock::monotonic;
use weir_observe::{Compared, Event, QueuePeriod, QueueReport, QueueWatch};
use weir_report::html::{Cell, Page, Table, escape, notices};
use weir_report::plot::Figure;
use weir_report::{Folder, write_assets};
use weir_shaper::{Device, Root};

/// How often the kernel's events are read.
const READ: Duration = Duration::from_millis(10);
/// How often it is looked whether the queue is still the same one.
const LOOK: Span = Span::from_millis(200);
/// The most that events may miss of what came and of what the queue's own counters say, as a share, and in packets: a drop is told a little
/// after it was counted.
const MOST_MISSED: f64 = 0.001;
const BESIDE: u64 = 3;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir observe eth0 --for 60s
  weir observe eth0 --live                      a line each second, until Ctrl-C
  weir observe eth0 --for 10s --out /tmp/queue  a page with pictures, all numbers, and a table of each 0.1 s
  weir observe eth0 --for 10s --json | jq .queue.sojourn_ms.p99

Observes the root queue of a device for packets that leave. Needs Linux 5.17 with type information (BTF), and root. docs/observe.md says what is \
measured and how.
Exit status: 0 done; 1 the observation is invalid, since events were lost; 2 no such device, no queue, or the kernel refuses; 130 a second \
interrupt.")]
pub(crate) struct ObserveArgs {
    /// The device, such as eth0
    pub device: String,
    /// How long to observe; until Ctrl-C if left out
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Span>,
    /// Print a line each second meanwhile
    #[arg(long, conflicts_with = "json")]
    pub live: bool,
    /// Write a page (index.html), all numbers (observation.json) and what passed in each period (series.csv) into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The length of the periods of --out
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub period: Span,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What was observed.
#[derive(Debug, Serialize)]
struct Document {
    device: String,
    /// The kind of the queue, and its handle.
    discipline: String,
    handle: String,
    /// Why it ended before its time.
    ended_early: Option<String>,
    queue: QueueReport,
    /// Drops by the names of the kernel's reasons.
    drops: BTreeMap<String, u64>,
    /// Events that the kernel could not hand over.
    lost_events: u64,
    /// Why the numbers are not to be trusted.
    invalid: Option<String>,
}

/// Observes a device and shows what was seen.
pub(crate) fn observe(args: &ObserveArgs) -> Result<(), Failure> {
    let shortest = Span::from_millis(1);
    if args.period < shortest {
        return Err(Failure::bad_input(
            "a period is at least 1 ms",
            "give --period a time, for example '100 ms'",
        ));
    }
    let mut device = open(&args.device)?;
    let root = queue_of(&mut device)?;
    let stop = Arc::new(AtomicBool::new(false));
    let signalled = stop.clone();
    ctrlc::set_handler(move || {
        if signalled.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })
    .map_err(|error| Failure::failed(format!("cannot wait for an interrupt: {error}")))?;
    let watch = Watch::new(device.index()).map_err(|problem| match problem {
        Problem::Missing { .. } | Problem::Forbidden(_) | Problem::NotBuilt => {
            Failure::bad_input(problem.to_string(), problem.help())
        }
        _ => problem.into(),
    })?;
    let mut observation = Observation {
        watch,
        queue: QueueWatch::new(args.period),
        seconds: args.live.then(|| QueueWatch::new(Span::from_secs(1))),
        periods: args.out.is_some().then(Vec::new),
    };
    if args.live {
        print(&show::live_head())?;
    } else if args.time.is_none() {
        say(&format!("observing {} until Ctrl-C", args.device));
    }
    let early = observation.run(&mut device, &root, args.time, &stop)?;
    let document = observation.document(&args.device, &root, early)?;
    if let Some(folder) = &args.out {
        let periods = observation.periods.as_deref().unwrap_or_default();
        write(&document, args.period, periods, folder)?;
        say(&format!("{}", folder.join("index.html").display()));
    }
    if args.json {
        print_json(&document)?
    } else {
        print(&show::text(&document))?
    }
    if document.invalid.is_some() { Err(Failure::quiet(1)) } else { Ok(()) }
}

/// Opens a device.
fn open(name: &str) -> Result<Device, Failure> {
    let help = "name a device of this network namespace, as `ip link` shows them";
    Device::open(name).map_err(|problem| Failure::bad_input(problem.to_string(), help))
}

/// The root queue of a device.
fn queue_of(device: &mut Device) -> Result<Root, Failure> {
    let name = device.name().to_owned();
    let root = device.root().map_err(|problem| Failure::failed(problem.to_string()))?;
    let help =
        "give it one, for example `tc qdisc replace dev DEV root pfifo`, or name a device that has one";
    match root {
        Some(root) if root.kind != "noqueue" => Ok(root),
        _ => Err(Failure::bad_input(format!("{name} has no queue (noqueue): packets pass it at once"), help)),
    }
}

/// Why the queue is not the same one any more.
fn changed(device: &mut Device, root: &Root) -> Result<Option<String>, Failure> {
    let name = device.name().to_owned();
    let present = device.root().map_err(|problem| Failure::failed(problem.to_string()))?;
    Ok(match present {
        None => Some(format!("{name} is gone")),
        Some(now) if (&now.kind, now.handle) != (&root.kind, root.handle) => {
            Some(format!("another queue took its place: {} {}", now.kind, now.handle))
        }
        Some(_) => None,
    })
}

/// Why the numbers are not to be trusted.
fn invalid(queue: &QueueReport, lost_events: u64) -> Option<String> {
    let most = |of: u64| ((of as f64 * MOST_MISSED) as u64).max(BESIDE);
    let missed = queue.unmatched + queue.forgotten;
    if lost_events > most(queue.came) {
        return Some(format!("the kernel could not hand over {lost_events} events"));
    }
    if missed > most(queue.came) {
        return Some(format!("{missed} packets were seen only coming or only leaving"));
    }
    let Compared { counted, seen } = queue.compared?;
    let differs = |seen: u64, counted: u64| seen.abs_diff(counted) > most(counted);
    if differs(seen.sent, counted.sent) {
        return Some(format!("the queue has counted {} packets, seen were {}", counted.sent, seen.sent));
    }
    differs(seen.drops, counted.drops)
        .then(|| format!("the queue has counted {} drops, seen were {}", counted.drops, seen.drops))
}

struct Observation {
    watch: Watch,
    queue: QueueWatch,
    /// The same by seconds, for the terminal.
    seconds: Option<QueueWatch>,
    periods: Option<Vec<QueuePeriod>>,
}

impl Observation {
    /// Observes until the time has passed, it is stopped, or the queue is another one. Returns why it ended early.
    fn run(
        &mut self,
        device: &mut Device,
        root: &Root,
        time: Option<Span>,
        stop: &AtomicBool,
    ) -> Result<Option<String>, Failure> {
        let begins = monotonic();
        let mut looked = begins;
        loop {
            sleep(READ);
            let at = monotonic();
            let is_over = stop.load(Ordering::SeqCst) || time.is_some_and(|time| at.since(begins) >= time);
            let mut early = None;
            if is_over || at.since(looked) >= LOOK {
                looked = at;
                early = changed(device, root)?;
            }
            self.read()?;
            if is_over || early.is_some() {
                return Ok(early);
            }
        }
    }

    /// Reads the events.
    fn read(&mut self) -> Result<(), Failure> {
        let Observation { watch, queue, seconds, periods } = self;
        let mut each = |event: &Event<'_>| {
            queue.event(event, &mut |period| periods.iter_mut().for_each(|periods| periods.push(*period)));
            if let Some(seconds) = seconds {
                // A terminal that is gone does not end the observation.
                seconds.event(event, &mut |period| drop(print(&show::live(period))));
            }
        };
        watch.read(&mut each)?;
        Ok(())
    }

    fn document(&self, device: &str, root: &Root, ended_early: Option<String>) -> Result<Document, Failure> {
        let queue = self.queue.report();
        let lost_events = self.watch.lost()?;
        let by_name = queue.dropped.iter().map(|(reason, count)| (self.watch.reason(*reason), *count));
        let drops = by_name.collect();
        let invalid = invalid(&queue, lost_events);
        Ok(Document {
            device: device.to_owned(),
            discipline: root.kind.clone(),
            handle: root.handle.to_string(),
            ended_early,
            queue,
            drops,
            lost_events,
            invalid,
        })
    }
}

/// Writes the folder.
fn write(document: &Document, period: Span, periods: &[QueuePeriod], folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| {
        let message = format!("{}: {error}", folder.display());
        Failure::bad_input(message, "give --out a folder that you can write")
    })?;
    let out = Folder::new(folder);
    let json = serde_json::to_string_pretty(document).map_err(|error| Failure::failed(error.to_string()))?;
    out.write("observation.json", json.as_bytes())?;
    out.write("series.csv", csv(periods).as_bytes())?;
    write_assets(&out)?;
    out.write("index.html", page(document, period, periods)?.as_bytes())?;
    Ok(())
}

fn csv(periods: &[QueuePeriod]) -> String {
    let mut text = String::from(
        "start_s,came,left,left_bytes,dropped,marked,sojourn_mean_ms,sojourn_max_ms,waiting_at_end\n",
    );
    let or_none = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    for of in periods {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{}",
            of.from_s,
            of.came,
            of.left,
            of.left_bytes,
            of.dropped,
            of.marked,
            or_none(of.sojourn_mean_ms),
            or_none(of.sojourn_max_ms),
            of.waiting
        );
    }
    text
}

fn page(document: &Document, period: Span, periods: &[QueuePeriod]) -> Result<String, Failure> {
    let mut table = Table::new("The queue", &["", ""]);
    for (name, value) in show::rows(document) {
        table.row(vec![Cell::text(&name), Cell::figure(escape(&value))]);
    }
    let length = period.as_secs_f64();
    let end = periods.len() as f64 * length;
    let curve = |title: &str, axis: &str, of: &dyn Fn(&QueuePeriod) -> f64| -> Result<String, Failure> {
        let points: Vec<(f64, f64)> = periods.iter().map(|period| (period.from_s, of(period))).collect();
        if points.is_empty() {
            return Ok(String::new());
        }
        Ok(Figure::steps(title, ["time, s", axis], &document.device, &points, end).svg()?)
    };
    let delay =
        curve("Mean time in the queue", "time in the queue, ms", &|of| of.sojourn_mean_ms.unwrap_or(0.0))?;
    let rate = curve("Rate", "rate, Mbit/s", &|of| of.left_bytes as f64 * 8e-6 / length)?;
    let drops = curve("Drops", "packets", &|of| of.dropped as f64)?;
    let page = Page {
        title: format!("{}: what its queue does", document.device),
        eyebrow: escape(&document.device),
        sentence: show::sentence(document),
        body: format!("{}{}\n{delay}\n{rate}\n{drops}", notices(&[], &show::notes(document)), table.render()),
        ..Page::default()
    };
    Ok(page.render())
}
