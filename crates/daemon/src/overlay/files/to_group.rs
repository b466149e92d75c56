//! `weir overlay send` to a multicast group. One thread sends datagrams as [`weir_circuit::group::Sender`] says. Each member has a connection, and
//! two threads that read and write it.

use super::args::SendArgs;
use super::ends::Ends;
use super::members::{Event, Members};
use crate::failure::Failure;
use crate::frame::status::Board;
use crate::frame::{Process, log};
use crate::sliq::Now;
use crate::transfer::{INTERRUPTED, Outgoing, Report, Sums, lost, same_command, silence};
use rustix::io::Errno;
use serde_json::json;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;
use weir_base::{Span, Time};
use weir_circuit::group::{Datagram, FRAGMENT, Next, Quiet, Sender};
use weir_circuit::transfer::{BLOCK, Digest, Message, length_of};

/// The longest wait for receivers, unless the arguments say otherwise: for those that there are, and for a number of them.
const WAIT: Span = Span::from_secs(3);
const WAIT_FOR_NUMBER: Span = Span::from_secs(30);
/// Time between two looks whether a receiver is silent and whether it is to stop.
const LOOK: Span = Span::from_millis(100);
/// Time between two lines of the report.
const SECOND: Span = Span::from_secs(1);

/// Sends files to a group.
///
/// # Errors
/// Not all receivers have all files.
pub(super) fn send(
    args: &SendArgs,
    files: Vec<Outgoing>,
    group: SocketAddrV4,
    process: &Process,
    board: Board,
) -> Result<(), Failure> {
    let session = u64::from_be_bytes(super::super::drawn()?);
    let total = files.iter().map(|file| file.bytes).sum();
    let cannot = |error: io::Error| {
        let help = "the node of this host must run, and its file must list the group in `groups`";
        Failure::bad_input(format!("cannot send to {group}: {error}"), help)
    };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(cannot)?;
    socket.connect(group).map_err(cannot)?;
    let members = Members::listen(session).map_err(cannot)?;
    let clock = Now::default();
    let now = clock.now();
    let mut sending = Sending {
        args,
        sender: Sender::new(files.iter().map(|file| file.bytes).collect(), now),
        files,
        total,
        group,
        session,
        socket,
        members,
        ends: Ends::default(),
        report: Report::new(args.json, now).within(args.deadline),
        board,
        process,
        began: None,
        look: now,
        second: now + SECOND,
        tell_next: now,
        kept: 0,
        block: vec![],
        datagram: vec![],
    };
    while !sending.is_over() {
        sending.go_on(clock.now())?;
    }
    sending.end(clock.now())
}

/// A transfer to a group.
struct Sending<'a> {
    args: &'a SendArgs,
    files: Vec<Outgoing>,
    /// Bytes of all files.
    total: u64,
    group: SocketAddrV4,
    session: u64,
    sender: Sender,
    socket: UdpSocket,
    members: Members,
    ends: Ends,
    report: Report,
    board: Board,
    process: &'a Process,
    /// When files began to be sent; `None` while receivers join.
    began: Option<Time>,
    look: Time,
    second: Time,
    tell_next: Time,
    /// Bytes of the blocks that all members had already.
    kept: u64,
    /// Kept for their space.
    block: Vec<u8>,
    datagram: Vec<u8>,
}

