//! The words of `weir circuit`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use weir_base::{Bytes, Rate, Span};
use weir_circuit::{Case, Destination, Ip, Layer, Priority, Utc};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir circuit plan --rate 4gbit --rtt 26ms
  weir circuit plan --rate 500mbit --rtt 50ms --case multiple --json
  weir circuit reserve --to 10.1.0.0/16 --device eth0 --rate 4gbit --rtt 26ms --from 2026-11-23T10:00Z --for 2h
  weir circuit list
  weir circuit cancel 3

A plan changes nothing on this machine. Reservations are kept in /var/lib/weir/circuits.sqlite (--store); they are admitted
so that the circuits of a device never add up to more than its rate. Times are UTC.")]
pub(crate) struct CircuitArgs {
    #[command(subcommand)]
    pub action: CircuitAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CircuitAction {
    /// Work out what the hosts of a circuit set: window, shaper, buffers, each with its reason
    Plan(PlanArgs),
    /// Reserve a circuit from a device of this host
    Reserve(ReserveArgs),
    /// List the reservations
    List {
        /// Also those that are over
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        store: StoreArgs,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Take reservations out
    Cancel {
        /// Their numbers, as `list` tells them
        #[arg(required = true)]
        numbers: Vec<u64>,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// What the network promises.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CaseName {
    /// One circuit with a guaranteed rate
    Single,
    /// Several of them at a time, to different destinations
    Multiple,
    /// One that is admitted by the average use of its links
    Semi,
}

/// Who comes first on a semi-guaranteed circuit.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PriorityName {
    /// The transfer keeps its rate
    Transfer,
    /// Others keep theirs
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

impl From<CaseName> for Case {
    fn from(name: CaseName) -> Case {
        match name {
            CaseName::Single => Case::Single,
            CaseName::Multiple => Case::Multiple,
            CaseName::Semi => Case::Semi,
        }
    }
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

/// A number of bytes; those of an MTU are mostly typed without a unit.
fn mtu(text: &str) -> Result<Bytes, String> {
    match text.parse() {
        Ok(bytes) => Ok(Bytes::new(bytes)),
        Err(_) => text.parse().map_err(|error: weir_base::UnitError| error.to_string()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The circuit's rate, for example 4gbit
    #[arg(long)]
    pub rate: Rate,
    /// Its round trip with nothing queued, for example 26ms
    #[arg(long)]
    pub rtt: Span,
    /// The largest IP packet in bytes
    #[arg(long, default_value = "1500", value_parser = mtu)]
    pub mtu: Bytes,
    /// What the network promises, and how many circuits leave this host
    #[arg(long, default_value = "single")]
    pub case: CaseName,
    /// Who comes first on a semi-guaranteed circuit
    #[arg(long, default_value = "transfer")]
    pub priority: PriorityName,
    /// What the circuit's rate counts of a packet
    #[arg(long, default_value = "frame")]
    pub counts: LayerName,
    /// The version of IP
    #[arg(long, default_value = "4", value_parser = ip)]
    pub ip: Ip,
    /// The rate of the sender's card
    #[arg(long, value_name = "RATE")]
    pub card: Option<Rate>,
    /// The kernel wakes shapers by its tick, so many times a second, and not by high-resolution timers
    #[arg(long)]
    pub hz: Option<u32>,
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
pub(crate) struct StoreArgs {
    /// The file of reservations
    #[arg(long, value_name = "FILE", default_value = super::STORE)]
    pub store: PathBuf,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("end").required(true)))]
pub(crate) struct ReserveArgs {
    /// Where the circuit leads: an address or a prefix
    #[arg(long, value_name = "DESTINATION")]
    pub to: Destination,
    /// The device that it leaves by
    #[arg(long)]
    pub device: String,
    /// Its rate, in frames as tc counts them
    #[arg(long)]
    pub rate: Rate,
    /// Its round trip
    #[arg(long)]
    pub rtt: Span,
    /// When it begins, in UTC [default: now]
    #[arg(long, value_name = "UTC")]
    pub from: Option<Utc>,
    /// How long it lasts
    #[arg(long = "for", value_name = "TIME", group = "end")]
    pub lasts: Option<Span>,
    /// When it ends, in UTC
    #[arg(long, value_name = "UTC", group = "end")]
    pub until: Option<Utc>,
    /// It is admitted by the average use of its links: it also leaves room for the background
    #[arg(long)]
    pub semi: bool,
    /// The card's rate [default: what the device says]
    #[arg(long, value_name = "RATE")]
    pub card: Option<Rate>,
    /// What leaves the device besides circuits, on average
    #[arg(long, value_name = "RATE")]
    pub background: Option<Rate>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
