//! The links of a live run as other processes see and change them (`weir link`). Each run answers at an abstract Unix socket (unix(7)):
//! it belongs to the network namespace that weir was started in, and goes with the process. Only the same user and root are answered.

mod links;
mod request;

pub(crate) use links::Links;
pub use request::Request;

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_base::Span;
use weir_linux::clock::timespec_of;
use weir_linux::privileges::is_trusted;

/// Beginning of the sockets' names; the process id follows, and a number if the process has several runs.
const PREFIX: &str = "weir/link:";
/// How long a request and its answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two looks whether the run is over.
const LOOK_UP: Span = Span::from_millis(50);
/// The longest request, and the longest answer, in bytes.
const LONGEST_REQUEST: u64 = 8 << 10;
const LONGEST_ANSWER: u64 = 4 << 20;
/// Most runs of one process at once.
const MOST_RUNS: u32 = 64;

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{PREFIX}{name}"))
}

/// The socket at which a run answers.
#[derive(Debug)]
pub(crate) struct Listener(UnixListener);

impl Listener {
    /// Takes a name for a run of this process.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open() -> io::Result<Listener> {
        let process = std::process::id();
        let names = (2..=MOST_RUNS).map(|number| format!("{process}.{number}"));
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for name in std::iter::once(process.to_string()).chain(names) {
            match UnixListener::bind_addr(&address(&name)?) {
                Ok(listener) => {
                    listener.set_nonblocking(true)?;
                    return Ok(Listener(listener));
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Answers until the run is over. To be called on a thread of its own.
    pub(crate) fn serve(&self, links: &mut Links<'_>, over: &AtomicBool) {
        while !over.load(Ordering::Acquire) {
            let mut socket = [PollFd::new(&self.0, PollFlags::IN)];
            let _ = poll(&mut socket, Some(&timespec_of(LOOK_UP)));
            while let Ok((stream, _)) = self.0.accept() {
                // Who does not wait for the answer gets none.
                let _ = answer(stream, links);
            }
        }
    }
}

fn answer(mut stream: UnixStream, links: &mut Links<'_>) -> io::Result<()> {
    let answer = if is_trusted(&stream) {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut request = vec![];
        (&stream).take(LONGEST_REQUEST).read_to_end(&mut request)?;
        match Request::parse(&request) {
            Ok(request) => links.obey(&request),
            Err(why) => refusal(&why, "`weir link --help` shows what can be asked"),
        }
    } else {
        refusal(
            "these links belong to another user",
            "run the command as the user who started the run, or as root",
        )
    };
    stream.write_all(&serde_json::to_vec(&answer)?)
}

/// The answer to a request that is not obeyed.
fn refusal(error: &str, help: &str) -> Value {
    json!({ "error": error, "help": help })
}

/// The runs whose links can be asked for in this network namespace, by name.
pub fn running() -> Vec<String> {
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    // Abstract names begin with @ there, listening sockets have the flag 00010000 (proc(5)).
    let of = |line: &str| {
        let listens = line.split_whitespace().nth(3) == Some("00010000");
        let (_, name) = line.split_once(&format!(" @{PREFIX}"))?;
        listens.then(|| name.to_owned())
    };
    let mut names: Vec<String> = sockets.lines().filter_map(of).collect();
    names.sort();
    names
}

/// Asks a run; the answer is a table, with `error` and `help` if the request was refused.
///
/// # Errors
/// The run has ended, does not answer in time, or is another user's.
pub fn ask(name: &str, request: &Request) -> io::Result<Value> {
    let mut stream = UnixStream::connect_addr(&address(name)?)?;
    if !is_trusted(&stream) {
        return Err(io::Error::other("it belongs to another user"));
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.to_string().as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut text = vec![];
    stream.take(LONGEST_ANSWER).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
