//! The process that starts a wrapped program and ends all that it has started: the keeper. It is a copy of weir, made while weir has a single
//! thread, so that the program is the terminal's as it would be without weir: the same process group, user and directory.
//!
//! Processes that the program leaves behind become the keeper's (a subreaper, prctl(2)). If weir dies, however it dies, the kernel
//! sends the keeper a signal, and it kills them all; if the keeper dies, the kernel kills the program.
//!
//! Signals that weir gets are the program's: weir sends them to the keeper, which knows the program from its first moment.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_linux::process::{
    Forked, adopt_orphans, end_children, ended_child, fork, inside, kill, pass, take_passed,
};
use weir_linux::signals::{Came, Signals};

/// How long processes that the program has left behind have to end by themselves.
const GRACE: Duration = Duration::from_secs(1);
/// How long the command at the far end has until it listens.
const READY: Duration = Duration::from_secs(2);
/// Interval between two looks.
const LOOK_UP: Duration = Duration::from_millis(5);

/// A program to be wrapped.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments; never empty.
    pub words: Vec<OsString>,
    /// A command for the far end, which a shell runs; it is ended after the program.
    pub serve: Option<OsString>,
    /// Ports of the far end that this host answers; no sign that the command there listens.
    pub forward: Vec<u16>,
    /// The addresses of the far end, which the program finds in its environment.
    pub far_end: Vec<IpAddr>,
    /// What makes the terminal at standard error whole again if weir dies; `None` if weir draws nothing there.
    pub restoring: Option<Vec<u8>>,
}

/// The keeper, as weir sees it.
#[derive(Debug)]
pub struct Keeper {
    process: u32,
    socket: UnixStream,
}

/// What tells the keeper to end, and all that the program has started, at once. Nobody sends it to a program.
const END: rustix::process::Signal = rustix::process::Signal::POWER;
/// Signals that weir passes on to the program when another process has sent them. Those of a key at the terminal reach the program
/// by themselves.
const PASSED_ON: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

impl Keeper {
    /// Makes the keeper of a program, which does not start yet. From now on this process obeys no signal of those that it passes on.
    ///
    /// # Errors
    /// The kernel's, or this process has several threads.
    pub fn start(program: Program) -> io::Result<(Keeper, Signals)> {
        let (socket, other) = UnixStream::pair()?;
        let signals = Signals::block_these(&PASSED_ON)?;
        match fork(END)? {
            Forked::Parent(process) => Ok((Keeper { process, socket }, signals)),
            Forked::Child => {
                drop(socket);
                // Whom to tell of a failure here is weir, which finds the socket closed.
                let told = keep(&program, &other);
                if let Some(bytes) = program.restoring.as_deref().filter(|_| !matches!(told, Ok(true))) {
                    let _ = io::stderr().write_all(bytes);
                }
                std::process::exit(0)
            }
        }
    }

    /// Starts the program in a network namespace, and the command at the far end in the other one.
    ///
    /// # Errors
    /// The keeper's or the kernel's; the program cannot be run.
    pub(super) fn begin(&self, near: BorrowedFd<'_>, far: BorrowedFd<'_>) -> io::Result<()> {
        pass(self.socket.as_fd(), &[near, far])
    }

