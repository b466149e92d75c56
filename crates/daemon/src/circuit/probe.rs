//! Measures the path to a host: the round trip, by the set-up of connections, and the rate, by a bounded burst to a host that
//! runs `weir circuit serve`, which answers how fast the second half of the burst arrived.

use crate::failure::Failure;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_base::{Bytes, Rate, Span};

/// First bytes of a connection that carries a burst. The burst's length follows in four bytes, the most significant first, and
/// then the burst.
pub(crate) const PROBE: [u8; 8] = *b"weir-p 1";
/// The shortest burst and the longest. A receiver takes no more than the longest.
const SHORTEST: u32 = 1 << 20;
const LONGEST: u32 = 64 << 20;
/// The second half of a burst is to take at least this long; otherwise a longer one is sent.
const ENOUGH: Duration = Duration::from_millis(200);
/// Bytes that are written and read at once.
const PIECE: usize = 1 << 16;
/// Ethernet's frame of 1514 bytes has 1448 of payload.
const FRAME: u64 = 1514;
const PAYLOAD: u64 = 1448;

/// Number of connection attempts.
const TIMES: usize = 10;
/// How long the host may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The least time from the first packet of a connection to its answer, rounded up to whole microseconds. A refusal counts as an
/// answer. The packets are small: the time does not contain the transmission of a full packet, as the study's ping does (3.3),
/// but may contain queueing behind others on the path.
///
/// # Errors
/// The host does not answer.
pub fn round_trip(host: SocketAddr) -> Result<Span, Failure> {
    let mut least = Duration::MAX;
    for _ in 0..TIMES {
        let began = Instant::now();
        match TcpStream::connect_timeout(&host, PATIENCE) {
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => {
                let message = format!("{host} does not answer: {error}");
                return Err(Failure::bad_input(
                    message,
                    "name a host that answers, or give the round trip with --rtt",
                ));
            }
            _ => least = least.min(began.elapsed()),
        }
    }
    Ok(Span::from_micros(u64::try_from(least.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)))
}

/// The rate at which a path carries frames of 1514 bytes, computed from TCP's payload; `None` if the host does not run `weir
/// circuit serve`. Bursts grow until the timed half takes 200 ms, or to 64 MiB. The first half does not count: it holds the
/// start of TCP, and what a bucket lets through faster.
///
/// # Errors
/// The connection's.
pub fn rate(host: SocketAddr) -> io::Result<Option<Rate>> {
    let mut length = SHORTEST;
    loop {
        let Some((bytes, took)) = burst(host, length)? else { return Ok(None) };
        if took >= ENOUGH || length == LONGEST {
            let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
            return Ok(Some(Rate::from_bytes_in(
                Bytes::new(bytes * FRAME / PAYLOAD),
                Span::from_nanos(nanos),
            )));
        }
        length = (length * 4).min(LONGEST);
    }
}

/// Sends a burst. Returns how many bytes arrived in its second half, and how long they took; `None` if the host gives no such
/// answer.
fn burst(host: SocketAddr, length: u32) -> io::Result<Option<(u64, Duration)>> {
    let mut stream = TcpStream::connect_timeout(&host, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[&PROBE[..], &length.to_be_bytes()].concat())?;
    let piece = vec![0; PIECE];
    let mut left = length as usize;
    let mut answer = [0; 16];
    let talked = (|| {
        while left > 0 {
            let sent = stream.write(&piece[..left.min(PIECE)])?;
            left -= sent;
        }
        stream.read_exact(&mut answer)
    })();
    match talked {
        // A host that does not know the protocol hangs up, or answers something else.
        Err(error) if [ErrorKind::TimedOut, ErrorKind::WouldBlock].contains(&error.kind()) => Err(error),
        Err(_) => Ok(None),
        Ok(()) => {
            let [a, b, c, d, e, f, g, h, nanos @ ..] = answer;
            let (bytes, nanos) = (u64::from_be_bytes([a, b, c, d, e, f, g, h]), u64::from_be_bytes(nanos));
            let is_sane = (1..=u64::from(length)).contains(&bytes) && nanos > 0;
            Ok(is_sane.then(|| (bytes, Duration::from_nanos(nanos))))
        }
    }
}

/// Receives a burst and answers how fast its second half arrived. [`PROBE`] has been read already.
///
/// # Errors
/// The connection's, or a burst that is too long.
pub(crate) fn receive(mut stream: TcpStream) -> io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if !(SHORTEST..=LONGEST).contains(&length) {
        return Err(io::Error::other("the length of a probe is invalid"));
    }
    let (mut piece, mut came, mut left) = (vec![0; PIECE], vec![], length as usize);
    let began = Instant::now();
    while left > 0 {
        let read = stream.read(&mut piece[..left.min(PIECE)])?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        left -= read;
        came.push((began.elapsed(), read as u64));
    }
    let (bytes, took) = second_half(&came);
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    stream.write_all(&[bytes.to_be_bytes(), nanos.to_be_bytes()].concat())
}

/// The bytes that arrived after the first half, and how long they took.
fn second_half(came: &[(Duration, u64)]) -> (u64, Duration) {
    let total: u64 = came.iter().map(|(_, bytes)| bytes).sum();
    let mut sum = 0;
    for (at, bytes) in came {
        sum += bytes;
        if sum * 2 >= total {
            let last = came.last().map_or(*at, |(last, _)| *last);
            return (total - sum, last - *at);
        }
    }
    (0, Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn only_the_second_half_of_a_burst_counts() {
        let at = Duration::from_millis;
        // 500 bytes come at once, as out of a bucket; then 100 each 10 ms.
        let came: Vec<_> = [(at(0), 500)].into_iter().chain((1..=5).map(|n| (at(n * 10), 100))).collect();
        assert_eq!(second_half(&came), (500, at(50)));
        assert_eq!(second_half(&[]), (0, Duration::ZERO));
        assert_eq!(second_half(&[(at(7), 10)]), (0, Duration::ZERO));
    }

    #[test]
    fn a_burst_is_answered_by_weir_and_by_no_other_program() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut begins = [0; 8];
                stream.read_exact(&mut begins).unwrap();
                assert_eq!(begins, PROBE);
                receive(stream).unwrap();
                drop(listener.accept().unwrap());
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut begins).unwrap();
                assert!(receive(stream).is_err(), "a burst of 1 MiB - 1");
            });
            let (bytes, took) = burst(host, SHORTEST).unwrap().unwrap();
            assert!(
                bytes >= u64::from(SHORTEST) / 2 - PIECE as u64 && took > Duration::ZERO,
                "{bytes} {took:?}"
            );
            assert_eq!(burst(host, SHORTEST).unwrap(), None);
            assert_eq!(burst(host, SHORTEST - 1).unwrap(), None);
        });
    }
}
