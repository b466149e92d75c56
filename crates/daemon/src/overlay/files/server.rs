//! What all sessions of a receiver share: its folder, who may send, and what is counted.

use crate::frame::status::{Part, Status};
use crate::transfer::{Folder, STOPPED, Threads, guard};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use weir_base::Prefix;

/// What is shown of a session.
pub(super) struct Shown {
    pub(super) from: IpAddr,
    pub(super) bytes: AtomicU64,
    pub(super) whole: AtomicU64,
}

/// What all sessions of a receiver share.
pub(super) struct Server {
    folder: Folder,
    from: Mutex<Vec<Prefix>>,
    stop: Arc<AtomicBool>,
    sessions: Mutex<BTreeMap<u64, Arc<Shown>>>,
    begun: AtomicU64,
    threads: Threads,
    /// Whole files and bytes of the sessions that are over.
    whole: AtomicU64,
    received: AtomicU64,
}

impl Server {
    /// A receiver into this folder from these addresses, until the flag is set.
    pub(super) fn new(folder: Folder, from: Vec<Prefix>, stop: Arc<AtomicBool>) -> Server {
        Server {
            folder,
            from: Mutex::new(from),
            stop,
            sessions: Mutex::default(),
            begun: AtomicU64::new(0),
            threads: Threads::default(),
            whole: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    /// Applies what the arguments say now. A session of an address that may no longer send ends.
    pub(super) fn configure(&self, from: Vec<Prefix>, quota: Option<u64>) {
        self.folder.set_quota(quota);
        *guard(&self.from) = from;
    }

    /// Does the work of a session on a thread. Returns false if there are too many.
    pub(super) fn spawn(self: &Arc<Server>, work: impl FnOnce(&Arc<Server>) + Send + 'static) -> bool {
        let here = self.clone();
        self.threads.spawn(move || work(&here))
    }

    /// Waits a while for the sessions to end.
    pub(super) fn wait(&self) {
        self.threads.wait();
    }

    /// The folder for received files.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Whether it is to stop.
    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Whether a host may send.
    pub(super) fn allows(&self, from: IpAddr) -> bool {
        guard(&self.from).iter().any(|prefix| prefix.contains(from))
    }

    /// Whether a session with a host may go on.
    ///
    /// # Errors
    /// Why it must end.
    pub(super) fn check(&self, from: IpAddr) -> io::Result<()> {
        if self.stops() {
            return Err(io::Error::other(STOPPED));
        }
        if !self.allows(from) {
            return Err(io::Error::other(format!("{from} may not send: no --from of the receiver has it")));
        }
        Ok(())
    }

    /// Shows a session. Returns its number.
    pub(super) fn show(&self, shown: Arc<Shown>) -> u64 {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        guard(&self.sessions).insert(number, shown);
        number
    }

    /// A session is over, with so many whole files and bytes.
    pub(super) fn is_over(&self, number: u64, whole: u64, bytes: u64) {
        guard(&self.sessions).remove(&number);
        self.whole.fetch_add(whole, Ordering::Relaxed);
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What it has received, for `weir status`.
    pub(super) fn status(&self, at: &str) -> Status {
        let sessions = guard(&self.sessions);
        let (mut whole, mut received) =
            (self.whole.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        let parts = sessions.values().map(|session| {
            let here = session.bytes.load(Ordering::Relaxed);
            received += here;
            whole += session.whole.load(Ordering::Relaxed);
            Part::session(&session.from.to_string(), here)
        });
        let parts = parts.collect();
        Status { parts, ..Status::of_transfer(at, [("whole_files", whole), ("received_bytes", received)]) }
    }
}
