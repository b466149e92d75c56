//! What an overlay did with a flow's packets in a window, added up.

use weir_base::Histogram;

/// The sums of a flow's [`crate::TransitSample`]s.
#[derive(Debug, Clone, Default)]
pub(super) struct TransitSums {
    pub(super) admitted: u64,
    pub(super) in_time: u64,
    pub(super) links: u64,
    pub(super) hops: Histogram,
    pub(super) times: Histogram,
    pub(super) waits: Histogram,
}
