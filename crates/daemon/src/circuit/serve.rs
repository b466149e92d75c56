//! `weir circuit serve`: receives files from hosts whose keys are allowed. Each session has a thread that listens to it, one
//! that answers, and one for each connection that carries blocks. A block that does not match the session's digest is never
//! written.

use super::args::ServeArgs;
use super::probe::{self, PROBE};
use super::session::{self, BLOCKS, Listener, SESSION, Speaker};
use crate::failure::Failure;
use crate::frame::status::{Part, Status};
use crate::frame::{Common, Daemon, Process, log};
use crate::output::print;
use crate::transfer::{
    Aligned, Carrier, Folder, Keys, Looked, PublicKey, Receiving, STOPPED, Threads, UNKNOWN, guard, random,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_base::Bytes;
use weir_circuit::transfer::{BlockHeader, Digest, Message};
use weir_linux::claim_processor;

/// Most connections that carry a session's blocks.
pub(crate) const MOST_STREAMS: u32 = 64;
/// How long a host may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a session may be silent: about the time of a block of 4 MiB at 100 kbit/s.
const SILENCE: Duration = Duration::from_secs(300);
/// Interval between reports of the received bytes.
const PERIOD: Duration = Duration::from_secs(1);
/// How many blocks of each connection wait to be verified and written: 32 MiB, a quarter of a second at 1 Gbit/s.
const BEHIND: usize = 8;
/// Interval between checks whether it is to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
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
    /// Threads of connections, of all sessions.
    connections: Threads,
    /// Whole files and bytes of the sessions that are over.
    whole: AtomicU64,
    received: AtomicU64,
}

/// A session and the files received in it.
struct Session {
    peer: PublicKey,
    files: Receiving,
    began: Instant,
    /// Messages to be sent; `None` when the session is over.
    answers: Mutex<Option<mpsc::Sender<Message>>>,
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
        connections: Threads::default(),
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
        let here = server.clone();
        // One too many hears the end of its connection.
        server.connections.spawn(move || {
            log::debug(&format!("{from} has connected"));
            if let Err(error) = here.connection(stream) {
                log::error(&format!("weir: {from}: {error}"));
            }
        });
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
    let tuned = weir_linux::namespace::sysctl("ipv4.tcp_rmem");
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
            session.refuse(&UNKNOWN);
        }
        *guard(&self.allowed) = args.allow;
    }

    /// Ends all sessions, and waits a while for that.
    fn stop(&self) {
        for session in guard(&self.sessions).values() {
            session.refuse(&STOPPED);
        }
        self.connections.wait();
    }

    fn status(&self, at: &str) -> Status {
        let sessions = guard(&self.sessions);
        let (mut whole, mut received) =
            (self.whole.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        let parts = sessions.values().map(|session| {
            let here = session.files.received();
            received += here;
            whole += session.files.whole().0 as u64;
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
        let mut files = Receiving::new(Carrier { memory: self.memory, streams: MOST_STREAMS });
        if let Err(error) = self.offered(&mut listener, &mut files) {
            files.end(&self.folder);
            return speaker.say(&Message::Refuse { reason: error.to_string() }).and(Err(error));
        }
        self.receive(files, &mut listener, speaker, peer)
    }

    /// Reads the offers, and opens a part for each.
    fn offered(&self, listener: &mut Listener, files: &mut Receiving) -> io::Result<()> {
        loop {
            let message = listener.next()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if files.offer(message, &self.folder)? {
                return Ok(());
            }
        }
    }

    fn receive(
        &self,
        files: Receiving,
        listener: &mut Listener,
        speaker: Speaker,
        peer: &PublicKey,
    ) -> io::Result<()> {
        let (answers, to_say) = mpsc::channel();
        let answers = Mutex::new(Some(answers));
        let session = Arc::new(Session { peer: *peer, files, began: Instant::now(), answers });
        let token = Digest::of(&random::<32>()?);
        guard(&self.sessions).insert(token.to_string(), session.clone());
        let counting = session.clone();
        let speaking = std::thread::Builder::new().spawn(move || speak(speaker, &to_say, &counting))?;
        let done = self.listen(&session, token, listener);
        guard(&self.sessions).remove(&token.to_string());
        if let Err(error) = &done {
            session.refuse(error);
        }
        *guard(&session.answers) = None;
        session.files.end(&self.folder);
        let ((whole, all), bytes) = (session.files.whole(), session.files.received());
        self.whole.fetch_add(whole as u64, Ordering::Relaxed);
        self.received.fetch_add(bytes, Ordering::Relaxed);
        log::info(&format!("{whole} of {all} files are complete, {bytes} bytes were received from {peer}"));
        let _ = speaking.join();
        done
    }

    /// Tells which blocks are there already, then receives the digests of the blocks to come, until the other host ends the
    /// session.
    fn listen(&self, session: &Session, token: Digest, listener: &mut Listener) -> io::Result<()> {
        session.answer(Message::Accept { token })?;
        let mut looked = Looked::default();
        while let Some(tell) = session.files.look(&mut looked)? {
            tell.map_or(Ok(()), |message| session.answer(message))?;
        }
        session.answer(Message::Ready { receive_buffer: Some(self.receive_buffer) })?;
        let whole = session.files.complete_all(&self.folder)?;
        whole.into_iter().try_for_each(|message| session.answer(message))?;
        listener.wait(Some(SILENCE))?;
        while let Some(message) = listener.next()? {
            let answer = session.files.hear(message, &self.folder)?;
            answer.map_or(Ok(()), |message| session.answer(message))?;
        }
        Ok(())
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
            let read = read_blocks(&mut stream, &session.files, &came, &spare);
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
            let answer = session.files.block(header, &payload, &self.folder, PATIENCE);
            // If nobody reads any more, nobody needs the buffer.
            let _ = done.send(payload);
            answer
                .inspect_err(|error| session.refuse(error))?
                .map_or(Ok(()), |message| session.answer(message))
        })
    }
}

/// Reads blocks that the session's files have, until the connection or the session ends.
fn read_blocks(
    stream: &mut TcpStream,
    files: &Receiving,
    came: &mpsc::SyncSender<(BlockHeader, Aligned)>,
    spare: &mpsc::Receiver<Aligned>,
) -> io::Result<()> {
    let mut header = [0; BlockHeader::LENGTH];
    while !files.has_ended() {
        match stream.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let header = BlockHeader::decode(header);
        files.check(header)?;
        let mut payload = spare.try_recv().unwrap_or_default();
        payload.resize(header.length as usize);
        read_counted(stream, &mut payload, files)?;
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

    /// Ends the session, and tells the other host why. If it is over already, nobody listens.
    fn refuse(&self, why: &dyn std::fmt::Display) {
        let _ = self.answer(Message::Refuse { reason: why.to_string() });
    }
}

/// Fills a buffer, and counts what comes as it comes.
fn read_counted(stream: &mut TcpStream, mut buffer: &mut [u8], files: &Receiving) -> io::Result<()> {
    while !buffer.is_empty() {
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                files.count(read as u64);
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
                let bytes = session.files.received();
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
