//! What is changed at a device, step by step: each step is a request to the kernel, and can be read as the `tc` command that would do
//! the same.

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
/// `HTB_VER` of net/sched/sch_htb.c, and the quotient that only counts for classes without a quantum.
const HTB_VERSION: u32 = 3;
const HTB_R2Q: u32 = 10;

/// A token bucket filter; the parameters are those of `weir describe tbf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tbf {
    /// Rate in the long run, in frames without checksum.
    pub rate: Rate,
    /// What it may send at once after a rest.
    pub burst: Bytes,
    /// What may wait.
    pub limit: Bytes,
    /// Rate within a burst.
    pub peakrate: Option<Rate>,
    /// Size of the bucket of `peakrate`.
    pub mtu: Bytes,
}

/// A class of HTB; the parameters are those of `weir describe htb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its handle.
    pub handle: Handle,
    /// The class or, at the root, the discipline that it hangs on. A class at the root borrows of none.
    pub parent: Handle,
    /// What it may always send, in frames without checksum.
    pub rate: Rate,
    /// What it may send at most, borrowing the rest of its parent.
    pub ceil: Rate,
    /// What it may send at once after a rest.
    pub burst: Bytes,
    /// The same at `ceil`.
    pub cburst: Bytes,
    /// What it sends in its turn when several borrow.
    pub quantum: Bytes,
    /// Of classes that may send, those of the lowest number go first; 0 to 7.
    pub prio: u8,
}

/// One change at a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A token bucket filter under a parent; changed where it is there.
    Tbf {
        /// Its handle.
        handle: Handle,
        /// What it hangs on.
        parent: Handle,
        /// Its parameters.
        tbf: Tbf,
    },
    /// The discipline of a tree of classes.
    Htb {
        /// Its handle.
        handle: Handle,
        /// What it hangs on.
        parent: Handle,
        /// Number of the class for what no filter takes; 0: it goes first and unshaped.
        default: u16,
        /// Most packets that wait unshaped.
        direct_limit: u32,
    },
    /// A class; changed where it is there.
    Class(Class),
    /// A queue of so many bytes, first in, first out.
    Bfifo {
        /// Its handle.
        handle: Handle,
        /// What it hangs on.
        parent: Handle,
        /// What may wait.
        limit: Bytes,
    },
    /// A queue of so many packets, first in, first out.
    Pfifo {
        /// Its handle.
        handle: Handle,
        /// What it hangs on.
        parent: Handle,
        /// Most packets that wait.
        limit: u32,
    },
    /// Packets that match go to a class.
    Filter {
        /// The discipline.
        parent: Handle,
        /// Which packets.
        matches: Match,
        /// The class.
        class: Handle,
    },
    /// Takes away a class and all that hangs on it.
    RemoveClass {
        /// Its handle.
        handle: Handle,
    },
    /// Takes away all filters that lead to a class.
    RemoveFilters {
        /// The discipline.
        parent: Handle,
        /// The class.
        class: Handle,
    },
    /// Takes away the root discipline and all that hangs on it: the kernel puts its default in its place.
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
        // The level is the kernel's to tell.
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

/// Options of a tree: `struct tc_htb_glob`, and how many packets wait unshaped.
fn tree(default: u16, direct_limit: u32) -> Vec<u8> {
    let numbers = [HTB_VERSION, HTB_R2Q, u32::from(default), 0, 0].map(u32::to_ne_bytes);
    let mut options = vec![];
    push(&mut options, HTB_INIT, &numbers.concat());
    push(&mut options, HTB_DIRECT_QLEN, &direct_limit.to_ne_bytes());
    options
}

/// Where `struct tc_htb_glob` has its version and its counter, behind the header of the attribute.
const VERSION: std::ops::Range<usize> = 4..8;
const COUNTER: std::ops::Range<usize> = 20..24;

/// HTB tells how many packets went unshaped among its settings (`direct_pkts`): a counter, cleared here. Of its version it tells a
/// minor number too, and takes the major one only.
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
    /// The object that a step adds or changes. `None` for those that take away.
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

    /// The `tc` command that does the same at a device of this name.
    pub fn tc(&self, device: &str) -> String {
        format!("tc {}", Words { step: self, device })
    }
}

/// A step in the words of `tc`.
struct Words<'a> {
    step: &'a Step,
    device: &'a str,
}

/// A parent in the words of `tc`.
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
