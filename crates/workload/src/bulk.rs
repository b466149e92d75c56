//! Bulk: a connection whose sending application always has data, until the flow stops.
//!
//! A blocking writer sleeps while the socket's buffer is full, and is woken only when a third of it is free (Linux
//! `sk_stream_write_space`). If the buffer limits the window, it writes in bursts, and the window oscillates between two thirds of
//! the buffer and all of it. A greedy writer keeps the buffer full, as the generator of that name in "Destruction Testing:
//! Ultra-Low Delay using Dual Queue Coupled AQM" (University of Oslo, 2017), section 7.1.

use crate::{Action, Bytes, Event, Parameters, Random, Role, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of bulk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How the application writes. `blocking` sleeps until a third of the socket's buffer is free; `greedy` always keeps it full, so
    /// that there are no bursts.
    pub writes: Writes,
}

/// How an application that always has data writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Writes {
    /// When the kernel wakes the writer, once a third of the buffer is free.
    #[default]
    Blocking,
    /// Whenever any part of the buffer is free.
    Greedy,
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::OneWay
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        Box::new(Bulk(self.writes))
    }
}

#[derive(Debug)]
struct Bulk(Writes);

impl Workload for Bulk {
    fn next(&mut self, event: Event, _: Time) -> Action {
        match event {
            Event::Start => Action::Open,
            _ => Action::WriteForever(self.0),
        }
    }
}
