//! One flowshare for each flow (section 6.5, equal frames), or an equal part of a number of flowshares that the application
//! chooses (sections 4.3 and 4.4.1: `B / m` of one flowshare, `k B / m` of `k`). If the application has a cap on its total rate,
//! each flow sends at most its equal part of the cap (section 3.3.2, example 1).

use super::{Own, Scheme, Shares};
use serde::{Deserialize, Serialize};
use weir_base::Rate;

/// Parameters of the scheme.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Maximum total rate of all flows; unlimited by default.
    pub cap: Option<Rate>,
    /// Number of flowshares that the application takes, at most one for each flow; by default one for each flow.
    #[schemars(range(min = 1, max = 128))]
    pub flowshares: Option<u32>,
}

impl Scheme for Config {
    fn number(&self, _: &Own) -> Option<u32> {
        None
    }
    fn rate(&self, shares: &Shares) -> Rate {
        let flows = shares.flows.max(1);
        let part = |total: u64| Rate::from_bits_per_sec(total / u64::from(flows));
        let taken = self.flowshares.map_or(flows, |wanted| wanted.min(flows));
        let own = part(shares.flowshare.bits_per_sec().saturating_mul(taken.into()));
        self.cap.map_or(own, |cap| part(cap.bits_per_sec()).min(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(scheme: &Config, kbit: u64, flows: u32) -> u64 {
        let flowshare = Rate::from_bits_per_sec(kbit * 1000);
        scheme.rate(&Shares { flowshare, flows, own: 0, sum: 0 }).bits_per_sec()
    }

    #[test]
    fn flows_share_a_cap_of_3_mbit_or_take_a_flowshare_each() {
        let scheme = Config { cap: Some(Rate::from_mbit_per_sec(3)), ..Config::default() };
        // Flows A, B and C; then also D and E.
        assert_eq!(rate(&scheme, 2000, 3), 1_000_000);
        assert_eq!(rate(&scheme, 2000, 5), 600_000);
        assert_eq!(rate(&scheme, 400, 5), 400_000);
    }

    #[test]
    fn flows_share_one_flowshare_or_four_and_never_take_more_than_one_each() {
        let of = |flowshares| Config { flowshares: Some(flowshares), ..Config::default() };
        assert_eq!(rate(&of(1), 2400, 24), 100_000);
        assert_eq!(rate(&of(4), 2400, 24), 400_000);
        assert_eq!(rate(&of(4), 2400, 2), 2_400_000);
    }
}
