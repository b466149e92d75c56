//! The controls of `bpf/` in the running kernel: they are loaded into an unmodified Linux, where any program can select them by
//! name, and are removed when they are no longer wanted.
//!
//! A control stays in the kernel as long as there is a reference to it: a descriptor of a process ([`Held`]) or a pin in a file
//! system ([`load`]). The kernel counts the references. However a process ends, its reference is released; with the last one the
//! kernel unregisters the control, and connections that use it keep it until they end.
//!
//! All of this needs the feature `bpf`; without it, every function returns [`Problem::NotBuilt`].
//!
//! In go a controller's name and its parameters; out comes a control under a name of its own. `running.rs` is the file to open first.

#[cfg(feature = "bpf")]
mod capability;
#[cfg(feature = "bpf")]
mod circuits;
mod counted;
#[cfg(feature = "bpf")]
mod flows;
#[cfg(feature = "bpf")]
mod group;
mod holder;
#[cfg(feature = "bpf")]
mod links;
#[cfg(feature = "bpf")]
mod object;
#[cfg(feature = "bpf")]
mod observer;
#[cfg(feature = "bpf")]
mod parameters;
#[cfg(feature = "bpf")]
mod pinned;
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
pub use absent::{
    Group, Held, Observer, Relabelling, circuits, hold, load, remove_circuit, running, set_circuit, unload,
};
#[cfg(feature = "bpf")]
pub use circuits::{circuits, remove_circuit, set_circuit};
pub use counted::kernel_counts;
#[cfg(feature = "bpf")]
pub use group::Group;
pub use holder::Holder;
#[cfg(feature = "bpf")]
pub use object::{Held, hold};
#[cfg(feature = "bpf")]
pub use observer::Observer;
#[cfg(feature = "bpf")]
pub use pins::{load, unload};
pub use problem::Problem;
#[cfg(feature = "bpf")]
pub use relabel::Relabelling;
#[cfg(feature = "bpf")]
pub use running::running;

/// Name of the map that holds the circuits of a control, and of its pin.
#[cfg(feature = "bpf")]
const CIRCUITS: &str = "circuits";

/// A control that has a kernel form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Its name in labs and on the command line.
    pub name: &'static str,
    /// Its source is `bpf/SHORT.c`; at most 8 characters, since libbpf keeps only these in the names of maps.
    short: &'static str,
    /// Its name in the kernel, which is the same for the whole system (at most 15 characters).
    pub kernel: &'static str,
    /// The controls to which it hands connections over, by their names in labs: they are loaded with it.
    beside: &'static [&'static str],
}

/// Lists the controls: their names in labs and in `bpf/`, and which others are loaded with them.
macro_rules! controls {
    ($($name:literal = $short:literal $(with $beside:literal)?;)+) => {
        /// All controls that have a kernel form.
        pub const CONTROLS: &[Control] =
            &[$(Control { name: $name, short: $short, kernel: concat!("weir_", $short), beside: &[$($beside)?] },)+];
    };
}

controls! {
    "apple-ledbat" = "apple";
    "cdg" = "cdg";
    "ctcp" = "ctcp" with "htcp";
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

/// The control of this name or alias, as labs name controllers. `None` if no control has it.
pub fn control(name: &str) -> Option<&'static Control> {
    let config: weir_control::Config = name.parse().ok()?;
    CONTROLS.iter().find(|control| control.name == config.name())
}

/// A controller's configuration with these parameters, the others at their defaults.
///
/// # Errors
/// [`Problem::Unfit`]: it has no such parameter, or the value is not allowed.
pub fn configure(
    control: &Control,
    parameters: serde_json::Map<String, serde_json::Value>,
) -> Result<weir_control::Config, Problem> {
    weir_control::Config::with_parameters(control.name, serde_json::Value::Object(parameters))
        .map_err(|error| Problem::Unfit { control: control.name, reason: error.to_string() })
}

/// Whether its congestion signal is ECN marks (a scalable control).
#[cfg(feature = "bpf")]
fn needs_marks(control: &Control) -> bool {
    use weir_control::{Config, Feedback};
    control.name.parse().is_ok_and(|config: Config| config.signals().1 != Feedback::Classic)
}

/// A circuit and its destinations.
#[derive(Debug, Clone, PartialEq)]
pub struct Circuit {
    /// The first address of the prefix; bits after the prefix are ignored.
    pub address: std::net::IpAddr,
    /// Length of the prefix in bits.
    pub length: u8,
    /// The circuit, as a lab gives it to `ctcp`. Whether a transfer falls back is not part of it: this is the same for all circuits.
    pub config: weir_control::Config,
}

/// A control that is in the kernel.
#[derive(Debug, Clone)]
pub struct Running {
    /// The control.
    pub control: &'static Control,
    /// Its present parameters, named and written as in a lab file.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Whether it is pinned, and so outlasts the process that loaded it.
    pub pinned: bool,
    /// The processes that hold it.
    pub holders: Vec<Holder>,
    /// Connections of this network namespace that use it.
    pub flows: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernel_and_name_controllers_of_labs() {
        for control in CONTROLS {
            assert!(control.short.len() <= 8 && control.kernel.len() <= 15, "{}", control.kernel);
            let config: weir_control::Config = control.name.parse().unwrap();
            assert_eq!(config.name(), control.name);
        }
        assert_eq!(control("ledbat++"), control("ledbat-plus-plus"));
    }
}
