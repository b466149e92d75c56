//! What the queue of a device does, as tracepoints of the running kernel say it: `bpf/watch.c` is loaded for as long as a [`Watch`] lives.
//! However the process ends, the kernel takes the programs away with its descriptors.

use crate::Problem;
use crate::capability::drop_reasons;
use crate::object::load_object;
use libbpf_rs::{Link, MapCore, MapFlags, Object, RingBuffer, RingBufferBuilder};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use weir_base::{Span, Time};
use weir_observe::{Counted, Event, HEADER, What};

/// Words of `reasons` in `bpf/watch.c`.
const REASONS: usize = 4;
/// Bytes of an event there.
const TOLD: usize = 40 + HEADER;
/// A counter that is not known there.
const UNKNOWN: u64 = u64::MAX;
/// Where in `watched` the lost events, the device and its namespace stand.
const LOST: usize = 8 * REASONS;
const INDEX: usize = LOST + 8;
const NAMESPACE: usize = INDEX + 4;
/// What the names of reasons of queues begin with, and the one of packets that a queue throws away as it is removed
/// (include/net/dropreason-core.h).
const OF_QUEUES: [&str; 3] = ["QDISC_", "FQ_", "CAKE_"];
const PURGED: &str = "QUEUE_PURGE";

/// Observes the queue of a device of this network namespace.
pub struct Watch {
    object: Object,
    _links: Vec<Link>,
    ring: RingBuffer<'static>,
    told: Arc<Mutex<Vec<u8>>>,
    reasons: BTreeMap<u32, String>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Begins to observe the device of this index.
    ///
    /// # Errors
    /// The kernel lacks type information or a tracepoint, or the process may not load programs.
    pub fn new(index: u32) -> Result<Watch, Problem> {
        let reasons = drop_reasons()?;
        let namespace = std::fs::metadata("/proc/thread-self/ns/net");
        let namespace = namespace.map_err(Problem::failed("cannot tell the network namespace"))?.ino();
        let object = load_object("watch", |_, section| {
            let is_of_queues = |name: &str| OF_QUEUES.iter().any(|of| name.starts_with(of)) || name == PURGED;
            let numbers = reasons.iter().filter(|(_, name)| is_of_queues(name)).map(|(number, _)| *number);
            fill(section, numbers, index, namespace as u32).ok_or_else(|| {
                Problem::failed("cannot say what to observe")(other("bpf/watch.c has another layout"))
            })
        })?;
        let mut links = vec![];
        for program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let link = program.attach().map_err(failed(format!("cannot attach {name}")))?;
            links.push(link);
        }
        let told = Arc::new(Mutex::new(vec![]));
        let ring = {
            let map = object.maps().find(|map| map.name() == "told");
            let map =
                map.ok_or_else(|| Problem::failed("cannot observe")(other("its object has no ring")))?;
            let into = told.clone();
            let mut builder = RingBufferBuilder::new();
            let hear = move |event: &[u8]| {
                into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(event);
                0
            };
            builder.add(&map, hear).map_err(failed("cannot read the ring"))?;
            builder.build().map_err(failed("cannot read the ring"))?
        };
        Ok(Watch { object, _links: links, ring, told, reasons })
    }

    /// Hands over the events since the last call, in their order.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn read(&mut self, each: &mut dyn FnMut(&Event<'_>)) -> Result<(), Problem> {
        self.ring.consume().map_err(failed("cannot read the ring"))?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for event in told.chunks_exact(TOLD).filter_map(|bytes| event(bytes.first_chunk()?)) {
            each(&event);
        }
        told.clear();
        Ok(())
    }

    /// Events that found no room in the ring.
    ///
    /// # Errors
    /// The counter cannot be read.
    pub fn lost(&self) -> Result<u64, Problem> {
        let map = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".data"));
        let value = map.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        let lost = value.as_deref().and_then(|bytes| bytes.get(LOST..)?.first_chunk().copied());
        let lost = lost.ok_or_else(|| other("its counter cannot be read"));
        Ok(u64::from_ne_bytes(lost.map_err(Problem::failed("cannot count lost events"))?))
    }

    /// The kernel's name of a reason for which packets are dropped, in lower case.
    pub fn reason(&self, number: u32) -> String {
        let name = self.reasons.get(&number).map(|name| name.to_lowercase().replace('_', "-"));
        name.unwrap_or_else(|| format!("reason-{number}"))
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Problem {
    let what = what.into();
    move |error| Problem::failed(what)(io::Error::other(error))
}

fn other(what: &'static str) -> io::Error {
    io::Error::other(what)
}

/// Fills in `watched` of `bpf/watch.c`; `None` if it is shorter.
fn fill(section: &mut [u8], reasons: impl Iterator<Item = u32>, index: u32, namespace: u32) -> Option<()> {
    let mut words = [0u64; REASONS];
    for reason in reasons {
        *words.get_mut(reason as usize / 64)? |= 1 << (reason % 64);
    }
    for (place, word) in section.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    section.get_mut(INDEX..NAMESPACE)?.copy_from_slice(&index.to_ne_bytes());
    section.get_mut(NAMESPACE..NAMESPACE + 4)?.copy_from_slice(&namespace.to_ne_bytes());
    Some(())
}

/// Reads an event as `bpf/watch.c` writes it.
fn event(bytes: &[u8; TOLD]) -> Option<Event<'_>> {
    let long = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u64::from_ne_bytes(*word));
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
    let (counted, reason) = (long(16)?, word(28)?);
    let what = match word(24)? {
        0 => What::Came,
        1 => What::Left((counted != UNKNOWN).then_some(Counted { sent: counted, drops: reason.into() })),
        2 => What::Dropped(reason),
        3 => What::Started,
        _ => return None,
    };
    Some(Event {
        at: Time::ZERO + Span::from_nanos(long(0)?),
        what,
        packet: long(8)?,
        segments: word(32)?.max(1),
        bytes: word(36)?,
        header: bytes.last_chunk()?,
    })
}
