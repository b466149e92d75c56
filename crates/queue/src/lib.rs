//! Queue disciplines and AQMs. Each is one file and one line in the registry below; the same code handles simulated and real
//! packets.
//!
//! A discipline is a pure state machine: packets and times go in, packets and fates come out. It never reads a clock, and
//! draws random numbers only from the stream that it was built with.
//!
//! `tail_drop.rs` is the file to open first.
#![forbid(unsafe_code)]

mod adaptive_red;
mod added;
mod bands;
mod codel;
mod drr;
mod dualpi2;
mod flows;
mod fq_codel;
mod fq_pie;
pub mod htb;
mod limit;
mod parameter;
mod pi;
mod pi2;
mod pie;
#[cfg(test)]
mod properties;
mod psched;
mod red;
mod step;
mod store;
mod strict_priority;
mod tail_drop;
mod tbf;
#[cfg(test)]
mod testing;

pub use added::{Arrival, Decider, Decision, Maker};
pub use limit::Limit;

use std::fmt::Debug;
use weir_base::{Bytes, FlowId, Packet, ParameterError, Random, Rate, Span, Time};

/// A queue discipline.
///
/// The caller stamps a packet with [`Packet::arrive`] before it enqueues it, and calls [`Queue::dequeue`] whenever the link is
/// free. If that returns `None` although the queue holds packets, the caller repeats it at [`Queue::departs`]. Times never go back.
pub trait Queue<P: Packet>: Debug {
    /// Takes a packet in; dropped packets, this one or others, go to `fate`.
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>);
    /// The next packet to send, if there is one; packets that are dropped before it go to `fate`.
    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P>;
    /// [`Queue::dequeue`], and whether the queue still holds packets.
    fn serve(&mut self, now: Time, fate: &mut dyn Fate<P>) -> (Option<P>, bool) {
        let packet = self.dequeue(now, fate);
        (packet, self.backlog().packets > 0)
    }
    /// A packet arrives at the empty queue of a link that is free, and is sent at once unless it is dropped: [`Queue::enqueue`] and
    /// [`Queue::dequeue`] in one.
    fn pass(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.enqueue(packet, now, fate);
        self.dequeue(now, fate)
    }
    /// Runs every periodic step that is due; [`Queue::enqueue`] and [`Queue::dequeue`] call it themselves.
    fn update(&mut self, now: Time) {
        let _ = now;
    }
    /// The earliest time, `now` or later, at which the queue can send; `None` when it is empty. At that time [`Queue::dequeue`]
    /// returns a packet or drops one, or this method returns a later time. A packet that arrives may make the time earlier.
    fn departs(&self, now: Time) -> Option<Time> {
        (self.backlog().packets > 0).then_some(now)
    }
    /// Whether the queue can always send while it holds a packet. A link calls [`Queue::departs`] only if it cannot, such as a
    /// shaper.
    fn is_work_conserving(&self) -> bool {
        true
    }
    /// Whether the queue has room now for a packet of this flow and IP length. A discipline that never refuses a packet for lack of
    /// room, or drops others instead, returns true.
    fn takes(&self, flow: FlowId, length: u32) -> bool {
        let _ = (flow, length);
        true
    }
    /// Changes the parameters at run time; [`Config::change_fault`] says which changes are possible. By default nothing
    /// changes.
    fn reconfigure(&mut self, config: &Config, now: Time, fate: &mut dyn Fate<P>) {
        let _ = (config, now, fate);
    }
    /// The packets and bytes in the queue.
    fn backlog(&self) -> Backlog;
    /// Reports the internal state as names and values, for the records. Names carry their unit (`drop_probability`, `delay_ms`).
    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let _ = report;
    }
}

/// The packets and bytes in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets in the queue.
    pub packets: u32,
    /// Their IP bytes.
    pub bytes: Bytes,
}

impl Backlog {
    /// Counts a packet in.
    pub fn add(&mut self, packet: &impl Packet) {
        self.packets += 1;
        self.bytes += Bytes::new(packet.wire_length().into());
    }
    /// Counts a packet out.
    pub fn remove(&mut self, packet: &impl Packet) {
        self.packets -= 1;
        self.bytes = self.bytes - Bytes::new(packet.wire_length().into());
    }
}

