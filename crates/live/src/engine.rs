//! The live engine: builds the testbed of a run, starts the pump and the applications, writes the records down, and says at
//! the end how far the result can be trusted.

mod environment;
mod warnings;

use crate::address::MAX_FLOWS;
use crate::apps::{Apps, AppsReport};
use crate::card::{self, Observed, Told};
use crate::checks::{
    check_acknowledgements, check_buffers, check_cards, check_clocks, check_feedback, check_hosts,
    check_transports,
};
use crate::command::{Ended, commands};
use crate::control::{Links, Listener};
use crate::controls::{Controls, unable};
use crate::counts::SharedCounts;
use crate::lateness::Limits;
use crate::load::{Load, Usage, backlog_drops, host_drops};
use crate::outside::Outside;
use crate::overlay::{self, Daemons, Dissolved, Watched, dissolved, join};
use crate::pump::{PumpReport, Setup, pump};
use crate::relay::{Record, Relay};
use crate::sockets;
use crate::testbed::Testbed;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use warnings::{changed, warnings};
use weir_base::{Span, Time, not_started};
use weir_engine::{Audit, Engine, EngineError, Outcome, PacketLog, Watch, cores, observer};
use weir_linux::clock::{Clock, MemoryLock};
use weir_linux::namespace::{may_make_namespaces, sysctl};
use weir_plan::{Group, Ip, Run};
use weir_record::Recorder;

/// Time from the end of the set-up to the start of the run, long enough for every thread to be waiting for it.
const HEAD_START: Span = Span::from_millis(50);
/// How long records are held back so that those of both threads are written in order.
const REORDERING: Span = Span::from_millis(500);

/// Real Linux.
#[derive(Debug, Clone, Copy, Default)]
pub struct Live;

impl Engine for Live {
    fn name(&self) -> &'static str {
        "live"
    }

    fn runs_alone(&self) -> bool {
        true
    }

    fn check(&self, run: &Run) -> Result<(), EngineError> {
        weir_engine::check_traces(run)?;
        overlay::check(run)?;
        let Dissolved { run, .. } = &dissolved(run);
        check_transports(run)?;
        check_feedback(run)?;
        check_acknowledgements(run)?;
        check_cards(run)?;
        check_clocks(run)?;
        check_buffers(run)?;
        if run.flows.len() > MAX_FLOWS {
            return Err(unable(
                format!("{} flows exceed the {MAX_FLOWS} available ports", run.flows.len()),
                "use fewer flows, or run on the simulator",
            ));
        }
        if run.groups.iter().any(|group| group.ip == Ip::V6) && sysctl("ipv6.conf.all.disable_ipv6").is_none()
        {
            return Err(unable(
                "this kernel has no IPv6".into(),
                "boot it without ipv6.disable=1, take ip = 6 out of the lab, or use `--on sim`",
            ));
        }
        if !may_make_namespaces() {
            return Err(unable(
                "this process may not make network namespaces".into(),
                "run as root, or permit user namespaces (`weir doctor` shows how); simulated runs need neither",
            ));
        }
        check_hosts(run)?;
        Controls::check(run)
    }

    fn run(&self, run: &Run, recorder: &mut dyn Recorder, watch: &Watch<'_>) -> Result<Outcome, EngineError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| EngineError::Failed(format!("{what}: {error}"))
        };
        let mut hosts = dissolved(run);
        let controls = Controls::load(&hosts.run)?;
        let testbed = Testbed::build(&hosts.run, &hosts.sites).map_err(failed("cannot build the testbed"))?;
        let cards = Observed::load(&hosts.run, &testbed).map_err(failed("cannot observe the cards"))?;
        hosts.run = card::behind_the_kernels(&hosts.run);
        let daemons = match hosts.sites.is_empty() {
            true => None,
            false => {
                let mut daemons = Daemons::start(run, &hosts, &testbed)?;
                join(&hosts, &testbed, &mut daemons, watch.cancel)?;
                Some(daemons)
            }
        };
        let title = format!("run {} of {}", run.id, run.lab);
        let between = daemons.as_ref().map(|daemons| Between { planned: run, dissolved: &hosts, daemons });
        let session = Session {
            run: &hosts.run,
            testbed: &testbed,
            controls: &controls,
            watch,
            title: &title,
            between,
            program: None,
        };
        session.go(cards, recorder).map_err(failed("the live run failed")).and_then(|result| result)
    }
}

/// A program that decides how long a run lasts.
pub(crate) struct Program<'a> {
    /// Runs it, on a thread of its own, from the start of the clock until it ends or the flag says that the run is over. Returns how
    /// it ended, in words.
    pub(crate) drive: &'a (dyn Fn(Clock, &AtomicBool) -> io::Result<String> + Sync),
    /// Its group's flow.
    pub(crate) flow: &'a str,
    /// Where its packets for other networks go.
    pub(crate) beyond: &'a Outside,
}

