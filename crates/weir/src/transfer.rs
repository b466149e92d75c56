//! The common parts of transfers between two hosts, over TCP (`weir circuit`) and over SLIQ (`weir sliq`): the keys by which
//! hosts authenticate each other, the files that are sent, and the folder of received files.

mod files;
mod folder;
mod keys;

pub(crate) use files::{Left, Outgoing, address, open};
pub(crate) use folder::Folder;
pub(crate) use keys::{Keys, PublicKey};

use crate::failure::Failure;
use crate::print;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The port at which hosts listen by default.
pub(crate) const PORT: u16 = 7765;
/// Most files of a session.
pub(crate) const MOST_FILES: usize = 10_000;

/// Locks a mutex. A thread that panicked while it held the lock has left the value whole.
pub(crate) fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Random bytes from the system's generator.
///
/// # Errors
/// The generator cannot be read.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

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
