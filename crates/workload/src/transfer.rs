//! Transfer: opens a connection, sends a given number of bytes and closes. Its completion time is from opening to the time at which
//! the receiving application has read the last byte.

use crate::checks;
use crate::{Action, Bytes, Event, Parameters, Random, Role, Span, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::ParameterError;

/// Parameters of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of bytes to send.
    pub size: Bytes,
}

impl Default for Config {
    fn default() -> Config {
        Config { size: Bytes::new(1_000_000) }
    }
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::OneWay
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        Box::new(Transfer::of(self.size))
    }
    fn faults(&self, _: Bytes) -> Vec<ParameterError> {
        checks::size("size", "a transfer", self.size).into_iter().collect()
    }
    fn wanted(&self, _: Span) -> Option<Bytes> {
        Some(self.size)
    }
}

#[derive(Debug)]
pub(crate) struct Transfer {
    size: Bytes,
}

impl Transfer {
    pub(crate) fn of(size: Bytes) -> Transfer {
        Transfer { size }
    }
}

impl Workload for Transfer {
    fn next(&mut self, event: Event, _: Time) -> Action {
        match event {
            Event::Start => Action::Open,
            Event::Opened => Action::Write(self.size),
            _ => Action::Close,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_opens_writes_once_and_closes() {
        let mut transfer = Transfer::of(Bytes::new(42));
        let now = Time::ZERO;
        assert_eq!(transfer.next(Event::Start, now), Action::Open);
        assert_eq!(transfer.next(Event::Opened, now), Action::Write(Bytes::new(42)));
        assert_eq!(transfer.next(Event::Written, now), Action::Close);
    }
}
