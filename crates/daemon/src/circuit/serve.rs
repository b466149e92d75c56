//! `weir circuit serve`: receives files from hosts whose keys are allowed. Each session has a thread that listens to it, one
//! that answers, and one for each connection that carries blocks. A block that does not match the session's digest is never
//! written.

use super::aligned::{Aligned, SECTOR};
use super::args::ServeArgs;
use super::probe::{self, PROBE};
use super::session::{self, BLOCKS, Listener, SESSION, Speaker};
use crate::failure::Failure;
use crate::frame::status::{Part, Status};
use crate::frame::{Common, Daemon, Process, log};
use crate::output::print;
use crate::transfer::{Folder, Keys, Left, MOST_FILES, PublicKey, STOPPED, UNKNOWN, guard, random};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_base::Bytes;
use weir_circuit::transfer::{BLOCK, BlockHeader, Digest, Ledger, Message, Outcome, length_of};
use weir_live::claim_processor;

/// Most connections at a time, of all sessions.
const MOST_CONNECTIONS: usize = 256;
/// Most connections that carry a session's blocks.
pub(crate) const MOST_STREAMS: u32 = 64;
/// How long a host may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a session may be silent: about the time of a block of 4 MiB at 100 kbit/s.
const SILENCE: Duration = Duration::from_secs(300);
/// Interval between reports of the received bytes.
const PERIOD: Duration = Duration::from_secs(1);
/// Most bytes that are received into memory in a session: the ledger takes 33 bytes for each block.
const MOST_IN_MEMORY: u64 = 16 << 40;
/// How many blocks of each connection wait to be verified and written: 32 MiB, a quarter of a second at 1 Gbit/s.
const BEHIND: usize = 8;
/// Interval between checks whether it is to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long sessions may take to end when it is to stop.
const ENDING: Duration = Duration::from_secs(1);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Length of the token at the beginning of a connection with blocks.
const TOKEN: usize = 64;

struct Server {
    folder: Folder,
    /// Whether bytes that are sent from memory are received too.
    memory: bool,
    /// The largest receive buffer of connections.
    receive_buffer: u64,
    keys: Keys,
    allowed: Mutex<Vec<PublicKey>>,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    connections: AtomicUsize,
    /// Whole files and bytes of the sessions that are over.
    whole: AtomicU64,
    received: AtomicU64,
}

/// A session and the files received in it.
struct Session {
    peer: PublicKey,
    files: Vec<Incoming>,
    began: Instant,
    received: AtomicU64,
    /// Messages to be sent; `None` when the session is over.
    answers: Mutex<Option<mpsc::Sender<Message>>>,
    ended: AtomicBool,
}

struct Incoming {
    name: String,
    bytes: u64,
    /// The partial file; `None` for bytes from memory.
    part: Option<File>,
    /// The same file for direct I/O, past the page cache: this takes 0.1 s of processor time a GB, against 0.6 to 2.6 s.
    direct: Option<File>,
    ledger: Mutex<Ledger>,
    /// Signals that a digest was received, or that the session has ended.
    told: Condvar,
    stored: AtomicBool,
}

impl Daemon for ServeArgs {
    const COMMAND: &'static str = "circuit serve";
    const KIND: &'static str = "receiver over circuits";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        serve(self, process)
    }
}

