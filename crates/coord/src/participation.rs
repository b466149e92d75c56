//! How a flow takes part in an application of the Coordination Protocol, whose aggregation points report the rate at which it may send.

use crate::header::FLOWS;
use crate::scheme;
use crate::seal::Key;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::Rate;
use weir_base::within;

/// The rate before the first report.
pub const FIRST_RATE: Rate = Rate::from_bits_per_sec(500_000);
/// The default maximum rate of a flow.
pub const MOST_RATE: Rate = Rate::from_mbit_per_sec(1000);

/// How a flow takes part in an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coordination {
    /// The application's id at the aggregation points (0 to 31).
    #[serde(deserialize_with = "application")]
    #[schemars(range(max = 31))]
    pub application: u8,
    /// How the application's flows split its total rate.
    #[serde(default = "equal")]
    pub scheme: scheme::Config,
    /// The general-purpose address (0 to 249) at which the application's flows write their numbers for the scheme.
    #[serde(default, deserialize_with = "address")]
    #[schemars(range(max = 249))]
    pub address: u8,
    /// The flow's rate before the first report.
    #[serde(default = "first_rate")]
    pub rate: Rate,
    /// The flow's maximum rate, whatever is reported.
    #[serde(default = "most_rate")]
    pub max_rate: Rate,
    /// Whether the flow declares itself urgent while it has data. The scheme `priority` splits the rate above the other flows' floors
    /// among the urgent flows.
    #[serde(default)]
    pub urgent: bool,
}

impl Coordination {
    /// A flow of this application (0 to 31) with default parameters.
    pub fn of(application: u8) -> Coordination {
        Coordination {
            application,
            scheme: equal(),
            address: 0,
            rate: FIRST_RATE,
            max_rate: MOST_RATE,
            urgent: false,
        }
    }
}

/// What identifies the endpoint of a flow.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// The flow's number, 0 to 127.
    pub flow: u8,
    /// Key that is shared with the aggregation point; `None` without authentication.
    pub key: Option<Key>,
    /// A number that grows with each restart of the endpoint.
    pub epoch: u32,
}

impl Identity {
    /// The identity of a lab's flow with this number, modulo 128: a header has room for 128 flows.
    pub fn in_lab(flow: u64) -> Identity {
        Identity { flow: (flow % FLOWS as u64) as u8, key: None, epoch: 0 }
    }
}

/// Reads an application's id.
pub fn application<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(deserializer, 0..=31)
}

/// Reads a general-purpose address.
pub fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(deserializer, 0..=249)
}

/// The default scheme.
pub fn equal() -> scheme::Config {
    scheme::Config::Equal(Default::default())
}

fn first_rate() -> Rate {
    FIRST_RATE
}

fn most_rate() -> Rate {
    MOST_RATE
}
