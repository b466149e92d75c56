//! A session of a receiver with a sender: its files, and what is shown of it. It ends when it is dropped.

use super::connection::Connection;
use super::server::{Server, Shown};
use crate::frame::log;
use crate::transfer::Files;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_circuit::transfer::Message;

/// Time between two reports to the sender of the bytes received.
const PERIOD: Duration = Duration::from_secs(1);

/// A session.
pub(super) struct Session<'a> {
    pub(super) server: &'a Server,
    pub(super) files: Files,
    number: u64,
    shown: Arc<Shown>,
    next: Instant,
}

impl Session<'_> {
    /// A session with this host.
    pub(super) fn new(server: &Server, from: IpAddr) -> Session<'_> {
        let shown = Arc::new(Shown { from, bytes: AtomicU64::new(0), whole: AtomicU64::new(0) });
        let number = server.show(shown.clone());
        Session { server, files: Files::default(), number, shown, next: Instant::now() + PERIOD }
    }

    /// The report to the sender, once a second.
    ///
    /// # Errors
    /// The session must end.
    fn report(&mut self) -> io::Result<Option<Message>> {
        self.server.check(self.shown.from)?;
        if Instant::now() < self.next {
            return Ok(None);
        }
        self.next += PERIOD;
        let files = self.files.session();
        self.shown.bytes.store(files.received(), Ordering::Relaxed);
        self.shown.whole.store(files.whole().0 as u64, Ordering::Relaxed);
        Ok(Some(Message::Progress { bytes: files.received(), after_ns: None }))
    }

    /// Says the report if it is due, and what the next look at what earlier attempts have left has found: that is read block by block, so that
    /// the sender hears of this host meanwhile. Returns whether there was something to look at.
    ///
    /// # Errors
    /// The session must end.
    pub(super) fn look(&mut self, connection: &mut Connection) -> io::Result<bool> {
        if let Some(report) = self.report()? {
            connection.say(&report)?;
        }
        if !self.files.looks() {
            return Ok(false);
        }
        for message in self.files.look(self.server.folder())? {
            connection.say(&message)?;
        }
        Ok(true)
    }

    /// Whether all files are whole.
    pub(super) fn is_whole(&self) -> bool {
        let (whole, all) = self.files.session().whole();
        all > 0 && whole == all
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let files = self.files.session();
        files.end(self.server.folder());
        let ((whole, all), bytes) = (files.whole(), files.received());
        self.server.is_over(self.number, whole as u64, bytes);
        let from = self.shown.from;
        log::info(&match all {
            0 => format!("no file was received from {from}"),
            _ => format!("{whole} of {all} files are whole, {bytes} bytes were received from {from}"),
        });
    }
}
