//! `weir sliq serve`: receives files into a folder, a stream to standard output, or measurements, from hosts whose keys are allowed.

use super::args::ServeArgs;
use super::connect::{failed, listen};
use super::drive::{Application, Now as Clock, drive};
use super::frames::STREAM;
use super::received::{Counting, Output, stamp};
use crate::failure::Failure;
use crate::frame::status::{Board, Part, Status};
use crate::frame::{Common, Daemon, Process, log};
use crate::output::{print, say};
use crate::transfer::{Ask, Files, Folder, Frame, PublicKey, STOPPED, Talk, UNKNOWN, guard};
use rustix::event::PollFlags;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use weir_base::{Span, Time};
use weir_circuit::transfer::Message;
use weir_endpoint::Endpoint;
use weir_sliq::host::Host;
use weir_sliq::link::Link;

/// A connection ends after this long without a packet from the peer.
const SILENCE: Span = Span::from_secs(60);
/// Time between two reports to senders of the bytes received.
const PERIOD: Span = Span::from_secs(1);
/// Time between two checks whether it is to stop.
const LOOK: Span = Span::from_millis(100);

impl Daemon for ServeArgs {
    const COMMAND: &'static str = "sliq serve";
    const KIND: &'static str = "receiver over SLIQ";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        serve(self, process)
    }
}

fn serve(args: &ServeArgs, process: &Process) -> Result<(), Failure> {
    let what = match &args.into {
        Some(path) => {
            let folder = Folder::open(path, args.quota.map(|quota| quota.get())).map_err(|error| {
                let help = "--into names a folder for received files";
                Failure::bad_input(format!("{}: {error}", path.display()), help)
            })?;
            Receives::Files(folder)
        }
        None if args.stdout => Receives::Output(Output::default()),
        None => Receives::Perf,
    };
    let (mut port, mut host, public) = listen(args)?;
    let at = port.address().to_string();
    process.name(&at)?;
    let (board, now) = (Board::default(), Arc::new(Mutex::new(None)));
    let to_serve = now.clone();
    process.on_hang_up(move |args: ServeArgs| {
        *guard(&to_serve) = Some((args.allow, args.quota.map(|quota| quota.get())));
        Ok(())
    });
    let shown = board.clone();
    process.begin(move || shown.read())?;
    let key = public.map_or_else(|| "plain".to_owned(), |key| format!("key {key}"));
    // With --stdout, standard output is for the stream.
    let line = format!("listening on {at}, {key}");
    if args.stdout {
        say(&line)
    } else {
        print(&format!("{line}\n"))?
    }
    let mut serving = Serving {
        what,
        sessions: BTreeMap::new(),
        next: Time::ZERO,
        look: Time::ZERO,
        done: None,
        process,
        now,
        at,
        board,
        totals: (0, 0),
    };
    drive(&mut port, &mut host, &mut serving, Clock::default()).map_err(|error| failed(&error))?;
    serving.done.unwrap_or(Ok(()))
}

/// What the command receives.
enum Receives {
    Files(Folder),
    Output(Output),
    Perf,
}

/// A connection, and the session that it asked for.
struct Session {
    from: String,
    talk: Talk,
    asked: Asked,
    /// Whether it was refused; nothing more is read from it then.
    refused: bool,
}

enum Asked {
    Nothing,
    Files(Files),
    Output,
    Perf(Box<Counting>),
}

/// The keys and the quota as the configuration says them now.
type Now = Arc<Mutex<Option<(Vec<PublicKey>, Option<u64>)>>>;

struct Serving<'a> {
    what: Receives,
    sessions: BTreeMap<usize, Session>,
    /// When senders get their next report.
    next: Time,
    /// When it next looks whether it is to stop.
    look: Time,
    /// The command's result; `None` while it runs.
    done: Option<Result<(), Failure>>,
    process: &'a Process,
    now: Now,
    /// Where it listens.
    at: String,
    board: Board,
    /// Whole files and bytes of the sessions that are over.
    totals: (u64, u64),
}

impl Session {
    /// Reads what has arrived, and acts on it. `others` are the other connections.
    fn go_on(
        &mut self,
        what: &mut Receives,
        others: &mut BTreeMap<usize, Session>,
        (number, link): (usize, &mut Link),
        now: Time,
    ) -> io::Result<()> {
        if let Asked::Perf(counting) = &mut self.asked {
            link.read(&mut |stream, read| counting.take(stream, read.bytes, stamp(read.head), now));
            counting.go_on(link.finished(), &mut self.talk, now);
        } else if !self.is_held_back(what) {
            // Messages may arrive together with the frame that asks to count them.
            let mut early = vec![];
            self.talk.take(link, |stream, read| early.push((stream, read.bytes, stamp(read.head))));
            while let Some(frame) = self.talk.next()? {
                if let Frame::Message(Message::Offer { name, .. }) = &frame
                    && let Receives::Files(folder) = &*what
                {
                    others.values_mut().for_each(|other| other.yield_to(&self.from, name, folder));
                }
                for message in self.asked.hear(frame, what, number)? {
                    self.talk.say(&message)?;
                }
                if let Asked::Perf(counting) = &mut self.asked {
                    let rest = self.talk.rest() as u64;
                    early.push((STREAM, rest, None));
                    let some = early.iter().filter(|(_, bytes, _)| *bytes > 0);
                    some.for_each(|(stream, bytes, sent)| counting.take(*stream, *bytes, *sent, now));
                    counting.go_on(link.finished(), &mut self.talk, now);
                    break;
                }
            }
        }
        self.talk.write(link, now);
        Ok(())
    }

