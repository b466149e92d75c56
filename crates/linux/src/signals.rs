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

/// Signals that are kept from this thread and from those that it starts from now on.
pub struct Signals(libc::sigset_t);

/// A signal that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// Its number.
    pub number: i32,
    /// The process that has sent it; `None` if the kernel has, for a key at the terminal for example.
    pub sender: Option<u32>,
}

impl Signals {
    /// Blocks the signals of daemons. Call it before any other thread starts: that thread would take them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn block() -> io::Result<Signals> {
        Signals::block_these(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
    }

    /// Blocks these signals. Call it before any other thread starts: that thread would take them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn block_these(numbers: &[i32]) -> io::Result<Signals> {
        // SAFETY: a sigset_t is a plain array of integers, which sigemptyset(3) sets anyway.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointers name a set that lives until the calls return; a number that is no signal's is refused.
        let failed = unsafe {
            libc::sigemptyset(&raw mut set);
            for number in numbers {
                libc::sigaddset(&raw mut set, *number);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
        };
        if failed == 0 { Ok(Signals(set)) } else { Err(io::Error::from_raw_os_error(failed)) }
    }

    /// Waits for the next signal that a daemon obeys.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self) -> io::Result<Signal> {
        let Came { number, .. } = self.take()?;
        Ok(if number == libc::SIGHUP { Signal::HangUp } else { Signal::End })
    }

    /// Waits for the next signal.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take(&self) -> io::Result<Came> {
        loop {
            // SAFETY: a siginfo_t is plain data for which all zeros is a valid value.
            let mut about: libc::siginfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: the pointers name a set and a place for information that live until the call returns.
            match unsafe { libc::sigwaitinfo(&raw const self.0, &raw mut about) } {
                -1 => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
                number => {
                    // Codes of signals that processes send are zero or negative (sigaction(2)).
                    // SAFETY: such a signal's information names its sender.
                    let sender = (about.si_code <= 0).then(|| unsafe { about.si_pid() }.cast_unsigned());
                    return Ok(Came { number, sender });
                }
            }
        }
    }
}
