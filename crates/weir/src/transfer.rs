//! What transfers between two hosts have in common, over TCP (`weir circuit`) as over SLIQ (`weir sliq`): the keys by which hosts know
//! one another, the files that are sent, and the folder that received files go to.

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

/// Where hosts listen unless they are told otherwise.
pub(crate) const PORT: u16 = 7765;
/// Most files of a session.
pub(crate) const MOST_FILES: usize = 10_000;

/// What a mutex guards; a thread that panicked has left it whole.
pub(crate) fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system has none.
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
        Failure::bad_input(message, "name a file that is not there yet")
    })?;
    print(&format!("{}\n", keys.public))
}
