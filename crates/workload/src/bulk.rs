//! Bulk: a connection whose sending application always has data, until the flow stops.

use crate::{Action, Event, Needs, Random, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of bulk: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl Config {
    pub(crate) fn needs(&self) -> Needs {
        Needs::Stream
    }
}

#[derive(Debug)]
pub(crate) struct Bulk;

impl Bulk {
    pub(crate) fn new(_: &Config, _: Random) -> Bulk {
        Bulk
    }
}

impl Workload for Bulk {
    fn next(&mut self, event: Event, _: Time) -> Action {
        match event {
            Event::Start => Action::Open,
            _ => Action::WriteForever,
        }
    }
}
