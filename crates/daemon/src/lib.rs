//! What runs for long on a host: an aggregation point between two devices (`ap`), endpoints of its applications (`cp`), and
//! transfers over circuits (`circuit`) and over paths that lose packets (`sliq`). In go a daemon's arguments, out come what it prints
//! and a [`Failure`] with an exit status. The program `weir` parses the command line and calls these.

pub mod ap;
pub mod circuit;
pub mod cp;
mod failure;
mod output;
pub mod sliq;
pub mod transfer;

pub use failure::Failure;
pub use output::{print, print_json, say, write};
