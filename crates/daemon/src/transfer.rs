//! Transfers of files between two hosts, whatever carries them: the TCP connections of `weir circuit`, SLIQ (`weir sliq`), or what the
//! overlay carries (`weir overlay send`). A session is one [`Sending`] and one [`Receiving`], which hold what was offered, told, sent and stored; a carrier brings messages and blocks
//! from one to the other. Beside them: the keys by which hosts authenticate each other, and the folder of received files.

mod aligned;
mod files;
mod folder;
mod frames;
mod keys;
mod ordered;
mod receive;
mod report;
mod send;
pub(crate) mod silence;
mod source;
mod threads;

pub(crate) use aligned::Aligned;
pub use files::address;
pub(crate) use files::open;
pub(crate) use folder::Folder;
pub(crate) use frames::{Ask, Counted, Frame, Receipt, Talk};
pub use keys::{Keys, PublicKey};
pub(crate) use ordered::Files;
pub(crate) use receive::{Carrier, Looked, Receiving};
pub(crate) use report::Report;
pub(crate) use send::{Heard, Outgoing, Sending, Sums, lost, same_command};
pub(crate) use source::Source;
pub(crate) use threads::Threads;

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The port at which hosts listen by default.
pub(crate) const PORT: u16 = 7765;
/// Why a session ends when its receiver is stopped.
pub(crate) const STOPPED: &str =
    "the receiver was stopped; the same command resumes the transfer once it runs again";
/// Why a session ends when its receiver no longer allows its key.
pub(crate) const UNKNOWN: &str = "its key is no longer allowed";
/// What a sender that is interrupted says.
pub(crate) const INTERRUPTED: &str = "interrupted; the same command resumes the transfer";
/// Most files of a session.
pub(crate) const MOST_FILES: usize = 10_000;

/// Locks a mutex. A thread that panicked while it held the lock has left the value whole.
pub(crate) fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds since 1970: requests for connections carry a stamp that rises.
pub(crate) fn stamp() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2)
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
