//! Queue disciplines and AQMs. Each is one file and one line in the registry below; the same code serves simulated
//! packets and real ones.
//!
//! A discipline is a pure state machine: packets and times go in, packets and fates come out. It never reads a clock, and
//! draws random numbers only from the stream that it was built with.
#![forbid(unsafe_code)]

mod adaptive_red;
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

pub use limit::Limit;

use weir_base::{Bytes, FlowId, Packet, Random, Rate, Span, Time};

/// A queue discipline.
///
/// The caller stamps a packet with [`Packet::arrive`] before it hands it in, and calls [`Queue::dequeue`] whenever the link is
/// free; when that gives nothing although the queue holds packets, again at [`Queue::departs`]. Times never go back between calls.
pub trait Queue<P: Packet> {
    /// Takes a packet in, or gives it (or others) to `fate`.
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>);
    /// The next packet to send, if there is one; what is dropped on the way goes to `fate`.
    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P>;
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
    /// From when it can send, as things stand: `now` or later; none when it is empty. At that time [`Queue::dequeue`] gives a
    /// packet or drops one, or this moves on. A packet that arrives may bring it forward.
    fn departs(&self, now: Time) -> Option<Time> {
        (self.backlog().packets > 0).then_some(now)
    }
    /// Whether it can always send while it holds a packet. Only a discipline that cannot, such as a shaper, is asked
    /// [`Queue::departs`] by a link.
    fn is_work_conserving(&self) -> bool {
        true
    }
    /// Whether it would take a packet of this flow and IP length in now. A discipline that never refuses a packet for want of room, or
    /// drops others instead, says yes.
    fn takes(&self, flow: FlowId, length: u32) -> bool {
        let _ = (flow, length);
        true
    }
    /// Takes other parameters of its kind while it works; [`Config::change_fault`] tells which it can take. A discipline that takes
    /// none stays as it is.
    fn reconfigure(&mut self, config: &Config, now: Time, fate: &mut dyn Fate<P>) {
        let _ = (config, now, fate);
    }
    /// What it holds.
    fn backlog(&self) -> Backlog;
    /// Its internal state, name and value each, for the records. Names carry their unit (`drop_probability`, `delay_ms`).
    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let _ = report;
    }
}

/// What a queue holds.
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

/// Something wrong with a parameter beyond its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The parameter.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
    /// What would be right.
    pub help: String,
}

/// What a discipline's parameters tell of it.
trait Parameters {
    /// The delay that it aims at, where it has such an aim.
    fn target(&self) -> Option<Span> {
        None
    }
    /// Its parameters that are limits, by name.
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        Vec::new()
    }
    /// The disciplines within it, and the parameter that they are in.
    fn inner(&self) -> (&'static str, Vec<&Config>) {
        ("queue", Vec::new())
    }
    /// What is wrong with the parameters on this link, beyond their types.
    fn fault(&self, link: &Link) -> Option<Fault> {
        let _ = link;
        None
    }
    /// Why a discipline with these parameters cannot take others while it works.
    fn change_fault(&self, next: &Config) -> Option<String> {
        Some(format!("a queue `{}` keeps its parameters; those of `tbf` and `htb` can change", next.name()))
    }
}

impl Config {
    /// What is wrong with the parameters on this link, beyond their types; of a queue of queues, with the first of those.
    pub fn fault(&self, link: &Link) -> Option<Fault> {
        let (_, inner) = self.inner();
        self.parameters().fault(link).or_else(|| inner.into_iter().find_map(|queue| queue.fault(link)))
    }
    /// Why a discipline with these parameters cannot take others while it works; none where it can.
    pub fn change_fault(&self, next: &Config) -> Option<String> {
        if self.name() != next.name() {
            return Some(format!("a queue `{}` cannot become `{}`", self.name(), next.name()));
        }
        self.parameters().change_fault(next)
    }
    /// The delay that it aims at, where it has such an aim.
    pub fn target(&self) -> Option<Span> {
        self.parameters().target()
    }
    /// Its parameters that are limits, by name.
    pub fn limits(&self) -> Vec<(&'static str, Limit)> {
        self.parameters().limits()
    }
    /// How much it holds at most, where one parameter says so.
    pub fn limit(&self) -> Option<Limit> {
        self.limits().into_iter().find(|(name, _)| *name == "limit").map(|(_, limit)| limit)
    }
    /// The disciplines within it, and the parameter that they are in.
    pub fn inner(&self) -> (&'static str, Vec<&Config>) {
        self.parameters().inner()
    }
    /// Whether a limit of it, or of a discipline within it, is written in bandwidth-delay products.
    pub fn counts_in_bdp(&self) -> bool {
        let in_bdp = |(_, limit): &(&str, Limit)| matches!(limit, Limit::Bdp(_));
        self.limits().iter().any(in_bdp) || self.inner().1.into_iter().any(Config::counts_in_bdp)
    }
}

