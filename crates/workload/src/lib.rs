//! What applications do. Each workload is one file and one line in the registry below; both engines drive them.
//!
//! A workload is a pure state machine: it is told what has happened and asked for the next action, and never touches a socket or a
//! clock. [`Application`] drives it over the [`Socket`]s of either engine. Workloads that write streams open, write and close;
//! those of datagrams send.
#![forbid(unsafe_code)]

mod application;
mod bulk;
mod checks;
pub mod command;
pub mod ensembles;
mod exchange;
pub mod frames;
mod http;
mod lane;
mod onoff;
mod ping;
mod requests;
mod sizes;
mod socket;
mod times;
mod transfer;
mod udp;
mod web;

pub use application::{Application, Notice};
pub use bulk::Writes;
pub use checks::Fault;
pub use ensembles::{EnsembleLog, EnsembleRecord};
pub use frames::{FrameFate, FrameLog, FrameRecord, Part};
pub use lane::Plan;
pub use ping::{EchoLog, EchoRecord};
pub use sizes::{Listed, Pareto, Sizes};
pub use socket::{End, Received, Socket, Sockets, Trouble};
pub use times::Times;

use weir_base::{Bytes, Ecn, Random, Span, Time};

/// A workload at work for one flow.
pub trait Workload: Send {
    /// What to do next. Called once at the flow's start with [`Event::Start`], then with each event that the last action
    /// waited for, at the time it happened.
    fn next(&mut self, event: Event, now: Time) -> Action;

    /// The same, for a workload that drives several flows: which of them the event is about, and the action for it, by number
    /// from 0.
    fn next_for(&mut self, flow: usize, event: Event, now: Time) -> Action {
        let _ = flow;
        self.next(event, now)
    }

    /// The workload drives another flow; its number follows that of the last one. Called before the first event.
    fn add_flow(&mut self) {}

    /// A flow that waits since [`Action::Await`] and may go on now: it gets [`Event::Released`]. Asked after each event, again and
    /// again until it answers `None`.
    fn released(&mut self) -> Option<usize> {
        None
    }

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
    /// The datagram of the last [`Action::Send`] has left.
    Sent,
    /// The answer to the last [`Action::Exchange`] has been read whole.
    Answered,
    /// What happened at another flow of the application has ended an [`Action::Await`].
    Released,
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
    /// Sends one datagram whose IP packet has this many bytes, with a part of a frame, whose header begins its payload, or
    /// without; answered by [`Event::Sent`].
    Send(Bytes, Option<Part>),
    /// Does nothing until the workload names this flow in [`Workload::released`].
    Await,
    /// Closes the sending side, of requests and answers the client's; the flow is complete when the receiver has read everything.
    /// Last action.
    Close,
}

/// What the two ends of a workload's flows do. A transport carries one or the other kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The sending host opens a stream and writes; the receiving host reads.
    OneWay,
    /// The receiving host opens a stream and asks; the sending host answers.
    RequestResponse,
    /// The sending host sends datagrams; the receiving host reads them.
    Datagrams(Datagrams),
    /// The sending host sends datagrams; the receiving host, or a station, sends each back.
    Echo(Datagrams),
    /// Whatever the command does that runs inside a host.
    Command,
}

/// How a workload's datagrams are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagrams {
    /// The codepoint that each carries.
    pub ecn: Ecn,
    /// Whether the network itself sends them at the very times asked for, instead of a socket of the host.
    pub exact: bool,
}

impl Role {
    /// Whether it is a stream of weir's own.
    pub fn is_stream(self) -> bool {
        matches!(self, Role::OneWay | Role::RequestResponse)
    }
}

impl Role {
    /// How its datagrams are sent; `None` for streams and commands.
    pub fn datagrams(self) -> Option<Datagrams> {
        match self {
            Role::Datagrams(datagrams) | Role::Echo(datagrams) => Some(datagrams),
            Role::OneWay | Role::RequestResponse | Role::Command => None,
        }
    }
}

/// What keeps account of the messages of a flow whose fate is not known yet.
#[derive(Debug, Clone)]
pub enum Log {
    /// Media frames, at the receiver.
    Frames(FrameLog),
    /// Echo requests, at the sender.
    Echoes(EchoLog),
}

