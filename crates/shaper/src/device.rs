//! A network device of the calling thread's namespace, and its shapers.

use crate::filter::{as_request, class_of};
use crate::message::{Handle, KIND, Message, OPTIONS, STATS2, attributes, long, word};
use crate::netlink::{How, Kind, Netlink};
use crate::step::{Step, plain_htb};
use crate::{Problem, Snapshot};
use rustix::net::{AddressFamily, SocketType, netdevice::name_to_index, socket};
use std::io;

/// A device, by the name and the index that it has in the namespace of the thread that opened it.
#[derive(Debug)]
pub struct Device {
    netlink: Netlink,
    name: String,
    index: u32,
}

/// Counters of a class or discipline since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that were sent, in frames without checksum; in packets of many segments, each segment counts with its headers.
    pub bytes: u64,
    /// Packets that were sent.
    pub packets: u64,
    /// Packets that it refused for lack of room, or dropped.
    pub drops: u64,
    /// Bytes that wait in it.
    pub backlog: u64,
    /// Packets that wait in it.
    pub waiting: u64,
    /// Packets that the device gave back to it.
    pub requeues: u64,
}

/// A device's root discipline, weir's or another one's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its handle; [`Handle::NONE`] if the kernel has made it.
    pub handle: Handle,
    /// Its kind, such as `tbf`; `noqueue` if the device has no queue.
    pub kind: String,
    /// Its counters.
    pub counters: Counters,
}

impl Device {
    /// Opens a device by name.
    ///
    /// # Errors
    /// There is no device of this name, or no netlink.
    pub fn open(name: &str) -> Result<Device, Problem> {
        let failed = |error| Problem::Failed { what: format!("cannot look up {name}"), error };
        let any =
            socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(|error| failed(error.into()))?;
        let index = name_to_index(&any, name).map_err(|_| Problem::NoDevice(name.to_owned()))?;
        Ok(Device { netlink: Netlink::open().map_err(failed)?, name: name.to_owned(), index })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its MTU in bytes, and its default queue length in packets.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn sizes(&mut self) -> Result<(u32, u32), Problem> {
        self.netlink.sizes(self.index).map_err(|error| self.failed("cannot read its MTU", error))
    }

    /// Makes a pair of devices for trials. One has this name, and the queue length and MTU of the device that it stands for. The
    /// namespace should be a new one, with which the pair disappears.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn scratch(name: &str, queue: u32, mtu: u32) -> Result<Device, Problem> {
        let failed = |error| Problem::Failed { what: "cannot make a scratch device".into(), error };
        Netlink::open().and_then(|mut netlink| netlink.add_scratch(name, queue, mtu)).map_err(failed)?;
        Device::open(name)
    }

