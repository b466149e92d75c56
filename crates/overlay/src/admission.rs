//! Admission of elastic flows: the LOG utility turns the depth at the source into a rate, and a pacer admits packets at that rate.
//!
//! Source: digest A 7.2, A 7.3, G 1.3, G 2.6. With U = p log(a r + 1) the rate is K p / Q - 1/a, at most a cap, where Q is the depth
//! in bits. The study admits in ticks of a millisecond with a random part; here a timer is exact, so each packet has its own time.

use weir_base::{Bytes, Rate, Span, Time};

/// Longest time by which a late packet may be caught up (digest A 7.3).
const CATCH_UP: Span = Span::from_millis(2);

/// K per capacity in bits: the depth at which one flow of priority 1 fills a link of the median capacity. The study's values are 3e4
/// to 4e5 (digest X 1.5). A small one makes shares uneven by the hops of a way, which count as bytes too; 2e5 keeps 5 to 1 within 2 %.
pub const K_PER_CAPACITY: f64 = 2e5;
/// The least depth in bits at which a flow of priority 1 fills the fastest link: a packet of 1,500 bytes, so that a source can fill it.
pub const K_PER_FASTEST: f64 = 12_000.0;

/// Parameters of the utility function.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Priority p: flows share a bottleneck in proportion to it.
    pub priority: f64,
    /// The most that the flow may send.
    pub cap: Rate,
    /// Shape a in seconds per bit; its inverse is subtracted from the rate.
    pub shape: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { priority: 1.0, cap: Rate::from_mbit_per_sec(10), shape: 20.0 }
    }
}

impl Config {
    /// The first value outside its range, by name.
    pub fn fault(&self) -> Option<&'static str> {
        if !(self.priority > 0.0 && self.priority.is_finite()) {
            return Some("priority");
        }
        (self.shape.is_nan() || self.shape <= 0.0).then_some("shape")
    }

    /// The rate at this depth, with K in bits squared per second.
    pub fn rate(&self, k: f64, depth: Bytes) -> Rate {
        if depth == Bytes::ZERO {
            return self.cap;
        }
        let rate = k * self.priority / (8.0 * depth.get() as f64) - 1.0 / self.shape;
        Rate::from_bits_per_sec(rate.max(0.0) as u64).min(self.cap)
    }
}

/// The admission of one flow.
#[derive(Debug, Clone)]
pub struct Admission {
    config: Config,
    rate: Rate,
    next: Time,
}

impl Admission {
    /// The admission of a flow that may send at once.
    pub fn new(config: Config, now: Time) -> Admission {
        Admission { config, rate: config.cap, next: now }
    }

    /// The present rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The depth at the source has changed. The rest of the present wait is scaled by the change of the rate.
    pub fn update(&mut self, k: f64, depth: Bytes, now: Time) {
        let rate = self.config.rate(k, depth);
        if rate == self.rate {
            return;
        }
        let wait = self.next.since(now);
        if self.next == Time::NEVER {
            self.next = now;
        } else if rate.bits_per_sec() == 0 {
            self.next = Time::NEVER;
        } else if !wait.is_zero() {
            let scaled = wait.scale(self.rate.bits_per_sec() as f64 / rate.bits_per_sec() as f64);
            self.next = now + scaled;
        }
        self.rate = rate;
    }

    /// When the next packet may go; [`Time::NEVER`] at rate zero.
    pub fn next_time(&self) -> Time {
        if self.rate.bits_per_sec() == 0 { Time::NEVER } else { self.next }
    }

    /// Whether a packet may go now.
    pub fn is_open(&self, now: Time) -> bool {
        self.next_time() <= now
    }

    /// A packet of this length has been admitted.
    pub fn admitted(&mut self, bytes: Bytes, now: Time) {
        self.next = self.next.max(now - CATCH_UP) + self.rate.time_to_send(bytes);
    }
}

