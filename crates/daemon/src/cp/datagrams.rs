//! Datagrams with a CP header (CP-UDP): parts of the input at a fixed rate. An empty datagram marks the end. It is
//! sent several times, since datagrams may be lost.

use super::socket::Socket;
use super::{Input, RecvArgs, SendArgs, Who};
use crate::failure::Failure;
use crate::frame::{Process, log};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use weir_base::{Bytes, Span};
use weir_coord::cell::{Cell, Family};
use weir_coord::header::Version;
use weir_coord::participation::Identity;
use weir_coord::{Statistic, endpoint};

/// The CP transport's number in the header; aggregation points do not look at it.
const PROTOCOL: u8 = 2;
/// Longest headers of a datagram: IPv6, UDP and CP.
const HEADERS: u64 = 40 + 8 + 36;
/// How many times the end is sent, and the time between.
const ENDS: usize = 5;
const BETWEEN_ENDS: Duration = Duration::from_millis(50);
/// Shortest time between the empty datagrams with which the receiver answers: the sender's aggregation point measures the path by
/// packets that come back.
const ANSWER: Duration = Duration::from_millis(20);
/// Time between two checks for an interrupt.
const LOOK: Duration = Duration::from_millis(200);

const RTT: Cell = Family::Rtt.cell(Statistic::Smoothed);
const FLOWSHARE: Cell = Family::Bandwidth.cell(Statistic::Latest);

fn socket(who: &Who, peer: Option<std::net::SocketAddr>, identity: &Identity) -> Result<Socket, Failure> {
    let Identity { flow, key, epoch } = *identity;
    let identity = endpoint::Identity { application: who.application, flow, protocol: PROTOCOL, key, epoch };
    Socket::bind(who.at, peer, identity, Version::One, &[RTT, FLOWSHARE])
        .map_err(|error| Failure::failed(format!("{}: {error}", who.at)))
}

/// Sends the input in datagrams of `size` bytes.
pub(super) fn send(
    args: &SendArgs,
    identity: &Identity,
    size: Bytes,
    input: &mut Input,
    process: &Process,
) -> Result<(), Failure> {
    let most = Bytes::new(args.who.mtu.get() - HEADERS);
    if size == Bytes::ZERO || size > most {
        let message = format!("a datagram cannot carry {size}");
        return Err(Failure::bad_input(message, format!("write from 1 B to {most}, or a larger --mtu")));
    }
    let mut socket = socket(&args.who, Some(args.to), identity)?;
    args.who.begin(process)?;
    let lost = |error: std::io::Error| Failure::failed(error.to_string());
    let rate = args.rate;
    let (mut bytes, mut count, began) = (vec![0; size.get() as usize], 0u64, Instant::now());
    let mut due = Span::ZERO;
    loop {
        let length = fill(input, &mut bytes).map_err(lost)?;
        if length == 0 {
            break;
        }
        // Reports are taken while the next datagram waits for its time.
        while let Some(left) = Duration::from_nanos(due.as_nanos()).checked_sub(began.elapsed()) {
            if process.stops() {
                return Err(Failure::interrupted("interrupted"));
            }
            socket.receive(Some(left.min(LOOK))).map_err(lost)?;
        }
        socket.send(&bytes[..length]).map_err(lost)?;
        count += 1;
        due += rate.time_to_send(Bytes::new(length as u64 + HEADERS));
    }
    for _ in 0..ENDS {
        socket.send(&[]).map_err(lost)?;
        socket.receive(Some(BETWEEN_ENDS)).map_err(lost)?;
    }
    socket.ask().map_err(lost)?;
    socket.receive(Some(BETWEEN_ENDS)).map_err(lost)?;
    log::info(&format!(
        "sent {count} datagrams in {:.3} s; {}",
        began.elapsed().as_secs_f64(),
        path(&socket)
    ));
    Ok(())
}

/// Fills `to` from the input. Returns the bytes read: fewer than `to` holds only at the end of the input.
fn fill(input: &mut Input, to: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < to.len() {
        match input.read(&mut to[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

/// Writes the payloads of datagrams, until the empty one.
pub(super) fn recv(
    args: &RecvArgs,
    identity: &Identity,
    output: &mut dyn Write,
    process: &Process,
) -> Result<(), Failure> {
    let mut socket = socket(&args.who, None, identity)?;
    args.who.begin(process)?;
    let lost = |error: std::io::Error| Failure::failed(error.to_string());
    let (mut count, mut bytes, mut answered) = (0u64, 0u64, None::<Instant>);
    loop {
        if process.stops() {
            return Err(Failure::interrupted("interrupted"));
        }
        let Some(payload) = socket.receive(Some(LOOK)).map_err(lost)? else { continue };
        if payload.is_empty() {
            break;
        }
        output.write_all(payload).map_err(lost)?;
        (count, bytes) = (count + 1, bytes + payload.len() as u64);
        if answered.is_none_or(|at| at.elapsed() >= ANSWER) {
            socket.send(&[]).map_err(lost)?;
            answered = Some(Instant::now());
        }
    }
    output.flush().map_err(lost)?;
    log::info(&format!("received {count} datagrams, {bytes} bytes; {}", path(&socket)));
    Ok(())
}

/// The last reports about the path, as text.
fn path(socket: &Socket) -> String {
    let report = |cell| socket.value(cell).filter(|value| *value > 0);
    match (report(RTT), report(FLOWSHARE)) {
        (None, None) => "nothing was reported".to_owned(),
        (rtt, flowshare) => format!(
            "the last reports: a round trip of {:.1} ms, a flowshare of {:.2} Mbit/s",
            f64::from(rtt.unwrap_or(0)) / 1e3,
            f64::from(flowshare.unwrap_or(0)) * 8.192e-3
        ),
    }
}
