//! The arguments of `weir circuit`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use weir_base::{Bytes, Rate, Span};
use weir_circuit::{Ip, Layer, Priority};
use weir_daemon::circuit::{self, Asked, StoreArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir circuit plan --rate 4gbit --rtt 26ms
  weir circuit plan --rate 500mbit --rtt 50ms --semi --priority background --json
  weir circuit reserve --to 10.1.0.0/16 --device eth0 --rate 4gbit --rtt 26ms --from 2026-11-23T10:00Z --for 2h
  weir circuit up 3
  weir circuit watch
  weir circuit down 3
  weir circuit cancel 3

A plan changes nothing on this machine. Reservations are kept in /var/lib/weir/circuits.sqlite (--store); one is admitted only if the \
circuits of the device never exceed its rate in total. Times are UTC.")]
pub(crate) struct CircuitArgs {
    #[command(subcommand)]
    pub action: CircuitAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CircuitAction {
    /// Plan the settings of a circuit's hosts: window, shaper, buffers, each with its reason
    Plan(PlanArgs),
    /// Reserve a circuit from a device of this host
    Reserve(ReserveArgs),
    /// Set a circuit up: a class, a queue and a filter at its device, and the window of its destination
    Up(UpArgs),
    /// Take circuits down; with its last circuit a device is restored
    Down(DownArgs),
    /// Change the rate of a circuit, also while a transfer runs
    Change(ChangeArgs),
    /// Show each second what the circuits carry, and what they refuse
    Watch(WatchArgs),
    /// Make a pair of keys by which hosts authenticate each other
    Keygen(KeygenArgs),
    #[command(flatten)]
    Daemon(circuit::Command),
    /// List the reservations, and which are up
    #[command(after_help = "Example:\n  weir circuit list --all --json")]
    List {
        /// List reservations that are over too
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        store: StoreArgs,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Cancel reservations
    #[command(after_help = "Example:\n  weir circuit cancel 3")]
    Cancel {
        /// Their numbers, as `list` shows them
        #[arg(required = true)]
        numbers: Vec<u64>,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// Who comes first on a semi-guaranteed circuit.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PriorityName {
    /// The transfer keeps its rate
    Transfer,
    /// Other traffic keeps its rate
    Background,
}

/// What a rate counts.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LayerName {
    /// Preamble, frame, checksum and gap
    Wire,
    /// The frame without its checksum, as tc counts
    Frame,
    /// The IP packet
    Packet,
}

impl From<PriorityName> for Priority {
    fn from(name: PriorityName) -> Priority {
        match name {
            PriorityName::Transfer => Priority::Transfer,
            PriorityName::Background => Priority::Background,
        }
    }
}
impl From<LayerName> for Layer {
    fn from(name: LayerName) -> Layer {
        match name {
            LayerName::Wire => Layer::Wire,
            LayerName::Frame => Layer::Frame,
            LayerName::Packet => Layer::Packet,
        }
    }
}

fn ip(text: &str) -> Result<Ip, String> {
    match text {
        "4" => Ok(Ip::V4),
        "6" => Ok(Ip::V6),
        _ => Err("IP is of version 4 or 6".to_owned()),
    }
}

/// A number of bytes, with or without a unit.
fn mtu(text: &str) -> Result<Bytes, String> {
    match text.parse() {
        Ok(bytes) => Ok(Bytes::new(bytes)),
        Err(_) => text.parse().map_err(|error: weir_base::UnitError| error.to_string()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir circuit plan --rate 500mbit --rtt 50ms --semi --priority background --mtu 9000
  weir circuit plan --probe 10.1.2.3
  weir circuit plan --rate 4gbit --probe 10.1.2.3")]
pub(crate) struct PlanArgs {
    /// The circuit's rate, for example 4gbit
    #[arg(long, required_unless_present = "probe")]
    pub rate: Option<Rate>,
    /// Its round trip with nothing queued, for example 26ms
    #[arg(long, required_unless_present = "probe", conflicts_with = "probe")]
    pub rtt: Option<Span>,
    /// Measure the path to this host, given with or without a port: the round trip, by the least time of ten connections to it,
    /// accepted or refused; and, if it runs `weir circuit serve`, the rate at which the second half of a burst of at most 64
    /// MiB arrives. The plan uses this rate unless --rate is given
    #[arg(long, value_name = "HOST")]
    pub probe: Option<String>,
    /// The largest IP packet in bytes
    #[arg(long, default_value = "1500", value_parser = mtu)]
    pub mtu: Bytes,
    /// The circuit is admitted by the average use of its links
    #[arg(long)]
    pub semi: bool,
    /// Who comes first on a semi-guaranteed circuit
    #[arg(long, default_value = "transfer")]
    pub priority: PriorityName,
    /// The part of a packet that the circuit's rate counts
    #[arg(long, default_value = "frame")]
    pub counts: LayerName,
    /// The version of IP
    #[arg(long, default_value = "4", value_parser = ip)]
    pub ip: Ip,
    /// The rate of the sender's card
    #[arg(long, value_name = "RATE")]
    pub card: Option<Rate>,
    /// The kernel wakes shapers by its tick, this many times a second, not by high-resolution timers
    #[arg(long)]
    pub hz: Option<u32>,
    /// How late the sender may wake the shaper, being busy with something else, for example 4ms (`weir circuit up` measures it)
    #[arg(long, value_name = "TIME", conflicts_with = "hz")]
    pub late: Option<Span>,
    /// Offloads (tso, gso) are switched off
    #[arg(long)]
    pub no_offloads: bool,
    /// The window in percent of rate times round trip
    #[arg(long, default_value_t = 130, value_name = "PERCENT")]
    pub window_percent: u32,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir circuit reserve --to 10.1.0.0/16 --device eth0 --rate 4gbit --rtt 26ms --from 2026-11-23T10:00Z --for 2h")]
pub(crate) struct ReserveArgs {
    #[command(flatten)]
    pub asked: Asked,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(mut_args(|arg| arg.required(false)), mut_group("end", |group| group.required(false)))]
#[command(after_help = "\
Examples:
  weir circuit up 3                        set up reservation 3
  weir circuit up --to 10.1.0.0/16 --device eth0 --rate 500mbit --rtt 26ms --for 2h
  weir circuit up 3 --dry-run              print the commands, change nothing

The device gets a class of HTB for each circuit, with a queue and a filter; connections under weir_ctcp get the circuit's window.
`weir circuit send` uses it by itself, other programs by `weir kernel use ctcp -- COMMAND`. The next command takes down a circuit whose \
time is over. Run as root: CAP_NET_ADMIN, and for the control CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.")]
pub(crate) struct UpArgs {
    /// The reservation, as `list` numbers it; without one the circuit is reserved too
    #[arg(conflicts_with = "Asked")]
    pub number: Option<u64>,
    #[command(flatten)]
    pub asked: Option<Asked>,
    /// Who comes first on a semi-guaranteed circuit
    #[arg(long, default_value = "transfer")]
    pub priority: PriorityName,
    /// How many connections share the window
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub streams: u32,
    /// How late this host may wake the shaper; the bucket holds the tokens of that time [default: measured for half a second, at
    /// most 10 ms]
    #[arg(long, value_name = "TIME")]
    pub late: Option<Span>,
    /// Shape only: leave the congestion control to others
    #[arg(long)]
    pub no_control: bool,
    /// Replace a shaper that somebody else has set by weir's, and restore it afterwards
    #[arg(long)]
    pub replace: bool,
    /// Print the commands that would do the same, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir circuit down 3
  weir circuit down --all")]
pub(crate) struct DownArgs {
    /// The circuits, as `list` numbers them
    #[arg(required_unless_present = "all")]
    pub numbers: Vec<u64>,
    /// All circuits that are up in this network namespace
    #[arg(long, conflicts_with = "numbers")]
    pub all: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir circuit change 3 --rate 300mbit     the transfer goes on, at the new rate")]
pub(crate) struct ChangeArgs {
    /// The reservation
    pub number: u64,
    /// Its new rate
    #[arg(long)]
    pub rate: Rate,
    /// The card's rate [default: as the device reports it]
    #[arg(long, value_name = "RATE")]
    pub card: Option<Rate>,
    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir circuit watch
  weir circuit watch --duration 10s --json | jq .goodput_bit_per_s")]
pub(crate) struct WatchArgs {
    /// Stop after this time
    #[arg(long, alias = "seconds", value_name = "TIME")]
    pub duration: Option<Span>,
    /// Print a JSON document a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir circuit keygen ~/.config/weir.key     prints the public key; give it to the other host")]
pub(crate) struct KeygenArgs {
    /// The file for both keys; it must not be there yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
