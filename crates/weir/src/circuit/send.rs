//! `weir circuit send`: files over a circuit, to a host that runs `weir circuit serve`.

use super::args::SendArgs;
use super::host::Host;
use super::own::Own;
use super::serve::MOST_STREAMS;
use super::session::{self, BLOCKS, Listener, Speaker};
use crate::failure::Failure;
use crate::transfer::{Keys, Outgoing, address, guard, open};
use crate::{print, say, write};
use rustix::net::{AddressFamily, SocketType, sockopt};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use weir_base::{Bytes, Rate, Span};
use weir_circuit::transfer::{BlockHeader, Digest, Message, blocks};
use weir_live::Losses;
use weir_shaper::{Device, Handle};

/// The control that circuits are for, as the kernel has it.
const CONTROL: &str = "weir_ctcp";
/// How long the other host may take for a first answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many blocks of each connection are read ahead.
pub(crate) const AHEAD: usize = 2;
/// How often a block is sent again before the path is given up.
const ATTEMPTS: u32 = 5;

/// What is left to be sent.
#[derive(Default)]
struct Work {
    file: usize,
    block: u64,
    again: VecDeque<(usize, u64)>,
    /// How often blocks were asked for again.
    asked: BTreeMap<(usize, u64), u32>,
    /// Bytes that the receiver had already.
    kept: u64,
    ended: bool,
}

struct Sender {
    files: Vec<Outgoing>,
    work: Mutex<Work>,
    more: Condvar,
    speaker: Mutex<Speaker>,
}

fn bad(what: impl std::fmt::Display, error: impl std::fmt::Display, help: &str) -> Failure {
    Failure::bad_input(format!("{what}: {error}"), help)
}

fn lost(error: io::Error) -> Failure {
    Failure::failed(format!("the transfer ended: {error}; the same command goes on where it stopped"))
}

pub(crate) fn send(args: &SendArgs) -> Result<(), Failure> {
    let keys = Keys::read(&args.key)
        .map_err(|error| bad(args.key.display(), error, "`weir circuit keygen FILE` makes one"))?;
    let files = open(&args.files)?;
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
            "`weir circuit serve` listens there, on loopback unless told",
        )
    })?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
    let (mut listener, mut speaker) = session::begin(stream, &keys, &args.peer).map_err(|error| {
        bad(host, error, "give the other host's public key with --peer, and let it --allow ours")
    })?;
    for file in &files {
        speaker.say(&Message::Offer { name: file.name.clone(), bytes: file.bytes }).map_err(lost)?;
    }
    speaker.say(&Message::Begin { streams: args.streams }).map_err(lost)?;
    let mut sender =
        Sender { files, work: Mutex::default(), more: Condvar::new(), speaker: Mutex::new(speaker) };
    let token = sender.learn(&mut listener)?;
    let own = Own::begin(&args.own, host.ip(), args.streams, args.cc.is_none())?;
    let streams: Result<Vec<TcpStream>, Failure> =
        (0..args.streams).map(|_| connect(host, args, token)).collect();
    let sent = streams.and_then(|streams| sender.transfer(args, host, &mut listener, &streams));
    // However the transfer has ended, the host is left as it was.
    let ended = own.map_or(Ok(()), Own::end);
    sent.and(ended)
}

/// Refuses a control that the kernel does not have, or that this user may not choose.
fn check_control(args: &SendArgs) -> Result<(), Failure> {
    let Some(control) = &args.cc else { return Ok(()) };
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)
        .map_err(|error| lost(error.into()))?;
    sockopt::set_tcp_congestion(&socket, control).map_err(|error| {
        let help = "`sysctl net.ipv4.tcp_available_congestion_control` lists the kernel's";
        bad(format!("cannot send under {control}"), error, help)
    })
}

