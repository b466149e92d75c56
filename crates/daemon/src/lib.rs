//! What runs for long on a host: an aggregation point between two devices (`ap`), endpoints of its applications (`cp`), a node of the
//! overlay (`overlay`), and transfers over circuits (`circuit`) and over paths that lose packets (`sliq`). Each is a file: its arguments, and its work in the
//! [`frame`] that all share. In go a command's arguments, out come what it prints and a [`Failure`] with an exit status. The program
//! `weir` parses the command line and calls these.
//!
//! `frame.rs` is the file to open first.

/// Commands of the command line that run for long, each with its arguments; the first line of its text is its help.
macro_rules! daemons {
    ($(#[$about:meta])* $vis:vis enum $Name:ident { $($(#[$help:meta])* $Variant:ident($Args:ty),)+ }) => {
        $(#[$about])*
        #[derive(Debug, clap::Subcommand)]
        $vis enum $Name {
            $($(#[$help])* $Variant($Args),)+
        }

        impl $crate::Run for $Name {
            fn run(&self) -> Result<(), $crate::Failure> {
                match self {
                    $($Name::$Variant(args) => $crate::Run::run(args),)+
                }
            }
        }
    };
}

mod ap;
pub mod circuit;
pub mod cp;
mod failure;
pub mod frame;
mod key;
mod output;
pub mod overlay;
pub mod sliq;
pub mod transfer;

pub use failure::Failure;
pub use output::{print, print_json, say, write};

/// A command that can be run.
pub trait Run {
    /// Runs it.
    ///
    /// # Errors
    /// Why it failed.
    fn run(&self) -> Result<(), Failure>;
}

impl<D: frame::Daemon> Run for D {
    fn run(&self) -> Result<(), Failure> {
        frame::run(self)
    }
}

daemons! {
    /// The daemons that are commands by themselves. Those of a circuit and of SLIQ stand with their other commands.
    pub enum Command {
        /// Let many flows between two sites share their path as one: an aggregation point between two devices
        Ap(ap::ApArgs),
        /// Send and receive files, pipes or datagrams as a flow of an application that aggregation points coordinate
        Cp(cp::CpArgs),
        /// Join sites by an overlay that forwards over all paths at once: run a node, ask it, change it
        Overlay(overlay::OverlayArgs),
    }
}