/// How a shaper holds some flows back, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaping {
    /// Greatest long-term rate, counted in IP bytes plus `overhead`.
    pub rate: Rate,
    /// Bytes that each packet counts in addition to its IP length.
    pub overhead: Bytes,
}

/// Properties of a discipline that follow from its parameters.
trait Parameters {
    /// The discipline's target delay; `None` if it has no target.
    fn target(&self) -> Option<Span> {
        None
    }
    /// The parameters that are limits, by name.
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        Vec::new()
    }
    /// The name of the parameter that holds inner disciplines, and those disciplines.
    fn inner(&self) -> (&'static str, Vec<&Config>) {
        ("queue", Vec::new())
    }
    /// What is wrong with the parameters on this link, beyond their types; `None` if nothing is.
    fn fault(&self, link: &Link) -> Option<ParameterError> {
        let _ = link;
        None
    }
    /// How the discipline shapes these flows, numbered in the order of the run; `None` if it does not shape all of them.
    fn shaping(&self, flows: &[u32]) -> Option<Shaping> {
        let _ = flows;
        None
    }
    /// Why a discipline with these parameters cannot change to `next` at run time; `None` if it can.
    fn change_fault(&self, next: &Config) -> Option<String> {
        Some(format!("the parameters of `{}` cannot change; only those of `tbf` and `htb` can", next.name()))
    }
}

impl Config {
    /// What is wrong with the parameters on this link, beyond their types, or else with those of the first faulty inner queue;
    /// `None` if nothing is.
    pub fn fault(&self, link: &Link) -> Option<ParameterError> {
        let (_, inner) = self.inner();
        self.parameters().fault(link).or_else(|| inner.into_iter().find_map(|queue| queue.fault(link)))
    }
    /// Why a discipline with these parameters cannot change to `next` at run time; `None` if it can.
    pub fn change_fault(&self, next: &Config) -> Option<String> {
        if self.name() != next.name() {
            return Some(format!("a queue `{}` cannot become `{}`", self.name(), next.name()));
        }
        self.parameters().change_fault(next)
    }
    /// How the discipline shapes these flows, numbered in the order of the run; `None` if it does not shape all of them.
    pub fn shaping(&self, flows: &[u32]) -> Option<Shaping> {
        self.parameters().shaping(flows)
    }
    /// The discipline's target delay; `None` if it has no target.
    pub fn target(&self) -> Option<Span> {
        self.parameters().target()
    }
    /// The parameters that are limits, by name.
    pub fn limits(&self) -> Vec<(&'static str, Limit)> {
        self.parameters().limits()
    }
    /// The parameter `limit`: the most that the queue holds; `None` if the discipline has no such parameter.
    pub fn limit(&self) -> Option<Limit> {
        self.limits().into_iter().find(|(name, _)| *name == "limit").map(|(_, limit)| limit)
    }
    /// The name of the parameter that holds inner disciplines, and those disciplines.
    pub fn inner(&self) -> (&'static str, Vec<&Config>) {
        self.parameters().inner()
    }
    /// Whether any limit, also of an inner discipline, is written in bandwidth-delay products.
    pub fn counts_in_bdp(&self) -> bool {
        let in_bdp = |(_, limit): &(&str, Limit)| matches!(limit, Limit::Bdp(_));
        self.limits().iter().any(in_bdp) || self.inner().1.into_iter().any(Config::counts_in_bdp)
    }
}

/// Receives a discipline's decisions. The sojourn is `now - packet.arrived()`.
pub trait Fate<P> {
    /// The packet was dropped; it belongs to `fate` now.
    fn dropped(&mut self, packet: P, reason: DropReason, now: Time);
    /// The packet was marked CE; it stays in the queue or is sent now.
    fn marked(&mut self, packet: &P, now: Time);
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue had no room.
    Full,
    /// A congestion signal of the AQM: the packet cannot be marked, or the AQM is set to drop.
    Signal,
    /// The AQM was overloaded and dropped a packet that it could have marked.
    Overload,
}

