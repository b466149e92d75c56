//! Queue-depth managers: what of a destination's bytes is advertised, used as the price of admission, and used in gradients.
//!
//! Source: digest A 6.9. One line a manager below. A manager is called every [`PERIOD`] while a bin holds something; an empty bin has
//! depth zero under each of them.

mod ewma;
mod exact;
mod heavy_ball;
mod nplb;

use weir_base::{Span, Time};

weir_base::registry! {
    /// A queue-depth manager and its parameters, as a lab names it.
    pub enum Config: "depth" {
        Exact(exact::Config) = "exact": "The exact depth (GNAT, queue manager Base)";
        Ewma(ewma::Config) = "ewma": "A moving average for neighbours and admission; gradients use the exact depth (GNAT, EWMA)";
        HeavyBall(heavy_ball::Config) = "heavy-ball" | "hvyball": "Depth with momentum, also in gradients (GNAT, HvyBall)";
        Nplb(nplb::Config) = "nplb": "Depth plus the age of the oldest packet, instead of ASAP (GNAT, NPLB)";
    }
}

/// How often a manager looks at a destination (digest A 6.9: heavy ball 5 ms, EWMA at least every 10 ms).
pub const PERIOD: Span = Span::from_millis(5);

/// What a manager keeps of a destination: one for all traffic and one for the sensitive part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct State {
    /// The managed depth, in bytes.
    value: f64,
    /// The exact depth when it was last computed.
    exact: u64,
    at: Option<Time>,
}

impl Config {
    /// Whether ASAP must not run beside it (digest A 6.7).
    pub fn excludes_asap(&self) -> bool {
        matches!(self, Config::Nplb(_))
    }

    /// The first value outside its range, by name.
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Config::Ewma(config) => config.tau.is_zero().then_some("tau"),
            Config::HeavyBall(config) => (!(0.0..1.0).contains(&config.momentum)).then_some("momentum"),
            Config::Nplb(config) => (config.bytes_per_microsecond < 0.0).then_some("bytes_per_microsecond"),
            Config::Exact(_) => None,
        }
    }

    /// Zombie bytes to add when the oldest packet of a destination has left: `left` is its age, `next` that of its successor.
    pub fn on_departure(&self, left: Span, next: Span) -> u64 {
        match self {
            Config::Nplb(config) => config.stickiness(left, next),
            _ => 0,
        }
    }
}

impl State {
    /// A period has ended. `oldest` is the arrival of the oldest packet.
    pub fn on_period(&mut self, config: &Config, exact: u64, oldest: Option<Time>, now: Time) {
        let elapsed = self.at.map(|at| now.since(at));
        self.value = match config {
            Config::Exact(_) => exact as f64,
            Config::Ewma(config) => config.next(self.value, exact, elapsed),
            Config::HeavyBall(config) => config.next(self.value, exact, elapsed),
            Config::Nplb(config) => exact as f64 + config.age(oldest.map_or(Span::ZERO, |at| now.since(at))),
        };
        (self.exact, self.at) = (exact, Some(now));
    }

    /// What neighbours and admission are told.
    pub fn advertised(&self, config: &Config, exact: u64) -> u64 {
        match config {
            Config::Exact(_) => exact,
            _ if exact == 0 || self.at.is_none() => exact,
            Config::Ewma(_) => self.value as u64,
            _ => self.forwarded(config, exact),
        }
    }

    /// What gradients use here: the managed depth and what has changed since, except where that is the exact one.
    pub fn forwarded(&self, config: &Config, exact: u64) -> u64 {
        match config {
            Config::Exact(_) | Config::Ewma(_) => exact,
            _ if self.at.is_none() => exact,
            _ => (self.value + exact as f64 - self.exact as f64).max(0.0) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }
    fn config(name: &str) -> Config {
        name.parse().unwrap()
    }
    fn after(name: &str, depths: &[u64]) -> State {
        let mut state = State::default();
        for (period, depth) in depths.iter().enumerate() {
            state.on_period(&config(name), *depth, None, at(5 * period as u64));
        }
        state
    }

    #[test]
    fn an_average_with_a_time_constant_of_5_ms_moves_63_percent_in_5_ms() {
        let state = after("ewma", &[10_000, 20_000]);
        assert_eq!(state.advertised(&config("ewma"), 20_000), 16_321);
        assert_eq!(state.forwarded(&config("ewma"), 20_000), 20_000);
    }

    #[test]
    fn momentum_keeps_the_scale_of_bytes_and_adds_what_has_changed_since() {
        let state = after("heavy-ball", &[10_000, 20_000]);
        assert_eq!(state.advertised(&config("heavy-ball"), 20_000), 13_500);
        assert_eq!(state.forwarded(&config("heavy-ball"), 21_000), 14_500);
        let settled = after("heavy-ball", &[10_000; 40]);
        assert_eq!(settled.advertised(&config("heavy-ball"), 10_000), 10_000);
    }

    #[test]
    fn nplb_counts_a_byte_for_10_microseconds_of_age() {
        let (config, mut state) = (config("nplb"), State::default());
        state.on_period(&config, 5000, Some(at(0)), at(100));
        assert_eq!(state.advertised(&config, 5000), 15_000);
        assert_eq!(state.forwarded(&config, 5000), 15_000);
    }

    #[test]
    fn nplb_fills_the_gap_when_a_much_older_packet_has_left() {
        let gap = |left, next| config("nplb").on_departure(Span::from_millis(left), Span::from_millis(next));
        assert_eq!(gap(500, 400), 0);
        assert_eq!(gap(500, 200), 100_000);
    }

    #[test]
    fn an_empty_bin_has_depth_zero_under_every_manager() {
        for (name, _) in Config::NAMES {
            assert_eq!(after(name, &[10_000, 20_000]).advertised(&config(name), 0), 0, "{name}");
        }
    }

    #[test]
    fn only_nplb_excludes_asap() {
        let excluding = Config::NAMES.iter().filter(|(name, _)| config(name).excludes_asap());
        assert_eq!(excluding.map(|(name, _)| *name).collect::<Vec<_>>(), ["nplb"]);
    }
}
