//! `weir circuit send`: files over a circuit, to a host that runs `weir circuit serve`.

mod block;
mod report;
mod silence;

use super::args::SendArgs;
use super::own::Own;
use super::serve::MOST_STREAMS;
use super::session::{self, BLOCKS, Listener, Speaker};
use crate::failure::Failure;
use crate::frame::status::{Board, Status};
use crate::frame::{Common, Daemon, Process, log};
use crate::transfer::{self, Heard, INTERRUPTED, Keys, Outgoing, Sending, Source, address, guard};
use block::send_block;
use report::{Report, circuit_to};
use rustix::net::{AddressFamily, SocketType, sockopt};
use silence::Silence;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, mpsc};
use std::time::Duration;
use weir_base::{Bytes, Span};
use weir_circuit::Plan;
use weir_circuit::transfer::{BlockHeader, Digest, Message};
use weir_linux::claim_processor;

/// The congestion control of circuits, by its name in the kernel.
const CONTROL: &str = "weir_ctcp";
/// How long the other host may take for a first answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many blocks of each connection are read ahead into the page cache, and their digests sent.
const AHEAD: usize = 8;
/// A connection's send buffer holds the window's need and what the circuit carries in this time, for which this host may be
/// busy with something else.
const ABSENCE: Span = Span::from_millis(200);

struct Sender {
    files: Sending,
    speaker: Mutex<Speaker>,
    /// Whether a circuit that is up leads to the receiver.
    on_circuit: bool,
}

fn bad(what: impl std::fmt::Display, error: impl std::fmt::Display, help: &str) -> Failure {
    Failure::bad_input(format!("{what}: {error}"), help)
}

fn lost(error: io::Error) -> Failure {
    transfer::lost(&error)
}

impl Daemon for SendArgs {
    const COMMAND: &'static str = "circuit send";
    const KIND: &'static str = "sender over a circuit";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        send(self, process)
    }
}

fn send(args: &SendArgs, process: &Process) -> Result<(), Failure> {
    let keys = Keys::of_command(&args.key, "circuit")?;
    let files = open(args)?;
    let host = address(&args.host)?;
    check_control(args)?;
    if !(1..=MOST_STREAMS).contains(&args.streams) {
        let message = format!("{} streams are out of range", args.streams);
        return Err(Failure::bad_input(message, format!("write 1 to {MOST_STREAMS}")));
    }
    let stream = TcpStream::connect_timeout(&host, PATIENCE).map_err(|error| {
        bad(
            format!("cannot reach {host}"),
            error,
            "run `weir circuit serve` there; it listens on loopback unless --listen is given",
        )
    })?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
    let session = stream.try_clone().map_err(lost)?;
    let (mut listener, mut speaker) = session::begin(stream, &keys, &args.peer).map_err(|error| {
        bad(host, error, "give the other host's public key with --peer, and allow ours there with --allow")
    })?;
    files.offers(args.streams).try_for_each(|message| speaker.say(&message)).map_err(lost)?;
    let mut sender = Sender { files, speaker: Mutex::new(speaker), on_circuit: false };
    let (token, receive_buffer) = sender.learn(&mut listener)?;
    let board = Board::default();
    let mut begin = Some(|| sender_begins(process, host, &board, session));
    if args.own.rate.is_some() {
        if args.common.changes_user() {
            let help = "set it up before, with `weir circuit up`";
            return Err(Failure::bad_input("another user may not take the circuit down", help));
        }
        // From now on it is taken down, however the transfer ends.
        begin.take().map_or(Ok(()), |begin| begin())?;
    }
    let own = Own::begin(&args.own, host.ip(), args.streams, args.cc.is_none())?;
    let plan = circuit_to(host).and_then(|(_, up)| up.plan().ok());
    sender.on_circuit = plan.is_some();
    if let Some((plan, receive_buffer)) = plan.as_ref().zip(receive_buffer)
        && plan.tcp_rmem[2] > receive_buffer
    {
        log::info(&format!(
            "note: the receiver's buffers of {} are smaller than the {} that the window needs: run its `serve` as root, with a larger \
             --receive-buffer, or raise net.ipv4.tcp_rmem there",
            Bytes::new(receive_buffer),
            Bytes::new(plan.tcp_rmem[2])
        ));
    }
    let streams: Result<Vec<TcpStream>, Failure> =
        (0..args.streams).map(|_| connect(host, args, token, plan.as_ref())).collect();
    let begun = begin.take().map_or(Ok(()), |begin| begin());
    let sent = begun
        .and(streams)
        .and_then(|streams| sender.transfer(args, host, &mut listener, &streams, &board))
        .map_err(|failure| if process.stops() { Failure::interrupted(INTERRUPTED) } else { failure });
    // However the transfer has ended, the host is left as it was.
    let ended = own.map_or(Ok(()), Own::end);
    sent.and(ended)
}

