//! Connections of `weir sliq`, made from its command line: from this host, and to it.

use super::args::{ConnectArgs, PathArgs, ServeArgs};
use super::drive::Now;
use super::member::Member;
use crate::failure::Failure;
use crate::frame::Process;
use crate::frame::status::{Board, Status};
use crate::transfer::{Keys, PublicKey, address, random, stamp};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_base::{Bytes, Span, Time};
use weir_endpoint::Endpoint;
use weir_linux::udp::UdpPort;
use weir_sliq::handshake::Responder;
use weir_sliq::host::{Accepts, Host, setup};
use weir_sliq::link::{Link, LinkSetup};
use weir_sliq::{Parameters, StreamParameters};

/// After this long without a packet from the peer, a packet asks whether it is there.
const KEEPALIVE: Span = Span::from_secs(3);
/// A connection ends after this long without a packet from the peer.
const IDLE: Span = Span::from_secs(60);
/// Smallest IP packet, of IPv4 and of IPv6: the 1,200 bytes of a handshake's request, with the headers of UDP and IP.
const LEAST_MTU: [Bytes; 2] = [Bytes::new(1228), Bytes::new(1248)];
/// Largest IP packet that the kernel sends.
const MOST_MTU: Bytes = Bytes::new(65_535);

/// A host to connect to.
pub(super) struct Remote<'a> {
    args: &'a ConnectArgs,
    keys: Option<(Keys, PublicKey)>,
    controllers: Vec<weir_control::Config>,
    member: Option<Member>,
    /// Its address.
    pub(super) at: SocketAddr,
    pub(super) clock: Now,
    stamp: u64,
}

fn check(path: &PathArgs, at: SocketAddr, member: Option<&Member>) -> Result<(), Failure> {
    let header = Bytes::new(member.map_or(0, Member::header));
    let least = LEAST_MTU[usize::from(at.is_ipv6())] + header;
    if (least..=MOST_MTU).contains(&path.mtu) {
        Ok(())
    } else {
        let message = format!("--mtu {} is out of range", path.mtu);
        Err(Failure::bad_input(message, format!("write {least} to {MOST_MTU}")))
    }
}

/// Refuses unprotected packets that could leave this machine.
fn check_plain(plain: bool, at: SocketAddr) -> Result<(), Failure> {
    if plain && !at.ip().is_loopback() {
        let message = format!("unprotected packets do not leave this machine, and {at} may be another");
        return Err(Failure::bad_input(
            message,
            "name an address of loopback, or give --key instead of --plain",
        ));
    }
    Ok(())
}

fn keys(path: Option<&std::path::PathBuf>) -> Result<Option<Keys>, Failure> {
    path.map(|path| Keys::of_command(path, "sliq")).transpose()
}

