//! The workloads of applications. Each is one file and one line in the registry below; both engines drive them.
//!
//! A workload is a pure state machine: events go in, the next action comes out, and it never uses a socket or a clock.
//! [`Application`] drives it over the [`Socket`]s of either engine. Workloads of streams open, write and close; workloads of
//! datagrams send.
//!
//! `bulk.rs` is the file to open first, then `application.rs`.
#![forbid(unsafe_code)]

mod adapt;
mod application;
mod bulk;
mod checks;
pub mod command;
pub mod ensembles;
mod exchange;
mod flow_state;
pub mod frames;
mod http;
mod onoff;
mod ping;
mod requests;
mod sizes;
mod socket;
mod times;
mod transfer;
mod udp;
mod web;

pub use adapt::Adapt;
pub use application::{Application, Notice};
pub use bulk::Writes;
pub use ensembles::{EnsembleLog, EnsembleRecord};
pub use flow_state::Plan;
pub use frames::{FrameFate, FrameLog, FrameRecord, Part};
pub use ping::{EchoLog, EchoRecord};
pub use sizes::{Listed, Pareto, Sizes};
pub use socket::{End, Received, Socket, Sockets, Trouble};
pub use times::Times;

use weir_base::{Bytes, Ecn, ParameterError, Random, Rate, Span, Time};

/// The state of a workload for one flow, or for several.
pub trait Workload: Send {
    /// The next action. Called once at the flow's start with [`Event::Start`], then with each event for which the last action
    /// waited, at the event's time.
    fn next(&mut self, event: Event, now: Time) -> Action;

    /// The next action of a flow, numbered from 0, for a workload that drives several flows.
    fn next_for(&mut self, flow: usize, event: Event, now: Time) -> Action {
        let _ = flow;
        self.next(event, now)
    }

    /// Adds a flow, whose number follows that of the last one. Called before the first event.
    fn add_flow(&mut self) {}

    /// A flow that waits after [`Action::Await`] and may now continue: it gets [`Event::Released`]. Called after each event, repeatedly
    /// until it returns `None`.
    fn released(&mut self) -> Option<usize> {
        None
    }

    /// Whether the workload adapts to what sockets tell ([`Workload::on_backlog`]).
    fn adapts(&self) -> bool {
        false
    }

    /// What the socket of a flow tells: bytes that wait there to leave, and the rate at which its transport sends, if it tells one. Called
    /// before each timed event of a workload that adapts, for each of its flows.
    fn on_backlog(&mut self, flow: usize, unsent: Bytes, rate: Option<Rate>, now: Time) {
        let _ = (flow, unsent, rate, now);
    }

    /// The first bytes of request and answer of an [`Action::Exchange`] on real sockets; the rest is zeros.
    fn heads(&self) -> [String; 2] {
        Default::default()
    }
}

/// An event that ends a wait of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The flow's start time has come.
    Start,
    /// The connection is established.
    Opened,
    /// The socket has accepted all bytes of the last [`Action::Write`].
    Written,
    /// The time of the last [`Action::WaitUntil`] has come.
    Woken,
    /// The datagram of the last [`Action::Send`] has left.
    Sent,
    /// The whole answer of the last [`Action::Exchange`] has been read.
    Answered,
    /// An event of another flow of the application has ended an [`Action::Await`].
    Released,
}

/// An action of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Opens the connection; [`Event::Opened`] follows.
    Open,
    /// Writes this many bytes as room allows; [`Event::Written`] follows when the last byte is in the socket.
    Write(Bytes),
    /// Writes a frame of this many bytes and with this number to a stream; [`Event::Written`] follows when its last byte is in the socket.
    Frame(Bytes, u32),
    /// Keeps the socket's buffer full until the flow's stop time; no event follows.
    WriteForever(Writes),
    /// Waits until this time; [`Event::Woken`] follows.
    WaitUntil(Time),
    /// Sends a request, which the other end answers when it has read all of it; [`Event::Answered`] follows.
    Exchange {
        /// Length of the request.
        request: Bytes,
        /// Length of the answer.
        response: Bytes,
    },
    /// Sends one datagram whose IP packet has this many bytes; [`Event::Sent`] follows. With a part of a frame, the payload begins with
    /// that part's header.
    Send(Bytes, Option<Part>),
    /// Waits until [`Workload::released`] returns this flow.
    Await,
    /// Closes the sending side, or the client's side of requests and answers; the last action. The flow is complete when the receiver
    /// has read everything.
    Close,
}

