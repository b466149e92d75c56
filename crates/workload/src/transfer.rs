//! Transfer: opens a connection, sends a given number of bytes and closes. Its completion time runs from opening to the
//! moment when the receiving application has read the last byte.

use crate::{Action, Bytes, Event, Needs, Random, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much is sent.
    pub size: Bytes,
}

impl Default for Config {
    fn default() -> Config {
        Config { size: Bytes::new(1_000_000) }
    }
}

impl Config {
    pub(crate) fn needs(&self) -> Needs {
        Needs::Stream
    }
}

#[derive(Debug)]
pub(crate) struct Transfer {
    size: Bytes,
}

impl Transfer {
    pub(crate) fn new(config: &Config, _: Random) -> Transfer {
        Transfer { size: config.size }
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
        let mut transfer = Transfer::new(&Config { size: Bytes::new(42) }, Random::stream(1, "test"));
        let now = Time::ZERO;
        assert_eq!(transfer.next(Event::Start, now), Action::Open);
        assert_eq!(transfer.next(Event::Opened, now), Action::Write(Bytes::new(42)));
        assert_eq!(transfer.next(Event::Written, now), Action::Close);
    }
}
