//! Processes that end with the one that started them, with all that they start (fork(2), prctl(2), namespaces(7)).

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Most descriptors that are passed at once.
const MOST_PASSED: usize = 4;
/// Interval between two looks whether processes have ended.
const LOOK_UP: Duration = Duration::from_millis(5);

/// A tick of proc_pid_stat(5): `USER_HZ` is 100 on every architecture that Linux still supports.
const MILLIS_A_TICK: u64 = 10;

/// How long a thread that was joined may be there.
const JOINED: Duration = Duration::from_millis(200);

/// Raises the limit of open files to this process's maximum, as far as the kernel allows it. Returns the limit; `None` if there is none.
pub fn raise_open_files() -> Option<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current
}

/// Which of the two processes this is, after [`fork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forked {
    /// The one that was there, with the process id of the new one.
    Parent(u32),
    /// The new one.
    Child,
}

/// Makes a copy of this process, which must have a single thread. The kernel sends `on_death` to the copy when this process ends,
/// however it ends.
///
/// # Errors
/// The kernel's, or the process has several threads.
pub fn fork(on_death: Signal) -> io::Result<Forked> {
    let begun = Instant::now();
    // The kernel takes a thread away a moment after it was joined.
    while std::fs::read_dir("/proc/self/task")?.count() != 1 {
        if begun.elapsed() > JOINED {
            return Err(io::Error::other("a process with several threads cannot be copied"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let parent = rustix::process::getpid();
    // SAFETY: this process has a single thread, so that no lock is held by a thread that the copy does not have.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            if !die_with(parent, on_death)? {
                std::process::exit(1);
            }
            Ok(Forked::Child)
        }
        child => Ok(Forked::Parent(child.cast_unsigned())),
    }
}

/// Makes the kernel kill this process when the thread that has started it ends, however it ends. `parent` is that thread's process. Call it
/// after [`enter`](crate::enter). False if that process has ended already.
///
/// # Errors
/// The kernel's.
pub fn end_with(parent: u32) -> io::Result<bool> {
    match i32::try_from(parent).ok().and_then(Pid::from_raw) {
        Some(parent) => die_with(parent, Signal::KILL),
        None => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn die_with(parent: Pid, on_death: Signal) -> io::Result<bool> {
    rustix::process::set_parent_process_death_signal(Some(on_death))?;
    // It may have ended before.
    Ok(rustix::process::getppid() == Some(parent))
}

/// From now on processes that this process's children leave behind become its own children.
///
/// # Errors
/// The kernel's.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Makes a command run inside a network namespace, which must be there when the command starts, with no signal blocked, and end when the
/// thread that starts it ends.
pub fn inside(command: &mut Command, namespace: impl AsFd) {
    let namespace: RawFd = namespace.as_fd().as_raw_fd();
    // SAFETY: the functions change the new process alone, and allocate nothing; the set is set by sigemptyset(3) before it is used.
    unsafe {
        command.pre_exec(move || {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            if libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) != 0
                || libc::setns(namespace, libc::CLONE_NEWNET) != 0
                || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) != 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        })
    };
}

/// Gives a command those rights of this process that it would lose as an ordinary user's: in a user namespace a process has them without
/// being root, and what it executes has them only if they are ambient (capabilities(7)).
pub fn keep_rights(command: &mut Command, rights: CapabilitySet) {
    // SAFETY: the functions change the new process alone, and allocate nothing.
    unsafe {
        command.pre_exec(move || {
            let held = capabilities(None)?;
            let kept = held.permitted & rights;
            set_capabilities(None, CapabilitySets { inheritable: held.inheritable | kept, ..held })?;
            for right in kept.iter() {
                configure_capability_in_ambient_set(right, true)?;
            }
            Ok(())
        })
    };
}

/// Gives the first thread of a command real-time scheduling if the system permits it, below that of [`claim_processor`](crate::claim_processor),
/// and exact timers. Threads that it starts are ordinary ones.
pub fn give_processor(command: &mut Command) {
    // SAFETY: the function changes the new process alone, and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            // Without the permission it is an ordinary process.
            let _ = crate::clock::claim_lower();
            Ok(())
        })
    };
}

/// The processor time of a process so far (fields 14 and 15 of proc_pid_stat(5)); zero if there is none.
pub fn time_of(process: u32) -> Duration {
    let of = || {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        Some(Duration::from_millis((ticks()? + ticks()?) * MILLIS_A_TICK))
    };
    of().unwrap_or_default()
}

/// A child that has ended; `None` if there is none that has. Its process id, and its status.
///
/// # Errors
/// There is no child (`ECHILD`).
pub fn ended_child() -> io::Result<Option<(u32, ExitStatus)>> {
    let ended = rustix::process::wait(WaitOptions::NOHANG)?;
    Ok(ended.map(|(pid, status)| (pid.as_raw_pid().cast_unsigned(), ExitStatus::from_raw(status.as_raw()))))
}

/// When a process began, in clock ticks since the machine started (field 22 of proc_pid_stat(5)); `None` if it has ended, or there is
/// none. Of two processes that have had the same process id, it tells which is meant.
pub fn began(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold anything. The state is behind it; an ended process has the state Z or X.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let began = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(began)
}

/// Sends a signal to a process.
///
/// # Errors
/// The kernel's, or the number is none of a signal or of a process.
pub fn kill(process: u32, signal: i32) -> io::Result<()> {
    // SAFETY: numbers alone are passed; 0 and negative numbers, which stand for several processes, are refused.
    let result = match i32::try_from(process) {
        Ok(process) if process > 0 => unsafe { libc::kill(process, signal) },
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends all children, and those that they leave behind: asks them to end, and after `grace` kills them. The process must
/// adopt orphans ([`adopt_orphans`]).
pub fn end_children(grace: Duration) {
    let begun = Instant::now();
    let mut asked = vec![];
    loop {
        match ended_child() {
            Ok(Some(_)) => continue,
            Ok(None) => {}
            Err(_) => return,
        }
        let patient = begun.elapsed() < grace;
        for child in children() {
            let child = child.as_raw_pid().cast_unsigned();
            // A child that cannot be signalled has ended.
            if !patient {
                let _ = kill(child, libc::SIGKILL);
            } else if !asked.contains(&child) {
                asked.push(child);
                let _ = kill(child, libc::SIGTERM);
                let _ = kill(child, libc::SIGCONT);
            }
        }
        std::thread::sleep(LOOK_UP);
    }
}

/// The children of this process (proc_pid_task(5)).
fn children() -> Vec<Pid> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}

/// Passes descriptors to the process at the other end of a Unix socket.
///
/// # Errors
/// The kernel's.
pub fn pass(socket: BorrowedFd<'_>, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_PASSED))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes the descriptors that the process at the other end of a Unix socket passes.
///
/// # Errors
/// The kernel's, or the other end was closed.
pub fn take_passed(socket: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_PASSED))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let taken = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if taken.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(rights.flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_beginning_until_it_has_ended() {
        let own = began(std::process::id()).unwrap();
        assert_eq!(began(std::process::id()), Some(own));
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        assert!(began(child.id()).unwrap() >= own);
        child.kill().unwrap();
        let begun = Instant::now();
        // It has ended, and is not waited for.
        while began(child.id()).is_some() {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(LOOK_UP);
        }
        child.wait().unwrap();
        assert_eq!(began(child.id()), None);
    }
}
