//! What a receiver does in a multicast group: it hears of a sender by announcements, joins its session by TCP, and puts blocks together from the
//! datagrams of the group.

use super::connection::{Come, Connection, LOOK};
use super::group::{GROUP_SESSION, join};
use super::server::Server;
use super::session::Session;
use crate::frame::log;
use crate::sliq::Now;
use crate::transfer::Frame;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::RecvFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver as Events, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};
use weir_base::Time;
use weir_circuit::group::{Datagram, Receiver, Whole};
use weir_circuit::transfer::{BlockHeader, Message};

/// How long a sender may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two attempts to join a session.
const AGAIN: Duration = Duration::from_secs(1);
/// Time between two checks whether the socket is still a member: a node that starts again has a new device.
const MEMBER: Duration = Duration::from_secs(1);
/// The longest datagram that is looked at.
const LONGEST: usize = 2048;
/// Datagrams that are handed over together, and batches that wait for their session: the rest is lost, and asked for again.
const BATCH: usize = 64;
const WAITING: usize = 64;
/// Sessions of which is kept that they are finished.
const FINISHED: usize = 4096;

/// Datagrams of a session.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// What comes for a session.
enum Event {
    Datagrams(Batch),
    Said(Message),
    /// The sender has ended the connection, or it broke.
    Over,
}

/// The number of a session that has ended, and whether it is finished.
type Ended = (u64, bool);

/// A session that goes on.
struct Running {
    from: IpAddr,
    events: SyncSender<Event>,
    batch: Batch,
}

/// A group of which this host is a member.
pub(super) struct Membership {
    group: SocketAddrV4,
    /// `None` while no device leads to the group.
    socket: Option<UdpSocket>,
    looked: Instant,
    running: BTreeMap<u64, Running>,
    /// Sessions of which all files are here, or which were refused; and when others may be joined again.
    finished: BTreeSet<u64>,
    again: BTreeMap<u64, Instant>,
    /// The ends of sessions.
    ended: mpsc::Sender<Ended>,
    ends: Events<Ended>,
}

impl Membership {
    /// Joins a group.
    ///
    /// # Errors
    /// No device leads to it, or its port is taken.
    pub(super) fn new(group: SocketAddrV4) -> io::Result<Membership> {
        let (ended, ends) = mpsc::channel();
        Ok(Membership {
            group,
            socket: Some(join(group)?),
            looked: Instant::now(),
            running: BTreeMap::new(),
            finished: BTreeSet::new(),
            again: BTreeMap::new(),
            ended,
            ends,
        })
    }

    /// Receives until the server stops.
    pub(super) fn receive(mut self, server: &Arc<Server>) {
        let mut buffer = vec![0; LONGEST];
        while !server.stops() {
            self.wait();
            self.read(&mut buffer, server);
            self.look(server);
        }
    }

    /// Waits until a datagram has come, a tenth of a second at most.
    fn wait(&self) {
        let Some(socket) = &self.socket else { return std::thread::sleep(LOOK) };
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        // If it fails, nothing is read, and it is looked around.
        let _ = rustix::event::poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&look));
    }

    /// Reads what has come, and hands it to its sessions.
    fn read(&mut self, buffer: &mut [u8], server: &Arc<Server>) {
        for _ in 0..BATCH {
            let Some(socket) = &self.socket else { break };
            let Ok((length, _, Some(from))) =
                rustix::net::recvfrom(socket, &mut *buffer, RecvFlags::DONTWAIT)
            else {
                break;
            };
            let Ok(from) = SocketAddr::try_from(from) else { continue };
            let bytes = &buffer[..length];
            match Datagram::decode(bytes) {
                Some(Datagram::Announcement { session, port }) => {
                    self.announced(session, SocketAddr::new(from.ip(), port), server);
                }
                Some(Datagram::Fragment { session, .. }) => {
                    if let Some(running) = self.running.get_mut(&session).filter(|one| one.from == from.ip())
                    {
                        running.batch.bytes.extend_from_slice(bytes);
                        running.batch.ends.push(running.batch.bytes.len());
                    }
                }
                None => {}
            }
        }
        for running in self.running.values_mut().filter(|running| !running.batch.ends.is_empty()) {
            // A session that does not keep up asks for what it has lost.
            let _ = running.events.try_send(Event::Datagrams(std::mem::take(&mut running.batch)));
        }
    }

    /// A sender has announced a session.
    fn announced(&mut self, session: u64, at: SocketAddr, server: &Arc<Server>) {
        let is_early = self.again.get(&session).is_some_and(|again| Instant::now() < *again);
        if self.running.contains_key(&session) || self.finished.contains(&session) || is_early {
            return;
        }
        if !server.allows(at.ip()) {
            log::info(&format!("{} announces files to {}, and no --from has it", at.ip(), self.group));
            self.finish(session);
            return;
        }
        let (events, to_take) = mpsc::sync_channel(WAITING);
        let (ended, to_listener) = (self.ended.clone(), events.clone());
        let is_spawned = server.spawn(move |server| {
            let went = take_part(server, session, at, to_listener, &to_take);
            if let Err(error) = &went {
                log::error(&format!("weir: {}: {error}", at.ip()));
            }
            // Nobody listens any more when the receiver stops.
            let _ = ended.send((session, went.unwrap_or(false)));
        });
        if is_spawned {
            self.running.insert(session, Running { from: at.ip(), events, batch: Batch::default() });
        }
    }

    fn finish(&mut self, session: u64) {
        if self.finished.len() >= FINISHED {
            self.finished.pop_first();
        }
        self.finished.insert(session);
    }

    /// Looks which sessions are over, and once a second whether the socket is a member.
    fn look(&mut self, server: &Server) {
        while let Ok((session, is_finished)) = self.ends.try_recv() {
            self.running.remove(&session);
            if is_finished {
                self.finish(session);
            } else {
                self.again.retain(|_, again| Instant::now() < *again);
                self.again.insert(session, Instant::now() + AGAIN);
            }
        }
        if self.looked.elapsed() < MEMBER || server.stops() {
            return;
        }
        self.looked = Instant::now();
        // What is a member already the kernel refuses; if it does not, the device is a new one, and so is to be the socket.
        let is_new =
            |socket: &UdpSocket| socket.join_multicast_v4(self.group.ip(), &Ipv4Addr::UNSPECIFIED).is_ok();
        if self.socket.as_ref().is_none_or(is_new) {
            self.socket = None;
            self.socket = join(self.group).ok();
            if self.socket.is_some() {
                log::info(&format!("joined {} again", self.group));
            }
        }
    }
}