fn serve(args: &ServeArgs, process: &Process) -> Result<(), Failure> {
    let bad = |what: &str, error: io::Error, help: &str| Failure::bad_input(format!("{what}: {error}"), help);
    let keys = Keys::of_command(&args.key, "circuit")?;
    let folder = Folder::open(&args.into, args.quota.map(|quota| quota.get())).map_err(|error| {
        bad(&format!("{}", args.into.display()), error, "name a folder for received files with --into")
    })?;
    let (listener, receive_buffer) = listen(args.listen, args.receive_buffer).map_err(|error| {
        bad(&format!("cannot listen on {}", args.listen), error, "--listen ADDRESS:PORT names another")
    })?;
    let at = listener.local_addr().map_err(|error| Failure::failed(error.to_string()))?;
    process.name(&at.to_string())?;
    let public = keys.public;
    let server = Arc::new(Server {
        folder,
        memory: args.memory,
        receive_buffer,
        keys,
        allowed: Mutex::new(args.allow.clone()),
        sessions: Mutex::default(),
        connections: AtomicUsize::new(0),
        whole: AtomicU64::new(0),
        received: AtomicU64::new(0),
    });
    let here = server.clone();
    process.on_hang_up(move |args: ServeArgs| {
        here.configure(args);
        Ok(())
    });
    let here = server.clone();
    process.begin(move || here.status(&at.to_string()))?;
    print(&format!("listening on {at}, key {public}\n"))?;
    while !process.stops() {
        let mut ready = [PollFd::new(&listener, PollFlags::IN)];
        if !matches!(rustix::event::poll(&mut ready, Some(&LOOK)), Ok(1..)) {
            continue;
        }
        let Ok((stream, from)) = listener.accept() else { continue };
        if server.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            server.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let here = server.clone();
        let work = move || {
            log::debug(&format!("{from} has connected"));
            if let Err(error) = here.connection(stream) {
                log::error(&format!("weir: {from}: {error}"));
            }
            here.connections.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().spawn(work).is_err() {
            server.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
    server.stop();
    Ok(())
}

/// Listens, with a receive buffer of this size for connections if this user may set it (CAP_NET_ADMIN); a smaller one that any
/// user may set would only keep the kernel from tuning it. Returns how large the buffer can be. It must be set before
/// connections arrive, since their window scale follows from it.
fn listen(at: SocketAddr, receive_buffer: Bytes) -> io::Result<(TcpListener, u64)> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // The kernel doubles what is asked for (socket(7)).
    let half = usize::try_from(receive_buffer.get() / 2).unwrap_or(usize::MAX).min(i32::MAX as usize / 2);
    let tuned = weir_live::namespace::sysctl("ipv4.tcp_rmem");
    let tuned = tuned.and_then(|values| values.split(' ').nth(2)?.parse().ok());
    let size = match sockopt::set_socket_recv_buffer_size_force(&socket, half) {
        Ok(()) => sockopt::socket_recv_buffer_size(&socket)? as u64,
        Err(_) => tuned.unwrap_or(0),
    };
    rustix::net::bind(&socket, &at)?;
    rustix::net::listen(&socket, BACKLOG)?;
    // A connection that is gone before it is accepted keeps nobody waiting.
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok((TcpListener::from(socket), size))
}

impl Server {
    /// Applies what the configuration says now, and ends the sessions of keys that it no longer allows.
    fn configure(&self, args: ServeArgs) {
        self.folder.set_quota(args.quota.map(|quota| quota.get()));
        let sessions = guard(&self.sessions);
        for session in sessions.values().filter(|session| !args.allow.contains(&session.peer)) {
            let _ = session.answer(Message::Refuse { reason: UNKNOWN.to_owned() });
        }
        *guard(&self.allowed) = args.allow;
    }

    /// Ends all sessions, and waits a while for that.
    fn stop(&self) {
        for session in guard(&self.sessions).values() {
            let _ = session.answer(Message::Refuse { reason: STOPPED.to_owned() });
        }
        let until = Instant::now() + ENDING;
        while self.connections.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn status(&self, at: &str) -> Status {
        let sessions = guard(&self.sessions);
        let (mut whole, mut received) =
            (self.whole.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        let parts = sessions.values().map(|session| {
            let here = session.received.load(Ordering::Relaxed);
            received += here;
            whole += session.files.iter().filter(|file| file.stored.load(Ordering::Relaxed)).count() as u64;
            Part::session(&session.peer.to_string(), here)
        });
        let parts = parts.collect();
        Status { parts, ..Status::of_transfer(at, [("whole_files", whole), ("received_bytes", received)]) }
    }

    fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let mut begins = [0; 8];
        // `weir circuit plan --probe` measures the round trip by connections that it closes at once.
        if stream.peek(&mut begins)? == 0 {
            return Ok(());
        }
        stream.read_exact(&mut begins)?;
        match begins {
            SESSION => {
                let (listener, speaker, peer) =
                    session::take(stream, &self.keys, &guard(&self.allowed).clone())?;
                self.session(listener, speaker, &peer)
            }
            BLOCKS => self.blocks(stream),
            PROBE => probe::receive(stream),
            _ => Err(io::Error::other("it does not use weir's protocol")),
        }
    }

    /// Accepts what a host offers, or tells it why not.
    fn session(&self, mut listener: Listener, mut speaker: Speaker, peer: &PublicKey) -> io::Result<()> {
        let mut files = vec![];
        if let Err(error) = self.offered(&mut listener, &mut files) {
            files.iter().for_each(|file| self.give_up(file));
            return speaker.say(&Message::Refuse { reason: error.to_string() }).and(Err(error));
        }
        self.receive(files, &mut listener, speaker, peer)
    }

    /// Reads the offers, and opens a part for each.
    fn offered(&self, listener: &mut Listener, files: &mut Vec<Incoming>) -> io::Result<()> {
        loop {
            match listener.next()? {
                Some(Message::Offer { name, bytes, memory }) => {
                    if files.len() >= MOST_FILES || files.iter().any(|file| file.name == name) {
                        return Err(io::Error::other("too many files, or two files with the same name"));
                    }
                    if memory && !self.memory {
                        return Err(io::Error::other(
                            "a transfer from memory is received with `serve --memory`",
                        ));
                    }
                    if memory && (!files.is_empty() || bytes > MOST_IN_MEMORY)
                        || files.iter().any(|file| file.part.is_none())
                    {
                        return Err(io::Error::other(
                            "a transfer from memory has at most 16 TiB, and no files",
                        ));
                    }
                    let part = if memory { None } else { Some(self.folder.part(&name, bytes)?) };
                    let direct = part.as_ref().and_then(|_| self.folder.direct(&name));
                    let ledger = Mutex::new(Ledger::new(bytes));
                    let (told, stored) = (Condvar::new(), AtomicBool::new(false));
                    files.push(Incoming { name, bytes, part, direct, ledger, told, stored });
                }
                Some(Message::Begin { streams }) if (1..=MOST_STREAMS).contains(&streams) => {
                    return Ok(());
                }
                _ => return Err(io::Error::other("it sent a message other than an offer")),
            }
        }
    }

    fn receive(
        &self,
        files: Vec<Incoming>,
        listener: &mut Listener,
        speaker: Speaker,
        peer: &PublicKey,
    ) -> io::Result<()> {
        let (answers, to_say) = mpsc::channel();
        let (answers, received) = (Mutex::new(Some(answers)), AtomicU64::new(0));
        let (began, ended) = (Instant::now(), AtomicBool::new(false));
        let session = Arc::new(Session { peer: *peer, files, began, received, answers, ended });
        let token = Digest::of(&random::<32>()?);
        guard(&self.sessions).insert(token.to_string(), session.clone());
        let counting = session.clone();
        let speaking = std::thread::Builder::new().spawn(move || speak(speaker, &to_say, &counting))?;
        let done = self.listen(&session, token, listener);
        guard(&self.sessions).remove(&token.to_string());
        session.ended.store(true, Ordering::Release);
        session.files.iter().for_each(|file| file.told.notify_all());
        if let Err(error) = &done {
            let _ = session.answer(Message::Refuse { reason: error.to_string() });
        }
        *guard(&session.answers) = None;
        let (stored, missing): (Vec<&Incoming>, Vec<&Incoming>) =
            session.files.iter().partition(|file| file.stored.load(Ordering::Acquire));
        missing.iter().for_each(|file| self.give_up(file));
        let stored = stored.len();
        let bytes = session.received.load(Ordering::Relaxed);
        self.whole.fetch_add(stored as u64, Ordering::Relaxed);
        self.received.fetch_add(bytes, Ordering::Relaxed);
        log::info(&format!(
            "{stored} of {} files are complete, {bytes} bytes were received from {peer}",
            session.files.len()
        ));
        let _ = speaking.join();
        done
    }

    /// Gives up a file that will not become whole now.
    fn give_up(&self, file: &Incoming) {
        if let Some(part) = &file.part {
            self.folder.give_up(&file.name, part);
        }
    }

    /// Tells which blocks are there already, then receives the digests of the blocks to come, until the other host ends the
    /// session.
    fn listen(&self, session: &Arc<Session>, token: Digest, listener: &mut Listener) -> io::Result<()> {
        let answer = |message: Message| session.answer(message);
        answer(Message::Accept { token })?;
        for (number, file) in (0..).zip(&session.files) {
            let Some(part) = &file.part else { continue };
            let mut left = Left::new(number, part, file.bytes)?;
            loop {
                let found = left.next(part)?;
                found.tell.map_or(Ok(()), answer)?;
                let Some((block, digest)) = found.block else { break };
                guard(&file.ledger).left(block, digest);
            }
        }
        answer(Message::Ready { receive_buffer: Some(self.receive_buffer) })?;
        for number in 0..session.files.len() {
            self.complete(session, number)?;
        }
        listener.wait(Some(SILENCE))?;
        while let Some(message) = listener.next()? {
            let Message::Digest { file: number, block, digest } = message else {
                return Err(io::Error::other("it sent a message that no sender sends"));
            };
            let no_such = || io::Error::other("it names a block outside every file");
            let file = session.files.get(number as usize).ok_or_else(no_such)?;
            guard(&file.ledger).told(block, digest).ok_or_else(no_such)?;
            file.told.notify_all();
            self.complete(session, number as usize)?;
        }
        Ok(())
    }

    /// Gives a file its name when all of it is there.
    fn complete(&self, session: &Session, number: usize) -> io::Result<()> {
        let file = &session.files[number];
        let whole = guard(&file.ledger).whole();
        let Some(digest) = whole else { return Ok(()) };
        if file.stored.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let complete = |part| self.folder.complete(&file.name, part, file.bytes);
        if let Err(error) = file.part.as_ref().map_or(Ok(()), complete) {
            file.stored.store(false, Ordering::Release);
            let reason = format!("{:?} cannot be renamed to its final name: {error}", file.name);
            let _ = session.answer(Message::Refuse { reason });
            return Err(error);
        }
        session.answer(Message::Stored { file: number as u32, digest })
    }

    /// Receives blocks of a session over a connection.
    fn blocks(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut token = [0; TOKEN];
        stream.read_exact(&mut token)?;
        let token = String::from_utf8_lossy(&token).into_owned();
        let session = guard(&self.sessions).get(&token).cloned();
        let session = session.ok_or_else(|| io::Error::other("no session has its token"))?;
        stream.set_read_timeout(Some(SILENCE))?;
        // On a busy host the circuit would stand idle while this thread waits for a processor. Long work is done on another
        // thread.
        claim_processor();
        // While a block arrives, the one before it is verified and written.
        let (came, to_store) = mpsc::sync_channel(BEHIND);
        let (done, spare) = mpsc::channel();
        std::thread::scope(|scope| {
            let session = &session;
            let storing = scope.spawn(move || self.store(session, &to_store, &done));
            let read = read_blocks(&mut stream, session, &came, &spare);
            drop(came);
            let stored = storing.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            stored.and(read)
        })
    }

    /// Verifies and writes blocks until no more come, and gives their buffers back for reuse.
    fn store(
        &self,
        session: &Session,
        blocks: &mpsc::Receiver<(BlockHeader, Aligned)>,
        done: &mpsc::Sender<Aligned>,
    ) -> io::Result<()> {
        blocks.iter().try_for_each(|(header, payload)| {
            let written = session.files[header.file as usize].write(session, header, &payload)?;
            // If nobody reads any more, nobody needs the buffer.
            let _ = done.send(payload);
            if written { self.complete(session, header.file as usize) } else { Ok(()) }
        })
    }
}

/// Reads blocks that the session's files have, until the connection or the session ends.
fn read_blocks(
    stream: &mut TcpStream,
    session: &Session,
    came: &mpsc::SyncSender<(BlockHeader, Aligned)>,
    spare: &mpsc::Receiver<Aligned>,
) -> io::Result<()> {
    let mut header = [0; BlockHeader::LENGTH];
    while !session.ended.load(Ordering::Acquire) {
        match stream.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let header = BlockHeader::decode(header);
        let length =
            session.files.get(header.file as usize).and_then(|file| length_of(file.bytes, header.block));
        if length != Some(header.length) {
            return Err(io::Error::other("the length or place of a block is invalid"));
        }
        let mut payload = spare.try_recv().unwrap_or_default();
        payload.resize(header.length as usize);
        read_counted(stream, &mut payload, &session.received)?;
        if came.send((header, payload)).is_err() {
            break;
        }
    }
    Ok(())
}

impl Session {
    /// Queues a message for the other host.
    fn answer(&self, message: Message) -> io::Result<()> {
        let gone = || io::Error::other("the session is over");
        guard(&self.answers).as_ref().ok_or_else(gone)?.send(message).map_err(|_| gone())
    }
}

impl Incoming {
    /// Writes a block if its digest is the session's, and requests it again if not. Returns whether it was written.
    fn write(&self, session: &Session, header: BlockHeader, payload: &[u8]) -> io::Result<bool> {
        let digest = Digest::of(payload);
        let mut ledger = guard(&self.ledger);
        loop {
            match ledger.came(header.block, digest) {
                Some(Outcome::Matches) => {
                    // Written within the lock, so that nobody else writes other bytes to this block.
                    let whole_sectors = payload.len().is_multiple_of(SECTOR);
                    if let Some(file) = self.direct.as_ref().filter(|_| whole_sectors).or(self.part.as_ref())
                    {
                        file.write_all_at(payload, header.block * BLOCK)?;
                    }
                    ledger.written(header.block);
                    return Ok(true);
                }
                Some(Outcome::Waits) if !session.ended.load(Ordering::Acquire) => {
                    let waited =
                        self.told.wait_timeout(ledger, PATIENCE).unwrap_or_else(PoisonError::into_inner);
                    if waited.1.timed_out() {
                        return Err(io::Error::other("a block arrived whose digest is missing"));
                    }
                    ledger = waited.0;
                }
                Some(Outcome::Differs) => {
                    let again = Message::Again { file: header.file, block: header.block };
                    session.answer(again)?;
                    return Ok(false);
                }
                Some(Outcome::Waits | Outcome::Superfluous) | None => return Ok(false),
            }
        }
    }
}

/// Fills a buffer, and counts what comes as it comes.
fn read_counted(stream: &mut TcpStream, mut buffer: &mut [u8], count: &AtomicU64) -> io::Result<()> {
    while !buffer.is_empty() {
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                count.fetch_add(read as u64, Ordering::Relaxed);
                buffer = &mut buffer[read..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends queued messages, and each second the number of received bytes, until the session is over.
fn speak(mut speaker: Speaker, to_say: &mpsc::Receiver<Message>, session: &Session) {
    let mut next = Instant::now() + PERIOD;
    loop {
        let message = match to_say.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => {
                next += PERIOD;
                let bytes = session.received.load(Ordering::Relaxed);
                let after_ns = u64::try_from(session.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                Message::Progress { bytes, after_ns: Some(after_ns) }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let last = matches!(message, Message::Refuse { .. });
        if speaker.say(&message).is_err() || last {
            break;
        }
    }
    speaker.end();
}
