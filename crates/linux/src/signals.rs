//! Signals that a thread waits for, instead of a handler that interrupts whatever runs (signal(7), sigwaitinfo(2)).

use std::io;

/// A signal that a daemon obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM or SIGINT: it is to end.
    End,
    /// SIGHUP: it is to read its configuration again; or its terminal is gone.
    HangUp,
}

/// The signals, kept from this thread and from those that it starts from now on.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks the signals. Call it before any other thread starts: that thread would take them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn block() -> io::Result<Signals> {
        // SAFETY: a sigset_t is a plain array of integers, which sigemptyset(3) sets anyway.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointers name a set that lives until the calls return; the numbers are signals.
        let failed = unsafe {
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
        };
        if failed == 0 { Ok(Signals(set)) } else { Err(io::Error::from_raw_os_error(failed)) }
    }

    /// Waits for the next signal.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self) -> io::Result<Signal> {
        loop {
            // SAFETY: the pointer names a set that lives until the call returns; no information is asked for.
            match unsafe { libc::sigwaitinfo(&raw const self.0, std::ptr::null_mut()) } {
                libc::SIGHUP => return Ok(Signal::HangUp),
                -1 => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
                _ => return Ok(Signal::End),
            }
        }
    }
}
