//! The round trip to a host, as the set-up of a connection tells it.

use crate::failure::Failure;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_base::Span;

/// Connections that are asked for.
const TIMES: usize = 10;
/// How long the host may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The least time from the first packet of a connection to its answer, rounded up to whole microseconds. A host that refuses the
/// connection has answered as well. Its packets are small: the transmission of a full one, which the study's ping contains (3.3), is
/// not in it, and what others queue on the path may be.
///
/// # Errors
/// The host does not answer.
pub(crate) fn round_trip(host: SocketAddr) -> Result<Span, Failure> {
    let mut least = Duration::MAX;
    for _ in 0..TIMES {
        let began = Instant::now();
        match TcpStream::connect_timeout(&host, PATIENCE) {
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => {
                let message = format!("{host} does not answer: {error}");
                return Err(Failure::bad_input(
                    message,
                    "name a host that is up, or give the round trip with --rtt",
                ));
            }
            _ => least = least.min(began.elapsed()),
        }
    }
    Ok(Span::from_micros(u64::try_from(least.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)))
}