/// Begins: the status is what the board says, and the session with the receiver ends when the command is to stop.
fn sender_begins(
    process: &Process,
    host: SocketAddr,
    board: &Board,
    session: TcpStream,
) -> Result<(), Failure> {
    process.name(&format!("{host}-{}", std::process::id()))?;
    let status = Status::of_transfer(&host.to_string(), [("sent_bytes", 0), ("received_bytes", 0)]);
    board.change(|shown| *shown = status);
    process.on_stop(move || drop(session.shutdown(std::net::Shutdown::Both)));
    let shown = board.clone();
    process.begin(move || shown.read())
}

/// Opens the files, or the source of bytes from memory.
fn open(args: &SendArgs) -> Result<Sending, Failure> {
    let Some(bytes) = args.memory else { return Ok(Sending::new(transfer::open(&args.files)?)) };
    let (name, source) = ("memory".to_owned(), Source::Memory);
    Ok(Sending::new(vec![Outgoing { name, bytes: bytes.get(), source }]))
}

/// Refuses a control that the kernel does not have, or that this user may not choose.
fn check_control(args: &SendArgs) -> Result<(), Failure> {
    let Some(control) = &args.cc else { return Ok(()) };
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)
        .map_err(|error| lost(error.into()))?;
    sockopt::set_tcp_congestion(&socket, control).map_err(|error| {
        let help = "`sysctl net.ipv4.tcp_available_congestion_control` lists those of the kernel";
        bad(format!("cannot use the congestion control {control}"), error, help)
    })
}

/// A connection for blocks, with the congestion control of circuits if the kernel has it.
fn connect(
    host: SocketAddr,
    args: &SendArgs,
    token: Digest,
    plan: Option<&Plan>,
) -> Result<TcpStream, Failure> {
    let family = if host.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let open = || -> io::Result<TcpStream> {
        let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
        match &args.cc {
            Some(control) => sockopt::set_tcp_congestion(&socket, control)?,
            // Without it, the report names the system's default.
            None => drop(sockopt::set_tcp_congestion(&socket, CONTROL)),
        }
        if let Some(plan) = plan {
            let needed = plan.tcp_wmem[2] + plan.shaper_rate.bytes_in(ABSENCE).get();
            // The kernel doubles it (socket(7)). Without CAP_NET_ADMIN it goes on tuning the buffer within net.ipv4.tcp_wmem.
            let half = usize::try_from(needed / 2).unwrap_or(usize::MAX).min(i32::MAX as usize / 2);
            let _ = sockopt::set_socket_send_buffer_size_force(&socket, half);
        }
        rustix::net::connect(&socket, &host)?;
        let mut stream = TcpStream::from(socket);
        stream.write_all(&BLOCKS)?;
        stream.write_all(token.to_string().as_bytes())?;
        Ok(stream)
    };
    open().map_err(lost)
}

impl Sender {
    /// Learns whether the files are accepted and which blocks the receiver has already. Returns the token, and the size of the
    /// receiver's buffers if it is given.
    fn learn(&self, listener: &mut Listener) -> Result<(Digest, Option<u64>), Failure> {
        let mut token = None;
        // Digests of large parts take a while.
        listener.wait(None).map_err(lost)?;
        loop {
            match self.hear(listener)? {
                Heard::Token(given) => token = Some(given),
                Heard::Ready(receive_buffer) => {
                    let given = token.map(|token| (token, receive_buffer));
                    return given.ok_or_else(|| lost(io::Error::other("the receiver sent no token")));
                }
                Heard::Noted | Heard::Progress(..) => {}
            }
        }
    }

