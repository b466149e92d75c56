//! A session between two hosts that know each other's key: the Noise protocol (pattern IK, revision 34) over TCP. All messages
//! are encrypted and authenticated: whoever has neither private key can read and change nothing.

use crate::transfer::{Keys, PublicKey};
use snow::params::NoiseParams;
use snow::{Builder, StatelessTransportState};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use weir_circuit::transfer::Message;

/// First bytes of a connection that carries a session, and of one that carries a session's blocks.
pub(crate) const SESSION: [u8; 8] = *b"weir-s 1";
pub(crate) const BLOCKS: [u8; 8] = *b"weir-b 1";
/// The pattern, and the prologue that both hosts mix in so that no other program's messages fit.
const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"weir circuit 1";
/// The longest message of the Noise protocol.
const LONGEST: usize = 65_535;

fn params() -> io::Result<NoiseParams> {
    PATTERN.parse().map_err(refused)
}

/// The receiving side of a session.
pub(crate) struct Listener {
    stream: TcpStream,
    state: Arc<StatelessTransportState>,
    nonce: u64,
}

/// The sending side of a session.
pub(crate) struct Speaker {
    stream: TcpStream,
    state: Arc<StatelessTransportState>,
    nonce: u64,
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn write_frame(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), bytes].concat())
}

fn refused(error: snow::Error) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("the keys do not match: {error}"))
}

/// Begins a session with a host whose key is known.
///
/// # Errors
/// The other host does not have that key, or does not take ours.
pub(crate) fn begin(mut stream: TcpStream, keys: &Keys, peer: &PublicKey) -> io::Result<(Listener, Speaker)> {
    stream.set_nodelay(true)?;
    stream.write_all(&SESSION)?;
    let builder =
        Builder::new(params()?).prologue(PROLOGUE).and_then(|it| it.local_private_key(keys.pair.private()));
    let builder = builder.and_then(|it| it.remote_public_key(&peer.0));
    let mut handshake = builder.and_then(Builder::build_initiator).map_err(refused)?;
    let mut buffer = vec![0; LONGEST];
    let length = handshake.write_message(&[], &mut buffer).map_err(refused)?;
    write_frame(&mut stream, &buffer[..length])?;
    let answer = read_frame(&mut stream).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the other host does not know our key, or has another one",
        ),
        _ => error,
    })?;
    handshake.read_message(&answer, &mut buffer).map_err(refused)?;
    ends(stream, handshake)
}

/// Accepts a session that another host begins, if its key is allowed. [`SESSION`] has been read already.
///
/// # Errors
/// The other host's key is not allowed, or it does not have ours.
pub(crate) fn take(
    mut stream: TcpStream,
    keys: &Keys,
    allowed: &[PublicKey],
) -> io::Result<(Listener, Speaker, PublicKey)> {
    stream.set_nodelay(true)?;
    let builder =
        Builder::new(params()?).prologue(PROLOGUE).and_then(|it| it.local_private_key(keys.pair.private()));
    let mut handshake = builder.and_then(Builder::build_responder).map_err(refused)?;
    let mut buffer = vec![0; LONGEST];
    let first = read_frame(&mut stream)?;
    handshake.read_message(&first, &mut buffer).map_err(refused)?;
    let peer = handshake.get_remote_static().and_then(|key| <[u8; 32]>::try_from(key).ok()).map(PublicKey);
    let peer = peer.filter(|peer| allowed.contains(peer));
    let peer =
        peer.ok_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, "its key is not allowed"))?;
    let length = handshake.write_message(&[], &mut buffer).map_err(refused)?;
    write_frame(&mut stream, &buffer[..length])?;
    let (listener, speaker) = ends(stream, handshake)?;
    Ok((listener, speaker, peer))
}

fn ends(stream: TcpStream, handshake: snow::HandshakeState) -> io::Result<(Listener, Speaker)> {
    let state = Arc::new(handshake.into_stateless_transport_mode().map_err(refused)?);
    let speaker = Speaker { stream: stream.try_clone()?, state: state.clone(), nonce: 0 };
    Ok((Listener { stream, state, nonce: 0 }, speaker))
}

impl Listener {
    /// The next message. `None` when the other host has ended the session.
    ///
    /// # Errors
    /// The connection's, a message that is not the other host's, or one that makes no sense.
    pub(crate) fn next(&mut self) -> io::Result<Option<Message>> {
        let frame = match read_frame(&mut self.stream) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            frame => frame?,
        };
        let mut plain = vec![0; LONGEST];
        let length = self.state.read_message(self.nonce, &frame, &mut plain).map_err(refused)?;
        self.nonce += 1;
        Message::decode(&plain[..length]).map(Some).map_err(io::Error::other)
    }

    /// Sets the longest wait for a message; `None` waits as long as it takes.
    pub(crate) fn wait(&self, at_most: Option<std::time::Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(at_most)
    }
}

impl Speaker {
    /// Sends a message.
    ///
    /// # Errors
    /// The connection's.
    pub(crate) fn say(&mut self, message: &Message) -> io::Result<()> {
        let plain = message.encode().map_err(io::Error::other)?;
        let mut frame = vec![0; LONGEST];
        let length = self.state.write_message(self.nonce, &plain, &mut frame).map_err(refused)?;
        self.nonce += 1;
        write_frame(&mut self.stream, &frame[..length])
    }

    /// Ends the session for both.
    pub(crate) fn end(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
