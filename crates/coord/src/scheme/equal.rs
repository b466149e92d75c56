//! One flowshare for each flow (section 6.5, equal frames). Where the application wants no more than a cap in total, each
//! flow sends at most its equal part of that (section 3.3.2, example 1).

use super::{Own, Scheme, Shares};
use serde::{Deserialize, Serialize};
use weir_base::Rate;

/// Parameters of the scheme.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The most that all flows together send.
    pub cap: Option<Rate>,
}

impl Scheme for Config {
    fn number(&self, _: &Own) -> Option<u32> {
        None
    }
    fn rate(&self, shares: &Shares) -> Rate {
        let part = |cap: Rate| Rate::from_bits_per_sec(cap.bits_per_sec() / u64::from(shares.flows.max(1)));
        self.cap.map_or(shares.flowshare, |cap| part(cap).min(shares.flowshare))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_share_a_cap_of_3_mbit_or_take_a_flowshare_each() {
        let scheme = Config { cap: Some(Rate::from_mbit_per_sec(3)) };
        let rate = |kbit: u64, flows| {
            let flowshare = Rate::from_bits_per_sec(kbit * 1000);
            scheme.rate(&Shares { flowshare, flows, own: 0, sum: 0 }).bits_per_sec()
        };
        // Flows A, B and C, then D and E with them.
        assert_eq!(rate(2000, 3), 1_000_000);
        assert_eq!(rate(2000, 5), 600_000);
        assert_eq!(rate(400, 5), 400_000);
    }
}
