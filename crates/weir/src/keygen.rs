//! `weir circuit keygen` and `weir sliq keygen`: a pair of keys, by which hosts authenticate each other.

use std::path::Path;
use weir_daemon::transfer::Keys;
use weir_daemon::{Failure, print};

/// Makes a pair of keys, and prints the public one.
///
/// # Errors
/// There is a file of this name, or it cannot be written.
pub(crate) fn keygen(path: &Path) -> Result<(), Failure> {
    let keys = Keys::generate(path).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::bad_input(message, "name a file that does not exist yet")
    })?;
    print(&format!("{}\n", keys.public))
}