/// Takes part in a session. Returns whether it is finished: all files are here, or this host has refused them.
fn take_part(
    server: &Server,
    number: u64,
    at: SocketAddr,
    events: SyncSender<Event>,
    to_take: &Events<Event>,
) -> io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.write_all(&GROUP_SESSION)?;
    stream.write_all(&number.to_be_bytes())?;
    let listening = Connection::new(stream.try_clone()?)?;
    let mut connection = Connection::new(stream)?;
    let listener = std::thread::Builder::new().spawn(move || listen(listening, &events))?;
    let mut session = Session::new(server, at.ip());
    let went = session.gather(number, &mut connection, to_take);
    let is_whole = session.is_whole();
    drop(session);
    let told = went.as_ref().err().is_some_and(|error| connection.refuse(error));
    let _ = connection.stream.shutdown(Shutdown::Both);
    let _ = listener.join();
    went.map(|()| is_whole).or_else(|error| {
        if !told {
            return Err(error);
        }
        log::error(&format!("weir: {}: {error}", at.ip()));
        Ok(true)
    })
}

/// Hands over what the sender says until the connection ends.
fn listen(mut connection: Connection, events: &SyncSender<Event>) {
    let mut read = || -> io::Result<bool> {
        if connection.wait()? == Come::End {
            return Ok(false);
        }
        while let Some(frame) = connection.talk.next()? {
            let Frame::Message(message) = frame else { return Ok(false) };
            if events.send(Event::Said(message)).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    while matches!(read(), Ok(true)) {}
    let _ = events.send(Event::Over);
}

impl Session<'_> {
    /// Gathers the files of a session from the group's datagrams until the sender ends it.
    fn gather(&mut self, number: u64, connection: &mut Connection, events: &Events<Event>) -> io::Result<()> {
        let clock = Now::default();
        let mut lengths = vec![];
        let mut receiver: Option<Receiver> = None;
        loop {
            if self.look(connection)? {
                if !self.files.looks() {
                    receiver = Some(Receiver::new(number, std::mem::take(&mut lengths)));
                }
                continue;
            }
            let due = receiver.as_ref().map_or(Time::NEVER, Receiver::next_time);
            let wait = Duration::from_nanos(due.since(clock.now()).as_nanos()).min(LOOK);
            let event = events.recv_timeout(wait);
            let now = clock.now();
            match event {
                Ok(Event::Datagrams(Batch { bytes, ends })) => {
                    let mut begin = 0;
                    for end in ends {
                        let datagram = &bytes[std::mem::replace(&mut begin, end)..end];
                        receiver.iter_mut().for_each(|receiver| receiver.datagram(datagram, now));
                    }
                }
                Ok(Event::Said(message)) => {
                    if let Message::Offer { bytes, .. } = &message {
                        lengths.push(*bytes);
                    }
                    let told = if let Message::Digest { file, block, .. } = message {
                        Some((file, block))
                    } else {
                        None
                    };
                    for answer in self.files.hear(message, self.server.folder())? {
                        connection.talk.say(&answer)?;
                    }
                    if let (Some((file, block)), Some(receiver)) = (told, &mut receiver) {
                        match self.files.session().has(file, block) {
                            true => receiver.has(file, block),
                            false => receiver.wants(file, block, now),
                        }
                    }
                }
                Ok(Event::Over) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(receiver) = &mut receiver {
                self.settle(receiver, connection, now)?;
            }
            connection.flush()?;
        }
    }

    /// Stores the blocks that are whole, and says what is due.
    fn settle(&mut self, receiver: &mut Receiver, connection: &mut Connection, now: Time) -> io::Result<()> {
        while let Some(Whole { file, block, payload }) = receiver.take() {
            let header = BlockHeader { file, block, length: payload.len() as u32 };
            let answers = self.files.block(header, &payload, self.server.folder())?;
            if self.files.session().has(file, block) {
                receiver.has(file, block);
                answers.iter().try_for_each(|answer| connection.talk.say(answer))?;
            } else {
                receiver.again(file, block, now).map_err(io::Error::other)?;
            }
        }
        while let Some(message) = receiver.message(now) {
            connection.talk.say(&message)?;
        }
        Ok(())
    }
}