    /// Its present shapers.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn snapshot(&mut self) -> Result<Snapshot, Problem> {
        self.read().map_err(|error| self.failed("cannot read the shapers", error))
    }

    fn read(&mut self) -> io::Result<Snapshot> {
        let all = Message::new(self.index, Handle::NONE, Handle::NONE);
        let settings = |found: Vec<Message>| found.into_iter().map(Message::settings).collect::<Vec<_>>();
        let mut disciplines = settings(self.netlink.list(Kind::GetQdisc, &all)?);
        // The ingress discipline, and programs beside the root, are not shapers.
        disciplines.retain(|it| it.parent != Handle::INGRESS);
        for discipline in &mut disciplines {
            // `tcm_info` of a discipline counts references to it.
            discipline.info = 0;
            plain_htb(discipline);
        }
        let mut classes = settings(self.netlink.list(Kind::GetClass, &all)?);
        let mut filters = vec![];
        for discipline in disciplines.iter().filter(|it| it.handle != Handle::NONE) {
            let parent = Message { parent: discipline.handle, ..all.clone() };
            // Some disciplines have no filters.
            let found = self.netlink.list(Kind::GetFilter, &parent).unwrap_or_default();
            filters.extend(settings(found));
        }
        disciplines.sort();
        classes.sort();
        Ok(Snapshot { disciplines, classes, filters })
    }

    /// Makes a change.
    ///
    /// # Errors
    /// The kernel's error; [`Problem::Forbidden`] if the process lacks the privilege.
    pub fn apply(&mut self, step: &Step) -> Result<(), Problem> {
        self.request(step).map_err(|error| match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::PERM.raw_os_error() => {
                Problem::Forbidden(self.name.clone())
            }
            _ => self.failed(&format!("`{}` failed", step.tc(&self.name)), error),
        })
    }

    fn request(&mut self, step: &Step) -> io::Result<()> {
        let index = self.index;
        let of = |handle, parent| Message::new(index, handle, parent);
        match step {
            Step::RemoveRoot => {
                self.netlink.change(Kind::DeleteQdisc, How::Delete, &of(Handle::NONE, Handle::ROOT))
            }
            Step::RemoveClass { handle } => absent_is_fine(self.netlink.change(
                Kind::DeleteClass,
                How::Delete,
                &of(*handle, Handle::NONE),
            )),
            Step::RemoveFilters { parent, class } => self.remove_filters(*parent, *class),
            Step::Filter { .. } => self.set(Kind::NewFilter, How::Add, step),
            Step::Class(_) => self.set(Kind::NewClass, How::Replace, step),
            Step::Tbf { .. } | Step::Htb { .. } | Step::Bfifo { .. } | Step::Pfifo { .. } => {
                self.set(Kind::NewQdisc, How::Replace, step)
            }
        }
    }

    fn set(&mut self, kind: Kind, how: How, step: &Step) -> io::Result<()> {
        step.object(self.index).map_or(Ok(()), |object| self.netlink.change(kind, how, &object))
    }

    /// Removes the filters that lead to a class. The last filter of a priority is removed with the kernel's entry for that priority.
    fn remove_filters(&mut self, parent: Handle, class: Handle) -> io::Result<()> {
        let of_parent = Message::new(self.index, Handle::NONE, parent);
        loop {
            let filters = absent_is_none(self.netlink.list(Kind::GetFilter, &of_parent))?;
            let leads_to = |filter: &Message| class_of(filter) == Some(class);
            let Some(found) = filters.iter().find(|filter| leads_to(filter)) else { return Ok(()) };
            let others = filters
                .iter()
                .any(|it| it.info == found.info && it.handle != found.handle && class_of(it).is_some());
            let mut gone = Message::new(self.index, Handle::NONE, parent);
            gone.info = found.info;
            if others {
                gone = gone.with("u32", vec![]);
                gone.handle = found.handle;
                gone.attributes.retain(|(kind, _)| *kind == KIND);
            }
            self.netlink.change(Kind::DeleteFilter, How::Delete, &gone)?;
        }
    }

    /// Counters of the classes and disciplines of these handles; `None` for a handle that does not exist.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn counters(&mut self, handles: &[Handle]) -> Result<Vec<Option<Counters>>, Problem> {
        let all = Message::new(self.index, Handle::NONE, Handle::NONE);
        let found = self.netlink.list(Kind::GetClass, &all).and_then(|mut found| {
            found.extend(self.netlink.list(Kind::GetQdisc, &all)?);
            Ok(found)
        });
        let found = found.map_err(|error| self.failed("cannot read the counters", error))?;
        let of = |handle: &Handle| found.iter().find(|it| it.handle == *handle).map(counters_of);
        Ok(handles.iter().map(of).collect())
    }

    /// Its root discipline. `None` if the device is gone.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn root(&mut self) -> Result<Option<Root>, Problem> {
        let all = Message::new(self.index, Handle::NONE, Handle::NONE);
        let found = self.netlink.list(Kind::GetQdisc, &all);
        let found = found.map_err(|error| self.failed("cannot read the root discipline", error))?;
        let root = found.iter().find(|it| it.parent == Handle::ROOT);
        Ok(root.map(|root| Root {
            handle: root.handle,
            kind: root.kind().to_owned(),
            counters: counters_of(root),
        }))
    }

    /// Restores a snapshot: removes the present root, and makes all objects again that are not the kernel's default. It changes nothing
    /// if the present shapers equal the snapshot.
    ///
    /// # Errors
    /// The kernel's error, or [`Problem::NotRestored`] if the outcome differs from the snapshot.
    pub fn restore(&mut self, before: &Snapshot) -> Result<(), Problem> {
        let now = self.snapshot()?;
        if now == *before {
            return Ok(());
        }
        if now.root().is_some() {
            self.apply(&Step::RemoveRoot)?;
        }
        self.replay(before).map_err(|error| self.failed("cannot restore the shapers", error))?;
        if self.snapshot()? == *before { Ok(()) } else { Err(Problem::NotRestored(self.name.clone())) }
    }

    /// Whether a snapshot of another device can be restored exactly: tries it on this one.
    ///
    /// # Errors
    /// The kernel's error when the outcome is read.
    pub fn can_hold(&mut self, other: &Snapshot) -> Result<bool, Problem> {
        Ok(self.replay(other).is_ok() && self.snapshot()?.is_like(other))
    }

    /// Makes all objects of a snapshot that are not the kernel's default.
    fn replay(&mut self, before: &Snapshot) -> io::Result<()> {
        let index = self.index;
        let here = |message: &Message| {
            let mut message = Message { index, ..message.clone() };
            message.attributes.retain(|(kind, _)| [KIND, OPTIONS].contains(kind));
            message
        };
        let made = |message: &&Message| message.handle != Handle::NONE;
        let disciplines = before.disciplines.iter().filter(made).map(|it| (Kind::NewQdisc, here(it)));
        let classes = before.classes.iter().map(|it| (Kind::NewClass, here(it)));
        let mut missing: Vec<(Kind, Message)> = disciplines.chain(classes).collect();
        // An object is made after its parent, and some disciplines create their own classes: missing objects are tried again as long as
        // each round makes one.
        let mut there: Vec<Message> = vec![];
        loop {
            let (mut last, tried) = (None, missing.len());
            for (kind, message) in &missing {
                let hangs =
                    message.parent == Handle::ROOT || there.iter().any(|it| it.handle == message.parent);
                if !hangs {
                    continue;
                }
                if let Err(error) = self.netlink.change(*kind, How::Replace, message) {
                    last = Some(error);
                }
            }
            let now = self.read()?;
            there = now.disciplines.into_iter().chain(now.classes).collect();
            missing.retain(|(_, message)| !there.iter().any(|it| it.is_called(message)));
            if missing.is_empty() {
                break;
            }
            if missing.len() == tried {
                return Err(last.unwrap_or_else(|| io::Error::other("some of the objects are still missing")));
            }
        }
        let filters: Vec<Message> = before.filters.iter().map(here).filter_map(as_request).collect();
        filters.iter().try_for_each(|filter| self.netlink.change(Kind::NewFilter, How::Add, filter))
    }

    fn failed(&self, what: &str, error: io::Error) -> Problem {
        Problem::Failed { what: format!("{}: {what}", self.name), error }
    }
}

fn counters_of(message: &Message) -> Counters {
    /// `TCA_STATS_BASIC`, `TCA_STATS_QUEUE`, and `TCA_STATS_PKT64`, which is there if the packets need more than 32 bits
    /// (include/uapi/linux/gen_stats.h).
    const BASIC: u16 = 1;
    const QUEUE: u16 = 3;
    const PACKETS: u16 = 8;
    let all = attributes(message.attribute(STATS2).unwrap_or_default());
    let of =
        |kind: u16| all.iter().find(|(has, _)| *has == kind).map_or(&[][..], |(_, value)| value.as_slice());
    let number = |kind: u16, at: usize| u64::from(word(of(kind), at).unwrap_or(0));
    Counters {
        bytes: long(of(BASIC), 0).unwrap_or(0),
        packets: long(of(PACKETS), 0).unwrap_or_else(|| number(BASIC, 8)),
        backlog: number(QUEUE, 4),
        drops: number(QUEUE, 8),
        waiting: number(QUEUE, 0),
        requeues: number(QUEUE, 12),
    }
}

/// An object that is already gone counts as removed.
fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn absent_is_none(found: io::Result<Vec<Message>>) -> io::Result<Vec<Message>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(vec![]),
        found => found,
    }
}
