//! What applications do. Each workload is one file and one line in the registry below; both engines drive them.
//!
//! A workload is a pure state machine for one flow: the engine tells it what has happened and asks for the next action. It
//! never touches a socket or a clock. Stream workloads (TCP) open, write and close; datagram workloads (UDP) send.
#![forbid(unsafe_code)]

mod bulk;
mod checks;
pub mod command;
pub mod frames;
mod http;
mod onoff;
mod requests;
mod sizes;
mod times;
mod transfer;
mod udp;
mod web;

pub use bulk::Writes;
pub use checks::Fault;
pub use frames::{FrameFate, FrameLog, FrameRecord, Part};
pub use sizes::{Listed, Pareto, Sizes};
pub use times::Times;

use weir_base::{Bytes, Ecn, Random, Span, Time};

/// A workload at work for one flow.
pub trait Workload: Send {
    /// What to do next. Called once at the flow's start with [`Event::Start`], then with each event that the last action
    /// waited for, at the time it happened.
    fn next(&mut self, event: Event, now: Time) -> Action;

    /// What the request and the answer of an [`Action::Exchange`] begin with on real sockets; the rest is zeros.
    fn heads(&self) -> [String; 2] {
        Default::default()
    }
}

/// What has happened since the last action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The flow's start time has come.
    Start,
    /// The connection is established.
    Opened,
    /// All that the last [`Action::Write`] asked for has been accepted by the socket.
    Written,
    /// The time asked for with [`Action::WaitUntil`] has come.
    Woken,
    /// The datagram of the last [`Action::Send`] or [`Action::SendPart`] has left.
    Sent,
    /// The answer to the last [`Action::Exchange`] has been read whole.
    Answered,
}

/// What the application does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Opens the connection; answered by [`Event::Opened`].
    Open,
    /// Writes so many bytes as room allows; answered by [`Event::Written`] when the last is in the socket.
    Write(Bytes),
    /// Keeps the socket's buffer full until the flow's stop time; never answered.
    WriteForever(Writes),
    /// Does nothing until then; answered by [`Event::Woken`].
    WaitUntil(Time),
    /// Sends a request of so many bytes, which the other end answers with so many when it has read all of it; answered by
    /// [`Event::Answered`].
    Exchange {
        /// Length of the request.
        request: Bytes,
        /// Length of the answer.
        response: Bytes,
    },
    /// Sends one datagram whose IP packet has this many bytes; answered by [`Event::Sent`].
    Send(Bytes),
    /// Sends one datagram that carries a part of a frame, with the part's header before its payload; answered by
    /// [`Event::Sent`].
    SendPart(Bytes, Part),
    /// Closes the sending side, of requests and answers the client's; the flow is complete when the receiver has read everything.
    /// Last action.
    Close,
}

/// Which transport a workload needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// A byte stream: TCP, opened by the sending host.
    Stream,
    /// Requests and answers over TCP: the receiving host opens the connection and asks, the sending host answers.
    Exchanges,
    /// Datagrams with this codepoint; `exact` ones are injected by the fabric at the very times asked for, others pass
    /// through a socket.
    Datagrams {
        /// The codepoint that each carries.
        ecn: Ecn,
        /// Whether the fabric injects them.
        exact: bool,
    },
    /// Whatever the command does that is run inside a host.
    Command,
}

impl Needs {
    /// Whether it is one TCP connection of weir's own.
    pub fn connection(self) -> bool {
        matches!(self, Needs::Stream | Needs::Exchanges)
    }
}

/// A flow that was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it begins, from the start of the run.
    pub at: Span,
    /// How much it sends.
    pub size: Bytes,
}

