//! Priority for urgent flows: while any flow is urgent, each flow that is not keeps a floor, a fraction of a flowshare, and
//! the urgent flows share the rest of the total (section 3.3.2, example 2, with any number of urgent flows).

use super::{Own, Scheme, Shares};
use serde::{Deserialize, Serialize};
use weir_base::Rate;

/// Parameters of the scheme.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Fraction of its flowshare that a flow keeps while only other flows are urgent, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub floor: f64,
}

impl Default for Config {
    fn default() -> Config {
        // Example 2: B and C keep 0.05 of three flowshares each.
        Config { floor: 0.15 }
    }
}

impl Scheme for Config {
    /// One if the flow is urgent, so that the sum is the number of urgent flows.
    fn number(&self, own: &Own) -> Option<u32> {
        Some(own.urgent.into())
    }
    fn rate(&self, shares: &Shares) -> Rate {
        let urgent = shares.sum.min(shares.flows);
        if urgent == 0 {
            return shares.flowshare;
        }
        let floor = (shares.flowshare.bits_per_sec() as f64 * self.floor.clamp(0.0, 1.0)) as u64;
        if shares.own == 0 {
            return Rate::from_bits_per_sec(floor);
        }
        let kept = floor.saturating_mul((shares.flows - urgent).into());
        Rate::from_bits_per_sec(shares.total().bits_per_sec().saturating_sub(kept) / u64::from(urgent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(floor: f64, flows: u32, urgent: u32) -> (u64, u64) {
        let scheme = Config { floor };
        let shares = Shares { flowshare: Rate::from_mbit_per_sec(1), flows, own: 1, sum: urgent };
        let rate = |own| scheme.rate(&Shares { own, ..shares }).bits_per_sec();
        (rate(1), rate(0))
    }

    #[test]
    fn one_urgent_flow_takes_nine_tenths_of_three_flowshares() {
        assert_eq!(rates(0.15, 3, 1), (2_700_000, 150_000));
    }

    #[test]
    fn two_urgent_flows_share_what_the_others_leave() {
        // Five flowshares minus three floors of 0.2: 4.4 for two.
        assert_eq!(rates(0.2, 5, 2), (2_200_000, 200_000));
    }

    #[test]
    fn without_an_urgent_flow_each_has_its_flowshare() {
        assert_eq!(rates(0.15, 3, 0), (1_000_000, 1_000_000));
    }

    #[test]
    fn a_floor_of_zero_stops_the_flows_that_are_not_urgent() {
        assert_eq!(rates(0.0, 4, 1), (4_000_000, 0));
    }
}
