//! Prices of several sessions, mended into a proof.
//!
//! A session's receivers each have prices of their own; what counts for a link is their sum, and of several sessions the largest. So
//! each session's prices are scaled by themselves until its receivers are worth its weight, which is at least as good as Farley's
//! bound with one factor for all.

use crate::answer::Prices;
use crate::network::Network;
use crate::packing::ROUNDING;

/// The prices of one receiver, by link, and the least price of a path to it in time.
pub(crate) struct Priced {
    pub(crate) prices: Vec<(u32, f64)>,
    pub(crate) least: f64,
}

/// Scales the prices of each session, given with its weight, and returns the upper bound that they prove. A session with an
/// unreachable receiver needs none.
pub(crate) fn prove(network: &Network, sessions: Vec<(f64, Vec<Priced>)>) -> (f64, Prices) {
    let mut prices = Prices::default();
    for (weight, receivers) in sessions {
        let worth: f64 = receivers.iter().map(|receiver| receiver.least).sum();
        if worth <= 0.0 {
            return (f64::INFINITY, Prices::default());
        }
        let factor = if worth.is_infinite() { 0.0 } else { weight / (worth * (1.0 - ROUNDING)) };
        let scaled = |receiver: Priced| {
            let priced = receiver.prices.into_iter().map(|(link, price)| (link, price * factor));
            priced.filter(|&(_, price)| price > 0.0).collect()
        };
        prices.sessions.push(receivers.into_iter().map(scaled).collect());
    }
    let by_link = prices.by_link(network.links().len());
    (crate::packing::cost(network, &by_link), prices)
}
