//! Virtual depth: bytes that count in gradients and in admission but that no packet carries, so that prices stay while delay goes.
//!
//! Source: digest G 2.2, A 6.6. One line a kind below. A kind keeps a state for each destination of a bin, for sensitive traffic and
//! for all traffic apart. Zombies cost no bytes of a link. They leave in the time in which it carries nothing else, or
//! in the turn of packets of their bin that they outweigh; the study sends dummy packets instead (digest A 12, point 2).

mod dual;
mod none;
mod window;
mod zlr;

pub use dual::Config as DualConfig;
use weir_base::{Span, Time};
pub use zlr::{Config as ZlrConfig, Rule as ZlrRule};

weir_base::registry! {
    /// How virtual depth is made, as a lab names it.
    pub enum Config: "zombies" {
        None(none::Config) = "none": "No virtual depth: basic backpressure (GNAT report, 2.1)";
        Zlr(zlr::Config) = "zlr": "Zombie latency reduction: a standing queue is replaced by zombies (GNAT report, 2.2.1)";
        ZlrImproved(zlr::Config) = "zlr-improved": "ZLR that serves zombies before packets where they weigh more (GNAT report, 2.2.3)";
        Sdg(dual::Config) = "sdg": "Stochastic dual gradient: virtual depth learned with decreasing steps (Chen, Ling, Giannakis 2018)";
        Idg(dual::Config) = "idg": "SDG with virtual depth of at least 1/mu times the packets while it learns (GNAT report, 2.2.2)";
    }
}

/// Zombies leave in units of at most this (digest A 1.2).
pub const LARGEST: u64 = 1024;

/// What a kind sees of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Bytes of packets of the traffic in question.
    pub real: u64,
    /// Bytes of all its zombies.
    pub zombies: u64,
}

/// A destination's state.
#[derive(Debug, Clone, Default)]
pub enum State {
    /// The kind needs none, or nothing has come yet.
    #[default]
    Unused,
    /// Of [`Config::Zlr`] and [`Config::ZlrImproved`].
    Zlr(Box<zlr::State>),
    /// Of [`Config::Sdg`] and [`Config::Idg`].
    Dual(Box<dual::State>),
}

impl Config {
    /// What a byte of a packet counts in the depth.
    pub fn real_weight(&self) -> f64 {
        match self {
            Config::Sdg(config) | Config::Idg(config) => config.mu,
            _ => 1.0,
        }
    }

    /// Whether zombies leave before packets of the same bin where they weigh more (digest A 6.3).
    pub fn is_improved(&self) -> bool {
        matches!(self, Config::ZlrImproved(_))
    }

    /// How many bytes of zombies leave for each that a link has time for. `None`: they leave at the link's rate, whatever packets take,
    /// as if there were no packets. So virtual depth is learned ([`dual`]).
    pub fn drain(&self) -> Option<u32> {
        match self {
            Config::Zlr(config) | Config::ZlrImproved(config) => Some(config.drain),
            _ => None,
        }
    }

    /// The time between calls of [`State::on_slot`]; `None` if the kind has no slots.
    pub fn slot(&self) -> Option<Span> {
        match self {
            Config::Sdg(config) | Config::Idg(config) => Some(config.slot),
            _ => None,
        }
    }

    /// The first value outside its range, by name.
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Config::None(_) => None,
            Config::Zlr(config) | Config::ZlrImproved(config) => config.fault(),
            Config::Sdg(config) | Config::Idg(config) => config.fault(),
        }
    }
}

impl State {
    fn ensure(&mut self, config: &Config, now: Time) {
        if matches!(self, State::Unused) {
            *self = match config {
                Config::None(_) => State::Unused,
                Config::Zlr(config) | Config::ZlrImproved(config) => {
                    State::Zlr(Box::new(zlr::State::new(config, now)))
                }
                Config::Sdg(_) | Config::Idg(_) => State::Dual(Box::default()),
            };
        }
    }

    /// Bytes of a packet have come; `seen` counts them. Returns zombie bytes to add.
    pub fn on_arrival(&mut self, config: &Config, bytes: u64, seen: Seen, now: Time) -> u64 {
        self.ensure(config, now);
        match (self, config) {
            (State::Zlr(state), Config::Zlr(config) | Config::ZlrImproved(config)) => {
                state.on_arrival(config, bytes, seen, now)
            }
            (State::Dual(state), _) => {
                state.on_arrival(bytes);
                0
            }
            _ => 0,
        }
    }

    /// Bytes of a packet have left; `seen` does not count them any more. Returns zombie bytes to add.
    pub fn on_departure(&mut self, config: &Config, bytes: u64, seen: Seen, now: Time) -> u64 {
        self.ensure(config, now);
        match (self, config) {
            (State::Zlr(state), Config::Zlr(config) | Config::ZlrImproved(config)) => {
                state.on_departure(config, bytes, seen, now)
            }
            (State::Dual(state), _) => {
                state.on_service(bytes);
                0
            }
            _ => 0,
        }
    }

    /// The link is free for so many zombie bytes. Returns how many leave.
    pub fn on_zombie(&mut self, config: &Config, bytes: u64, seen: Seen, now: Time) -> u64 {
        self.ensure(config, now);
        match (self, config) {
            (State::Zlr(state), Config::Zlr(config) | Config::ZlrImproved(config)) => {
                state.on_zombie(config, bytes, seen, now);
                bytes
            }
            (State::Dual(state), _) => {
                state.on_service(bytes);
                0
            }
            _ => bytes,
        }
    }

    /// A slot has ended. Returns the virtual depth from now on; `None` if the kind has no slots.
    pub fn on_slot(&mut self, config: &Config, seen: Seen) -> Option<u64> {
        match (self, config) {
            (State::Dual(state), Config::Sdg(config)) => Some(state.on_slot(config, seen, false)),
            (State::Dual(state), Config::Idg(config)) => Some(state.on_slot(config, seen, true)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
