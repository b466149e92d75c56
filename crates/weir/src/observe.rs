//! `weir observe`: what the root queue of a device does, whoever made it, through tracepoints of the kernel.

mod page;
mod show;

use crate::analyze::page as folder;
use crate::failure::Failure;
use crate::live::Show;
use crate::{print, print_json, say};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_base::{Span, Time};
use weir_kernel::{Observer, Problem, kernel_counts};
use weir_linux::clock::monotonic;
use weir_linux::device::index_of_name;
use weir_observe::{QueuePeriod, QueueReport, Sighting, WatchSettings, Watched};
use weir_shaper::{Counters, Device, Root};

/// How often events are taken: the buffer holds 280,000 of them, which no device of 10 Mpps fills in this time.
const TAKEN_EACH: Duration = Duration::from_millis(10);
/// How often the root queue is asked whether it is still the same.
const ASKED_EACH: Span = Span::from_millis(100);
/// How often `--live` shows what happened.
const SHOWN_EACH: Span = Span::from_secs(1);
/// The kind of a device without a queue.
const NO_QUEUE: &str = "noqueue";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir observe eth0 --for 60s
  weir observe eth0 --live                            what happens, in the terminal, until Ctrl-C
  weir observe eth0 --for 60s --out /tmp/eth0         a page, all numbers, a series
  weir observe eth0 --for 10s --json | jq .sojourn_ms.p99

For the root queue of the device (`tc qdisc show dev DEV`): how long packets wait in it, drops by the kernel's reason, ECN marks by the \
codepoint at arrival, rate and backlog. It needs root, and a kernel with type information (CONFIG_DEBUG_INFO_BTF). If events were lost, or \
the result differs from the queue's own counters by more than 0.1 %, it is invalid and says so. docs/observe.md says how each \
number is found.
Exit status: 0 done, also if the queue was replaced or the device removed meanwhile; 1 the result is invalid; 2 the device cannot be observed.")]
pub(crate) struct ObserveArgs {
    /// A network device, such as eth0
    pub device: String,
    /// How long to observe [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Span>,
    /// Write the result into this folder: a page (index.html), all numbers (analysis.json), and what happened in each period (series.csv)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show each second in the terminal's last lines; where standard error is no terminal, a line about each
    #[arg(long)]
    pub live: bool,
    /// The time of each value of the series; longer if there would be more than 4096
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub period: Span,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What was observed of which queue.
#[derive(Debug, Serialize)]
struct Document {
    /// The device.
    device: String,
    /// The kind of its root queue, such as `tbf`.
    queue: String,
    /// Its handle.
    handle: String,
    /// Why the observation ended early; none if it did not.
    ended: Option<String>,
    #[serde(flatten)]
    report: QueueReport,
}

/// Observes a device and shows what its queue did.
pub(crate) fn observe(args: &ObserveArgs) -> Result<(), Failure> {
    if args.period.is_zero() || args.time.is_some_and(Span::is_zero) {
        let help = "give --for and --period times, for example '60 s' and '100 ms'";
        return Err(Failure::bad_input("what is observed takes a time above 0", help));
    }
    let document = Observation::begin(args)?.finish(args)?;
    if let Some(out) = &args.out {
        page::write(&document, out)?;
        say(&format!("{}", out.join("index.html").display()));
    }
    if args.json { print_json(&document) } else { print(&show::text(&document)) }?;
    if document.report.checks.invalid.is_empty() { Ok(()) } else { Err(Failure::quiet(1)) }
}

/// A device that cannot be observed: status 2, with what to do.
fn unobservable(problem: &Problem) -> Failure {
    let help = match problem {
        Problem::Missing { .. } => {
            "use a kernel that has it; captures on both sides of the queue need none: `weir analyze BEFORE AFTER`"
        }
        other => other.help(),
    };
    Failure::bad_input(problem.to_string(), help)
}

/// An observation that is under way.
struct Observation {
    device: Device,
    root: Root,
    observer: Observer,
    watched: Watched,
    start: Time,
    /// The counters just before and just after the beginning.
    beginning: [Counters; 2],
    stopped: Arc<AtomicBool>,
    /// Events since the root queue was last seen to be the same.
    unsure: Vec<Sighting>,
    /// When it was, and its counters then.
    sure: (Time, Counters),
}

impl Observation {
    fn begin(args: &ObserveArgs) -> Result<Observation, Failure> {
        let mut device = Device::open(&args.device)?;
        let root = device.root()?.filter(|root| root.kind != NO_QUEUE);
        let Some(root) = root else {
            let message = format!("{} has no queue (noqueue): packets go to it at once", args.device);
            let help =
                "observe the device behind it that has one, or give it one: `tc qdisc add dev DEV root ...`";
            return Err(Failure::bad_input(message, help));
        };
        let mut observer = Observer::load().map_err(|problem| unobservable(&problem))?;
        let stopped = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stopped);
        ctrlc::set_handler(move || stops.store(true, Ordering::Relaxed))
            .map_err(|error| Failure::failed(format!("cannot wait for Ctrl-C: {error}")))?;
        let before = device.root()?;
        let start = monotonic();
        observer.switch(Some(device.index())).map_err(|problem| unobservable(&problem))?;
        let (Some(before), Some(after)) = (before, device.root()?) else {
            return Err(Failure::bad_input(
                format!("{} was removed", args.device),
                "`ip link` lists the devices",
            ));
        };
        say(&format!("observing {} ({} {})", args.device, root.kind, root.handle));
        let watched = Watched::new(WatchSettings { start, period: args.period });
        Ok(Observation {
            device,
            root,
            observer,
            watched,
            start,
            beginning: [before.counters, after.counters],
            stopped,
            unsure: vec![],
            sure: (start, after.counters),
        })
    }

