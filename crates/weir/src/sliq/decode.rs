//! `weir sliq decode`: a capture of sealed packets, written again with the packets that a log of keys opens.

mod datagram;

use clap::Args;
use datagram::Datagram;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use weir_daemon::{Failure, print};
use weir_engine::PacketFile;
use weir_observe::{Capture, CaptureError, Packet};
use weir_sliq::secrets::{Secrets, Unsealing, connection_of};
use weir_sliq::wire::{HEADER, TAG};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir overlay node a.toml --key-log a.keys
  tcpdump -i eth1 -w sealed.pcap
  weir sliq decode sealed.pcap --keys a.keys --out plain.pcap
  tshark -X lua_script:docs/sliq.lua -X lua_script:docs/overlay.lua -o overlay.notes:FALSE -r plain.pcap -Y overlay

A packet of a connection in the log becomes what was sealed; all else is written as it was captured, from its IP header on. The log of either \
end is enough. Packets that a card was still to cut into segments are cut. What sites have sealed for each other stays sealed.
Exit status: 0 done; 1 no sealed packet could be opened; 2 bad input.")]
pub(crate) struct DecodeArgs {
    /// A capture in the format pcap or pcapng
    capture: PathBuf,
    /// A log of keys, as --key-log writes it
    #[arg(long, value_name = "FILE", required = true)]
    keys: Vec<PathBuf>,
    /// The capture to write (pcap)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Numbers of packets of the capture.
#[derive(Default)]
struct Counts {
    opened: u64,
    /// Sealed packets that no line of the logs opens.
    closed: u64,
    /// Other packets, which are written as they were.
    others: u64,
    /// Frames that are not of IP.
    left_out: u64,
}

/// Decodes the capture.
///
/// # Errors
/// A file cannot be read or written, or no sealed packet could be opened.
pub(crate) fn decode(args: &DecodeArgs) -> Result<(), Failure> {
    let mut connections = Connections::default();
    args.keys.iter().try_for_each(|path| connections.learn(path))?;
    if let (Ok(from), Ok(to)) = (fs::canonicalize(&args.capture), fs::canonicalize(&args.out))
        && from == to
    {
        return Err(Failure::bad_input("--out names the capture itself", "name another file"));
    }
    let file = File::open(&args.capture).map_err(|error| wrong(&args.capture, &error.to_string()))?;
    let mut capture = Capture::open(BufReader::new(file)).map_err(|error| match error {
        CaptureError::Read(error) => wrong(&args.capture, &error.to_string()),
        error => wrong(&args.capture, &format!("not a capture: {error}")),
    })?;
    let mut out = PacketFile::create(&args.out).map_err(|error| wrong(&args.out, &error.to_string()))?;
    let unwritten =
        |error: std::io::Error| Failure::failed(format!("cannot write {}: {error}", args.out.display()));
    let mut counts = Counts::default();
    while let Some(frame) = capture.next_frame().map_err(|error| wrong(&args.capture, &error.to_string()))? {
        let Ok(ip) = Packet::ip(&frame) else {
            counts.left_out += 1;
            continue;
        };
        let datagram = Datagram::of(&frame, ip).filter(|datagram| connection_of(datagram.payload).is_some());
        let opened = datagram.as_ref().map(|datagram| connections.open(datagram.payload)).unwrap_or_default();
        if let Some(datagram) = datagram.filter(|_| !opened.is_empty()) {
            counts.opened += opened.len() as u64;
            for plain in &opened {
                out.write(frame.at, &datagram.with(plain)).map_err(unwritten)?;
            }
            continue;
        }
        let count = if datagram.is_some() { &mut counts.closed } else { &mut counts.others };
        *count += 1;
        out.write(frame.at, ip).map_err(unwritten)?;
    }
    out.finish().map_err(unwritten)?;
    told(&counts)
}

/// What the command says at its end.
fn told(counts: &Counts) -> Result<(), Failure> {
    let Counts { opened, closed, others, left_out } = counts;
    let text = format!(
        "{opened} sealed packets opened, {closed} not; {others} other packets as they were, {left_out} left out since they are not of IP\n"
    );
    if *opened == 0 && *closed > 0 {
        let help = "the log must be of an end of these connections, and begin before they did";
        return Err(Failure::failed_with(text.trim_end(), help));
    }
    print(&text)
}

fn wrong(path: &Path, what: &str) -> Failure {
    Failure::bad_input(format!("{}: {what}", path.display()), "name a file that you may use")
}

/// The connections of the logs. Those of different times may have the same number.
#[derive(Default)]
struct Connections(BTreeMap<u32, Vec<Unsealing>>);

impl Connections {
    /// Reads a log of keys.
    fn learn(&mut self, path: &Path) -> Result<(), Failure> {
        let text = fs::read_to_string(path).map_err(|error| wrong(path, &error.to_string()))?;
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let refused = |why: &str| {
                let message = format!("{}, line {number}: {why}", path.display());
                Failure::bad_input(message, "lines are as `weir overlay node --key-log` writes them")
            };
            let secrets = Secrets::read(line).map_err(refused)?;
            let reader = Unsealing::new(&secrets).ok_or_else(|| refused("these are no secrets"))?;
            self.0.entry(secrets.connection).or_default().push(reader);
        }
        Ok(())
    }