/// Where a discipline's decisions go. Sojourn is `now - packet.arrived()`.
pub trait Fate<P> {
    /// The packet was dropped; it belongs to `fate` now.
    fn dropped(&mut self, packet: P, reason: DropReason, now: Time);
    /// The packet was marked CE and stays in the queue, or is being sent.
    fn marked(&mut self, packet: &P, now: Time);
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// No room.
    Full,
    /// The AQM's decision: a congestion signal to a packet that cannot be marked, or by policy.
    Signal,
    /// The AQM drops although it could mark, because it is overloaded.
    Overload,
}

/// What a discipline may know of the link it stands before.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// The link's initial rate.
    pub rate: Rate,
    /// Round-trip time that one BDP is computed from, where the topology has one.
    pub base_rtt: Option<Span>,
    /// Largest IP packet.
    pub mtu: Bytes,
}

/// Each discipline's own code as a function of its own: in one function for all of them, every packet would pay for the registers
/// and the stack that the largest needs.
mod apart {
    use super::{Fate, Packet, Queue, Time};

    #[inline(never)]
    pub(super) fn enqueue<P: Packet, Q: Queue<P>>(
        queue: &mut Q,
        packet: P,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) {
        queue.enqueue(packet, now, fate);
    }

    #[inline(never)]
    pub(super) fn dequeue<P: Packet, Q: Queue<P>>(
        queue: &mut Q,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) -> Option<P> {
        queue.dequeue(now, fate)
    }

    #[inline(never)]
    pub(super) fn pass<P: Packet, Q: Queue<P>>(
        queue: &mut Q,
        packet: P,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) -> Option<P> {
        queue.pass(packet, now, fate)
    }
}