/// The properties of a link that its queue may depend on.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// The link's initial rate.
    pub rate: Rate,
    /// Round-trip time that one BDP is computed from; `None` if the topology has no single one.
    pub base_rtt: Option<Span>,
    /// Length of the largest IP packet.
    pub mtu: Bytes,
}

/// A queue discipline with its state.
pub type Discipline<P> = Box<dyn Queue<P>>;

/// Declares the registry: the configuration enum, and how a discipline is built from each of its variants.
macro_rules! queues {
    ($($Variant:ident($module:ident::$Type:ident) = $name:literal $(($title:literal))? $(| $alias:literal)* : $summary:literal;)+) => {
        weir_base::registry! {
            /// A queue discipline and its parameters, as a lab file names it.
            pub enum Config: "queue" {
                $($Variant($module::Config) = $name $(($title))? $(| $alias)* : $summary;)+
            }
            + Added(Maker)
        }

        impl Config {
            fn parameters(&self) -> &dyn Parameters {
                match self {
                    $(Config::$Variant(config) => config,)+
                    Config::Added(added) => added,
                }
            }
            /// Builds the discipline for a link.
            pub fn build<P: Packet>(&self, link: &Link, random: Random) -> Discipline<P> {
                match self {
                    $(Config::$Variant(config) => Box::new($module::$Type::new(config, link, random)),)+
                    Config::Added(added) => Box::new(added::Decided::new(added, link, random)),
                }
            }
        }
    };
}

queues! {
    TailDrop(tail_drop::TailDrop) = "tail-drop" ("tail drop") | "fifo" | "droptail": "First in, first out; packets that do not fit are dropped";
    Pie(pie::Pie) = "pie" ("PIE"): "Proportional integral controller enhanced (RFC 8033), with the defaults of Linux sch_pie";
    Step(step::Step) = "step": "First in, first out; packets above a threshold are marked (RFC 8257 section 4.1; the step of L4S)";
    Codel(codel::Codel) = "codel" ("CoDel"): "Controlled delay (RFC 8289), with the defaults of Linux sch_codel";
    FqCodel(fq_codel::FqCodel) = "fq-codel" ("FQ-CoDel") | "fq_codel": "Flow queueing with a CoDel for each flow (RFC 8290), with the defaults of Linux sch_fq_codel";
    FqPie(fq_pie::FqPie) = "fq-pie" ("FQ-PIE") | "fq_pie": "Flow queueing with a PIE for each flow, with the defaults of Linux sch_fq_pie";
    Pi2(pi2::Pi2) = "pi2" ("PI2"): "PI controller whose probability is squared for classic packets and linear for scalable ones (CoNEXT 2016)";
    DualPi2(dualpi2::DualPi2) = "dualpi2" ("DualPI2"): "Coupled dual queue for L4S and classic traffic (RFC 9332), with the defaults of Linux sch_dualpi2";
    Red(red::Red) = "red" ("RED"): "Random early detection (Floyd and Jacobson 1993), gentle by default";
    AdaptiveRed(adaptive_red::AdaptiveRed) = "adaptive-red" ("Adaptive RED") | "ared": "RED that derives its thresholds from the link and adapts its marking probability (Floyd, Gummadi and Shenker 2001)";
    StrictPriority(strict_priority::StrictPriority) = "strict-priority" ("strict priority") | "prio": "Bands with a queue each; the first band that can send is served (Linux sch_prio)";
    Tbf(tbf::Tbf) = "tbf" ("TBF"): "Token bucket filter: a shaper with a rate, a burst and optionally a peak rate (Linux sch_tbf)";
    Htb(htb::Htb) = "htb" ("HTB"): "Hierarchical token bucket: a shaper with classes that borrow from each other (Linux sch_htb)";
    Drr(drr::Drr) = "drr" ("DRR"): "Bands with a queue each, served by deficit round robin (Shreedhar and Varghese 1995)";
}