impl<'a> Remote<'a> {
    /// Prepares connections to a host, and binds the socket that they use.
    ///
    /// # Errors
    /// The keys cannot be read, the host has no address, the arguments are out of range, or the socket cannot be bound.
    pub(super) fn new(host: &str, args: &'a ConnectArgs) -> Result<(Remote<'a>, UdpPort), Failure> {
        let at = address(host)?;
        let member = Member::new(&args.member, Some(&args.share))?;
        check(&args.path, at, member.as_ref())?;
        let keys = keys(args.key.as_ref())?.zip(args.peer);
        check_plain(args.plain, at)?;
        let controllers = controllers(args)?;
        let any = match at {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let own = args.at.unwrap_or(any);
        if own.is_ipv4() != at.is_ipv4() {
            let message = format!("{own} and {at} are of two versions of IP");
            return Err(Failure::bad_input(message, "write both as IPv4, or both as IPv6"));
        }
        let port = UdpPort::bind(own, !args.path.no_offload).map_err(|error| match args.at {
            Some(own) => {
                let message = format!("cannot send from {own}: {error}");
                Failure::bad_input(
                    message,
                    "--at ADDRESS:PORT names an address of this host, and a free port",
                )
            }
            None => failed(&error),
        })?;
        let (clock, stamp) = (Now::default(), stamp());
        Ok((Remote { args, keys, controllers, member, at, clock, stamp }, port))
    }

    /// Begins: the socket is bound. The status is what the board says.
    ///
    /// # Errors
    /// As [`Process::begin`].
    pub(super) fn begin(&self, process: &Process, board: &Board) -> Result<(), Failure> {
        let at = self.at.to_string();
        process.name(&format!("{at}-{}", std::process::id()))?;
        let status = Status::of_transfer(&at, [("sent_bytes", 0), ("received_bytes", 0)]);
        board.change(|shown| *shown = status);
        let shown = board.clone();
        process.begin(move || shown.read())
    }

    /// Adds a connection whose stream for frames has these parameters. Returns its number.
    ///
    /// # Errors
    /// The system gives no random bytes, or the peer's key is not a public key.
    pub(super) fn connect(
        &mut self,
        host: &mut Host,
        stream: StreamParameters,
        now: Time,
    ) -> Result<usize, Failure> {
        let [a, b, c, seed @ ..]: [u8; 11] = random().map_err(|error| failed(&error))?;
        let connection = u32::from_be_bytes([0, a, b, c]);
        let parameters = parameters(stream, self.member.as_ref());
        let of = LinkSetup {
            parameters: &parameters,
            controllers: &self.controllers,
            setup: setup(self.at.ip(), false, self.args.path.mtu, u64::from_be_bytes(seed), 0),
            connection,
            identity: self.member.as_mut().map(Member::next_identity),
        };
        self.stamp += 1;
        let mut link = match &self.keys {
            Some((keys, peer)) => Link::ask(&of, &keys.pair, &peer.0, self.stamp).map_err(|_| {
                Failure::bad_input(format!("{peer} is no public key"), "give what `keygen` printed")
            })?,
            None => Link::plain(&of),
        };
        link.open(now);
        match host.add(link, connection, self.at, None) {
            Some(number) => Ok(number),
            // Another connection has this number: draw 24 new bits.
            None => self.connect(host, parameters.stream, now),
        }
    }

    /// The failure of a connection that ended too early, before it opened or after.
    pub(super) fn lost(&self, was_open: bool) -> Failure {
        let at = self.at;
        if was_open {
            return Failure::failed(format!("the connection to {at} ended"));
        }
        Failure::failed(format!(
            "no answer from {at}: `weir sliq serve` must listen there, have the key that --peer names, --allow ours, and be {}",
            match self.args.member.application.zip(self.args.member.flow) {
                Some((application, flow)) => format!("of --application {application} --flow {flow} too"),
                None => "of no --application".to_owned(),
            }
        ))
    }

    /// Whether the other host has been silent for longer than `--timeout`, since its last packet or, before the first, since time zero.
    pub(super) fn is_silent(&self, link: &Link, now: Time) -> bool {
        now.since(link.last_heard()) > self.args.timeout
    }
}

/// The controllers that the arguments name, or the default ones.
fn controllers(args: &ConnectArgs) -> Result<Vec<weir_control::Config>, Failure> {
    let [first, second] = weir_sliq::default_controllers();
    let (first, second) = match (&args.cc, &args.second) {
        (None, None) => (first, Some(second)),
        (None, given) => (first, given.clone()),
        (Some(cc), given) => (cc.clone(), given.clone()),
    };
    if second.as_ref().is_some_and(|second| second.name() == first.name()) {
        let message = format!("{} is the first controller already", first.name());
        return Err(Failure::bad_input(message, "name another one with --second"));
    }
    Ok(std::iter::once(first).chain(second).collect())
}

fn parameters(stream: StreamParameters, member: Option<&Member>) -> Parameters {
    let coordination = member.map(|member| member.coordination.clone());
    let keepalive = Some(KEEPALIVE);
    Parameters { stream, coordination, keepalive, idle: IDLE, search_mtu: true, ..Parameters::default() }
}

/// A server's socket, connections and public key; the key is `None` with `--plain`.
///
/// # Errors
/// The keys cannot be read, the arguments are out of range, or the address cannot be bound.
pub(super) fn listen(args: &ServeArgs) -> Result<(UdpPort, Host, Option<PublicKey>), Failure> {
    let member = Member::new(&args.member, None)?;
    check(&args.path, args.listen, member.as_ref())?;
    check_plain(args.plain, args.listen)?;
    let keys = keys(args.key.as_ref().filter(|_| !args.plain))?;
    let port = UdpPort::bind(args.listen, !args.path.no_offload).map_err(|error| {
        let message = format!("cannot listen on {}: {error}", args.listen);
        Failure::bad_input(message, "--listen ADDRESS:PORT names another")
    })?;
    let public = keys.as_ref().map(|keys| keys.public);
    let allowed: Vec<[u8; 32]> = args.allow.iter().map(|key| key.0).collect();
    let secret = random().map_err(|error| failed(&error))?;
    let seed = u64::from_be_bytes(random().map_err(|error| failed(&error))?);
    let accepts = Accepts {
        responder: keys.map(|keys| Responder::new(keys.pair, [0; 32], &allowed, &secret)),
        parameters: parameters(StreamParameters::default(), member.as_ref()),
        controllers: weir_sliq::default_controllers().into(),
        messages: false,
        mtu: args.path.mtu,
        seed,
        identity: member.map(|member| member.identity),
    };
    Ok((port, Host::new(Some(accepts)), public))
}

/// A failure with the kernel's error as its message.
pub(super) fn failed(error: &io::Error) -> Failure {
    Failure::failed(error.to_string())
}
