//! What the kernel's queues at hosts' cards do, as the records of the cards' links: the observer tells of each packet (`weir-kernel`), and
//! `weir-observe` pairs arrivals and departures. One thread loads an observer for each card and takes the events of all.
//!
//! A card is two queues in a row: the kernel's, and that of its link in the fabric, which takes all packets. The records are the kernel's
//! alone. Lengths are those of IP packets, as everywhere in records.

use super::{ETHERNET, cards};
use crate::relay::Relay;
use crate::testbed::Testbed;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_base::{Bytes, CODEPOINTS, Rate, Span, Time};
use weir_engine::shaper_rate;
use weir_fabric::{DropReason, LinkCounters};
use weir_kernel::{Observer, kernel_counts};
use weir_linux::clock::{Clock, monotonic};
use weir_linux::namespace::Namespace;
use weir_observe::{QueueCounts, Sighting, WatchSettings, Watched};
use weir_plan::Run;
use weir_record::{DelaySample, LinkSample, Recorder};
use weir_shaper::{Counters, Device};

/// How often events are taken: the buffer holds 280,000 of them.
const TAKEN_EACH: Duration = Duration::from_millis(10);
/// How long after its end a period is recorded: an event comes a little later than its stamp.
const SETTLED: Span = Span::from_millis(20);

/// The observation of a run's cards.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// The links whose records it makes, by their numbers in the network.
    links: Vec<usize>,
    orders: Option<Sender<Begin>>,
    thread: Option<JoinHandle<Result<Vec<String>, String>>>,
    /// Why there is none, though there are cards.
    hindrance: Option<String>,
}

/// The start of a run.
struct Begin {
    clock: Clock,
    relay: Relay,
}

/// What an observation has to say at the end of a run.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Why the records may not be believed.
    pub(crate) invalid: Vec<String>,
    /// Why there are none.
    pub(crate) warnings: Vec<String>,
}

impl Observed {
    /// Loads the observers of a run's cards, which are set up already. The run is that of the lab, before
    /// [`behind_the_kernels`](super::behind_the_kernels).
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn load(run: &Run, testbed: &Testbed) -> io::Result<Observed> {
        let mut places = vec![];
        for (node, _, link) in cards(run) {
            let index = run.network.links.iter().position(|other| std::ptr::eq(other, link));
            let host = testbed.hosts.iter().find(|host| host.node == node);
            let (Some(index), Some(host), Some(rate)) = (index, host, link.rate) else { continue };
            places.push(Place {
                link: index,
                host: run.network.nodes[node].name.clone(),
                namespace: host.namespace.try_clone()?,
                rate,
                overhead: link.overhead,
                capacity: shaper_rate(run, index).map_or(rate, |shaped| shaped.min(rate)),
            });
        }
        if places.is_empty() {
            return Ok(Observed::default());
        }
        let links = places.iter().map(|place| place.link).collect();
        let (orders, inbox) = channel();
        let (loaded, answer) = channel();
        let sample = run.sample;
        let thread = std::thread::Builder::new()
            .name("weir-cards".into())
            .spawn(move || observe(places, sample, &loaded, &inbox))
            .map_err(weir_base::not_started)?;
        match answer.recv() {
            Ok(None) => Ok(Observed { links, orders: Some(orders), thread: Some(thread), hindrance: None }),
            Ok(Some(why)) => Ok(Observed { hindrance: Some(why), ..Observed::default() }),
            Err(_) => Err(io::Error::other("the observer of the cards panicked")),
        }
    }

    /// The links whose records it makes.
    pub(crate) fn links(&self) -> &[usize] {
        &self.links
    }

    /// The run begins with this clock; records go to `relay`.
    pub(crate) fn begin(&self, clock: Clock, relay: Relay) {
        if let Some(orders) = &self.orders {
            // A thread that has ended says why at the end.
            let _ = orders.send(Begin { clock, relay });
        }
    }

    /// Ends it. The last period of the run is recorded then.
    pub(crate) fn end(self) -> Told {
        let mut told = Told::default();
        if let Some(why) = self.hindrance {
            told.warnings.push(format!("the queues of the hosts' cards have no records: {why}"));
        }
        drop(self.orders);
        match self.thread.map(JoinHandle::join) {
            None => {}
            Some(Ok(Ok(invalid))) => told.invalid = invalid,
            Some(Ok(Err(why))) => told.invalid.push(format!("the cards could not be observed: {why}")),
            Some(Err(_)) => told.invalid.push("the observer of the cards panicked".into()),
        }
        told
    }
}

/// A card that is to be observed.
struct Place {
    link: usize,
    host: String,
    namespace: Namespace,
    rate: Rate,
    overhead: Bytes,
    /// The rate of the card or of its shaper, whichever is lower.
    capacity: Rate,
}

