//! Changes at a device, step by step: each step is a request to the kernel, and can be printed as the equivalent `tc` command.

use crate::filter::Match;
use crate::message::{Handle, Message, OPTIONS, attributes, push};
use crate::psched::{rate_spec, ticks, wide};
use std::fmt;
use weir_base::{Bytes, Rate};

/// Attributes of TBF and HTB (include/uapi/linux/pkt_sched.h).
const TBF_PARMS: u16 = 1;
const TBF_RATE64: u16 = 4;
const TBF_PRATE64: u16 = 5;
const TBF_BURST: u16 = 6;
const TBF_PBURST: u16 = 7;
const HTB_PARMS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_DIRECT_QLEN: u16 = 5;
const HTB_RATE64: u16 = 6;
const HTB_CEIL64: u16 = 7;
/// `HTB_VER` of net/sched/sch_htb.c, and `rate2quantum`, which only matters for classes without a quantum.
const HTB_VERSION: u32 = 3;
const HTB_R2Q: u32 = 10;

/// A token bucket filter; the parameters are those of `weir describe tbf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tbf {
    /// Long-term rate, in frames without checksum.
    pub rate: Rate,
    /// Bytes that it may send at once after an idle time.
    pub burst: Bytes,
    /// Bytes that may wait.
    pub limit: Bytes,
    /// Rate within a burst; `None` for no limit.
    pub peakrate: Option<Rate>,
    /// Size of the bucket of `peakrate`.
    pub mtu: Bytes,
}

/// A class of HTB; the parameters are those of `weir describe htb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its handle.
    pub handle: Handle,
    /// Its parent class or, at the root, its discipline. A class at the root borrows from none.
    pub parent: Handle,
    /// Rate that it may always send, in frames without checksum.
    pub rate: Rate,
    /// Highest rate that it may send; it borrows the rest from its parent.
    pub ceil: Rate,
    /// Bytes that it may send at once at `rate` after an idle time.
    pub burst: Bytes,
    /// Bytes that it may send at once at `ceil` after an idle time.
    pub cburst: Bytes,
    /// Bytes that it sends in its turn if several classes borrow.
    pub quantum: Bytes,
    /// Priority, 0 to 7: of the classes that may send, those with the lowest number go first.
    pub prio: u8,
}

/// One change at a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A token bucket filter under a parent. An existing one is changed.
    Tbf {
        /// Its handle.
        handle: Handle,
        /// Its parent.
        parent: Handle,
        /// Its parameters.
        tbf: Tbf,
    },
    /// The HTB discipline, the root of a tree of classes.
    Htb {
        /// Its handle.
        handle: Handle,
        /// Its parent.
        parent: Handle,
        /// Number of the class for packets that no filter matches; 0: such packets go first and unshaped.
        default: u16,
        /// Most packets that wait unshaped.
        direct_limit: u32,
    },
    /// A class. An existing one is changed.
    Class(Class),
    /// A first-in, first-out queue, limited in bytes.
    Bfifo {
        /// Its handle.
        handle: Handle,
        /// Its parent.
        parent: Handle,
        /// Bytes that may wait.
        limit: Bytes,
    },
    /// A first-in, first-out queue, limited in packets.
    Pfifo {
        /// Its handle.
        handle: Handle,
        /// Its parent.
        parent: Handle,
        /// Most packets that wait.
        limit: u32,
    },
    /// A filter: packets that match go to a class.
    Filter {
        /// The discipline.
        parent: Handle,
        /// The packets that match.
        matches: Match,
        /// The class.
        class: Handle,
    },
    /// Removes a class and everything below it.
    RemoveClass {
        /// Its handle.
        handle: Handle,
    },
    /// Removes all filters that lead to a class.
    RemoveFilters {
        /// The discipline.
        parent: Handle,
        /// The class.
        class: Handle,
    },
    /// Removes the root discipline and everything below it: the kernel replaces it by its default.
    RemoveRoot,
}

impl Tbf {
    fn options(&self) -> Vec<u8> {
        let mut parms = [rate_spec(Some(self.rate)), rate_spec(self.peakrate)].concat();
        let size = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let peak = self.peakrate.map_or(0, |peak| ticks(peak, self.mtu));
        for number in [size(self.limit), ticks(self.rate, self.burst), peak] {
            parms.extend(number.to_ne_bytes());
        }
        let mut options = vec![];
        push(&mut options, TBF_PARMS, &parms);
        push(&mut options, TBF_BURST, &size(self.burst).to_ne_bytes());
        if let Some(rate) = wide(self.rate) {
            push(&mut options, TBF_RATE64, &rate);
        }
        if let Some(peak) = self.peakrate {
            push(&mut options, TBF_PBURST, &size(self.mtu).to_ne_bytes());
            if let Some(peak) = wide(peak) {
                push(&mut options, TBF_PRATE64, &peak);
            }
        }
        options
    }
}

impl Class {
    fn options(&self) -> Vec<u8> {
        let mut parms = [rate_spec(Some(self.rate)), rate_spec(Some(self.ceil))].concat();
        let quantum = u32::try_from(self.quantum.get()).unwrap_or(u32::MAX);
        // The kernel sets the level.
        let numbers =
            [ticks(self.rate, self.burst), ticks(self.ceil, self.cburst), quantum, 0, u32::from(self.prio)];
        numbers.iter().for_each(|number| parms.extend(number.to_ne_bytes()));
        let mut options = vec![];
        push(&mut options, HTB_PARMS, &parms);
        for (kind, rate) in [(HTB_RATE64, self.rate), (HTB_CEIL64, self.ceil)] {
            if let Some(rate) = wide(rate) {
                push(&mut options, kind, &rate);
            }
        }
        options
    }
}