    fn hear(&self, listener: &mut Listener) -> Result<Heard, Failure> {
        let message = listener.next().map_err(lost)?;
        self.files.hear(message.ok_or_else(|| lost(io::ErrorKind::UnexpectedEof.into()))?)
    }

    fn transfer(
        &self,
        args: &SendArgs,
        host: SocketAddr,
        listener: &mut Listener,
        streams: &[TcpStream],
        board: &Board,
    ) -> Result<(), Failure> {
        // The receiver says each second how much it has.
        listener.wait(Some(PATIENCE)).map_err(lost)?;
        let mut report = Report::new(self.files.total(), args, host, streams);
        let silence = Silence::new(host);
        std::thread::scope(|scope| {
            scope.spawn(|| silence.watch());
            let carry = |stream: &TcpStream| {
                let stream = stream.try_clone();
                scope.spawn(move || {
                    let carried = stream.and_then(|stream| self.carry(stream));
                    if carried.is_err() {
                        // The other host says why, or is gone: either way the session ends.
                        guard(&self.speaker).end();
                    }
                    carried
                })
            };
            let carrying: Vec<_> = streams.iter().map(carry).collect();
            let listened = self.listen(listener, &mut report, board, &silence);
            silence.end();
            self.files.stop();
            if listened.is_err() {
                streams.iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
            }
            let carried: io::Result<Vec<()>> = carrying
                .into_iter()
                .map(|it| it.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
                .collect();
            guard(&self.speaker).end();
            match listened {
                Err(failure) => Err(carried
                    .err()
                    .filter(|error| error.kind() == io::ErrorKind::InvalidData)
                    .map_or(failure, lost)),
                Ok(()) => report.end(&self.files.sums()),
            }
        })
    }

    /// Follows the receiver's messages until all files are stored.
    fn listen(
        &self,
        listener: &mut Listener,
        report: &mut Report,
        board: &Board,
        silence: &Silence,
    ) -> Result<(), Failure> {
        while !self.files.is_done() {
            let heard = self.hear(listener)?;
            silence.heard();
            if let Heard::Progress(bytes, after_ns) = heard {
                board.change(|status| status.count("received_bytes", bytes));
                report.second(bytes, after_ns)?;
            }
        }
        Ok(())
    }

    /// Sends blocks over a connection for as long as there are any. While one is on its way the next are read and their digests computed.
    fn carry(&self, stream: TcpStream) -> io::Result<()> {
        // On a busy host the circuit would stand idle while this thread waits for a processor. Long work is done on another
        // thread.
        if self.on_circuit {
            claim_processor();
        }
        let (ready, blocks) = mpsc::sync_channel(AHEAD);
        std::thread::scope(|scope| {
            let preparing = scope.spawn(move || self.prepare(&ready));
            let mut buffer = vec![];
            let sent = blocks.iter().try_for_each(|header: BlockHeader| {
                let file = self.files.file(header.file).ok_or(io::ErrorKind::NotFound)?;
                send_block(&file.source, &stream, header, &mut buffer).map_err(|error| file.changed(error))
            });
            // The preparing thread stops when its blocks are no longer taken.
            drop(blocks);
            if sent.is_err() {
                self.files.stop();
            }
            let prepared = preparing.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            prepared.and(sent)
        })
    }

    /// Reads blocks, sends their digests, and passes on the blocks that the receiver does not have.
    fn prepare(&self, ready: &mpsc::SyncSender<BlockHeader>) -> io::Result<()> {
        let mut buffer = vec![];
        while let Some(place) = self.files.wait() {
            let say = |message: &Message| guard(&self.speaker).say(message);
            let Some(header) = self.files.prepare(place, &mut buffer, say)? else { continue };
            if ready.send(header).is_err() {
                break;
            }
        }
        Ok(())
    }
}