/// The thread's work: loads observers and says why they cannot be loaded, waits for the start, and records until the orders end. Returns
/// what is wrong with the records.
fn observe(
    places: Vec<Place>,
    sample: Span,
    loaded: &Sender<Option<String>>,
    orders: &Receiver<Begin>,
) -> Result<Vec<String>, String> {
    let mut cards: Vec<Card> = match places.into_iter().map(Card::load).collect() {
        Ok(cards) => cards,
        Err(why) => {
            let _ = loaded.send(Some(why));
            return Ok(vec![]);
        }
    };
    let _ = loaded.send(None);
    let Ok(Begin { clock, mut relay }) = orders.recv() else { return Ok(vec![]) };
    cards.iter_mut().try_for_each(Card::start)?;
    let mut next = Time::ZERO + sample;
    loop {
        let is_over = matches!(orders.recv_timeout(TAKEN_EACH), Err(RecvTimeoutError::Disconnected));
        cards.iter_mut().try_for_each(Card::take)?;
        let now = clock.now();
        while next + SETTLED <= now || (is_over && next <= now) {
            for card in &mut cards {
                card.record(next, clock.monotonic(next), sample, &mut relay);
            }
            next += sample;
        }
        if is_over {
            break;
        }
    }
    let faults: Vec<Vec<String>> = cards.iter_mut().map(Card::finish).collect::<Result<_, _>>()?;
    Ok(faults.concat())
}

/// A card under observation.
struct Card {
    place: Place,
    device: Device,
    observer: Observer,
    watched: Watched,
    /// The counters just before and just after the beginning.
    beginning: [Counters; 2],
    /// Events of which the period is not over yet.
    came: Vec<Sighting>,
}

impl Card {
    /// Loads the observer of a card. The calling thread stays in the card's namespace.
    fn load(place: Place) -> Result<Card, String> {
        place.namespace.join().map_err(|error| error.to_string())?;
        let mut device = Device::open("eth0").map_err(|problem| problem.to_string())?;
        let observer = Observer::load().map_err(|problem| problem.to_string())?;
        let counters = counters(&mut device)?;
        let watched = Watched::new(WatchSettings { start: monotonic(), period: Span::from_secs(1) });
        Ok(Card { place, device, observer, watched, beginning: [counters, counters], came: vec![] })
    }

    fn start(&mut self) -> Result<(), String> {
        let before = counters(&mut self.device)?;
        let settings = WatchSettings { start: monotonic(), period: Span::from_secs(1) };
        self.watched = Watched::new(settings);
        self.observer.switch(Some(self.device.index())).map_err(|problem| problem.to_string())?;
        self.beginning = [before, counters(&mut self.device)?];
        Ok(())
    }

    fn take(&mut self) -> Result<(), String> {
        self.observer.take(&mut self.came).map_err(|problem| problem.to_string())
    }

    /// Lets the events until a moment count.
    fn see(&mut self, until: Time) {
        let watched = &mut self.watched;
        self.came.retain(|sighting| {
            let is_later = sighting.at > until;
            if !is_later {
                watched.see(sighting);
            }
            is_later
        });
    }

    /// Records the period that ends `at`, which is `until` by the kernel's clock.
    fn record(&mut self, at: Time, until: Time, period: Span, recorder: &mut dyn Recorder) {
        self.see(until);
        let counts = self.watched.take_counts();
        let link = self.place.link as u32;
        let waiting = self.watched.waiting();
        recorder.link(&LinkSample {
            at,
            link,
            counters: self.counters(&counts, period),
            backlog_packets: u32::try_from(waiting).unwrap_or(u32::MAX),
            backlog_bytes: Bytes::new(self.watched.backlog().saturating_sub(ETHERNET.get() * waiting)),
        });
        for (class, delay) in CODEPOINTS.into_iter().zip(counts.sojourn) {
            if delay.count() > 0 {
                recorder.delay(&DelaySample { at, link, class, delay });
            }
        }
    }

    /// The counts of a period as those of a link.
    fn counters(&self, counts: &QueueCounts, period: Span) -> LinkCounters {
        let on_link = |class: usize| {
            let headers = ETHERNET.get() * counts.sent[class];
            counts.sent_bytes[class].saturating_sub(headers) + self.place.overhead.get() * counts.sent[class]
        };
        let sent_bytes = std::array::from_fn(on_link);
        let all = Bytes::new(sent_bytes.iter().sum());
        let mut dropped_for = [0; 3];
        // Shapers of the kernel drop for want of room alone.
        dropped_for[DropReason::Full as usize] = counts.dropped.iter().sum();
        LinkCounters {
            arrived: counts.arrived,
            dropped: counts.dropped,
            marked: counts.marked,
            sent: counts.sent,
            sent_bytes,
            dropped_for,
            forwarded: counts.sent.iter().sum(),
            busy: self.place.rate.time_to_send(all).min(period),
            capacity: self.place.capacity.bytes_in(period).max(all),
            ..LinkCounters::default()
        }
    }

    /// Ends the observation. Returns why its records may not be believed.
    fn finish(&mut self) -> Result<Vec<String>, String> {
        let before = counters(&mut self.device)?;
        let until = monotonic();
        self.observer.switch(None).map_err(|problem| problem.to_string())?;
        let ending = [before, counters(&mut self.device)?];
        // No more than the buffer holds can be left; it is taken in two portions at most.
        self.take()?;
        self.take()?;
        self.see(Time::NEVER);
        let lost = self.observer.lost().map_err(|problem| problem.to_string())?;
        let reason = |number| self.observer.reason(number);
        let report = self.watched.report(until, &kernel_counts(&self.beginning, &ending), lost, &reason);
        let host = &self.place.host;
        Ok(report.checks.invalid.iter().map(|why| format!("the card of {host}: {why}")).collect())
    }
}

/// The counters of the root queue.
fn counters(device: &mut Device) -> Result<Counters, String> {
    let root = device.root().map_err(|problem| problem.to_string())?;
    root.map(|root| root.counters).ok_or_else(|| "the device is gone".to_owned())
}
