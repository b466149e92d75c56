//! What TCP-Friendly Rate Control is made of (RFC 5348): the throughput equation, the loss event rate, and lost packets found by
//! their sequence numbers. It is not a controller of this registry, since it has no window: the transport of the same name
//! sends at its rate, and the Coordination Protocol's estimator informs of it.

mod equation;
mod gaps;
mod intervals;
mod recent;

pub use equation::{LONGEST_GAP, initial_window, loss_event_rate_of, throughput};
pub use gaps::{Gaps, Losses};
pub use intervals::LossIntervals;
pub use recent::recent_throughput;