    /// Takes events until it is time, and makes the report.
    fn finish(mut self, args: &ObserveArgs) -> Result<Document, Failure> {
        let end = args.time.map(|time| self.start + time);
        let mut show = args.live.then(|| Show::open(std::slice::from_ref(&args.device)));
        let (mut asked, mut shown) = (self.start, (self.start, QueuePeriod::default()));
        let mut ended = None;
        while !self.stopped.load(Ordering::Relaxed) && end.is_none_or(|end| monotonic() < end) {
            let now = monotonic();
            let left = end.map_or(TAKEN_EACH, |end| Duration::from_nanos(end.since(now).as_nanos()));
            std::thread::sleep(left.min(TAKEN_EACH));
            self.take()?;
            if monotonic() >= asked + ASKED_EACH {
                asked = monotonic();
                ended = self.ask(asked)?;
            }
            if ended.is_some() {
                break;
            }
            if let Some(show) = show.as_mut().filter(|_| asked >= shown.0 + SHOWN_EACH) {
                let total = self.watched.totals();
                let moment = show::moment(asked.since(shown.0), &shown.1, &total, self.watched.backlog());
                show.show(asked.since(self.start), &[moment]);
                shown = (asked, total);
            }
        }
        drop(show);
        let last = if ended.is_none() { self.device.root()? } else { None };
        let until = monotonic();
        self.observer.switch(None).map_err(|problem| unobservable(&problem))?;
        // No more than the buffer holds can be left; it is taken in two portions at most.
        self.take()?;
        self.take()?;
        let (mut until, mut ending) = (until, [last.map_or(self.sure.1, |root| root.counters), self.sure.1]);
        if ended.is_none() {
            ended = self.ask(until)?;
            ending[1] = self.sure.1;
        }
        if ended.is_some() {
            // What came after the last moment at which the queue was the same may be another queue's.
            (until, ending) = (self.sure.0, [self.sure.1; 2]);
        }
        self.document(args, until, ending, ended)
    }

    fn take(&mut self) -> Result<(), Failure> {
        Ok(self.observer.take(&mut self.unsure)?)
    }

    /// Whether the root queue is still the same at a time before now; if so, the events until then count. Returns what has happened otherwise.
    fn ask(&mut self, at: Time) -> Result<Option<String>, Failure> {
        let Some(root) = self.device.root()? else {
            return Ok(Some("the device was removed".to_owned()));
        };
        if index_of_name(self.device.name()) != Some(self.device.index()) {
            return Ok(Some("the device was removed or renamed".to_owned()));
        }
        let is_same = root.kind == self.root.kind && root.handle == self.root.handle;
        // The counters of a new queue begin at 0.
        if !is_same || root.counters.packets < self.sure.1.packets {
            return Ok(Some(format!("the queue {} was replaced by {}", self.root.kind, root.kind)));
        }
        self.sure = (at, root.counters);
        let watched = &mut self.watched;
        self.unsure.retain(|sighting| {
            let is_later = sighting.at > at;
            if !is_later {
                watched.see(sighting);
            }
            is_later
        });
        Ok(None)
    }

    fn document(
        &self,
        args: &ObserveArgs,
        until: Time,
        ending: [Counters; 2],
        ended: Option<String>,
    ) -> Result<Document, Failure> {
        let kernel = kernel_counts(&self.beginning, &ending);
        let reason = |number| self.observer.reason(number);
        Ok(Document {
            device: args.device.clone(),
            queue: self.root.kind.clone(),
            handle: self.root.handle.to_string(),
            ended,
            report: self.watched.report(until, &kernel, self.observer.lost()?, &reason),
        })
    }
}
