//! Each flow gets a part of the total in proportion to the size of its present frame (equation 6.1), so that frames of
//! different sizes take the same time.

use super::{Own, Scheme, Shares};
use crate::header::VALUE_MAX;
use serde::{Deserialize, Serialize};
use weir_base::Rate;

/// Parameters of the scheme: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl Scheme for Config {
    fn number(&self, own: &Own) -> Option<u32> {
        Some(own.frame.get().min(VALUE_MAX.into()) as u32)
    }
    fn rate(&self, shares: &Shares) -> Rate {
        shares.part_of(shares.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Bytes, Span};

    #[test]
    fn frames_of_51200_and_12800_bytes_take_the_same_time() {
        // Two large frames and four small ones (pattern MMmmmm, dispersion 0.5): 153,600 bytes in all. Six flowshares of
        // 2.56 Mbit/s are 15.36 Mbit/s, which send them in 80 ms.
        let flowshare = Rate::from_bits_per_sec(2_560_000);
        for frame in [51_200u64, 12_800] {
            let own = Own { frame: Bytes::new(frame), ..Own::default() };
            let own = Config {}.number(&own).unwrap();
            let rate = Config {}.rate(&Shares { flowshare, flows: 6, own, sum: 153_600 });
            assert_eq!(rate.time_to_send(Bytes::new(frame)), Span::from_millis(80));
        }
    }
}