    /// Whether the sender is held back until the reader of standard output has read more.
    fn is_held_back(&self, what: &Receives) -> bool {
        let full = if let Receives::Output(output) = what { output.is_full() } else { false };
        full && matches!(self.asked, Asked::Output)
    }

    /// Ends this session if it is an earlier attempt of the same sender at a file that the sender offers again.
    fn yield_to(&mut self, from: &str, name: &str, folder: &Folder) {
        if let Asked::Files(files) = &mut self.asked
            && self.from == from
            && files.session().is_receiving(name)
        {
            files.session().end(folder);
            (self.asked, self.refused) = (Asked::Nothing, true);
            // The message fits a frame; a sender that is still there receives it.
            let reason = format!("{name:?} is sent again by a later command");
            let _ = self.talk.say(&Message::Refuse { reason });
        }
    }

    /// Refuses the session, and tells the sender why.
    fn refuse(&mut self, error: &io::Error, number: usize, host: &mut Host, now: Time) {
        self.refused = true;
        host.look_at(number);
        log::error(&format!("weir: {}: {error}", self.from));
        let told = self.talk.say(&Message::Refuse { reason: error.to_string() });
        if let (Ok(()), Some(link)) = (told, host.link(number)) {
            self.talk.write(link, now);
        }
    }
}

impl Asked {
    /// Handles a frame. Returns the answers.
    fn hear(&mut self, frame: Frame<'_>, what: &mut Receives, number: usize) -> io::Result<Vec<Message>> {
        match (self, frame, what) {
            (asked @ Asked::Nothing, Frame::Ask(ask), what) => {
                *asked = what.begin(ask, number)?;
                Ok(vec![])
            }
            (Asked::Files(files), Frame::Message(message), Receives::Files(folder)) => {
                files.hear(message, folder)
            }
            (Asked::Files(files), Frame::Block(header, payload), Receives::Files(folder)) => {
                files.block(header, payload, folder)
            }
            (Asked::Output, Frame::Bytes(bytes), Receives::Output(output)) => {
                output.take(bytes);
                Ok(vec![])
            }
            _ => Err(io::Error::other("it says what a sender has no reason to say")),
        }
    }
}

impl Receives {
    /// Begins the session that a connection asks for.
    fn begin(&mut self, ask: Ask, number: usize) -> io::Result<Asked> {
        match (self, ask) {
            (Receives::Files(_), Ask::Files) => Ok(Asked::Files(Files::default())),
            (Receives::Perf, Ask::Perf) => Ok(Asked::Perf(Box::default())),
            (Receives::Output(output), Ask::Input) => {
                output.begin(number)?;
                Ok(Asked::Output)
            }
            (Receives::Files(_), _) => {
                Err(io::Error::other("files are received here: `weir sliq send FILE` sends one"))
            }
            (Receives::Output(_), _) => {
                Err(io::Error::other("a stream is received here: `weir sliq send -` sends one"))
            }
            (Receives::Perf, _) => Err(io::Error::other("only `weir sliq perf` is answered here")),
        }
    }
}

