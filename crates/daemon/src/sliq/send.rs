//! `weir sliq send`: files or standard input, to a host that runs `weir sliq serve`.

use super::args::SendArgs;
use super::connect::{Remote, failed};
use super::drive::{Application, drive};
use crate::failure::Failure;
use crate::frame::status::Board;
use crate::frame::{Common, Daemon, Process, log};
use crate::transfer::{
    Ask, Frame, Heard, INTERRUPTED, MOST_FILES, Outgoing, Report, Sending, Sums, Talk, open, silence,
};
use rustix::event::PollFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use weir_base::{Span, Time};
use weir_circuit::transfer::{Digesting, Message};
use weir_endpoint::Endpoint;
use weir_sliq::StreamParameters;
use weir_sliq::host::Host;

/// Bytes that are kept ready to be written.
const READY: usize = 1 << 20;
/// Bytes of one read of standard input.
const PIECE: usize = 1 << 16;
/// Time between two checks whether the other host is silent.
const LOOK: Span = Span::from_millis(100);
/// Time without a report of an aggregation point after which the user is told.
const UNREPORTED: Span = Span::from_secs(3);

impl Daemon for SendArgs {
    const COMMAND: &'static str = "sliq send";
    const KIND: &'static str = "sender over SLIQ";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        send(self, process)
    }
}

fn send(args: &SendArgs, process: &Process) -> Result<(), Failure> {
    let is_input = args.files.iter().any(|file| file.as_os_str() == "-");
    if is_input && args.files.len() > 1 {
        let help = "send the files by another command";
        return Err(Failure::bad_input("- is standard input, and goes alone", help));
    }
    if args.files.len() > MOST_FILES {
        let message = format!("{} files are too many for one command", args.files.len());
        return Err(Failure::bad_input(message, format!("send {MOST_FILES} at most")));
    }
    let files = if is_input { vec![] } else { open(&args.files)? };
    let (mut remote, mut port) = Remote::new(&args.host, &args.connect)?;
    let board = Board::default();
    remote.begin(process, &board)?;
    let (mut host, mut talk, clock) = (Host::new(None), Talk::default(), remote.clock);
    let data = if is_input { Ok(Data::input(&mut talk)) } else { Data::files(files, &mut talk) };
    let data = data.map_err(|error| failed(&error))?;
    let number = remote.connect(&mut host, StreamParameters::default(), clock.now())?;
    let mut sending = Transfer {
        remote: &remote,
        number,
        talk,
        data,
        buffer: vec![],
        json: args.json,
        process,
        board,
        began: None,
        ended: None,
        report: Report::new(args.json, Time::ZERO),
        look: clock.now() + LOOK,
        teller: silence::Teller::default(),
        looked_for_reports: false,
        over: false,
    };
    drive(&mut port, &mut host, &mut sending, clock).map_err(|error| failed(&error))?;
    sending.ended.unwrap_or_else(|| Err(remote.lost(sending.began.is_some())))
}

/// The data to send.
enum Data {
    Files(Sending),
    Input { stdin: io::Stdin, bytes: u64, digest: Box<Digesting>, ended: bool, stored: bool },
}

impl Data {
    fn files(files: Vec<Outgoing>, talk: &mut Talk) -> io::Result<Data> {
        talk.ask(Ask::Files);
        let files = Sending::new(files);
        files.offers(1).try_for_each(|message| talk.say(&message))?;
        Ok(Data::Files(files))
    }

    fn input(talk: &mut Talk) -> Data {
        talk.ask(Ask::Input);
        Data::Input { stdin: io::stdin(), bytes: 0, digest: Box::default(), ended: false, stored: false }
    }

    /// Makes the next block ready to be written. Returns whether there was one.
    fn next(&self, talk: &mut Talk, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Data::Files(files) = self else { return Ok(false) };
        let Some(place) = files.next() else { return Ok(false) };
        if let Some(header) = files.prepare(place, buffer, |message| talk.say(message))? {
            talk.block(header, buffer);
        }
        Ok(true)
    }

    /// Handles a message of the receiver.
    ///
    /// # Errors
    /// The receiver refuses, or the message is not one that a receiver sends.
    fn hear(&mut self, message: Message) -> Result<Heard, Failure> {
        match (self, message) {
            (Data::Files(files), message) => files.hear(message),
            (_, Message::Refuse { reason }) => Err(Failure::failed(format!("refused: {reason}"))),
            (_, Message::Progress { bytes, after_ns }) => Ok(Heard::Progress(bytes, after_ns)),
            (Data::Input { digest: own, ended: true, stored, .. }, Message::Stored { digest, .. })
                if own.digest() == digest =>
            {
                *stored = true;
                Ok(Heard::Noted)
            }
            _ => Err(Failure::failed("the other host says what a receiver has no reason to say")),
        }
    }

    /// Whether the receiver has all of it.
    fn is_done(&self) -> bool {
        match self {
            Data::Files(files) => files.is_done(),
            Data::Input { stored, .. } => *stored,
        }
    }

    fn sums(&self) -> Sums {
        match self {
            Data::Files(files) => files.sums(),
            Data::Input { bytes, digest, .. } => Sums {
                total: *bytes,
                kept: 0,
                again: 0,
                files: vec![("-".to_owned(), *bytes, digest.digest())],
            },
        }
    }
}

