//! `weir ap show`: asks the aggregation points that work in this network namespace. Each listens at an abstract Unix socket (unix(7)),
//! whose name is its device: it belongs to the namespace, only one process can have it, and it goes with that process.

use crate::failure::Failure;
use crate::output::{print, print_json};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;
use weir_live::ap::{Snapshot, Watch};

/// Prefix of the sockets' names.
const PREFIX: &str = "weir-ap:";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest answer: 32 applications with some tens of values each.
const LONGEST: u64 = 1 << 20;

fn address(device: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{PREFIX}{device}"))
}

/// Whether the other end of a connection is root or the same user.
fn is_trusted(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

/// The socket at which an aggregation point answers `weir ap show`.
pub(super) struct Listener(UnixListener);

impl Listener {
    /// Takes the name of a device.
    ///
    /// # Errors
    /// Another aggregation point has it.
    pub(super) fn open(device: &str) -> Result<Listener, Failure> {
        let listener = address(device).and_then(|address| UnixListener::bind_addr(&address));
        listener.map(Listener).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Failure::bad_input(
                format!("an aggregation point is already running at {device}"),
                "`weir ap show` lists the running ones",
            ),
            _ => Failure::bad_input(
                format!("{device:?} is not the name of a device: {error}"),
                "`ip link` lists the devices",
            ),
        })
    }

    /// Answers on a thread of its own until the process ends.
    pub(super) fn serve(self, watch: Watch) -> Result<(), Failure> {
        let work = move || {
            for stream in self.0.incoming().flatten().filter(is_trusted) {
                let _ = answer(stream, &watch);
            }
        };
        let thread = std::thread::Builder::new().name("weir-show".into()).spawn(work);
        thread.map(drop).map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))
    }
}

fn answer(mut stream: UnixStream, watch: &Watch) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&serde_json::to_vec(&watch.snapshot())?)
}

/// The local devices of the aggregation points in this network namespace.
fn working() -> Vec<String> {
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    // Abstract names begin with @ there, listening sockets have the flag 00010000 (proc(5)).
    let of = |line: &str| {
        let listens = line.split_whitespace().nth(3) == Some("00010000");
        let (_, device) = line.split_once(&format!(" @{PREFIX}"))?;
        listens.then(|| device.to_owned())
    };
    let mut devices: Vec<String> = sockets.lines().filter_map(of).collect();
    devices.sort();
    devices
}

fn ask(device: &str) -> io::Result<Snapshot> {
    let stream = UnixStream::connect_addr(&address(device)?)?;
    if !is_trusted(&stream) {
        return Err(io::Error::other("it belongs to another user"));
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = vec![];
    stream.take(LONGEST).read_to_end(&mut text)?;
    if text.is_empty() {
        return Err(io::Error::other("it answers only root and its own user"));
    }
    Ok(serde_json::from_slice(&text)?)
}

pub(super) fn show(device: Option<&str>, json: bool) -> Result<(), Failure> {
    let devices = device.map_or_else(working, |device| vec![device.to_owned()]);
    let snapshots = devices.iter().map(|device| {
        ask(device).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Failure::bad_input(
                format!("no aggregation point is running at {device}"),
                "name the device towards its endpoints (--local); without a name all are shown",
            ),
            _ => Failure::failed(format!("the aggregation point at {device} does not answer: {error}")),
        })
    });
    let snapshots: Vec<Snapshot> = snapshots.collect::<Result<_, _>>()?;
    if json {
        return print_json(&snapshots);
    }
    match &snapshots[..] {
        [] => print("no aggregation point is running here\n"),
        some => print(&some.iter().map(told).collect::<Vec<_>>().join("\n")),
    }
}

/// A snapshot as text, without the counters that are zero.
pub(super) fn told(snapshot: &Snapshot) -> String {
    let Snapshot { local, path, up_s, packets, applications } = snapshot;
    let mut text = format!("aggregation point between {local} and {path}, for {up_s:.0} s\n");
    let counted: Vec<_> = packets.iter().filter(|(_, count)| *count > 0).collect();
    let width = |names: &mut dyn Iterator<Item = usize>| names.max().unwrap_or(0);
    let label = width(&mut counted.iter().map(|(name, _)| name.len()));
    for (name, count) in counted {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:label$}  {count:>12}");
    }
    for application in applications {
        let _ = writeln!(text, "  application {}, {}", application.id, application.name);
        let label = width(&mut application.values.iter().map(|(name, _)| name.len()));
        for (name, value) in &application.values {
            let value = if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.3}") };
            let _ = writeln!(text, "    {name:label$}  {value:>12}");
        }
    }
    text
}