impl Serving<'_> {
    /// Continues a session, or refuses it if that fails.
    fn go_on(&mut self, number: usize, host: &mut Host, now: Time) {
        let from = || {
            let key = host.key(number).map(|key| PublicKey(key).to_string());
            key.or_else(|| Some(host.peer(number)?.to_string())).unwrap_or_default()
        };
        let mut session = self.sessions.remove(&number).unwrap_or_else(|| Session {
            from: {
                log::debug(&format!("{} has connected", from()));
                from()
            },
            talk: Talk::default(),
            asked: Asked::Nothing,
            refused: false,
        });
        let went = match host.link(number) {
            Some(link) if session.refused => {
                session.talk.write(link, now);
                Ok(())
            }
            Some(link) => session.go_on(&mut self.what, &mut self.sessions, (number, link), now),
            None => Ok(()),
        };
        if let Err(error) = went {
            session.refuse(&error, number, host, now);
        }
        self.sessions.insert(number, session);
    }

    /// Ends all sessions if it is to stop, and those whose keys the configuration no longer allows.
    fn obey(&mut self, host: &mut Host, now: Time) {
        if self.process.stops() {
            for (number, session) in &mut self.sessions {
                session.refuse(&io::Error::other(STOPPED), *number, host, now);
            }
            self.done.get_or_insert(Ok(()));
        }
        let Some((allowed, quota)) = guard(&self.now).take() else { return };
        host.allow(&allowed.iter().map(|key| key.0).collect::<Vec<_>>());
        if let Receives::Files(folder) = &self.what {
            folder.set_quota(quota);
        }
        for (number, session) in &mut self.sessions {
            if host.key(*number).is_some_and(|key| !allowed.contains(&PublicKey(key))) {
                session.refuse(&io::Error::other(UNKNOWN), *number, host, now);
            }
        }
    }

    /// Brings the status up to date.
    fn show(&self) {
        let (mut whole, mut bytes) = self.totals;
        let mut parts = vec![];
        for session in self.sessions.values() {
            let received = match (&session.asked, &self.what) {
                (Asked::Files(files), _) => {
                    whole += files.session().whole().0 as u64;
                    files.session().received()
                }
                (Asked::Output, Receives::Output(output)) => output.written(),
                _ => 0,
            };
            bytes += received;
            parts.push(Part::session(&session.from, received));
        }
        let status = Status::of_transfer(&self.at, [("whole_files", whole), ("received_bytes", bytes)]);
        self.board.change(|shown| *shown = Status { parts, ..status });
    }

    /// Tells senders how much was received, and ends connections whose peers have been silent for too long.
    fn tell_progress(&mut self, host: &mut Host, now: Time) {
        for (number, session) in &mut self.sessions {
            if let Some(link) = host.link(*number).filter(|link| now.since(link.last_heard()) > SILENCE) {
                link.end();
                host.look_at(*number);
                continue;
            }
            let bytes = match (&session.asked, &self.what) {
                (Asked::Files(files), _) => files.session().received(),
                (Asked::Output, Receives::Output(output)) => output.written(),
                _ => continue,
            };
            if session.talk.say(&Message::Progress { bytes, after_ns: None }).is_ok() {
                host.look_at(*number);
            }
        }
    }
}

impl Application for Serving<'_> {
    fn on_moved(&mut self, number: usize, host: &mut Host, now: Time) {
        // A peer proves its identity with its first sealed packet.
        if host.link(number).is_some_and(|link| link.is_open()) {
            self.go_on(number, host, now);
        }
    }

    fn on_over(&mut self, number: usize, _: &mut Host, _: Time) {
        let Some(session) = self.sessions.remove(&number) else { return };
        match (session.asked, &mut self.what) {
            (Asked::Files(files), Receives::Files(folder)) => {
                let files = files.session();
                files.end(folder);
                let (whole, all) = files.whole();
                self.totals = (self.totals.0 + whole as u64, self.totals.1 + files.received());
                log::info(&match all {
                    0 => format!("no file was received from {}", session.from),
                    _ => format!(
                        "{whole} of {all} files are whole, {} bytes were received from {}",
                        files.received(),
                        session.from
                    ),
                });
            }
            (Asked::Output, Receives::Output(output)) => {
                let end = if output.is_whole() {
                    Ok(())
                } else {
                    Err(Failure::failed(format!("the stream from {} is not whole", session.from)))
                };
                self.done.get_or_insert(end);
            }
            _ => {}
        }
    }

    fn next_timer(&self) -> Time {
        let left = self.sessions.values().any(
            |session| matches!(&session.asked, Asked::Files(files) if files.looks() && !session.refused),
        );
        if left { Time::ZERO } else { self.next.min(self.look) }
    }

    fn on_timer(&mut self, host: &mut Host, now: Time) {
        if now >= self.look {
            self.look = now + LOOK;
            self.obey(host, now);
        }
        if now >= self.next {
            self.next = now + PERIOD;
            self.tell_progress(host, now);
            self.show();
        }
        // What earlier attempts have left is read block by block, so that other connections go on.
        let Receives::Files(folder) = &self.what else { return };
        for (number, session) in &mut self.sessions {
            let Asked::Files(files) = &mut session.asked else { continue };
            if !files.looks() || session.refused {
                continue;
            }
            let told = files
                .look(folder)
                .and_then(|messages| messages.iter().try_for_each(|message| session.talk.say(message)));
            match told {
                Ok(()) => host.look_at(*number),
                Err(error) => session.refuse(&error, *number, host, now),
            }
        }
    }

    fn waits_for(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.what {
            Receives::Output(output) if output.waits() => Some((output.stdout.as_fd(), PollFlags::OUT)),
            _ => None,
        }
    }

    fn on_ready(&mut self, host: &mut Host, now: Time) {
        let Receives::Output(output) = &mut self.what else { return };
        let Some(number) = output.session() else { return };
        let written = output.write();
        if let (Some(session), Ok(Some(stored))) = (self.sessions.get_mut(&number), &written) {
            // The message fits a frame.
            let _ = session.talk.say(stored);
        }
        if let Err(error) = written {
            if let Some(session) = self.sessions.get_mut(&number) {
                session.refuse(&error, number, host, now);
            }
            self.done.get_or_insert(Err(Failure::failed(format!("cannot write: {error}"))));
        }
        host.look_at(number);
    }

    fn is_done(&self) -> bool {
        self.done.is_some()
    }
}