    /// The packets of a payload, in clear; none if they do not open. A payload of several packets of one length, but for the last, is one that a
    /// card was still to cut.
    fn open(&mut self, payload: &[u8]) -> Vec<Vec<u8>> {
        let readers = connection_of(payload).and_then(|connection| self.0.get_mut(&connection));
        let Some(readers) = readers else { return vec![] };
        let mut open = |packet: &[u8]| {
            let mut plain = vec![];
            readers.iter_mut().any(|reader| reader.open(packet, &mut plain)).then_some(plain)
        };
        if let Some(plain) = open(payload) {
            return vec![plain];
        }
        // Each packet begins as the first one does.
        let begins = |at: &usize| payload[*at..].starts_with(&payload[..4]);
        for length in (HEADER + TAG..payload.len() - HEADER).filter(begins) {
            if let Some(first) = open(&payload[..length]) {
                let rest = payload[length..].chunks(length).filter_map(open);
                return std::iter::once(first).chain(rest).collect();
            }
        }
        vec![]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Time;
    use weir_sliq::seal::{KEY, Seal};

    /// A plain packet of connection 0xabcdef.
    fn packet(number: u32, said: &[u8]) -> Vec<u8> {
        [&[0x53, 0xab, 0xcd, 0xef][..], &number.to_be_bytes(), &[0; 4], said].concat()
    }

    #[test]
    fn packets_that_a_card_was_to_cut_are_opened_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("keys");
        let line = format!("SLIQ abcdef {} {}\n", "01".repeat(KEY), "02".repeat(KEY));
        // Another connection of that number, which ended before.
        let other = format!("# two connections\nSLIQ abcdef {} {}\n", "03".repeat(KEY), "04".repeat(KEY));
        fs::write(&log, other + &line).unwrap();
        let mut connections = Connections::default();
        connections.learn(&log).unwrap();
        let mut end = Seal::new([1; KEY].into(), [2; KEY].into(), Time::ZERO).unwrap();
        let plain = [packet(7, b"one is said"), packet(8, b"two is said"), packet(9, b"three")];
        let sealed = plain.clone().map(|mut packet| {
            assert!(end.seal(&mut packet, Time::ZERO));
            packet
        });
        assert_eq!(connections.open(&sealed.concat()), plain);
        assert_eq!(connections.open(&sealed[1]), [plain[1].clone()]);
        assert_eq!(connections.open(&sealed[0][1..]), Vec::<Vec<u8>>::new(), "it is of another connection");
        let [mut changed, ..] = sealed;
        changed[HEADER] ^= 1;
        assert_eq!(connections.open(&changed), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_line_that_is_none_is_told_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("keys");
        fs::write(&log, "# a log\n\nSLIQ abcdef 01 02\n").unwrap();
        let refused = Connections::default().learn(&log).unwrap_err();
        assert!(
            refused.message.contains("line 3: a secret is no 64 hexadecimal digits"),
            "{}",
            refused.message
        );
    }
}