impl Sending<'_> {
    /// Takes what members say, and does what is next.
    fn go_on(&mut self, now: Time) -> Result<(), Failure> {
        while let Some(event) = self.members.event(Duration::ZERO) {
            self.take(event, now)?;
        }
        if now >= self.look {
            self.look = now + LOOK;
            self.look_around(now)?;
        }
        match self.sender.next(now) {
            Next::Announcement => {
                let announcement =
                    Datagram::Announcement { session: self.session, port: self.members.port() };
                announcement.encode(&mut self.datagram);
                self.send_datagram()
            }
            Next::Open { file, block } => self.open(file, block),
            Next::Fragment { place, sequence } => {
                let Some(file) = self.files.get(place.file as usize) else { return Ok(()) };
                let from = place.first_byte();
                let length =
                    file.bytes.min((place.block + 1) * BLOCK).saturating_sub(from).min(FRAGMENT as u64);
                let mut payload = [0; FRAGMENT];
                let payload = &mut payload[..length as usize];
                file.source.read_at(from, payload).map_err(|error| lost(&file.changed(error)))?;
                Datagram::Fragment { session: self.session, sequence, place, payload }
                    .encode(&mut self.datagram);
                self.send_datagram()
            }
            Next::Wait(until) => {
                let wait = until.min(self.look).since(now);
                if let Some(event) = self.members.event(Duration::from_nanos(wait.as_nanos())) {
                    self.take(event, now)?;
                }
                Ok(())
            }
        }
    }

    /// Reads a block, and tells its digest.
    fn open(&mut self, number: u32, block: u64) -> Result<(), Failure> {
        let Some(file) = self.files.get(number as usize) else { return Ok(()) };
        let Some(length) = length_of(file.bytes, block) else { return Ok(()) };
        let read = file.source.read(block, length, &mut self.block);
        read.map_err(|error| lost(&file.changed(error)))?;
        let digest = Digest::of_block(&self.block, block, file.bytes);
        if !self.sender.opened(digest) {
            self.kept += u64::from(length);
        }
        let sender = &self.sender;
        self.members.say(|member| sender.is_ready(member), &Message::Digest { file: number, block, digest });
        Ok(())
    }

    fn send_datagram(&self) -> Result<(), Failure> {
        match self.socket.send(&self.datagram) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) => {
                let message = format!(
                    "datagrams of {} bytes do not fit the way to {}",
                    self.datagram.len(),
                    self.group
                );
                Err(Failure::bad_input(message, "`mtu` in the file of the node must be 1280 or more"))
            }
            // Without a way now, the datagram is lost like others; members that hear nothing are told.
            _ => Ok(()),
        }
    }

    /// Takes what a member does.
    fn take(&mut self, event: Event, now: Time) -> Result<(), Failure> {
        match event {
            Event::Joined(number) => {
                // One that joins again has lost its earlier connection.
                for earlier in self.members.welcome(number) {
                    self.sender.leave(earlier);
                }
                let Some(address) = self.members.address(number) else { return Ok(()) };
                self.ends.returns(address);
                log::info(&format!("{address} has joined"));
                self.sender.join(number, now);
                let offer = |file: &Outgoing| Message::Offer {
                    name: file.name.clone(),
                    bytes: file.bytes,
                    memory: false,
                };
                let offers = self.files.iter().map(offer).chain([Message::Begin { streams: 1 }]);
                offers.for_each(|message| self.members.say(|member| member == number, &message));
            }
            Event::Said(number, Message::Refuse { reason }) => {
                self.gone(number, format!("refused: {reason}"))
            }
            Event::Said(number, message) => {
                let becomes_ready = matches!(message, Message::Ready { .. });
                match self.sender.hear(number, message, now) {
                    Err(error) => self.gone(number, error.to_string()),
                    Ok(()) if becomes_ready => {
                        let digests: Vec<Message> = self.sender.digests().collect();
                        digests
                            .iter()
                            .for_each(|message| self.members.say(|member| member == number, message));
                    }
                    Ok(()) => {}
                }
                if self.sender.is_done(number) {
                    self.leaves(number, |ends, address| ends.whole(address));
                }
            }
            Event::Left(number) => self.leaves(number, |ends, address| ends.lost(address, now)),
        }
        Ok(())
    }

    /// A member is gone.
    fn gone(&mut self, number: usize, why: String) {
        self.leaves(number, |ends, address| ends.failed(address, why));
    }

    fn leaves(&mut self, number: usize, end: impl FnOnce(&mut Ends, IpAddr)) {
        self.sender.leave(number);
        if let Some(address) = self.members.leave(number) {
            end(&mut self.ends, address);
        }
    }

    /// What is done each tenth of a second.
    fn look_around(&mut self, now: Time) -> Result<(), Failure> {
        if self.process.stops() {
            return Err(Failure::interrupted(INTERRUPTED));
        }
        self.begin_when_due(now)?;
        self.ends.give_up_lost(self.args.timeout, now);
        let silent: Vec<_> =
            self.sender.silent(now).filter(|(_, _, silent)| *silent >= silence::QUIET).collect();
        let tells = now >= self.tell_next && !silent.is_empty();
        for (number, how, silent) in silent {
            let Some(address) = self.members.address(number) else { continue };
            if silent > self.args.timeout {
                let how = match how {
                    Quiet::Mute => "silent",
                    Quiet::Deaf => "without a datagram of the group",
                };
                self.gone(number, format!("{how} for {:.0} s", silent.as_secs_f64()));
            } else if tells {
                match how {
                    Quiet::Mute => silence::tell(address, silent.as_secs_f64()),
                    Quiet::Deaf => {
                        let seconds = silent.as_secs_f64();
                        log::info(&format!(
                            "{address} has heard nothing sent to {} for {seconds:.0} s",
                            self.group
                        ));
                    }
                }
            }
        }
        if tells {
            self.tell_next = now + silence::EACH;
        }
        if now >= self.second && self.began.is_some() {
            self.second += SECOND;
            let received = self.members.all().map(|member| self.sender.received(member)).min();
            if let Some(received) = received {
                self.board.change(|status| status.count("received_bytes", received));
                self.report.second(received, now)?;
            }
            let sent = self.sender.datagrams() * FRAGMENT as u64;
            self.board.change(|status| status.count("sent_bytes", sent));
        }
        Ok(())
    }

    /// Begins when so many receivers have joined as are awaited, or the wait is over.
    fn begin_when_due(&mut self, now: Time) -> Result<(), Failure> {
        if self.began.is_some() {
            return Ok(());
        }
        let ready =
            self.members.all().filter(|member| self.sender.is_ready(*member)).count() + self.ends.count();
        let wait = match (self.args.wait, self.args.receivers) {
            (Some(wait), _) => wait,
            (None, Some(_)) => WAIT_FOR_NUMBER,
            (None, None) => WAIT,
        };
        let is_late = now >= Time::ZERO + wait;
        let is_due = match self.args.receivers.map(usize::from) {
            Some(number) if ready < number && is_late => {
                let message = format!("{ready} of {number} receivers have joined within {wait}");
                return Err(Failure::failed_with(message, self.where_receivers_run()));
            }
            Some(number) => ready >= number,
            None if ready == 0 && is_late => {
                let message = format!("no receiver has joined within {wait}");
                return Err(Failure::failed_with(message, self.where_receivers_run()));
            }
            None => is_late,
        };
        if is_due {
            self.began = Some(now);
            self.second = now + SECOND;
            self.report = Report::new(self.args.json, now).within(self.args.deadline);
            self.sender.begin();
        }
        Ok(())
    }

    fn where_receivers_run(&self) -> String {
        format!(
            "run `weir overlay receive FOLDER --from PREFIX --group {}` on hosts of nodes that have this group in `groups`",
            self.group
        )
    }

    /// Whether no receiver is awaited any more.
    fn is_over(&self) -> bool {
        self.began.is_some() && self.members.all().next().is_none() && !self.ends.awaits()
    }

    /// Prints what was sent, and the end of each receiver.
    fn end(&self, now: Time) -> Result<(), Failure> {
        let digests = self.files.iter().enumerate().map(|(number, file)| {
            let digest = self.sender.digest(number as u32)?;
            Some((file.name.clone(), file.bytes, digest))
        });
        let more = [("receivers", self.ends.documents()), ("datagrams", json!(self.sender.datagrams()))];
        // If all receivers have failed before, not all files were read.
        if let Some(files) = digests.collect::<Option<Vec<_>>>() {
            let sums = Sums { total: self.total, kept: self.kept, again: 0, files };
            self.report.end(&sums, &more, now)?;
        }
        if !self.args.json {
            self.ends.print()?;
        }
        let (failed, all) = (self.ends.failures(), self.ends.count());
        if failed > 0 {
            let message =
                format!("{failed} of {all} receivers do not have all files; the same command goes on");
            return Err(Failure::failed_with(message, same_command()));
        }
        Ok(())
    }
}
