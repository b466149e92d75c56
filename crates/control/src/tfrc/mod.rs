//! The parts of TCP-Friendly Rate Control (RFC 5348): the throughput equation, the loss event rate, and the detection of lost
//! packets by their sequence numbers. TFRC is not a controller of this registry, since it has no window: the transport of the same
//! name sends at its rate, and an estimator of the Coordination Protocol uses it for flowshares.

mod equation;
mod gaps;
mod intervals;
mod recent;

pub use equation::{LONGEST_GAP, initial_window, loss_event_rate_of, throughput};
pub use gaps::{Gaps, Losses};
pub use intervals::LossIntervals;
pub use recent::recent_throughput;
