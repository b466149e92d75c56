//! Circuits of this host: those that are up, and transfers over them. Reservations and plans are of `weir_circuit`.

mod args;
mod asked;
mod entry;
mod host;
mod late;
mod own;
pub mod probe;
mod send;
mod serve;
mod session;
mod shaped;
mod up;

pub use args::{Asked, SendArgs, ServeArgs, StoreArgs};
pub use asked::{STORE, asked, card_rate, in_the_way, make_folder, now, request, told};
pub use entry::{Up, wanted};
pub use host::Host;
pub use late::late;
pub use shaped::Shaped;
pub use up::{check_capabilities, commands, set_up, tell};

daemons! {
    /// Transfers over circuits.
    pub enum Command {
        /// Receive files from hosts whose keys are allowed
        Serve(ServeArgs),
        /// Send files over a circuit
        Send(SendArgs),
    }
}