/// What a workload's parameters tell of it. Only the first two are needed by all.
trait Parameters {
    /// The transport that it needs.
    fn needs(&self) -> Needs;
    /// The workload of one flow: of this size, where flows are drawn with one, with so many bytes of IP and UDP headers
    /// before a datagram's payload, and with a random stream of its own.
    fn build(&self, size: Option<Bytes>, headers: Bytes, random: Random) -> Box<dyn Workload>;
    /// What is wrong with the parameters beyond their types, where packets are `mtu` long at most.
    fn faults(&self, mtu: Bytes) -> Vec<Fault> {
        let _ = mtu;
        Vec::new()
    }
    /// About how much a flow (or all that are drawn) sends in a time; none is as much as the network carries.
    fn wanted(&self, time: Span) -> Option<Bytes> {
        let _ = time;
        None
    }
    /// How many flows are to be expected in a time, where they are drawn.
    fn expected_arrivals(&self, time: Span) -> Option<u64> {
        let _ = time;
        None
    }
    /// Draws the flows that begin in a time, by their beginnings.
    fn arrivals(&self, from: Span, to: Span, random: &mut Random) -> Vec<Arrival> {
        let _ = (from, to, random);
        Vec::new()
    }
    /// What keeps account of frames at the receiver, for a flow of these times in a run that ends then.
    fn frame_log(&self, start: Time, stop: Time, end: Time) -> Option<FrameLog> {
        let _ = (start, stop, end);
        None
    }
    /// The command that it is.
    fn command(&self) -> Option<&command::Config> {
        None
    }
}

/// Declares the registry: the configuration enum, and what every workload's parameters tell.
macro_rules! workloads {
    ($($Variant:ident($module:ident) = $name:literal $(| $alias:literal)* : $summary:literal;)+) => {
        weir_base::registry! {
            /// A workload and its parameters, as a lab file names it.
            pub enum Config: "workload" {
                $($Variant($module::Config) = $name $(| $alias)* : $summary;)+
            }
        }

        impl Config {
            fn parameters(&self) -> &dyn Parameters {
                match self {
                    $(Config::$Variant(config) => config,)+
                }
            }
        }
    };
}

workloads! {
    Bulk(bulk) = "bulk": "TCP that always has data to send";
    Transfer(transfer) = "transfer": "TCP that sends a given number of bytes and closes";
    Web(web) = "web": "short TCP flows that arrive at random, each a connection of its own";
    Requests(requests) = "requests": "requests and answers over TCP, with time to think in between";
    Http(http) = "http": "one resource over HTTP: the receiving host asks for it, and closes when it has it";
    Udp(udp) = "udp": "UDP at a constant rate, deaf to congestion";
    OnOff(onoff) = "onoff" | "on-off": "UDP at a constant rate that is on for a while and off for a while";
    Frames(frames) = "frames": "media frames over UDP, each of several packets with a deadline";
    Command(command) = "command": "any command inside a host (live only)";
}

impl Config {
    /// Builds the workload of one flow: of this size, where flows are drawn with one, with so many bytes of IP and UDP
    /// headers before a datagram's payload, and with a random stream of its own.
    pub fn build(&self, size: Option<Bytes>, headers: Bytes, random: Random) -> Box<dyn Workload> {
        self.parameters().build(size, headers, random)
    }
    /// The transport that it needs.
    pub fn needs(&self) -> Needs {
        self.parameters().needs()
    }
    /// What is wrong with the parameters beyond their types, where packets are `mtu` long at most.
    pub fn faults(&self, mtu: Bytes) -> Vec<Fault> {
        self.parameters().faults(mtu)
    }
    /// About how much a flow (or all that are drawn) sends in a time; none is as much as the network carries.
    pub fn wanted(&self, time: Span) -> Option<Bytes> {
        self.parameters().wanted(time)
    }
    /// How many flows are to be expected in a time; none when flows are not drawn but counted in the lab.
    pub fn expected_arrivals(&self, time: Span) -> Option<u64> {
        self.parameters().expected_arrivals(time)
    }
    /// Whether its flows are drawn: many short ones, of which nobody looks at single ones.
    pub fn is_drawn(&self) -> bool {
        self.expected_arrivals(Span::ZERO).is_some()
    }
    /// Draws the flows that begin in a time, by their beginnings.
    pub fn arrivals(&self, from: Span, to: Span, random: &mut Random) -> Vec<Arrival> {
        self.parameters().arrivals(from, to, random)
    }
    /// What keeps account of frames at the receiver, for a flow of these times in a run that ends then.
    pub fn frame_log(&self, start: Time, stop: Time, end: Time) -> Option<FrameLog> {
        self.parameters().frame_log(start, stop, end)
    }
    /// The command that it is.
    pub fn command(&self) -> Option<&command::Config> {
        self.parameters().command()
    }
}