/// Options of an HTB discipline: `struct tc_htb_glob`, and how many packets may wait unshaped.
fn tree(default: u16, direct_limit: u32) -> Vec<u8> {
    let numbers = [HTB_VERSION, HTB_R2Q, u32::from(default), 0, 0].map(u32::to_ne_bytes);
    let mut options = vec![];
    push(&mut options, HTB_INIT, &numbers.concat());
    push(&mut options, HTB_DIRECT_QLEN, &direct_limit.to_ne_bytes());
    options
}

/// Bytes of the version and the counter in `struct tc_htb_glob`, behind the header of the attribute.
const VERSION: std::ops::Range<usize> = 4..8;
const COUNTER: std::ops::Range<usize> = 20..24;

/// HTB lists the number of packets that went unshaped (`direct_pkts`) among its settings: this counter is cleared here. It lists its
/// version with a minor number, but accepts only the major one.
pub(crate) fn plain_htb(discipline: &mut Message) {
    if discipline.kind() != "htb" {
        return;
    }
    for (_, value) in discipline.attributes.iter_mut().filter(|(kind, _)| *kind == OPTIONS) {
        let is_tree = attributes(value).first().is_some_and(|(kind, _)| *kind == HTB_INIT);
        if let (true, Some(_)) = (is_tree, value.get(COUNTER)) {
            value[COUNTER].fill(0);
            value[VERSION].copy_from_slice(&HTB_VERSION.to_ne_bytes());
        }
    }
}

impl Step {
    /// The object that a step adds or changes. `None` for steps that remove one.
    pub(crate) fn object(&self, index: u32) -> Option<Message> {
        let object = |handle: &Handle, parent: &Handle| Message::new(index, *handle, *parent);
        Some(match self {
            Step::Tbf { handle, parent, tbf } => object(handle, parent).with("tbf", tbf.options()),
            Step::Htb { handle, parent, default, direct_limit } => {
                object(handle, parent).with("htb", tree(*default, *direct_limit))
            }
            Step::Class(class) => object(&class.handle, &class.parent).with("htb", class.options()),
            Step::Bfifo { handle, parent, limit } => {
                let limit = u32::try_from(limit.get()).unwrap_or(u32::MAX);
                object(handle, parent).with("bfifo", limit.to_ne_bytes().to_vec())
            }
            Step::Pfifo { handle, parent, limit } => {
                object(handle, parent).with("pfifo", limit.to_ne_bytes().to_vec())
            }
            Step::Filter { parent, matches, class } => {
                let mut message = object(&Handle::NONE, parent).with("u32", matches.options(*class));
                message.info = matches.info();
                message
            }
            Step::RemoveClass { .. } | Step::RemoveFilters { .. } | Step::RemoveRoot => return None,
        })
    }

    /// The equivalent `tc` command for a device of this name.
    pub fn tc(&self, device: &str) -> String {
        format!("tc {}", Words { step: self, device })
    }
}

/// A step as a `tc` command.
struct Words<'a> {
    step: &'a Step,
    device: &'a str,
}

/// A parent as `tc` names it.
fn under(parent: Handle) -> String {
    if parent == Handle::ROOT { "root".into() } else { format!("parent {parent}") }
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.device;
        let bits = |rate: Rate| format!("{}bit", rate.bits_per_sec());
        match self.step {
            Step::Tbf { handle, parent, tbf } => {
                let Tbf { rate, burst, limit, peakrate, mtu } = tbf;
                let (rate, under) = (bits(*rate), under(*parent));
                write!(f, "qdisc replace dev {device} {under} handle {handle} tbf rate {rate}")?;
                write!(f, " burst {}b limit {}b", burst.get(), limit.get())?;
                match peakrate {
                    Some(peak) => write!(f, " peakrate {} mtu {}b", bits(*peak), mtu.get()),
                    None => Ok(()),
                }
            }
            Step::Htb { handle, parent, default, direct_limit } => write!(
                f,
                "qdisc replace dev {device} {} handle {handle} htb default 0x{default:x} direct_qlen {direct_limit}",
                under(*parent)
            ),
            Step::Class(class) => {
                let Class { handle, parent, rate, ceil, burst, cburst, quantum, prio } = class;
                let (rate, ceil) = (bits(*rate), bits(*ceil));
                write!(
                    f,
                    "class replace dev {device} parent {parent} classid {handle} htb rate {rate} ceil {ceil}"
                )?;
                let (burst, cburst) = (burst.get(), cburst.get());
                write!(f, " burst {burst}b cburst {cburst}b quantum {} prio {prio}", quantum.get())
            }
            Step::Bfifo { handle, parent, limit } => {
                let (under, limit) = (under(*parent), limit.get());
                write!(f, "qdisc replace dev {device} {under} handle {handle} bfifo limit {limit}b")
            }
            Step::Pfifo { handle, parent, limit } => {
                write!(f, "qdisc replace dev {device} {} handle {handle} pfifo limit {limit}", under(*parent))
            }
            Step::Filter { parent, matches, class } => {
                write!(f, "filter add dev {device} parent {parent} {matches} flowid {class}")
            }
            Step::RemoveClass { handle } => write!(f, "class delete dev {device} classid {handle}"),
            Step::RemoveFilters { parent, class } => {
                write!(f, "filter show dev {device} parent {parent} # and delete each of flowid {class}")
            }
            Step::RemoveRoot => write!(f, "qdisc delete dev {device} root"),
        }
    }
}
