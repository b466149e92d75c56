//! The counters of a queue around an observation, for the check of its events.

use weir_observe::{Bracket, KernelCounts};
use weir_shaper::Counters;

/// What the kernel has counted between readings just before and after the beginning of an observation, and just before and after its end.
pub fn kernel_counts(beginning: &[Counters; 2], end: &[Counters; 2]) -> KernelCounts {
    let bracket =
        |of: fn(&Counters) -> u64| Bracket::between(beginning.each_ref().map(of), end.each_ref().map(of));
    let most = |of: &[Counters; 2]| of[0].waiting.max(of[1].waiting);
    KernelCounts {
        packets: bracket(|of| of.packets),
        drops: bracket(|of| of.drops),
        requeues: bracket(|of| of.requeues),
        waiting_before: most(beginning),
        waiting_after: most(end),
    }
}
