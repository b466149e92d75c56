//! Questions that processes of one host ask each other: a process that answers has an abstract Unix socket (unix(7)). The socket's name
//! belongs to the network namespace, only one process can have it, and it goes with that process. Root and the same user are answered alone.

use crate::clock::timespec_of;
use crate::privileges::is_trusted;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;
use weir_base::Span;

/// How long a question and its answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two looks whether there is more to answer.
const LOOK: Span = Span::from_millis(50);
/// The longest question, and the longest answer, in bytes.
const LONGEST_QUESTION: u64 = 8 << 10;
const LONGEST_ANSWER: u64 = 4 << 20;

/// The socket of a process that answers.
#[derive(Debug)]
pub struct Listener(UnixListener);

impl Listener {
    /// Takes a name.
    ///
    /// # Errors
    /// Another process has it ([`io::ErrorKind::AddrInUse`]), or it is too long.
    pub fn open(name: &str) -> io::Result<Listener> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Listener(listener))
    }

    /// Answers until it is over, on the calling thread. `answer` gets the question, or `None` from another user; that user gets an answer
    /// all the same.
    pub fn serve(&self, is_over: impl Fn() -> bool, mut answer: impl FnMut(Option<&[u8]>) -> Vec<u8>) {
        while !is_over() {
            let mut socket = [PollFd::new(&self.0, PollFlags::IN)];
            let _ = poll(&mut socket, Some(&timespec_of(LOOK)));
            while let Ok((stream, _)) = self.0.accept() {
                // Who does not wait for the answer gets none.
                let _ = respond(stream, &mut answer);
            }
        }
    }
}

fn respond(mut stream: UnixStream, answer: &mut impl FnMut(Option<&[u8]>) -> Vec<u8>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let answer = if is_trusted(&stream) {
        let mut question = vec![];
        (&stream).take(LONGEST_QUESTION).read_to_end(&mut question)?;
        answer(Some(&question))
    } else {
        answer(None)
    };
    stream.write_all(&answer)
}

/// Asks the process that has this name.
///
/// # Errors
/// No process has it ([`io::ErrorKind::ConnectionRefused`]), it does not answer in time, or it is another user's.
pub fn ask(name: &str, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    if !is_trusted(&stream) {
        return Err(io::Error::other("it belongs to another user"));
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(question)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = vec![];
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    Ok(answer)
}

/// What follows this prefix in the names that processes of this network namespace have, in order.
pub fn names(prefix: &str) -> Vec<String> {
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    // Abstract names begin with @ there, listening sockets have the flag 00010000 (proc(5)).
    let of = |line: &str| {
        let listens = line.split_whitespace().nth(3) == Some("00010000");
        let (_, name) = line.split_once(&format!(" @{prefix}"))?;
        listens.then(|| name.to_owned())
    };
    let mut names: Vec<String> = sockets.lines().filter_map(of).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_question_is_answered_under_a_name_that_only_one_process_has() {
        let name = format!("weir/question-test:{}", std::process::id());
        let listener = Listener::open(&name).unwrap();
        assert_eq!(Listener::open(&name).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(names("weir/question-test:").contains(&std::process::id().to_string()));
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let thread = std::thread::spawn(move || {
            let is_over = || ends.load(Ordering::Acquire);
            listener.serve(is_over, |question| question.map(<[u8]>::to_ascii_uppercase).unwrap_or_default());
        });
        assert_eq!(ask(&name, b"who is there").unwrap(), b"WHO IS THERE");
        over.store(true, Ordering::Release);
        thread.join().unwrap();
        assert_eq!(ask(&name, b"").unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
