//! Bulk: a connection whose sending application always has data, until the flow stops.

use crate::{Action, Bytes, Event, Needs, Parameters, Random, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of bulk: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl Parameters for Config {
    fn needs(&self) -> Needs {
        Needs::Stream
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        Box::new(Bulk)
    }
}

#[derive(Debug)]
struct Bulk;

impl Workload for Bulk {
    fn next(&mut self, event: Event, _: Time) -> Action {
        match event {
            Event::Start => Action::Open,
            _ => Action::WriteForever,
        }
    }
}