/// K for a network with links of these capacities, of which the order does not matter: [`K_PER_CAPACITY`] times the median capacity, or
/// [`K_PER_FASTEST`] times the largest if that is more, rounded up to a power of two. `None` without a link.
///
/// K must be one value in the network: a flow's share of a bottleneck is K p. So one node computes it, and the others take what it
/// floods ([`crate::linkstate`]).
pub fn derive_k(capacities: &mut [Rate]) -> Option<f64> {
    capacities.sort_unstable();
    let largest = capacities.last()?.bits_per_sec() as f64;
    let median = capacities[(capacities.len() - 1) / 2].bits_per_sec() as f64;
    let least = (K_PER_CAPACITY * median).max(K_PER_FASTEST * largest);
    (least > 0.0).then(|| libm::exp2(libm::ceil(libm::log2(least))))
}

/// The K that a node floods, given the last one and the newly derived one. It changes only when the new one is not the neighbouring
/// power of two, so that a capacity at a boundary does not move the prices of all flows.
pub fn hold_k(last: Option<f64>, derived: f64) -> f64 {
    match last {
        Some(last) if derived / last < 4.0 && last / derived < 4.0 => last,
        _ => derived,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(n: u64) -> Rate {
        Rate::from_mbit_per_sec(n)
    }
    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_rate_is_k_times_the_priority_over_the_depth_in_bits() {
        let config = Config { priority: 2.0, cap: mbit(25), shape: 10.0 };
        assert_eq!(config.rate(1e12, Bytes::new(125_000)).bits_per_sec(), 1_999_999);
        assert_eq!(config.rate(1e12, Bytes::new(100)), mbit(25));
        assert_eq!(config.rate(1e12, Bytes::ZERO), mbit(25));
        assert_eq!(config.rate(1.0, Bytes::new(1_000_000)), Rate::from_bits_per_sec(0));
    }

    #[test]
    fn packets_are_admitted_at_the_rate_and_catch_up_2_ms_at_most() {
        let mut admission = Admission::new(Config { cap: mbit(8), ..Config::default() }, at(0));
        admission.admitted(Bytes::new(1000), at(0));
        assert_eq!(admission.next_time(), at(1));
        // The source was idle until 50 ms: two packets go at once, no more.
        admission.admitted(Bytes::new(1000), at(50));
        admission.admitted(Bytes::new(1000), at(50));
        assert_eq!(admission.next_time(), at(50));
        admission.admitted(Bytes::new(1000), at(50));
        assert_eq!(admission.next_time(), at(51));
    }

    #[test]
    fn a_wait_is_scaled_when_the_rate_changes() {
        let mut admission = Admission::new(Config { cap: mbit(8), ..Config::default() }, at(0));
        admission.admitted(Bytes::new(4000), at(0));
        // 4 ms are left of 4 at 8 Mbit/s; at a quarter of the rate they become 16.
        admission.update(8e6 * 1e6 / 4.0, Bytes::new(125_000), at(0));
        let wait = admission.next_time().since(at(0));
        assert!(wait.is_between(Span::from_millis(16), Span::from_micros(16_001)), "{wait}");
    }

    #[test]
    fn at_rate_zero_nothing_goes_until_the_depth_falls() {
        let mut admission = Admission::new(Config::default(), at(0));
        admission.update(1.0, Bytes::new(1_000_000), at(0));
        assert_eq!(admission.next_time(), Time::NEVER);
        admission.update(1e12, Bytes::new(125_000), at(5));
        assert_eq!(admission.next_time(), at(5));
    }

    #[test]
    fn k_follows_the_median_capacity_and_never_starves_the_fastest_link() {
        let mut equal = vec![mbit(10); 30];
        assert_eq!(derive_k(&mut equal), Some(libm::exp2(41.0)));
        let mut one_slow = [mbit(10), mbit(10), mbit(1)];
        assert_eq!(derive_k(&mut one_slow), derive_k(&mut equal));
        let mut one_fast = [mbit(10), mbit(10), mbit(1000)];
        assert_eq!(derive_k(&mut one_fast), Some(libm::exp2(44.0)));
        assert_eq!(derive_k(&mut []), None);
    }

    #[test]
    fn k_is_held_until_the_derived_one_is_four_times_as_large_or_small() {
        assert_eq!(hold_k(None, 64.0), 64.0);
        assert_eq!(hold_k(Some(64.0), 128.0), 64.0);
        assert_eq!(hold_k(Some(64.0), 256.0), 256.0);
        assert_eq!(hold_k(Some(64.0), 16.0), 16.0);
    }
}