/// Declares the registry: the configuration enum, the enum that dispatches per packet, and how one makes the other.
macro_rules! queues {
    ($($Variant:ident($module:ident::$Type:ident) = $name:literal $(($title:literal))? $(| $alias:literal)* : $summary:literal;)+) => {
        weir_base::registry! {
            /// A queue discipline and its parameters, as a lab file names it.
            pub enum Config: "queue" {
                $($Variant($module::Config) = $name $(($title))? $(| $alias)* : $summary;)+
            }
        }

        /// A queue discipline at work: one variant for each line of the registry, so that a packet is dispatched without
        /// an indirect call. There is one for each link, so the size of the largest variant costs nothing. The tag is a byte
        /// of its own: one that is hidden in a variant takes six more instructions to read, three times a packet.
        #[allow(missing_docs, clippy::large_enum_variant)]
        #[derive(Debug)]
        #[repr(u8)]
        pub enum Discipline<P> {
            $($Variant($module::$Type<P>),)+
        }

        impl Config {
            fn parameters(&self) -> &dyn Parameters {
                match self { $(Config::$Variant(config) => config,)+ }
            }
            /// Builds the discipline for a link.
            pub fn build<P: Packet>(&self, link: &Link, random: Random) -> Discipline<P> {
                match self {
                    $(Config::$Variant(config) => Discipline::$Variant($module::$Type::new(config, link, random)),)+
                }
            }
        }

        impl<P: Packet> Queue<P> for Discipline<P> {
            #[inline(always)]
            fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
                match self { $(Discipline::$Variant(queue) => apart::enqueue(queue, packet, now, fate),)+ }
            }
            #[inline(always)]
            fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
                match self { $(Discipline::$Variant(queue) => apart::dequeue(queue, now, fate),)+ }
            }
            #[inline(always)]
            fn pass(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
                match self { $(Discipline::$Variant(queue) => apart::pass(queue, packet, now, fate),)+ }
            }
            fn update(&mut self, now: Time) {
                match self { $(Discipline::$Variant(queue) => Queue::<P>::update(queue, now),)+ }
            }
            fn departs(&self, now: Time) -> Option<Time> {
                match self { $(Discipline::$Variant(queue) => Queue::<P>::departs(queue, now),)+ }
            }
            fn reconfigure(&mut self, config: &Config, now: Time, fate: &mut dyn Fate<P>) {
                match self { $(Discipline::$Variant(queue) => queue.reconfigure(config, now, fate),)+ }
            }
            fn is_work_conserving(&self) -> bool {
                match self { $(Discipline::$Variant(queue) => Queue::<P>::is_work_conserving(queue),)+ }
            }
            fn takes(&self, flow: FlowId, length: u32) -> bool {
                match self { $(Discipline::$Variant(queue) => Queue::<P>::takes(queue, flow, length),)+ }
            }
            #[inline(always)]
            fn backlog(&self) -> Backlog {
                match self { $(Discipline::$Variant(queue) => Queue::<P>::backlog(queue),)+ }
            }
            fn state(&self, report: &mut dyn FnMut(&str, f64)) {
                match self { $(Discipline::$Variant(queue) => Queue::<P>::state(queue, report),)+ }
            }
        }
    };
}

queues! {
    TailDrop(tail_drop::TailDrop) = "tail-drop" ("tail drop") | "fifo" | "droptail": "First in, first out; what does not fit is dropped";
    Pie(pie::Pie) = "pie" ("PIE"): "Proportional integral controller enhanced (RFC 8033), with the defaults of Linux sch_pie";
    Step(step::Step) = "step": "First in, first out; marks above a threshold (RFC 8257 section 4.1; the step of L4S)";
    Codel(codel::Codel) = "codel" ("CoDel"): "Controlled delay (RFC 8289), with the defaults of Linux sch_codel";
    FqCodel(fq_codel::FqCodel) = "fq-codel" ("FQ-CoDel") | "fq_codel": "Flow queueing, a CoDel for each flow (RFC 8290), with the defaults of Linux sch_fq_codel";
    FqPie(fq_pie::FqPie) = "fq-pie" ("FQ-PIE") | "fq_pie": "Flow queueing, a PIE for each flow, with the defaults of Linux sch_fq_pie";
    Pi2(pi2::Pi2) = "pi2" ("PI2"): "PI with its probability squared for classic and linear for scalable packets (CoNEXT 2016)";
    DualPi2(dualpi2::DualPi2) = "dualpi2" ("DualPI2"): "Coupled dual queue for L4S and classic traffic (RFC 9332), with the defaults of Linux sch_dualpi2";
    Red(red::Red) = "red" ("RED"): "Random early detection (Floyd and Jacobson 1993), gentle";
    AdaptiveRed(adaptive_red::AdaptiveRed) = "adaptive-red" ("Adaptive RED") | "ared": "RED that finds its own parameters (Floyd, Gummadi and Shenker 2001)";
    StrictPriority(strict_priority::StrictPriority) = "strict-priority" ("strict priority") | "prio": "Queues in bands, the first that holds a packet served first";
    Tbf(tbf::Tbf) = "tbf" ("TBF"): "Token bucket filter: a shaper with a rate, a burst and perhaps a peak rate (Linux sch_tbf)";
    Htb(htb::Htb) = "htb" ("HTB"): "Hierarchical token bucket: a shaper with classes that borrow from each other (Linux sch_htb)";
    Drr(drr::Drr) = "drr" ("DRR"): "Queues in bands that take turns by deficit round robin (Shreedhar and Varghese 1995)";
}
