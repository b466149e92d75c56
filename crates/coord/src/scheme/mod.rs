//! Coordination schemes (sections 3.3.2 and 6.5): how the flows of an application split the application's total rate.
//!
//! The application may send one flowshare for each of its flows. A scheme is decentralized: each flow writes one number about
//! itself to an agreed general-purpose address and reads the four cells of one packet's reports: the rate of a flowshare, the
//! number of flows, its own number and the sum of all numbers. It uses its reported number and not the one that it has just
//! written, so that number and sum belong to the same moment. If every flow has the same reports, the rates add up to
//! `flowshare * flows` at most.

mod ensemble;
mod equal;
mod frames;
mod priority;
mod weighted;

use crate::Function;
use crate::cell::{Cell, Family};
use crate::series::Statistic;
use weir_base::{Bytes, Rate, Span};

weir_base::registry! {
    /// Schemes that an application can name.
    pub enum Config: "scheme" {
        Equal(equal::Config) = "equal": "One flowshare each, at most an equal part of a cap (section 3.3.2)";
        Weighted(weighted::Config) = "weighted": "In proportion to the flows' weights";
        Frames(frames::Config) = "frames": "In proportion to the sizes of the flows' present frames (equation 6.1)";
        Priority(priority::Config) = "priority": "A floor for each flow, and the rest for the urgent flows (section 3.3.2)";
        Ensemble(ensemble::Config) = "ensemble": "In proportion to the bytes left of each flow's frame, so that all frames end together";
    }
}

/// The state of a flow from which its number is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Own {
    /// Size of the present frame.
    pub frame: Bytes,
    /// Bytes of the present frame that are not sent, or sent and not acknowledged.
    pub left: Bytes,
    /// Whether the flow is urgent now.
    pub urgent: bool,
}

/// The reports to a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// The rate of one flowshare.
    pub flowshare: Rate,
    /// Number of flows of the application.
    pub flows: u32,
    /// The flow's own number, as it was when the sum was taken.
    pub own: u32,
    /// Sum of all flows' numbers.
    pub sum: u32,
}

impl Shares {
    /// The application's total rate: one flowshare for each flow.
    pub fn total(&self) -> Rate {
        Rate::from_bits_per_sec(self.flowshare.bits_per_sec().saturating_mul(self.flows.max(1).into()))
    }

    /// The part of `rate` in proportion to this flow's number; an equal part while no flow has written a number. If the sum
    /// does not contain the flow's own number yet, the part is still at most the whole.
    pub(crate) fn part_of(&self, rate: Rate) -> Rate {
        let (part, whole) =
            if self.sum == 0 { (1, self.flows.max(1)) } else { (self.own, self.sum.max(self.own)) };
        let bits = u128::from(rate.bits_per_sec()) * u128::from(part) / u128::from(whole);
        Rate::from_bits_per_sec(bits as u64)
    }
}

/// A scheme that splits the total.
pub trait Scheme {
    /// The number that a flow writes, 24 bits; `None` if the scheme uses no numbers.
    fn number(&self, own: &Own) -> Option<u32>;

    /// The rate at which the flow must send.
    fn rate(&self, shares: &Shares) -> Rate;
}

impl Config {
    fn scheme(&self) -> &dyn Scheme {
        match self {
            Config::Equal(scheme) => scheme,
            Config::Weighted(scheme) => scheme,
            Config::Frames(scheme) => scheme,
            Config::Priority(scheme) => scheme,
            Config::Ensemble(scheme) => scheme,
        }
    }
}

impl Scheme for Config {
    fn number(&self, own: &Own) -> Option<u32> {
        self.scheme().number(own)
    }
    fn rate(&self, shares: &Shares) -> Rate {
        self.scheme().rate(shares)
    }
}

/// The cells that a flow watches, in the order of [`Shares`], for numbers at this general-purpose address (0 to 249).
pub fn watched(flow: u8, address: u8) -> [Cell; 4] {
    let at = |offset| Cell { address, offset };
    [
        Family::Bandwidth.cell(Statistic::Latest),
        Family::Flows.cell(Statistic::Latest),
        at(flow),
        at(Function::Sum as u8),
    ]
}

/// Limit of a flow's waiting and unacknowledged data (equation 6.2): the data of 1.5 round trips at `rate`. The half is
/// for retransmissions. The source uses the rate of a flowshare even if the flow's own rate is different.
pub fn send_buffer(rate: Rate, rtt: Span) -> Bytes {
    rate.bytes_in(rtt.scale(1.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_send_buffer_depends_on_loss_and_not_on_the_round_trip() {
        // t_RTO is 4 R, so rate times R depends on p and packet size: at 1,460 bytes 24,601 at p = 0.01, 84,062 at 0.001.
        for (p, expected) in [(0.01, 24_601), (0.001, 84_062)] {
            for rtt in [10, 50, 150].map(Span::from_millis) {
                let rate = weir_control::tfrc::throughput(1460.0, rtt, p, 1.0, 4.0);
                let buffer = send_buffer(Rate::from_bits_per_sec((rate * 8.0) as u64), rtt);
                assert!(buffer.get().abs_diff(expected) <= 1, "{p} {rtt}: {buffer}");
            }
        }
    }

    proptest! {
        #[test]
        fn rates_add_up_to_the_flowshares_and_never_to_more(
            numbers in prop::collection::vec(1u32..100_000, 1..20), mbit in 1u64..100,
        ) {
            let flowshare = Rate::from_mbit_per_sec(mbit);
            let flows = numbers.len() as u32;
            for (name, numbers) in [
                ("equal", vec![0; numbers.len()]),
                ("weighted", numbers.clone()),
                ("frames", numbers.clone()),
                ("ensemble", numbers.clone()),
                ("priority", numbers.iter().map(|n| n % 2).collect()),
            ] {
                let scheme: Config = name.parse().unwrap();
                let sum = numbers.iter().sum();
                let rates = numbers.iter().map(|own| {
                    scheme.rate(&Shares { flowshare, flows, own: *own, sum }).bits_per_sec()
                });
                let (total, sent) = (flowshare.bits_per_sec() * u64::from(flows), rates.sum::<u64>());
                prop_assert!(sent <= total && total - sent <= 2 * u64::from(flows), "{} {} {}", name, sent, total);
            }
        }
    }
}
