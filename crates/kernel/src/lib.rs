//! The controls of `bpf/` in the running kernel: loaded into an unmodified Linux, selected there by any program under their
//! name, and gone when not wanted.
//!
//! A control that is loaded is held by a descriptor of this process ([`Held`]): however the process ends, the kernel takes the
//! control away, and connections that use it keep it until they end. [`Held::pin`] lets it outlast the process instead.
//!
//! The feature `bpf` brings all of it; without that every function answers [`Problem::NotBuilt`].

#[cfg(feature = "bpf")]
mod capability;
#[cfg(feature = "bpf")]
mod flows;
#[cfg(feature = "bpf")]
mod group;
#[cfg(feature = "bpf")]
mod object;
#[cfg(feature = "bpf")]
mod parameters;
#[cfg(feature = "bpf")]
mod pins;
mod problem;
#[cfg(feature = "bpf")]
mod relabel;
#[cfg(feature = "bpf")]
mod running;

#[cfg(not(feature = "bpf"))]
mod absent;

#[cfg(not(feature = "bpf"))]
pub use absent::{Group, Held, Relabelling, hold, load, running, set, unload};
#[cfg(feature = "bpf")]
pub use group::Group;
#[cfg(feature = "bpf")]
pub use object::{Held, hold, load};
#[cfg(feature = "bpf")]
pub use pins::unload;
pub use problem::Problem;
#[cfg(feature = "bpf")]
pub use relabel::Relabelling;
#[cfg(feature = "bpf")]
pub use running::{running, set};

/// A control that has a kernel form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Its name in labs and on the command line.
    pub name: &'static str,
    /// Its source is `bpf/SHORT.c`; at most 8 characters, what libbpf keeps of it in the names of maps.
    short: &'static str,
    /// Its name in the kernel, which is the same for the whole system (at most 15 characters).
    pub kernel: &'static str,
}

/// Lists the controls: their names in labs, and in `bpf/` where that differs.
macro_rules! controls {
    ($($name:literal = $short:literal;)+) => {
        /// All controls that have a kernel form.
        pub const CONTROLS: &[Control] =
            &[$(Control { name: $name, short: $short, kernel: concat!("weir_", $short) },)+];
    };
}

controls! {
    "apple-ledbat" = "apple";
    "cdg" = "cdg";
    "dctcp" = "dctcp";
    "htcp" = "htcp";
    "ledbat" = "ledbat";
    "ledbat-plus-plus" = "ledbatpp";
    "lp" = "lp";
    "nice" = "nice";
    "prague" = "prague";
    "vegas" = "vegas";
    "westwood" = "westwood";
    "westwood-lp" = "westlp";
    "yield" = "yield";
}

/// The control of this name, or of another that labs have for it.
pub fn control(name: &str) -> Option<&'static Control> {
    let config: weir_control::Config = name.parse().ok()?;
    CONTROLS.iter().find(|control| control.name == config.name())
}

/// Whether it lives by marks.
#[cfg(feature = "bpf")]
fn needs_marks(control: &Control) -> bool {
    use weir_control::{Config, Feedback};
    control.name.parse().is_ok_and(|config: Config| config.signals().1 != Feedback::Classic)
}

/// A control that is in the kernel now.
#[derive(Debug, Clone)]
pub struct Running {
    /// Which one.
    pub control: &'static Control,
    /// Its parameters as they are now, named and written as in a lab file.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Whether it outlasts the process that loaded it.
    pub pinned: bool,
    /// Connections of this network namespace that use it.
    pub flows: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernel_and_mean_controllers_of_labs() {
        for control in CONTROLS {
            assert!(control.short.len() <= 8 && control.kernel.len() <= 15, "{}", control.kernel);
            let config: weir_control::Config = control.name.parse().unwrap();
            assert_eq!(config.name(), control.name);
        }
        assert_eq!(control("ledbat++"), control("ledbat-plus-plus"));
    }
}
