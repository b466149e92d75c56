//! Each flow writes its weight and gets a part of the total in proportion to it.

use super::{Own, Scheme, Shares};
use serde::{Deserialize, Serialize};
use weir_base::Rate;

/// Parameters of the scheme.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of this flow. The sum of all flows' weights must fit 24 bits.
    #[schemars(range(min = 1, max = 100000))]
    pub weight: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { weight: 1 }
    }
}

impl Scheme for Config {
    fn number(&self, _: &Own) -> Option<u32> {
        Some(self.weight)
    }
    fn rate(&self, shares: &Shares) -> Rate {
        shares.part_of(shares.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_1_2_and_3_split_6_mbit_into_1_2_and_3() {
        let flowshare = Rate::from_mbit_per_sec(2);
        let rate = |own, sum| Config::default().rate(&Shares { flowshare, flows: 3, own, sum });
        assert_eq!([1, 2, 3].map(|own| rate(own, 6)), [1, 2, 3].map(Rate::from_mbit_per_sec));
        assert_eq!(rate(0, 0), flowshare, "before anyone has written a weight");
        assert_eq!(rate(7, 6), Rate::from_mbit_per_sec(6), "the sum lags behind");
    }
}
