//! `weir overlay up`: the overlay of a lab on this host, for programs that are started by hand.

use crate::failure::Failure;
use crate::output::{print, say};
use clap::{Args, ValueEnum};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_engine::EngineError;
use weir_linux::signals::Signals;
use weir_live::{Entrance, OverlayLinks};
use weir_plan::Lab;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir overlay up labs/overlay/triangle-udp.toml --set overlay.k=1e12
  weir overlay up labs/overlay/triangle-udp.toml --links veth

It makes a network namespace for each node and each host of the lab's groups, and prints how to enter them; there is no traffic but that of programs \
that you start in them. Links are as the lab says, with its schedules from the moment that all nodes have found each other; with --links veth \
they are as fast as the kernel. It stays until it is \
interrupted. Nothing is left then, also if it is killed.
Exit status: 0 interrupted; 1 a node ended; 2 bad input.")]
pub(super) struct UpArgs {
    /// The lab, with [overlay]; its first run is meant
    lab: PathBuf,
    /// Set a value of the lab, as `weir run --set`
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What joins the nodes
    #[arg(long, value_enum, default_value_t)]
    links: Links,
}

/// What joins the nodes of an overlay that is up.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Links {
    /// Links with the rate, the delay and all else that the lab says
    #[default]
    Fabric,
    /// Pairs of veth devices, as fast as the kernel, without the lab's rates, delays and losses
    Veth,
}

impl UpArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let lab = Lab::load(&self.lab, &self.set).map_err(|faults| {
            Failure::bad_input(faults.render(false, 100).trim_end(), "`weir run LAB --dry-run` checks a lab")
        })?;
        // An ordinary user's process moves into a user namespace; it must still have a single thread. The check tells whether this worked.
        let _ = weir_linux::enter();
        let stop = Arc::new(AtomicBool::new(false));
        let signals =
            Signals::block().map_err(|error| Failure::failed(format!("cannot wait for signals: {error}")))?;
        let stops = stop.clone();
        let waiting = std::thread::Builder::new().name("weir-signals".into()).spawn(move || {
            // Whatever the signal is, it ends the overlay.
            let _ = signals.wait();
            stops.store(true, Ordering::Release);
        });
        waiting.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        let run = lab.runs().remove(0);
        let links = match self.links {
            Links::Fabric => OverlayLinks::Fabric,
            Links::Veth => OverlayLinks::Veth,
        };
        say("weir: the nodes are looking for each other");
        let joined = |entrances: &[Entrance]| {
            // Who does not read it may still enter.
            let _ = print(&told(entrances));
        };
        match weir_live::up(&run, links, &stop, &joined) {
            Ok(()) | Err(EngineError::Cancelled) => Ok(()),
            Err(EngineError::Unable { what, help }) => Err(Failure::bad_input(what, help)),
            Err(error) => Err(Failure::failed(error.to_string())),
        }
    }
}

/// The ways in, and what to do there.
fn told(entrances: &[Entrance]) -> String {
    let width = |of: fn(&Entrance) -> usize| entrances.iter().map(of).max().unwrap_or(0);
    let (name, address) = (width(|one| one.name.len()), width(|one| one.address.len()));
    // An ordinary user's namespaces belong to a user namespace, which is entered first.
    let user = match rustix::process::geteuid().is_root() {
        true => String::new(),
        false => format!(" --preserve-credentials --user=/proc/{}/ns/user", std::process::id()),
    };
    let mut text = String::new();
    for one in entrances {
        let what =
            one.behind.as_ref().map_or_else(|| "node".to_owned(), |node| format!("host behind {node}"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:name$}  {:address$}  nsenter{user} --net={}  # {what}",
            one.name,
            one.address,
            one.namespace.display()
        );
    }
    text + "In the namespace of a node `weir overlay status` shows it. Interrupt this to end.\n"
}
