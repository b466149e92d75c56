//! An echo responder (RFC 862, and the echo of RFC 792 on real links): sends each datagram that is addressed to it back to its
//! source, unchanged. Packets that only pass are forwarded; packets that are addressed to it and cannot be answered are
//! discarded.

use crate::{Parameters, StationContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_fabric::{Net, Station, Wire};

/// The echo responder has no parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

/// The state of a responder.
#[derive(Debug)]
pub(crate) struct Echo {
    answered: u64,
}

impl Echo {
    pub(crate) fn new(_: &Config, _: &StationContext) -> Echo {
        Echo { answered: 0 }
    }
}

impl Parameters for Config {
    fn answers(&self) -> bool {
        true
    }
}

impl<P: Wire> Station<P> for Echo {
    fn packet(&mut self, mut packet: P, _: Option<usize>, net: &mut Net<'_, P>) {
        if packet.destination() != net.node() {
            net.forward(packet);
        } else if packet.turn_round() {
            self.answered += 1;
            net.forward(packet);
        } else {
            net.discard(packet);
        }
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        report("answered_packets", self.answered as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOST, ROUTER, Sent, past, state};
    use weir_base::Ecn;

    fn echo(to: usize, length: u32) -> (Vec<(usize, u64)>, u64, f64) {
        let sent = Sent { ms: 0, length, ecn: Ecn::Ect0 };
        let (arrived, fabric) =
            past(Box::new(Echo::new(&Config {}, &StationContext::default())), to, &[sent; 3]);
        let arrivals = arrived.iter().map(|packet| (packet.destination, packet.ms)).collect();
        (arrivals, fabric.totals().discarded, state(&fabric, "answered_packets").unwrap())
    }

    #[test]
    fn packets_addressed_to_the_responder_return_and_others_pass() {
        // A millisecond there and one back.
        assert_eq!(echo(ROUTER, 1500), (vec![(0, 2); 3], 0, 3.0));
        assert_eq!(echo(HOST, 1500), (vec![(HOST, 2); 3], 0, 0.0));
    }

    #[test]
    fn packets_that_cannot_be_answered_are_discarded() {
        // The packets of these tests are datagrams unless they are as short as an acknowledgement.
        assert_eq!(echo(ROUTER, 40), (vec![], 3, 0.0));
    }
}
