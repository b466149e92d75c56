//! A program that tells what happens to the packets of a device's root queue (`bpf/observe.c`), and the events that it tells. Nothing is
//! pinned: program and maps go with the process that holds them, however it ends.

use crate::object::load_object;
use crate::{Problem, capability};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::linux::fs::MetadataExt;
use std::rc::Rc;
use weir_observe::Sighting;

/// The network namespace of the calling thread.
const NAMESPACE: &str = "/proc/thread-self/ns/net";
/// Beginnings of the names of reasons for which a queue drops a packet (include/net/dropreason-core.h).
const OF_QUEUES: [&str; 4] = ["qdisc_", "fq_", "cake_", "dualpi2_"];
/// `observed` of `bpf/observe.c`: index, namespace, reasons, and the device's address, which the program finds.
const OBSERVED: usize = 48;
const REASONS: usize = 8;
const REASON_WORDS: usize = 4;
/// Events that are taken at once, so that a busy queue cannot hold the reader.
const AT_ONCE: usize = 1 << 18;

/// The program in the kernel, attached to its tracepoints.
pub struct Observer {
    _links: Vec<Link>,
    observed: MapHandle,
    lost: MapHandle,
    events: RingBuffer<'static>,
    came: Rc<RefCell<Vec<Sighting>>>,
    settings: Vec<u8>,
    reasons: BTreeMap<u16, String>,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

impl Observer {
    /// Loads and attaches the program for devices of the calling thread's network namespace. It tells nothing before
    /// [`Observer::switch`].
    ///
    /// # Errors
    /// The kernel lacks type information or tracepoints, the process lacks the privilege, or the kernel refuses the program.
    pub fn load() -> Result<Observer, Problem> {
        let reasons = capability::drop_reasons()?;
        let namespace = std::fs::metadata(NAMESPACE).map_err(Problem::failed("cannot tell the namespace"))?;
        // The numbers of namespaces have 32 bits (include/linux/ns_common.h).
        let namespace = namespace.st_ino() as u32;
        let mut settings = vec![];
        let object = load_object("observe", |_, section| {
            write(section, namespace, &reasons)?;
            settings = section.to_vec();
            Ok(())
        })?;
        let handle = |end: &str| {
            let map = object.maps().find(|map| map.name().to_string_lossy().ends_with(end));
            let map = map.ok_or_else(|| other_layout(end))?;
            MapHandle::try_from(&map).map_err(failed("cannot keep a map"))
        };
        let (observed, lost, ring) = (handle(".data")?, handle(".bss")?, handle("events")?);
        let came = Rc::new(RefCell::new(vec![]));
        let to = Rc::clone(&came);
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&ring, move |bytes: &[u8]| {
                to.borrow_mut().extend(Sighting::read(bytes));
                0
            })
            .map_err(failed("cannot read the events"))?;
        let events = builder.build().map_err(failed("cannot read the events"))?;
        let mut links = vec![];
        for program in object.progs_mut() {
            links.push(program.attach().map_err(failed("cannot attach to a tracepoint"))?);
        }
        Ok(Observer { _links: links, observed, lost, events, came, settings, reasons })
    }

    /// From now on events of the device of this index are told; of none if there is no index.
    ///
    /// # Errors
    /// The kernel's.
    pub fn switch(&mut self, device: Option<u32>) -> Result<(), Problem> {
        let place = self.settings.first_chunk_mut().ok_or_else(|| other_layout(".data"))?;
        *place = device.unwrap_or(0).to_ne_bytes();
        self.observed
            .update(&0u32.to_ne_bytes(), &self.settings, MapFlags::ANY)
            .map_err(failed("cannot choose the device"))
    }

    /// Appends the events that have come.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take(&mut self, events: &mut Vec<Sighting>) -> Result<(), Problem> {
        let code = self.events.consume_raw_n(AT_ONCE);
        if code < 0 {
            return Err(Problem::failed("cannot read the events")(io::Error::from_raw_os_error(-code)));
        }
        events.append(&mut self.came.borrow_mut());
        Ok(())
    }

    /// How many events there was no room for.
    ///
    /// # Errors
    /// The kernel's.
    pub fn lost(&self) -> Result<u64, Problem> {
        let value = self.lost.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(failed("cannot read the lost events"))?.unwrap_or_default();
        value.first_chunk().map(|count| u64::from_ne_bytes(*count)).ok_or_else(|| other_layout(".bss"))
    }

    /// The name of a drop reason, as this kernel numbers them.
    pub fn reason(&self, number: u16) -> String {
        self.reasons.get(&number).cloned().unwrap_or_else(|| format!("reason {number}"))
    }
}

/// Fills in `observed`.
fn write(section: &mut [u8], namespace: u32, reasons: &BTreeMap<u16, String>) -> Result<(), Problem> {
    let section = section.get_mut(..OBSERVED).ok_or_else(|| other_layout(".data"))?;
    section.fill(0);
    section[4..REASONS].copy_from_slice(&namespace.to_ne_bytes());
    for word in 0..REASON_WORDS {
        let is_here = |number: u16| usize::from(number) / 64 == word;
        let of_queues = |name: &str| OF_QUEUES.iter().any(|beginning| name.starts_with(beginning));
        let bits = reasons
            .iter()
            .filter(|(number, name)| is_here(**number) && of_queues(name))
            .fold(0u64, |bits, (number, _)| bits | 1 << (number % 64));
        let at = REASONS + 8 * word;
        section[at..at + 8].copy_from_slice(&bits.to_ne_bytes());
    }
    Ok(())
}

fn failed(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Problem {
    move |error| Problem::failed(what)(io::Error::other(error))
}

fn other_layout(of: &str) -> Problem {
    Problem::failed("cannot observe")(io::Error::other(format!("bpf/observe.c has another layout of {of}")))
}