impl Program<'_> {
    /// Runs it, and ends the run after it.
    fn run(&self, clock: Clock, over: &AtomicBool, stop: &AtomicBool, ended: &Mutex<Vec<Ended>>) {
        let (how, failure) = match (self.drive)(clock, over) {
            Ok(how) => (how, None),
            Err(error) => (error.to_string(), Some(format!("the program cannot be run: {error}"))),
        };
        stop.store(true, Ordering::Release);
        let mut all = ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.push(Ended { flow: self.flow.to_owned(), how, failure });
    }
}

/// The overlay between the hosts of a run.
pub(crate) struct Between<'a> {
    /// The run as it was planned.
    pub(crate) planned: &'a Run,
    pub(crate) dissolved: &'a Dissolved,
    pub(crate) daemons: &'a Daemons<'a>,
}

/// One run on its testbed.
pub(crate) struct Session<'a> {
    pub(crate) run: &'a Run,
    pub(crate) testbed: &'a Testbed,
    pub(crate) controls: &'a Controls,
    pub(crate) watch: &'a Watch<'a>,
    /// What the run is, for those who ask for its links.
    pub(crate) title: &'a str,
    /// The overlay between the hosts; `None` without one.
    pub(crate) between: Option<Between<'a>>,
    /// The program for which the run is; `None` if the run lasts as long as its lab says.
    pub(crate) program: Option<Program<'a>>,
}

/// Measurements around the run.
struct Surroundings {
    usage: Option<Usage>,
    memory_locked: bool,
    /// Packets dropped in hosts, by host and cause, and in the kernel's backlogs.
    drops: Map<String, Value>,
    /// Packets that cards have sent and refused, by host.
    shaped: Map<String, Value>,
    /// How the run's commands ended.
    ended: Vec<Ended>,
    /// How long the run lasted.
    lasted: Span,
    /// What the observation of the cards has to say.
    cards: Told,
}

