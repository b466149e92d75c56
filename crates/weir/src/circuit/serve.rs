//! `weir circuit serve`: receives files from hosts whose keys are allowed. Each session has a thread that listens to it, one that
//! answers, and one for each connection that carries blocks. What is not what the session told is never written.

use super::args::ServeArgs;
use super::send::AHEAD;
use super::session::{self, BLOCKS, Listener, SESSION, Speaker};
use crate::failure::Failure;
use crate::transfer::{Folder, Keys, Left, MOST_FILES, PublicKey, guard, random};
use crate::{print, say};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use weir_circuit::transfer::{BLOCK, BlockHeader, Digest, Ledger, Message, Outcome, length_of};

/// Most connections at a time, of all sessions.
const MOST_CONNECTIONS: usize = 256;
/// Most connections that carry a session's blocks.
pub(crate) const MOST_STREAMS: u32 = 64;
/// How long a host may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a session may be silent: a block of 4 MiB takes that at 100 kbit/s or so.
const SILENCE: Duration = Duration::from_secs(300);
/// How often is told how much was received.
const PERIOD: Duration = Duration::from_secs(1);
/// Length of the token that a connection with blocks begins with.
const TOKEN: usize = 64;

struct Server {
    folder: Folder,
    keys: Keys,
    allowed: Vec<PublicKey>,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    connections: AtomicUsize,
}

/// What is received in a session.
struct Session {
    files: Vec<Incoming>,
    received: AtomicU64,
    /// What is to be said; none when the session is over.
    answers: Mutex<Option<mpsc::Sender<Message>>>,
    ended: AtomicBool,
}

struct Incoming {
    name: String,
    bytes: u64,
    part: File,
    ledger: Mutex<Ledger>,
    /// A digest was told, or the session has ended.
    told: Condvar,
    stored: AtomicBool,
}