    /// Waits until the program has ended, and all that it has started. `over` says that this must be now. The inner error says why
    /// the program could not be run.
    ///
    /// # Errors
    /// The keeper has died.
    pub(super) fn wait(&self, over: &AtomicBool) -> io::Result<io::Result<ExitStatus>> {
        self.socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        let mut lines = BufReader::new(&self.socket);
        let mut line = String::new();
        loop {
            match lines.read_line(&mut line) {
                Ok(0) => return Err(io::Error::other("the process that kept it was killed")),
                Ok(_) if line.ends_with('\n') => {
                    let number = line.get(2..).and_then(|text| text.trim().parse::<i32>().ok()).unwrap_or(0);
                    return Ok(match line.as_bytes()[0] {
                        b'f' => Err(io::Error::from_raw_os_error(number)),
                        _ => Ok(ExitStatus::from_raw(number)),
                    });
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if over.load(Ordering::Acquire) {
                return Err(io::Error::other("the network has stopped"));
            }
        }
    }

    /// Ends the keeper, with all that the program has started, and waits for it.
    pub(super) fn end(&self) {
        let _ = kill(self.process, END.as_raw());
        while ended_child().is_ok_and(|ended| ended.is_none()) {
            std::thread::sleep(LOOK_UP);
        }
    }

    /// Passes signals on to the program, until the process ends. A program that does not run yet gets them when it does.
    pub fn pass_on(&self, signals: &Signals) {
        while let Ok(Came { number, sender }) = signals.take() {
            if sender.is_some() {
                let _ = kill(self.process, number);
            }
        }
    }
}

/// The keeper's work. What it tells weir is a line of a letter and a number: `f` the program cannot be run (the error's number), `e` it has
/// ended (its status, as wait(2) gives it). Returns whether weir was told.
fn keep(program: &Program, mut weir: &UnixStream) -> io::Result<bool> {
    adopt_orphans()?;
    let signals = Signals::block_these(&[&PASSED_ON[..], &[libc::SIGCHLD, END.as_raw()]].concat())?;
    let passed = take_passed(weir.as_fd())?;
    let [near, far] = &passed[..] else { return Err(io::ErrorKind::InvalidData.into()) };
    let ended = live(program, near, far, &signals);
    // Without weir there is no network any more, and nothing to wait for.
    end_children(if matches!(ended, Ok(Some(_))) { GRACE } else { Duration::ZERO });
    let told = ended?.map(|told| writeln!(weir, "{told}")).transpose()?;
    Ok(told.is_some())
}

/// Starts the command at the far end and the program, and waits for the program's end. Returns what weir is to be told of it; `None` if the
/// keeper is to end first.
fn live(program: &Program, near: &OwnedFd, far: &OwnedFd, signals: &Signals) -> io::Result<Option<String>> {
    if let Some(text) = &program.serve {
        serve(program, text, far)?;
    }
    let begun = match command(program, near).spawn() {
        Ok(child) => child.id(),
        Err(error) => return Ok(Some(format!("f {}", error.raw_os_error().unwrap_or(libc::EINVAL)))),
    };
    Ok(wait_for(begun, signals)?.map(|status| format!("e {}", status.into_raw())))
}

/// Waits for the end of a child, and passes on to it what weir passes on; `None` if the keeper is to end first.
fn wait_for(child: u32, signals: &Signals) -> io::Result<Option<ExitStatus>> {
    let weir = rustix::process::getppid().map(|weir| weir.as_raw_nonzero().get().cast_unsigned());
    loop {
        match signals.take()? {
            Came { number, .. } if number == END.as_raw() => return Ok(None),
            Came { number: libc::SIGCHLD, .. } => {
                while let Ok(Some((process, status))) = ended_child() {
                    if process == child {
                        return Ok(Some(status));
                    }
                }
            }
            // What another process sends to the whole group, the program gets by itself.
            Came { number, sender } if sender == weir => drop(kill(child, number)),
            Came { .. } => {}
        }
    }
}

/// The program, in the namespace near by.
fn command(program: &Program, near: &OwnedFd) -> Command {
    let mut command = Command::new(&program.words[0]);
    command.args(&program.words[1..]);
    environment(&mut command, program);
    inside(&mut command, near);
    command
}

/// Tells a command where the far end is.
fn environment(command: &mut Command, program: &Program) {
    for address in &program.far_end {
        let name = if address.is_ipv4() { "WEIR_FAR_END" } else { "WEIR_FAR_END_V6" };
        command.env(name, address.to_string());
    }
}

/// Starts the command at the far end, and waits until it listens or has ended. Its output goes to standard error, so that it is not
/// taken for the program's.
fn serve(program: &Program, text: &OsString, far: &OwnedFd) -> io::Result<()> {
    let mut command = Command::new("/bin/sh");
    let output = Stdio::from(io::stderr().as_fd().try_clone_to_owned()?);
    command.arg("-c").arg(text).stdin(Stdio::null()).stdout(output);
    environment(&mut command, program);
    inside(&mut command, far);
    let server = command.spawn()?.id();
    let (begun, weir) = (Instant::now(), rustix::process::getppid());
    let has_ended = || std::fs::metadata(format!("/proc/{server}/net")).is_err();
    // A process whose parent has ended gets another one.
    while begun.elapsed() < READY && !has_ended() && rustix::process::getppid() == weir {
        if listens(server, &program.forward) {
            break;
        }
        std::thread::sleep(LOOK_UP);
    }
    Ok(())
}

/// Whether a socket in the network namespace of a process listens at another port than these (proc(5)): TCP in state 0A, or any of UDP.
fn listens(process: u32, others: &[u16]) -> bool {
    let table = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
        text.lines().skip(1).filter_map(|line| socket(line, others)).collect::<Vec<_>>()
    };
    ["tcp", "tcp6"].iter().flat_map(|name| table(name)).any(|state| state == "0A")
        || ["udp", "udp6"].iter().any(|name| !table(name).is_empty())
}

/// The state of a socket in such a table, unless its port is one of these.
fn socket(line: &str, others: &[u16]) -> Option<String> {
    let mut fields = line.split_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    let is_another = u16::from_str_radix(port, 16).is_ok_and(|port| !others.contains(&port));
    is_another.then(|| state.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_table_has_a_port_and_a_state() {
        let line =
            "   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234";
        assert_eq!(socket(line, &[]), Some("0A".into()));
        assert_eq!(socket(line, &[80]), Some("0A".into()));
        assert_eq!(socket(line, &[80, 8080]), None);
        assert_eq!(socket("", &[]), None);
    }
}