impl Session<'_> {
    /// Performs the run, with the observation of its hosts' cards. The inner error says that it was cancelled, or that a command failed.
    pub(crate) fn go(
        &self,
        cards: Observed,
        recorder: &mut dyn Recorder,
    ) -> io::Result<Result<Outcome, EngineError>> {
        let run = self.run;
        // If it cannot be raised, opening the sockets reports it.
        weir_linux::process::raise_open_files();
        // The ring comes first: hosts tell of the groups that they join as their sockets are opened.
        let (ring, sender) = self.testbed.open_sockets(run.network.mtu().get() as usize)?;
        let flow_sockets = sockets::open(run, self.testbed)?;
        let counts: Vec<SharedCounts> = run.flows.iter().map(|_| SharedCounts::default()).collect();
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (records, inbox) = channel();
        let memory = MemoryLock::take();
        let (load, backlog) = (self.load(), backlog_drops());
        let packets = run.packets.then(PacketLog::default);
        let clock = Clock::starting_in(HEAD_START);
        let commands = match self.program {
            Some(_) => vec![],
            None => commands(run, self.testbed, self.watch.folder),
        };
        let (changes, asked) = channel();
        let mut links = Links::new(run, self.title, clock, changes);
        let control = Listener::open()?;
        let ended: Mutex<Vec<Ended>> = Mutex::default();
        let lost: Mutex<Option<String>> = Mutex::default();
        let (command_relay, node_relay) = (Relay(records.clone()), Relay(records.clone()));
        let apps = Apps::new(run, self.testbed, flow_sockets, clock, &counts, Relay(records.clone()))?;
        let elsewhere = cards.links().to_vec();
        let setup = Setup {
            run,
            clock,
            ring,
            sender,
            devices: self.testbed.devices(),
            relay: Relay(records),
            counts: &counts,
            cancel: &stop,
            packets: packets.clone(),
            observer: observer(packets, self.watch.capture.clone()),
            changes: asked,
            beyond: self.program.as_ref().map(|program| program.beyond),
            overlay: self.between.as_ref().map(|between| between.dissolved),
            elsewhere: &elsewhere,
        };
        cards.begin(clock, command_relay.clone());
        let (pumped, driven, usage, drops, shaped, lasted, cards) = std::thread::scope(|scope| {
            let pumping =
                std::thread::Builder::new().name("weir-pump".into()).spawn_scoped(scope, || pump(setup));
            let pumping = pumping.map_err(not_started)?;
            // Threads that have started stop at once, not at the end of the run.
            let given_up = |error: io::Error| {
                stop.store(true, Ordering::Release);
                over.store(true, Ordering::Release);
                not_started(error)
            };
            let driving = std::thread::Builder::new().name("weir-apps".into()).spawn_scoped(scope, || {
                let result = apps.run(&over);
                if result.is_err() {
                    stop.store(true, Ordering::Release);
                }
                result
            });
            let driving = driving.map_err(given_up)?;
            for command in &commands {
                let (relay, over, stop, ended) = (command_relay.clone(), &over, &stop, &ended);
                std::thread::Builder::new()
                    .name("weir-command".into())
                    .spawn_scoped(scope, move || command.drive(clock, over, stop, relay, ended))
                    .map_err(given_up)?;
            }
            std::thread::Builder::new()
                .name("weir-control".into())
                .spawn_scoped(scope, || control.serve(&mut links, &over))
                .map_err(given_up)?;
            for number in 0..self.between.as_ref().map_or(0, |between| between.daemons.count()) {
                let (relay, over, stop, lost) = (node_relay.clone(), &over, &stop, &lost);
                std::thread::Builder::new()
                    .name("weir-node".into())
                    .spawn_scoped(scope, move || self.watch_node(number, clock, over, stop, relay, lost))
                    .map_err(given_up)?;
            }
            if let Some(program) = &self.program {
                let (over, stop, ended) = (&over, &stop, &ended);
                std::thread::Builder::new()
                    .name("weir-program".into())
                    .spawn_scoped(scope, move || program.run(clock, over, stop, ended))
                    .map_err(given_up)?;
            }
            let mut held = self.write_down(&inbox, recorder, clock, &stop, || pumping.is_finished());
            let pumped = pumping.join().unwrap_or_else(|_| Err(io::Error::other("the pump panicked")));
            let usage = load.and_then(|load| Some(self.load()?.since(&load)));
            let lasted = clock.now().since(Time::ZERO).min(run.duration);
            let (drops, shaped) = (self.drops(backlog), self.shaped());
            over.store(true, Ordering::Release);
            let driven =
                driving.join().unwrap_or_else(|_| Err(io::Error::other("the applications panicked")));
            let cards = cards.end();
            // Records that the applications and the cards' observers wrote at the very end.
            held.extend(inbox.try_iter());
            held.retain(|record| record.at() <= Time::ZERO + run.duration);
            write_until(&mut held, Time::NEVER, recorder);
            io::Result::Ok((pumped, driven, usage, drops, shaped, lasted, cards))
        })?;
        let (pumped, driven) = (pumped?, driven?);
        let mut ended = ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        ended.sort_by(|a, b| a.flow.cmp(&b.flow));
        if let Some(failure) = ended.iter().find_map(|ended| ended.failure.clone()) {
            return Ok(Err(EngineError::Command(failure)));
        }
        if let Some(lost) = lost.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            return Ok(Err(EngineError::Failed(lost)));
        }
        if pumped.cancelled && self.program.is_none() {
            return Ok(Err(EngineError::Cancelled));
        }
        (self.watch.progress)(1.0);
        let memory_locked = memory.held();
        let around = Surroundings { usage, memory_locked, drops, shaped, ended, lasted, cards };
        Ok(Ok(self.outcome(&pumped, &driven, &around)))
    }

    /// The load of the processors, where daemons of the run are part of the run.
    fn load(&self) -> Option<Load> {
        Load::now(self.between.as_ref().map(|between| between.daemons.used()).unwrap_or_default())
    }

    /// Records what a node of the overlay tells until the run is over. If its daemon is lost, so is the run.
    fn watch_node(
        &self,
        number: usize,
        clock: Clock,
        over: &AtomicBool,
        stop: &AtomicBool,
        relay: Relay,
        lost: &Mutex<Option<String>>,
    ) {
        let Some(Between { planned, dissolved, daemons }) = &self.between else { return };
        let (site, asking) = (&dissolved.sites[number], daemons.question(number));
        let namespace = &self.testbed.sites[number].namespace;
        if let Err(error) = (Watched { planned, site, namespace, asking, clock }).watch(over, relay) {
            stop.store(true, Ordering::Release);
            let what = format!("the daemon of node {} no longer answers ({error})", site.name);
            let mut lost = lost.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            lost.get_or_insert_with(|| daemons.with_last_words(number, &what));
        }
    }

    /// Writes records as they come, in the order of their times, until the pump is done. Returns the records still held back
    /// then.
    fn write_down(
        &self,
        inbox: &Receiver<Record>,
        recorder: &mut dyn Recorder,
        clock: Clock,
        stop: &AtomicBool,
        done: impl Fn() -> bool,
    ) -> Vec<Record> {
        let mut held: Vec<Record> = vec![];
        loop {
            match inbox.recv_timeout(Duration::from_millis(50)) {
                Ok(record) => held.push(record),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            held.extend(inbox.try_iter());
            if self.watch.cancel.load(Ordering::Relaxed) {
                stop.store(true, Ordering::Release);
            }
            let now = clock.now();
            (self.watch.progress)((now.as_secs_f64() / self.run.duration.as_secs_f64().max(1e-9)).min(1.0));
            write_until(&mut held, now - REORDERING, recorder);
            if done() {
                break;
            }
        }
        held
    }

    /// Packets that the kernel's shapers at hosts have sent and refused, by host.
    fn shaped(&self) -> Map<String, Value> {
        let of = |host: &crate::testbed::Host| {
            let (sent, refused) = host.namespace.inside(|| Ok(card::counted())).ok()??;
            let name = self.run.network.nodes[host.node].name.clone();
            Some((name, json!({ "sent": sent, "refused": refused })))
        };
        self.testbed.hosts.iter().filter_map(of).collect()
    }

    /// Packets dropped in hosts, by host and cause, and in the kernel's backlogs, where no packet should be dropped.
    fn drops(&self, backlog_before: u64) -> Map<String, Value> {
        let mut all = Map::new();
        for host in &self.testbed.hosts {
            if let Ok(drops) = host_drops(&host.namespace, "eth0") {
                let name = &self.run.network.nodes[host.node].name;
                all.extend(drops.into_iter().map(|(cause, count)| (format!("{name}.{cause}"), count)));
            }
        }
        let backlog = backlog_drops().saturating_sub(backlog_before);
        if backlog > 0 {
            all.insert("backlog".into(), backlog.into());
        }
        all
    }

    fn remarks(&self) -> Vec<String> {
        self.between.as_ref().map_or_else(Vec::new, |between| overlay::remarks(between.planned))
    }

    fn outcome(&self, pumped: &PumpReport, driven: &AppsReport, around: &Surroundings) -> Outcome {
        let run = self.run;
        let totals = pumped.totals;
        // Hosts discard packets that links have damaged, and count them as checksum errors.
        let told = |damaged: bool| {
            let counters =
                around.drops.iter().filter(|(cause, _)| cause.ends_with("InCsumErrors") == damaged);
            counters.filter_map(|(_, count)| count.as_u64()).sum::<u64>()
        };
        // A program may leave its sockets unread; what the kernel drops there is no fault of the run.
        let in_hosts = match self.program {
            Some(_) => 0,
            None => told(false) + told(true).saturating_sub(totals.corrupted),
        };
        let leaked = pumped.ring_drops + pumped.refused + totals.unroutable + in_hosts;
        let audit = Audit::new(&totals, leaked);
        let limits = Limits::new(around.lasted, base_rtt(run), smallest_target(run));
        let mut invalid = pumped.lateness.verdict(&limits);
        // Processor time of commands in hosts is not foreign load, but cannot be told from it.
        if around.ended.is_empty() {
            invalid.extend(around.usage.and_then(|usage| usage.verdict(cores())));
        }
        invalid.extend(around.cards.invalid.iter().cloned());
        if !audit.balances() {
            invalid.push(format!(
                "the packet audit does not balance: {} sent, {} duplicated, {} made by stations, {} delivered, {} damaged, {} \
                 dropped by queues, {} lost by links, {} discarded and {} held by stations, {} under way, {} leaked ({} in the ring, {} refused by the kernel, {} without a way, {in_hosts} in hosts{})",
                audit.sent,
                audit.duplicated,
                audit.made,
                audit.delivered,
                audit.corrupted,
                audit.dropped,
                audit.lost,
                audit.discarded,
                audit.held,
                audit.in_flight,
                audit.leaked,
                pumped.ring_drops,
                pumped.refused,
                totals.unroutable,
                around.drops.iter().map(|(cause, count)| format!(", {cause} {count}")).collect::<String>(),
            ));
        }
        Outcome {
            audit,
            invalid,
            prototypes: vec![],
            warnings: [
                self.remarks(),
                changed(run, pumped),
                warnings(run, pumped, driven, around.usage),
                around.cards.warnings.clone(),
            ]
            .concat(),
            environment: self.environment(pumped, driven, around, &limits),
        }
    }
}

/// Writes the held records up to a time, in the order of their times; equal times keep the order of arrival.
fn write_until(held: &mut Vec<Record>, until: Time, recorder: &mut dyn Recorder) {
    held.sort_by_key(Record::at);
    let ready = held.partition_point(|record| record.at() <= until);
    held.drain(..ready).for_each(|record| record.write(recorder));
}

/// The RTT by which lateness is judged: the shortest of the network's base RTT and the groups' RTTs; zero if there is none.
fn base_rtt(run: &Run) -> Span {
    run.groups.iter().map(Group::rtt).chain(run.network.base_rtt).min().unwrap_or(Span::ZERO)
}

/// The smallest delay target of any queue in the run.
fn smallest_target(run: &Run) -> Option<Span> {
    run.network.links.iter().filter_map(|link| link.queue.target()).min()
}