pub(crate) fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let bad = |what: &str, error: io::Error, help: &str| Failure::bad_input(format!("{what}: {error}"), help);
    let keys = Keys::read(&args.key).map_err(|error| {
        bad(&format!("{}", args.key.display()), error, "`weir circuit keygen FILE` makes one")
    })?;
    let folder = Folder::open(&args.into, args.quota.map(|quota| quota.get())).map_err(|error| {
        bad(&format!("{}", args.into.display()), error, "--into names a folder for received files")
    })?;
    let listener = TcpListener::bind(args.listen).map_err(|error| {
        bad(&format!("cannot listen on {}", args.listen), error, "--listen ADDRESS:PORT names another")
    })?;
    let at = listener.local_addr().map_err(|error| Failure::failed(error.to_string()))?;
    print(&format!("listening on {at}, key {}\n", keys.public))?;
    let (sessions, connections) = (Mutex::default(), AtomicUsize::new(0));
    let server = Arc::new(Server { folder, keys, allowed: args.allow.clone(), sessions, connections });
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if server.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            server.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let here = server.clone();
        let work = move || {
            let from = stream.peer_addr().map_or_else(|_| "somebody".to_owned(), |from| from.to_string());
            if let Err(error) = here.connection(stream) {
                say(&format!("weir: {from}: {error}"));
            }
            here.connections.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().spawn(work).is_err() {
            server.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

impl Server {
    fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let mut begins = [0; 8];
        stream.read_exact(&mut begins)?;
        match begins {
            SESSION => {
                let (listener, speaker, peer) = session::take(stream, &self.keys, &self.allowed)?;
                self.session(listener, speaker, &peer)
            }
            BLOCKS => self.blocks(stream),
            _ => Err(io::Error::other("it does not speak weir's protocol")),
        }
    }

    /// Takes what a host offers, and tells why if that cannot be.
    fn session(&self, mut listener: Listener, mut speaker: Speaker, peer: &PublicKey) -> io::Result<()> {
        let mut files = vec![];
        if let Err(error) = self.offered(&mut listener, &mut files) {
            files.iter().for_each(|file| self.folder.give_up(&file.name, &file.part));
            return speaker.say(&Message::Refuse { reason: error.to_string() }).and(Err(error));
        }
        self.receive(files, &mut listener, speaker, peer)
    }

    /// Reads the offers, and opens a part for each.
    fn offered(&self, listener: &mut Listener, files: &mut Vec<Incoming>) -> io::Result<()> {
        loop {
            match listener.next()? {
                Some(Message::Offer { name, bytes }) => {
                    if files.len() >= MOST_FILES || files.iter().any(|file| file.name == name) {
                        return Err(io::Error::other("too many files, or two of one name"));
                    }
                    let part = self.folder.part(&name, bytes)?;
                    let ledger = Mutex::new(Ledger::new(bytes));
                    let (told, stored) = (Condvar::new(), AtomicBool::new(false));
                    files.push(Incoming { name, bytes, part, ledger, told, stored });
                }
                Some(Message::Begin { streams }) if (1..=MOST_STREAMS).contains(&streams) => {
                    return Ok(());
                }
                _ => return Err(io::Error::other("it does not say what it offers")),
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
        let session = Arc::new(Session { files, received, answers, ended: AtomicBool::new(false) });
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
        missing.iter().for_each(|file| self.folder.give_up(&file.name, &file.part));
        let stored = stored.len();
        let bytes = session.received.load(Ordering::Relaxed);
        say(&format!(
            "{stored} of {} files are whole, {bytes} bytes were received from {peer}",
            session.files.len()
        ));
        let _ = speaking.join();
        done
    }

    /// Says what is there already, and then learns the digests of what is to come, until the other host ends the session.
    fn listen(&self, session: &Arc<Session>, token: Digest, listener: &mut Listener) -> io::Result<()> {
        let answer = |message: Message| session.answer(message);
        answer(Message::Accept { token })?;
        for (number, file) in (0..).zip(&session.files) {
            let mut left = Left::new(number, &file.part, file.bytes)?;
            loop {
                let found = left.next(&file.part)?;
                found.tell.map_or(Ok(()), answer)?;
                let Some((block, digest)) = found.block else { break };
                guard(&file.ledger).left(block, digest);
            }
        }
        answer(Message::Ready {})?;
        for number in 0..session.files.len() {
            self.complete(session, number)?;
        }
        listener.wait(Some(SILENCE))?;
        while let Some(message) = listener.next()? {
            let Message::Digest { file: number, block, digest } = message else {
                return Err(io::Error::other("it says what a sender has no reason to say"));
            };
            let no_such = || io::Error::other("it names a block that no file has");
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
        if let Err(error) = self.folder.complete(&file.name, &file.part, file.bytes) {
            file.stored.store(false, Ordering::Release);
            let reason = format!("{:?} cannot be given its name: {error}", file.name);
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
        let session = session.ok_or_else(|| io::Error::other("there is no session with its token"))?;
        stream.set_read_timeout(Some(SILENCE))?;
        // While one block comes the one before it is verified and written.
        let (came, to_store) = mpsc::sync_channel(AHEAD);
        std::thread::scope(|scope| {
            let session = &session;
            let storing = scope.spawn(move || self.store(session, &to_store));
            let read = read_blocks(&mut stream, session, &came);
            drop(came);
            let stored = storing.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            stored.and(read)
        })
    }

    /// Verifies and writes blocks, until no more come.
    fn store(&self, session: &Session, blocks: &mpsc::Receiver<(BlockHeader, Vec<u8>)>) -> io::Result<()> {
        blocks.iter().try_for_each(|(header, payload)| {
            match session.files[header.file as usize].write(session, header, &payload)? {
                true => self.complete(session, header.file as usize),
                false => Ok(()),
            }
        })
    }
}

/// Reads blocks that the session's files have, until the connection or the session ends.
fn read_blocks(
    stream: &mut TcpStream,
    session: &Session,
    came: &mpsc::SyncSender<(BlockHeader, Vec<u8>)>,
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
            return Err(io::Error::other("a block has a length or a place that it cannot have"));
        }
        let mut payload = vec![0; header.length as usize];
        read_counted(stream, &mut payload, &session.received)?;
        if came.send((header, payload)).is_err() {
            break;
        }
    }
    Ok(())
}

impl Session {
    /// Has something said.
    fn answer(&self, message: Message) -> io::Result<()> {
        let gone = || io::Error::other("the session is over");
        guard(&self.answers).as_ref().ok_or_else(gone)?.send(message).map_err(|_| gone())
    }
}

impl Incoming {
    /// Writes a block if it is what the session told; asks for it again if not. Whether it was written.
    fn write(&self, session: &Session, header: BlockHeader, payload: &[u8]) -> io::Result<bool> {
        let digest = Digest::of(payload);
        let mut ledger = guard(&self.ledger);
        loop {
            match ledger.came(header.block, digest) {
                Some(Outcome::Matches) => {
                    // Within the lock: nobody else writes this block with anything else.
                    self.part.write_all_at(payload, header.block * BLOCK)?;
                    ledger.written(header.block);
                    return Ok(true);
                }
                Some(Outcome::Waits) if !session.ended.load(Ordering::Acquire) => {
                    let waited =
                        self.told.wait_timeout(ledger, PATIENCE).unwrap_or_else(PoisonError::into_inner);
                    if waited.1.timed_out() {
                        return Err(io::Error::other("a block came whose digest was not told"));
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

/// Says what there is to say, and each second how much was received, until the session is over.
fn speak(mut speaker: Speaker, to_say: &mpsc::Receiver<Message>, session: &Session) {
    let mut next = std::time::Instant::now() + PERIOD;
    loop {
        let message = match to_say.recv_timeout(next.saturating_duration_since(std::time::Instant::now())) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => {
                next += PERIOD;
                Message::Progress { bytes: session.received.load(Ordering::Relaxed) }
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