/// A flow that was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it begins, from the start of the run.
    pub at: Span,
    /// How much it sends.
    pub size: Bytes,
}

/// What a workload's parameters tell of it. All need the first two.
trait Parameters {
    /// What the two ends of its flows do.
    fn role(&self) -> Role;
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
    /// How many flows are to be expected of all sources in a time, where they are drawn.
    fn expected_arrivals(&self, time: Span) -> Option<u64> {
        let _ = time;
        None
    }
    /// Draws the flows of one of so many sources that begin in a time, by their beginnings.
    fn arrivals(&self, from: Span, to: Span, sources: u64, random: &mut Random) -> Vec<Arrival> {
        let _ = (from, to, sources, random);
        Vec::new()
    }
    /// What keeps account of its messages, for a flow of these times in a run that ends then.
    fn log(&self, start: Time, stop: Time, end: Time) -> Option<Log> {
        let _ = (start, stop, end);
        None
    }
    /// By when its messages are to be there, where it says.
    fn deadline(&self) -> Option<Span> {
        None
    }
    /// The length of its datagrams' IP packets, and what each needs beside the IP and UDP headers; none for streams.
    fn datagram(&self) -> Option<(Bytes, Bytes)> {
        None
    }
    /// What keeps account of the ensembles of all flows of an application.
    fn ensemble_log(&self) -> Option<EnsembleLog> {
        None
    }
    /// Whether one application drives all flows of a group.
    fn is_shared(&self) -> bool {
        false
    }
    /// The command that it is.
    fn command(&self) -> Option<&command::Config> {
        None
    }
}

/// Declares the registry: the configuration enum, and what every workload's parameters tell.
macro_rules! workloads {
    ($($Variant:ident($module:ident) = $name:literal $(($title:literal))? $(| $alias:literal)* : $summary:literal;)+) => {
        weir_base::registry! {
            /// A workload and its parameters, as a lab file names it.
            pub enum Config: "workload" {
                $($Variant($module::Config) = $name $(($title))? $(| $alias)* : $summary;)+
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
    Ping(ping) = "ping": "echo requests over UDP: round-trip time and loss over time";
    Ensembles(ensembles) = "ensembles": "frames of several streams that are captured at one instant and belong together";
    Command(command) = "command": "any command inside a host (live only)";
}

impl Config {
    /// Builds the workload of one flow: of this size, where flows are drawn with one, with so many bytes of IP and UDP
    /// headers before a datagram's payload, and with a random stream of its own.
    pub fn build(&self, size: Option<Bytes>, headers: Bytes, random: Random) -> Box<dyn Workload> {
        self.parameters().build(size, headers, random)
    }
    /// What the two ends of its flows do.
    pub fn role(&self) -> Role {
        self.parameters().role()
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
    pub fn has_random_arrivals(&self) -> bool {
        self.expected_arrivals(Span::ZERO).is_some()
    }
    /// Draws the flows of one of so many sources that begin in a time, by their beginnings.
    pub fn arrivals(&self, from: Span, to: Span, sources: u64, random: &mut Random) -> Vec<Arrival> {
        self.parameters().arrivals(from, to, sources, random)
    }
    /// What keeps account of its messages, for a flow of these times in a run that ends then.
    pub fn log(&self, start: Time, stop: Time, end: Time) -> Option<Log> {
        self.parameters().log(start, stop, end)
    }
    /// By when its messages are to be there, where it says.
    pub fn deadline(&self) -> Option<Span> {
        self.parameters().deadline()
    }
    /// The length of its datagrams' IP packets, and what each needs beside the IP and UDP headers; none for streams.
    pub fn datagram(&self) -> Option<(Bytes, Bytes)> {
        self.parameters().datagram()
    }
    /// What keeps account of the ensembles of all flows of an application.
    pub fn ensemble_log(&self) -> Option<EnsembleLog> {
        self.parameters().ensemble_log()
    }
    /// Whether one application drives all flows of a group.
    pub fn is_shared(&self) -> bool {
        self.parameters().is_shared()
    }
    /// The command that it is.
    pub fn command(&self) -> Option<&command::Config> {
        self.parameters().command()
    }
}
