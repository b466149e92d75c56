//! What applications do. Each workload is one file and one line in the registry below; both engines drive them.
//!
//! A workload is a pure state machine for one flow: the engine tells it what has happened and asks for the next action. It
//! never touches a socket or a clock. Stream workloads (TCP) open, write and close; datagram workloads (UDP) send.
#![forbid(unsafe_code)]

mod bulk;
mod transfer;
mod udp;

use weir_base::{Bytes, Ecn, Random, Span, Time};

/// A workload at work for one flow.
pub trait Workload: Send {
    /// What to do next. Called once at the flow's start with [`Event::Start`], then with each event that the last action
    /// waited for, at the time it happened.
    fn next(&mut self, event: Event, now: Time) -> Action;
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
    /// The receiver's application has read everything written so far.
    Delivered,
}

/// What the application does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Opens the connection; answered by [`Event::Opened`].
    Open,
    /// Writes so many bytes as room allows; answered by [`Event::Written`] when the last is in the socket.
    Write(Bytes),
    /// Keeps the socket's buffer full until the flow's stop time; never answered.
    WriteForever,
    /// Does nothing until then; answered by [`Event::Woken`].
    WaitUntil(Time),
    /// Waits for [`Event::Delivered`].
    AwaitDelivery,
    /// Sends one datagram whose IP packet has this many bytes; answered by [`Event::Sent`].
    Send(Bytes),
    /// Closes the sending side; the flow is complete when the receiver has read everything. Last action.
    Close,
}

/// Which transport a workload needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// A byte stream: TCP.
    Stream,
    /// Datagrams with this codepoint; `exact` ones are injected by the fabric at the very times asked for, others pass
    /// through a socket.
    Datagrams {
        /// The codepoint that each carries.
        ecn: Ecn,
        /// Whether the fabric injects them.
        exact: bool,
    },
}

/// Declares the registry: the configuration enum, and how it makes a workload.
macro_rules! workloads {
    ($($Variant:ident($module:ident::$Type:ident) = $name:literal $(| $alias:literal)* : $summary:literal;)+) => {
        weir_base::registry! {
            /// A workload and its parameters, as a lab file names it.
            pub enum Config: "workload" {
                $($Variant($module::Config) = $name $(| $alias)* : $summary;)+
            }
        }

        impl Config {
            /// Builds the workload of one flow, with a random stream of its own.
            pub fn build(&self, random: Random) -> Box<dyn Workload> {
                match self {
                    $(Config::$Variant(config) => Box::new($module::$Type::new(config, random)),)+
                }
            }
            /// The transport that it needs.
            pub fn needs(&self) -> Needs {
                match self {
                    $(Config::$Variant(config) => config.needs(),)+
                }
            }
        }
    };
}

workloads! {
    Bulk(bulk::Bulk) = "bulk": "TCP that always has data to send";
    Transfer(transfer::Transfer) = "transfer": "TCP that sends a given number of bytes and closes";
    Udp(udp::Udp) = "udp": "UDP at a constant rate, deaf to congestion";
}