/// The role of the two ends of a workload's flows. A transport carries either streams or datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The sending host opens a stream and writes; the receiving host reads.
    OneWay,
    /// The receiving host opens a stream and sends requests; the sending host answers.
    RequestResponse,
    /// The sending host sends datagrams; the receiving host reads them.
    Datagrams(Datagrams),
    /// The sending host sends datagrams; the receiving host, or a station, sends each back.
    Echo(Datagrams),
    /// A command runs inside a host and creates its own traffic.
    Command,
}

/// How a workload's datagrams are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagrams {
    /// Codepoint of each datagram.
    pub ecn: Ecn,
    /// Whether the network itself sends them at the exact times, instead of a socket of the host.
    pub exact: bool,
}

impl Role {
    /// Whether the workload's flows are streams of weir's own.
    pub fn is_stream(self) -> bool {
        matches!(self, Role::OneWay | Role::RequestResponse)
    }
}

impl Role {
    /// How the datagrams are sent; `None` for streams and commands.
    pub fn datagrams(self) -> Option<Datagrams> {
        match self {
            Role::Datagrams(datagrams) | Role::Echo(datagrams) => Some(datagrams),
            Role::OneWay | Role::RequestResponse | Role::Command => None,
        }
    }
}

/// The log of a flow's messages, which determines the fate of each.
#[derive(Debug, Clone)]
pub enum Log {
    /// Media frames, at the receiver.
    Frames(FrameLog),
    /// Echo requests, at the sender.
    Echoes(EchoLog),
}

/// A flow whose beginning and size were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When the flow begins, from the start of the run.
    pub at: Span,
    /// The bytes that the flow sends.
    pub size: Bytes,
}

/// Properties of a workload that follow from its parameters. Every workload implements the first two methods.
trait Parameters {
    /// The role of the two ends of its flows.
    fn role(&self) -> Role;
    /// The workload of one flow: with this size if the flow was drawn with one, with `headers` bytes of IP and UDP headers before a
    /// datagram's payload, and with a random stream of its own.
    fn build(&self, size: Option<Bytes>, headers: Bytes, random: Random) -> Box<dyn Workload>;
    /// What is wrong with the parameters beyond their types, for packets of at most `mtu` bytes.
    fn faults(&self, mtu: Bytes) -> Vec<ParameterError> {
        let _ = mtu;
        Vec::new()
    }
    /// About how much a flow (or all drawn flows) sends in a time; `None` for as much as the network carries.
    fn wanted(&self, time: Span) -> Option<Bytes> {
        let _ = time;
        None
    }
    /// The expected number of flows of all sources in a time; `None` if flows are not drawn.
    fn expected_arrivals(&self, time: Span) -> Option<u64> {
        let _ = time;
        None
    }
    /// Draws the flows of one of `sources` sources that begin between `from` and `to`, in the order of their beginnings.
    fn arrivals(&self, from: Span, to: Span, sources: u64, random: &mut Random) -> Vec<Arrival> {
        let _ = (from, to, sources, random);
        Vec::new()
    }
    /// The log of a flow's messages, for a flow from `start` to `stop` in a run that ends at `end`; `None` without messages.
    fn log(&self, start: Time, stop: Time, end: Time) -> Option<Log> {
        let _ = (start, stop, end);
        None
    }
    /// The deadline of the messages; `None` without one.
    fn deadline(&self) -> Option<Span> {
        None
    }
    /// The length of the datagrams' IP packets, and the smallest payload that each needs; `None` for streams.
    fn datagram(&self) -> Option<(Bytes, Bytes)> {
        None
    }
    /// The log of the ensembles of all flows of an application; `None` without ensembles.
    fn ensemble_log(&self) -> Option<EnsembleLog> {
        None
    }
    /// Whether one application drives all flows of a group.
    fn is_shared(&self) -> bool {
        false
    }
    /// How the source adapts to what its socket tells; `None` if it does not.
    fn adapt(&self) -> Option<Adapt> {
        None
    }
    /// The parameters of the command; `None` for other workloads.
    fn command(&self) -> Option<&command::Config> {
        None
    }
}

