//! Files to one host that runs `weir overlay receive`, over the kernel's TCP.

use super::args::SendArgs;
use super::connection::{Come, Connection};
use crate::failure::Failure;
use crate::frame::Process;
use crate::frame::status::Board;
use crate::sliq::Now;
use crate::transfer::{Ask, Frame, Heard, INTERRUPTED, Outgoing, Report, Sending, Talk, lost, silence};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;
use weir_base::Time;

/// How long the host may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends files to a host.
///
/// # Errors
/// The host does not have all of them.
pub(super) fn send(
    args: &SendArgs,
    files: Vec<Outgoing>,
    to: SocketAddr,
    process: &Process,
    board: Board,
) -> Result<(), Failure> {
    let files = Sending::new(files);
    let stream = TcpStream::connect_timeout(&to, PATIENCE).map_err(|error| unreachable(to, &error))?;
    let mut connection = Connection::new(stream).map_err(|error| lost(&error))?;
    connection.talk.ask(Ask::Files);
    let offered = files.offers(1).try_for_each(|message| connection.talk.say(&message));
    offered.and_then(|()| connection.flush()).map_err(|error| unreachable(to, &error))?;
    let clock = Now::default();
    let report = Report::new(args.json, clock.now()).within(args.deadline);
    let mut following = Following {
        args,
        files: &files,
        to,
        board,
        report,
        heard: clock.now(),
        teller: silence::Teller::default(),
        process,
    };
    let ended = std::thread::scope(|scope| {
        let mut carrying = None;
        let ended = loop {
            match following.go_on(&mut connection, clock.now()) {
                Ok(Goes::On) => {}
                Ok(Goes::Ready) => {
                    // The connection's other half; the blocks wait there until the receiver takes them.
                    let Ok(stream) = connection.stream.try_clone() else {
                        break Err(Failure::failed("too many open files"));
                    };
                    let files = &files;
                    carrying = Some(scope.spawn(move || carry(files, stream)));
                }
                Ok(Goes::Done) => break Ok(()),
                Err(failure) => break Err(failure),
            }
        };
        files.stop();
        let _ = connection.stream.shutdown(Shutdown::Both);
        let carried = carrying.map_or(Ok(()), |carrying| {
            carrying.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        });
        // A file that cannot be read is why the connection ended.
        ended.map_err(|failure| match carried {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => lost(&error),
            _ => failure,
        })
    });
    ended?;
    following.report.end(&files.sums(), &[], clock.now())
}

/// The failure of a transfer that has not begun.
fn unreachable(to: SocketAddr, error: &io::Error) -> Failure {
    let help =
        "run `weir overlay receive FOLDER --from PREFIX` there, with a prefix that has this host's address";
    Failure::bad_input(format!("cannot reach {to}: {error}"), help)
}

/// How a transfer goes.
enum Goes {
    On,
    /// The receiver has told what it has: blocks may be sent.
    Ready,
    Done,
}

/// A transfer to one host as its sender follows it.
struct Following<'a> {
    args: &'a SendArgs,
    files: &'a Sending,
    to: SocketAddr,
    board: Board,
    report: Report,
    /// When the receiver said something last.
    heard: Time,
    teller: silence::Teller,
    process: &'a Process,
}

impl Following<'_> {
    /// Waits for what the receiver says, a tenth of a second at most.
    fn go_on(&mut self, connection: &mut Connection, now: Time) -> Result<Goes, Failure> {
        if self.process.stops() {
            return Err(Failure::interrupted(INTERRUPTED));
        }
        match connection.wait().map_err(|error| self.ended(&error))? {
            Come::Bytes => self.heard = now,
            Come::Nothing => self.look_for_silence(now)?,
            Come::End => return Err(self.ended(&io::ErrorKind::UnexpectedEof.into())),
        }
        let mut goes = Goes::On;
        while let Some(frame) = connection.talk.next().map_err(|error| lost(&error))? {
            let Frame::Message(message) = frame else {
                return Err(Failure::failed("the other host says what a receiver has no reason to say"));
            };
            match self.files.hear(message)? {
                Heard::Ready(_) => goes = Goes::Ready,
                Heard::Progress(bytes, _) => {
                    self.board.change(|status| status.count("received_bytes", bytes));
                    self.report.second(bytes, now)?;
                }
                Heard::Noted | Heard::Token(_) => {}
            }
        }
        Ok(if self.files.is_done() { Goes::Done } else { goes })
    }

    /// The failure of a connection that has ended. The nodes' proxies accept it before the host does.
    fn ended(&self, error: &io::Error) -> Failure {
        if self.files.is_ready() { lost(error) } else { unreachable(self.to, error) }
    }

    fn look_for_silence(&mut self, now: Time) -> Result<(), Failure> {
        let silent = now.since(self.heard);
        if silent > self.args.timeout {
            return Err(silence::too_long(self.to));
        }
        self.teller.look(self.to, silent, now);
        Ok(())
    }
}

/// Sends digests and blocks for as long as there are any.
fn carry(files: &Sending, mut stream: TcpStream) -> io::Result<()> {
    let (mut talk, mut buffer) = (Talk::default(), vec![]);
    let mut next = |talk: &mut Talk| -> io::Result<bool> {
        let Some(place) = files.wait() else { return Ok(false) };
        if let Some(header) = files.prepare(place, &mut buffer, |message| talk.say(message))? {
            talk.block(header, &buffer);
        }
        stream.write_all(talk.to_write())?;
        talk.wrote(talk.waiting());
        Ok(true)
    };
    loop {
        match next(&mut talk) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                // The receiver says why, or hears the end.
                let _ = stream.shutdown(Shutdown::Write);
                return Err(error);
            }
        }
    }
}
