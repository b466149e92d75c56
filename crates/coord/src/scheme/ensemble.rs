//! Least asynchrony for frames that must arrive together: each flow gets a part of the total in proportion to the remaining
//! bytes of its frame, so that all frames of an ensemble end at the same moment, even after losses or a late start. A floor
//! lets a flow with nothing left begin its next frame. The source's equation 6.1 uses the frame's size; this scheme uses the
//! bytes left.

use super::{Own, Scheme, Shares};
use crate::header::VALUE_MAX;
use serde::{Deserialize, Serialize};
use weir_base::Rate;

/// Parameters of the scheme.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Fraction of its flowshare that every flow keeps, 0 to 1; the rest is split in proportion to the bytes left.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub floor: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { floor: 0.1 }
    }
}

impl Scheme for Config {
    fn number(&self, own: &Own) -> Option<u32> {
        Some(own.left.get().min(VALUE_MAX.into()) as u32)
    }
    fn rate(&self, shares: &Shares) -> Rate {
        let floor = (shares.flowshare.bits_per_sec() as f64 * self.floor.clamp(0.0, 1.0)) as u64;
        let kept = floor.saturating_mul(shares.flows.max(1).into());
        let rest = Rate::from_bits_per_sec(shares.total().bits_per_sec().saturating_sub(kept));
        Rate::from_bits_per_sec(floor + shares.part_of(rest).bits_per_sec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Bytes;

    #[test]
    fn a_flow_with_more_bytes_left_gets_a_higher_rate() {
        // Three flowshares of 1 Mbit/s; 30, 10 and 0 kB left: a floor of 0.1 each, 2.7 Mbit/s split 3 : 1 : 0.
        let rate = |own| {
            let shares = Shares { flowshare: Rate::from_mbit_per_sec(1), flows: 3, own, sum: 40_000 };
            Config::default().rate(&shares).bits_per_sec()
        };
        assert_eq!([30_000, 10_000, 0].map(rate), [2_125_000, 775_000, 100_000]);
    }

    #[test]
    fn each_flow_has_its_flowshare_between_ensembles() {
        let shares = Shares { flowshare: Rate::from_mbit_per_sec(1), flows: 3, own: 0, sum: 0 };
        assert_eq!(Config::default().rate(&shares), Rate::from_mbit_per_sec(1));
    }

    #[test]
    fn a_flow_writes_the_number_of_bytes_it_has_left() {
        let own = Own { frame: Bytes::new(51_200), left: Bytes::new(12_000), urgent: false };
        assert_eq!(Config::default().number(&own), Some(12_000));
    }
}