/// Declares the registry: the configuration enum, and the access to every workload's parameters.
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
    Bulk(bulk) = "bulk": "A stream that always has data to send";
    Transfer(transfer) = "transfer": "A stream that sends a given number of bytes and closes";
    Web(web) = "web": "Short flows that arrive at random, each a connection of its own";
    Requests(requests) = "requests": "Requests and answers over a connection, with think times in between";
    Http(http) = "http": "One resource over HTTP: the receiving host requests it, and closes when it has the whole answer";
    Udp(udp) = "udp": "Datagrams at a constant rate";
    OnOff(onoff) = "onoff" | "on-off": "Datagrams at a constant rate during on-times, and none during off-times";
    Frames(frames) = "frames": "Media frames in datagrams, several to a frame, with a deadline for each frame";
    Ping(ping) = "ping": "Echo requests in datagrams, which measure round-trip times and losses";
    Ensembles(ensembles) = "ensembles": "Frames of several flows that are captured at one instant and belong together";
    Command(command) = "command": "Any command inside a host (live only)";
}

/// A workload that sends nothing: its flow has a receiver alone.
pub fn listener() -> Box<dyn Workload> {
    Box::new(Listener)
}

#[derive(Debug)]
struct Listener;

impl Workload for Listener {
    fn next(&mut self, _: Event, _: Time) -> Action {
        Action::Await
    }
}

impl Config {
    /// Builds the workload of one flow: with this size if the flow was drawn with one, with `headers` bytes of IP and UDP headers
    /// before a datagram's payload, and with a random stream of its own.
    pub fn build(&self, size: Option<Bytes>, headers: Bytes, random: Random) -> Box<dyn Workload> {
        self.parameters().build(size, headers, random)
    }
    /// The role of the two ends of its flows.
    pub fn role(&self) -> Role {
        self.parameters().role()
    }
    /// What is wrong with the parameters beyond their types, for packets of at most `mtu` bytes.
    pub fn faults(&self, mtu: Bytes) -> Vec<ParameterError> {
        self.parameters().faults(mtu)
    }
    /// About how much a flow (or all drawn flows) sends in a time; `None` for as much as the network carries.
    pub fn wanted(&self, time: Span) -> Option<Bytes> {
        self.parameters().wanted(time)
    }
    /// The expected number of flows of all sources in a time; `None` if flows are not drawn but listed in the lab.
    pub fn expected_arrivals(&self, time: Span) -> Option<u64> {
        self.parameters().expected_arrivals(time)
    }
    /// Whether the flows are drawn: many short ones, which are reported only together.
    pub fn has_random_arrivals(&self) -> bool {
        self.expected_arrivals(Span::ZERO).is_some()
    }
    /// Draws the flows of one of `sources` sources that begin between `from` and `to`, in the order of their beginnings.
    pub fn arrivals(&self, from: Span, to: Span, sources: u64, random: &mut Random) -> Vec<Arrival> {
        self.parameters().arrivals(from, to, sources, random)
    }
    /// The log of a flow's messages, for a flow from `start` to `stop` in a run that ends at `end`; `None` without messages.
    pub fn log(&self, start: Time, stop: Time, end: Time) -> Option<Log> {
        self.parameters().log(start, stop, end)
    }
    /// The deadline of the messages; `None` without one.
    pub fn deadline(&self) -> Option<Span> {
        self.parameters().deadline()
    }
    /// The length of the datagrams' IP packets, and the smallest payload that each needs; `None` for streams.
    pub fn datagram(&self) -> Option<(Bytes, Bytes)> {
        self.parameters().datagram()
    }
    /// The log of the ensembles of all flows of an application; `None` without ensembles.
    pub fn ensemble_log(&self) -> Option<EnsembleLog> {
        self.parameters().ensemble_log()
    }
    /// Whether one application drives all flows of a group.
    pub fn is_shared(&self) -> bool {
        self.parameters().is_shared()
    }
    /// How the source adapts to what its socket tells; `None` if it does not.
    pub fn adapt(&self) -> Option<Adapt> {
        self.parameters().adapt()
    }
    /// The parameters of the command; `None` for other workloads.
    pub fn command(&self) -> Option<&command::Config> {
        self.parameters().command()
    }
}
