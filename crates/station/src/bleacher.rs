//! An ECN bleacher: a middlebox that clears or rewrites the ECN codepoints of passing packets, as routers do that treat the
//! two bits as a part of the old type-of-service byte (RFC 3168, section 22).

use crate::{Parameters, StationContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{CODEPOINTS, Ecn};
use weir_fabric::{Net, Station, Wire};

/// The codepoint that replaces each codepoint. By default all are cleared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// New codepoint of packets that are not ECN-capable.
    pub not_ect: Ecn,
    /// New codepoint of ECT(1) packets.
    pub ect1: Ecn,
    /// New codepoint of ECT(0) packets.
    pub ect0: Ecn,
    /// New codepoint of CE packets.
    pub ce: Ecn,
}

impl Default for Config {
    fn default() -> Config {
        Config { not_ect: Ecn::NotEct, ect1: Ecn::NotEct, ect0: Ecn::NotEct, ce: Ecn::NotEct }
    }
}

/// Names of the counts of rewritten packets, by their original codepoint.
const NAMES: [&str; 4] =
    ["rewritten_not_ect_packets", "rewritten_ect1_packets", "rewritten_ect0_packets", "rewritten_ce_packets"];

/// The state of a bleacher.
#[derive(Debug)]
pub(crate) struct Bleacher {
    /// The new codepoint for each codepoint, indexed by its bits.
    becomes: [Ecn; 4],
    rewritten: [u64; 4],
}

impl Bleacher {
    pub(crate) fn new(config: &Config, _: &StationContext) -> Bleacher {
        let Config { not_ect, ect1, ect0, ce } = *config;
        Bleacher { becomes: [not_ect, ect1, ect0, ce], rewritten: [0; 4] }
    }
}

impl Parameters for Config {}

impl<P: Wire> Station<P> for Bleacher {
    fn packet(&mut self, mut packet: P, _: Option<usize>, net: &mut Net<'_, P>) {
        let ecn = packet.ecn();
        let becomes = self.becomes[ecn as usize];
        if becomes != ecn {
            packet.relabel(becomes);
            self.rewritten[ecn as usize] += 1;
        }
        net.forward(packet);
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        for ecn in CODEPOINTS.into_iter().filter(|ecn| self.becomes[*ecn as usize] != *ecn) {
            report(NAMES[ecn as usize], self.rewritten[ecn as usize] as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Sent, past, state};

    /// The codepoints with which packets of all four codepoints arrive.
    fn bleach(text: &str) -> (Vec<Ecn>, Option<f64>) {
        let config: Config = serde_json::from_str(text).unwrap();
        let sent = CODEPOINTS.map(|ecn| Sent { ms: 0, length: 1500, ecn });
        let (arrived, fabric) = past(Box::new(Bleacher::new(&config, &StationContext::default())), 2, &sent);
        assert_eq!(fabric.totals().delivered, 4);
        (arrived.iter().map(|packet| packet.ecn).collect(), state(&fabric, "rewritten_ce_packets"))
    }

    #[test]
    fn every_codepoint_is_cleared_by_default() {
        assert_eq!(bleach("{}"), (vec![Ecn::NotEct; 4], Some(1.0)));
    }

    #[test]
    fn codepoints_are_rewritten_as_configured() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        assert_eq!(
            bleach(r#"{ "ect1": "ect0", "ect0": "ect0", "ce": "ce" }"#),
            (vec![NotEct, Ect0, Ect0, Ce], None)
        );
        assert_eq!(
            bleach(r#"{ "not_ect": "ce", "ce": "ect1" }"#),
            (vec![Ce, NotEct, NotEct, Ect1], Some(1.0))
        );
    }
}