/// A connection for blocks, under the control of circuits where that is in the kernel.
fn connect(host: SocketAddr, args: &SendArgs, token: Digest) -> Result<TcpStream, Failure> {
    let family = if host.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let open = || -> io::Result<TcpStream> {
        let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
        match &args.cc {
            Some(control) => sockopt::set_tcp_congestion(&socket, control)?,
            // Without it the system's default is told in the report.
            None => drop(sockopt::set_tcp_congestion(&socket, CONTROL)),
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
    /// Learns whether the files are taken, and what of them is there already; the token.
    fn learn(&mut self, listener: &mut Listener) -> Result<Digest, Failure> {
        let mut token = None;
        // Digests of large parts take a while.
        listener.wait(None).map_err(lost)?;
        loop {
            match listener.next().map_err(lost)? {
                Some(Message::Accept { token: given }) => token = Some(given),
                Some(Message::Has { file, first, digests }) => {
                    let Some(file) = self.files.get_mut(file as usize) else { continue };
                    file.has.extend((first..).zip(digests));
                }
                Some(Message::Ready {}) => {
                    return token.ok_or_else(|| lost(io::Error::other("no token was given")));
                }
                Some(Message::Refuse { reason }) => {
                    return Err(Failure::failed(format!("refused: {reason}")));
                }
                _ => return Err(lost(io::ErrorKind::UnexpectedEof.into())),
            }
        }
    }

    fn transfer(
        &self,
        args: &SendArgs,
        host: SocketAddr,
        listener: &mut Listener,
        streams: &[TcpStream],
    ) -> Result<(), Failure> {
        // The receiver says each second how much it has.
        listener.wait(Some(PATIENCE)).map_err(lost)?;
        let mut report = Report::new(self, args, host, streams);
        std::thread::scope(|scope| {
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
            let listened = self.listen(listener, &mut report);
            self.stop();
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
                Ok(digests) => report.end(self, &digests),
            }
        })
    }

    /// Hears how the transfer goes, until all files are stored; their digests.
    fn listen(&self, listener: &mut Listener, report: &mut Report) -> Result<Vec<Digest>, Failure> {
        let mut stored: BTreeMap<u32, Digest> = BTreeMap::new();
        while stored.len() < self.files.len() {
            match listener.next().map_err(lost)? {
                Some(Message::Progress { bytes }) => report.second(bytes)?,
                Some(Message::Stored { file, digest }) => drop(stored.insert(file, digest)),
                Some(Message::Again { file, block }) => {
                    let mut work = guard(&self.work);
                    let place = (file as usize, block);
                    let asked = work.asked.entry(place).or_default();
                    *asked += 1;
                    if *asked > ATTEMPTS {
                        let message = format!("a block was damaged {ATTEMPTS} times on its way");
                        return Err(Failure::failed(message));
                    }
                    work.again.push_back(place);
                    drop(work);
                    self.more.notify_all();
                }
                Some(Message::Refuse { reason }) => {
                    return Err(Failure::failed(format!("refused: {reason}")));
                }
                Some(_) => {
                    return Err(lost(io::Error::other(
                        "the other host says what a receiver has no reason to say",
                    )));
                }
                None => return Err(lost(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        Ok(stored.into_values().collect())
    }

    /// The next block to send, and whether it is sent again. Waits for one that is asked for again; none when the transfer has ended.
    fn next(&self) -> Option<(usize, u64, bool)> {
        let mut work = guard(&self.work);
        loop {
            if work.ended {
                return None;
            }
            if let Some((file, block)) = work.again.pop_front() {
                return Some((file, block, true));
            }
            while self.files.get(work.file).is_some_and(|file| work.block >= blocks(file.bytes)) {
                (work.file, work.block) = (work.file + 1, 0);
            }
            if work.file < self.files.len() {
                let place = (work.file, work.block, false);
                work.block += 1;
                return Some(place);
            }
            work = self.more.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sends blocks over a connection for as long as there are any. While one is on its way the next is read and its digest computed.
    fn carry(&self, mut stream: TcpStream) -> io::Result<()> {
        let (ready, blocks) = mpsc::sync_channel(AHEAD);
        std::thread::scope(|scope| {
            let preparing = scope.spawn(move || self.prepare(&ready));
            let sent = blocks.iter().try_for_each(|(header, payload): (BlockHeader, Vec<u8>)| {
                stream.write_all(&header.encode())?;
                stream.write_all(&payload)
            });
            // It stops when nobody takes its blocks.
            drop(blocks);
            if sent.is_err() {
                self.stop();
            }
            let prepared = preparing.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            prepared.and(sent)
        })
    }

    /// Reads blocks, tells their digests, and hands over those that the receiver does not have.
    fn prepare(&self, ready: &mpsc::SyncSender<(BlockHeader, Vec<u8>)>) -> io::Result<()> {
        while let Some((number, block, again)) = self.next() {
            let Some(file) = self.files.get(number) else { continue };
            let Some(payload) = file.block(block)? else { continue };
            let length = payload.len() as u32;
            if !again {
                let digest = Digest::of(&payload);
                guard(&self.speaker).say(&Message::Digest { file: number as u32, block, digest })?;
                if file.has.get(&block) == Some(&digest) {
                    guard(&self.work).kept += u64::from(length);
                    continue;
                }
            }
            if ready.send((BlockHeader { file: number as u32, block, length }, payload)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Lets nobody wait for blocks any more.
    fn stop(&self) {
        guard(&self.work).ended = true;
        self.more.notify_all();
    }
}

/// What is told each second, and at the end.
struct Report {
    json: bool,
    start: Instant,
    total: u64,
    streams: Vec<TcpStream>,
    control: String,
    /// The circuit's class, where it can be seen.
    class: Option<(Device, Handle)>,
    told: Told,
}

/// What was told last.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    after: Duration,
    bytes: u64,
    losses: Losses,
    refused: Option<u64>,
}

impl Report {
    fn new(sender: &Sender, args: &SendArgs, host: SocketAddr, streams: &[TcpStream]) -> Report {
        let streams: Vec<TcpStream> = streams.iter().filter_map(|stream| stream.try_clone().ok()).collect();
        let control =
            streams.first().and_then(|stream| sockopt::tcp_congestion(stream).ok()).unwrap_or_default();
        let mut class = class_of(host);
        let refused = refused(&mut class);
        if control != CONTROL && args.cc.is_none() {
            say(&format!(
                "note: no circuit is up here, so the transfer is under {control}: `weir circuit up` sets one up"
            ));
        }
        let total = sender.files.iter().map(|file| file.bytes).sum();
        let told = Told { refused, ..Told::default() };
        Report { json: args.json, start: Instant::now(), total, streams, control, class, told }
    }

    fn now(&mut self, bytes: u64) -> Told {
        let mut losses = Losses::default();
        for stream in &self.streams {
            let of = weir_live::losses(stream).unwrap_or_default();
            losses.retransmitted += of.retransmitted;
            losses.unneeded += of.unneeded;
        }
        Told { after: self.start.elapsed(), bytes, losses, refused: refused(&mut self.class) }
    }

    /// The receiver has told how much it has received.
    fn second(&mut self, bytes: u64) -> Result<(), Failure> {
        let (before, now) = (self.told, self.now(bytes));
        self.told = now;
        let rate = rate(now.bytes.saturating_sub(before.bytes), now.after.saturating_sub(before.after));
        let retransmitted = now.losses.retransmitted.saturating_sub(before.losses.retransmitted);
        let unneeded = now.losses.unneeded.saturating_sub(before.losses.unneeded).min(retransmitted);
        let refused = now.refused.zip(before.refused).map(|(now, before)| now.saturating_sub(before));
        let second = now.after.as_secs_f64().round() as u64;
        if self.json {
            let document = json!({
                "second": second,
                "goodput_bit_per_s": rate.bits_per_sec(),
                "retransmitted_packets": retransmitted,
                "lost_packets": retransmitted - unneeded,
                "refused_packets": refused,
                "received_bytes": bytes,
            });
            return write(&format!("{document}\n"));
        }
        let refused = refused.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        print(&format!(
            "{second:>5} s  {:>9.3} Mbit/s  {:>5.1} %  {retransmitted} retransmitted, {} lost in the network, {refused} refused at the shaper\n",
            rate.bits_per_sec() as f64 / 1e6,
            bytes as f64 * 100.0 / self.total.max(1) as f64,
            retransmitted - unneeded,
        ))
    }

    fn end(&mut self, sender: &Sender, digests: &[Digest]) -> Result<(), Failure> {
        let work = guard(&sender.work);
        let (kept, again): (u64, u32) = (work.kept, work.asked.values().sum());
        let sent = self.total.saturating_sub(kept);
        let now = self.now(sent);
        let rate = rate(sent, now.after);
        let files = || sender.files.iter().zip(digests);
        if self.json {
            let files = files()
                .map(|(file, digest)| json!({ "name": file.name, "bytes": file.bytes, "digest": digest }));
            let document = json!({
                "files": files.collect::<Vec<_>>(),
                "seconds": now.after.as_secs_f64(),
                "sent_bytes": sent,
                "kept_bytes": kept,
                "blocks_sent_again": again,
                "goodput_bit_per_s": rate.bits_per_sec(),
                "retransmitted_packets": now.losses.retransmitted,
                "control": self.control,
            });
            return write(&format!("{document}\n"));
        }
        let files: String = files().map(|(file, digest)| format!("{digest}  {}\n", file.name)).collect();
        print(&format!(
            "{files}{} in {:.1} s, {:.3} Mbit/s under {}; {} were there already; {again} blocks and {} packets retransmitted\n",
            Bytes::new(sent),
            now.after.as_secs_f64(),
            rate.bits_per_sec() as f64 / 1e6,
            self.control,
            Bytes::new(kept),
            now.losses.retransmitted,
        ))
    }
}

fn rate(bytes: u64, passed: Duration) -> Rate {
    let nanos = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX).max(1);
    Rate::from_bytes_in(Bytes::new(bytes), Span::from_nanos(nanos))
}

/// The class of the circuit that leads to a host: the longest prefix decides. None where this user may not look.
fn class_of(host: SocketAddr) -> Option<(Device, Handle)> {
    let (circuits, _) = Host::look().ok()??;
    let all = circuits.devices().iter().flat_map(|device| device.circuits.iter().map(move |up| (device, up)));
    let leading = all.filter_map(|(device, up)| {
        let destination = up.destination().ok()?;
        destination.contains(host.ip()).then(|| (destination.length(), device, up))
    });
    let (_, device, up) = leading.max_by_key(|(length, ..)| *length)?;
    Some((Device::open(&device.name).ok()?, up.handle()))
}

/// How many packets the shaper has refused.
fn refused(class: &mut Option<(Device, Handle)>) -> Option<u64> {
    let (device, handle) = class.as_mut()?;
    device.counters(&[*handle]).ok()?.first()?.map(|counters| counters.drops)
}