/// A transfer.
struct Transfer<'a> {
    remote: &'a Remote<'a>,
    number: usize,
    talk: Talk,
    data: Data,
    buffer: Vec<u8>,
    json: bool,
    process: &'a Process,
    board: Board,
    /// When the connection opened.
    began: Option<Time>,
    /// How it ended.
    ended: Option<Result<(), Failure>>,
    report: Report,
    look: Time,
    teller: silence::Teller,
    /// Whether it is known that reports come, or the user was told that none do.
    looked_for_reports: bool,
    over: bool,
}

impl Transfer<'_> {
    /// Reads what has arrived, and sends as much as there is room for.
    fn go_on(&mut self, host: &mut Host, now: Time) -> Result<(), Failure> {
        let Some(link) = host.link(self.number) else { return Ok(()) };
        if link.is_open() && self.began.is_none() {
            self.began = Some(now);
            self.report = Report::new(self.json, now);
        }
        self.talk.take(link, |_, _| {});
        while let Some(frame) = self.talk.next().map_err(|error| failed(&error))? {
            let Frame::Message(message) = frame else {
                return Err(Failure::failed("the other host says what a receiver has no reason to say"));
            };
            if let Heard::Progress(bytes, _) = self.data.hear(message)? {
                self.board.change(|status| status.count("received_bytes", bytes));
                self.report.second(bytes, now)?;
            }
            if self.data.is_done() {
                self.report.end(&self.data.sums(), &[], now)?;
                self.ended = Some(Ok(()));
                return Ok(());
            }
        }
        while self.talk.waiting() < READY
            && self.data.next(&mut self.talk, &mut self.buffer).map_err(|error| failed(&error))?
        {}
        if let Some(link) = host.link(self.number) {
            self.talk.write(link, now);
        }
        Ok(())
    }

    /// Tells the user, once, if the connection is of an application and no aggregation point has reported a rate.
    fn look_for_reports(&mut self, host: &mut Host, now: Time) {
        let waited = self.began.is_some_and(|began| now.since(began) >= UNREPORTED);
        if self.looked_for_reports || !waited {
            return;
        }
        self.looked_for_reports = true;
        let mut flowshare = None;
        if let Some(link) = host.link(self.number) {
            link.state(&mut |_, name, value| {
                flowshare = flowshare.or((name == "flowshare_mbps").then_some(value))
            });
        }
        if flowshare == Some(0.0) {
            log::info(&format!(
                "note: no aggregation point has reported a rate for {UNREPORTED}, and without reports the rate is halved every four \
                 round trips; check that --at is within `local` and `local_ports` of the application (`weir ap show`)"
            ));
        }
    }

    /// Tells the user each second that the other host is silent.
    fn tell_silence(&mut self, host: &mut Host, now: Time) {
        let Some(link) = host.link(self.number).filter(|_| self.began.is_some()) else { return };
        let silent = now.since(link.last_heard());
        self.teller.look(self.remote.at, silent, now);
    }

    /// Ends the transfer, with this result unless it has one.
    fn end(&mut self, how: Result<(), Failure>, host: &mut Host) {
        self.ended.get_or_insert(how);
        if let Some(link) = host.link(self.number) {
            link.end();
            host.look_at(self.number);
        }
    }
}

impl Application for Transfer<'_> {
    fn on_moved(&mut self, number: usize, host: &mut Host, now: Time) {
        if number != self.number || self.ended.is_some() {
            return;
        }
        let went = self.go_on(host, now);
        if went.is_err() || self.ended.is_some() {
            self.end(went, host);
        }
    }
    fn on_over(&mut self, _: usize, _: &mut Host, _: Time) {
        self.over = true;
    }
    fn next_timer(&self) -> Time {
        self.look
    }
    fn on_timer(&mut self, host: &mut Host, now: Time) {
        self.look = now + LOOK;
        if self.process.stops() {
            self.end(Err(Failure::interrupted(INTERRUPTED)), host);
            return;
        }
        let silent = host.link(self.number).is_some_and(|link| self.remote.is_silent(link, now));
        if silent {
            let lost = match self.began {
                Some(_) if !matches!(self.data, Data::Input { .. }) => silence::too_long(self.remote.at),
                began => self.remote.lost(began.is_some()),
            };
            self.end(Err(lost), host);
            return;
        }
        self.tell_silence(host, now);
        self.look_for_reports(host, now);
    }
    fn waits_for(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.data {
            Data::Input { stdin, ended: false, .. }
                if self.began.is_some() && self.talk.waiting() < READY =>
            {
                Some((stdin.as_fd(), PollFlags::IN))
            }
            _ => None,
        }
    }
    fn on_ready(&mut self, host: &mut Host, _: Time) {
        let Data::Input { stdin, bytes, digest, ended, .. } = &mut self.data else { return };
        let mut piece = [0; PIECE];
        match rustix::io::read(&*stdin, &mut piece) {
            Ok(read) => {
                self.talk.bytes(&piece[..read]);
                *ended = read == 0;
                *bytes += read as u64;
                if read > 0 {
                    digest.update(&piece[..read]);
                }
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => {
                let why = Failure::failed(format!("cannot read standard input: {error}"));
                self.end(Err(why), host);
            }
        }
        host.look_at(self.number);
    }
    fn is_done(&self) -> bool {
        self.over
    }
}
