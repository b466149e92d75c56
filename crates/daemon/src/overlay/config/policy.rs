//! What all nodes of an overlay have in common.

use serde::Deserialize;
use weir_base::Bytes;
use weir_overlay::admission::CATCH_UP;
use weir_overlay::gradient::Gradients;
use weir_overlay::{depth, zombie};
use weir_sliq::hop;

/// The parameters of all nodes, and of the connections between them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::overlay) struct Policy {
    k: Option<f64>,
    zombies: zombie::Config,
    depth: depth::Config,
    asap: bool,
    depth_share: f64,
    hysteresis: Bytes,
    hop_bias: Bytes,
    queue_delays: bool,
    pub(in crate::overlay) link: hop::Config,
}

impl Default for Policy {
    fn default() -> Policy {
        let weir_overlay::Config { k, depth, zombies, asap, depth_share, gradients, queue_delays, .. } =
            weir_overlay::Config::default();
        let Gradients { hysteresis, hop_bias } = gradients;
        let link = hop::Config::default();
        Policy { k, zombies, depth, asap, depth_share, hysteresis, hop_bias, queue_delays, link }
    }
}

impl Policy {
    /// Parameters of the node.
    pub(in crate::overlay) fn node(&self) -> weir_overlay::Config {
        weir_overlay::Config {
            k: self.k,
            depth: self.depth.clone(),
            zombies: self.zombies.clone(),
            asap: self.asap,
            gradients: Gradients { hysteresis: self.hysteresis, hop_bias: self.hop_bias },
            depth_share: self.depth_share,
            queue_delays: self.queue_delays,
            // A node that was late admits at once what it has missed.
            burst: CATCH_UP,
            ..weir_overlay::Config::default()
        }
    }
}
