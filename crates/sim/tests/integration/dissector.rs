//! The Wireshark dissector of SLIQ (docs/sliq.lua), run by tshark, shows every field as `weir_sliq::wire` has written it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use weir_engine::{Capture, Engine, Watch};
use weir_plan::Lab;
use weir_record::Records;
use weir_sim::Simulator;
use weir_sliq::wire::{Ack, Data, Flags, Frame, Header, Kind, Marks, Part, Repair, is_well_formed};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// The UDP payload and these fields of each packet of a protocol in a capture, as tshark shows them with scripts of `docs`. `None`, with a
/// message, if no tshark that runs scripts is installed.
pub(crate) fn tshark(
    scripts: &[&str],
    protocol: &str,
    capture: &Path,
    fields: &[&str],
) -> Option<Vec<(Vec<u8>, Vec<String>)>> {
    let mut tshark = Command::new("tshark");
    for script in scripts {
        tshark.args(["-X", &format!("lua_script:{DOCS}/{script}")]);
    }
    tshark.args(["-r", capture.to_str().unwrap(), "-Y", protocol, "-T", "fields", "-e", "udp.payload"]);
    for field in fields {
        tshark.args(["-e", &format!("{protocol}.{field}")]);
    }
    let output = match tshark.output() {
        Ok(output) if output.status.success() => output,
        other => {
            let why =
                other.map_or_else(|error| error.to_string(), |o| String::from_utf8_lossy(&o.stderr).into());
            assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "tshark is required: {why}");
            eprintln!("skipped: there is no tshark here that runs scripts: {why}");
            return None;
        }
    };
    let byte = |hex: &[u8]| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let mut columns = line.split('\t').map(str::to_owned);
        let payload = columns.next().unwrap();
        (payload.as_bytes().chunks(2).map(byte).collect(), columns.collect())
    };
    Some(text.lines().map(line).collect())
}

/// The same of SLIQ's packets.
fn dissected(capture: &Path, fields: &[&str]) -> Option<Vec<(Vec<u8>, Vec<String>)>> {
    tshark(&["sliq.lua"], "sliq", capture, fields)
}

const FIELDS: &[&str] = &[
    "kind",
    "connection",
    "number",
    "timestamp",
    "frame",
    "stream",
    "ack.largest",
    "ack.received",
    "ack.difference",
    "ack.delay",
    "ack.ranges",
    "ack.missing",
    "ack.before",
    "data.flags",
    "data.segment",
    "data.distance",
    "data.length",
    "repair.start",
    "repair.segments",
    "repair.number",
    "repair.distance",
    "repair.length",
    "data.due",
    "data.to_go",
    "round_trip",
    "part.offset",
    "part.length",
    "padding.length",
    "marks.ect0",
    "marks.ect1",
    "marks.ce",
    "forward.base",
    "credit.segments",
    "challenge",
    "close.reason",
];

/// The same fields of a plain packet, as tshark is to show them.
fn expected(packet: &[u8]) -> Vec<String> {
    let mut shown: Vec<Vec<String>> = vec![vec![]; FIELDS.len()];
    let mut show = |name: &str, value: String| {
        shown[FIELDS.iter().position(|field| *field == name).unwrap()].push(value);
    };
    let (header, mut rest) = Header::read(packet).unwrap();
    show("kind", (packet[0] & 7).to_string());
    show("connection", format!("0x{:06x}", header.connection));
    show("number", header.number.to_string());
    show("timestamp", header.timestamp.to_string());
    while let Some((frame, after)) = Frame::read(rest) {
        show("frame", rest[0].to_string());
        rest = after;
        match frame {
            Frame::Ack(ack) => {
                show("ack.largest", ack.largest.to_string());
                show("ack.received", ack.received.to_string());
                show("ack.difference", ack.difference.to_string());
                show("ack.delay", ack.delay.to_string());
                show("ack.ranges", ack.ranges().count().to_string());
                let mut below = 0;
                for (high, low) in ack.ranges() {
                    show("ack.missing", (high - below).to_string());
                    show("ack.before", (low - high).to_string());
                    below = low + 1;
                }
            }
            Frame::Data(data) => {
                show("data.flags", format!("0x{:02x}", data.flags.bits()));
                show("stream", data.stream.to_string());
                show("data.segment", data.sequence.to_string());
                show("data.distance", data.distance.to_string());
                show("data.length", data.length.to_string());
                data.due.into_iter().for_each(|due| {
                    show("data.due", due.to_string());
                    show("data.to_go", (due.wrapping_sub(header.timestamp) as i32).to_string());
                });
                rest = &[];
            }
            Frame::Part(part) => {
                show("data.flags", format!("0x{:02x}", part.segment.flags.bits()));
                show("stream", part.segment.stream.to_string());
                show("data.segment", part.segment.sequence.to_string());
                show("data.distance", part.segment.distance.to_string());
                show("data.length", part.segment.length.to_string());
                assert_eq!(part.segment.due, None);
                show("part.offset", part.offset.to_string());
                show("part.length", part.length.to_string());
                rest = &[];
            }
            Frame::RoundTrip(micros) => show("round_trip", micros.to_string()),
            Frame::Marks(marks) => {
                show("marks.ect0", marks.ect0.to_string());
                show("marks.ect1", marks.ect1.to_string());
                show("marks.ce", marks.ce.to_string());
            }
            Frame::Padding { length } => {
                show("padding.length", length.to_string());
                rest = &[];
            }
            Frame::Repair(repair) => {
                show("stream", repair.stream.to_string());
                show("repair.start", repair.start.to_string());
                show("repair.segments", repair.k.to_string());
                show("repair.number", repair.number.to_string());
                show("repair.distance", repair.distance.to_string());
                show("repair.length", repair.length.to_string());
                rest = &[];
            }
            Frame::Forward { stream, base } => {
                show("stream", stream.to_string());
                show("forward.base", base.to_string());
            }
            Frame::Credit { stream, segments } => {
                show("stream", stream.to_string());
                show("credit.segments", segments.to_string());
            }
            Frame::Challenge(number) | Frame::Response(number) => {
                show("challenge", format!("0x{number:016x}"))
            }
            Frame::Close { reason } => show("close.reason", reason.to_string()),
            Frame::Ping => {}
        }
    }
    shown.into_iter().map(|values| values.join(",")).collect()
}

/// A capture of UDP packets with these payloads, from and to this port (link type RAW, IPv4).
fn capture(payloads: &[Vec<u8>], port: u16) -> Vec<u8> {
    let mut file: Vec<u8> = vec![];
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for payload in payloads {
        let builder = etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(port, port);
        let mut packet = vec![];
        builder.write(&mut packet, payload).unwrap();
        for word in [0, 0, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

#[test]
fn every_frame_is_shown_field_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let packet = |kind: Kind, frames: &[Frame], payload: usize| {
        let mut bytes = vec![];
        Header { kind, connection: 0xab_cdef, number: 0x0102_0304, timestamp: 0xf000_0001 }.write(&mut bytes);
        frames.iter().for_each(|frame| frame.write(&mut bytes));
        bytes.extend((0..payload).map(|n| n as u8));
        bytes
    };
    let mut ack = Ack::new(70_000, 69_000, 12_345, 40);
    ack.set_first(7);
    assert!(ack.push(2, 5) && ack.push(1, 0));
    let flags = Flags { ordered: true, last: true, prompt: true, ..Flags::default() };
    let data = Data { flags, stream: 3, sequence: 4_000_000_000, distance: 9, length: 100, due: None };
    let coded = Data { flags: Flags { coded: true, ..flags }, due: Some(0xf000_1001), ..data };
    let late = Data { due: Some(0xeff0_0001), ..coded };
    let repair = Repair { stream: 4, start: 77, k: 9, number: 5, distance: 11, length: 50 };
    let plain = [
        packet(Kind::Open, &[], 0),
        packet(Kind::Accept, &[Frame::Marks(Marks { ect0: 70_000, ect1: 0, ce: 3 }), Frame::Ack(ack)], 0),
        packet(Kind::Within, &[Frame::Ack(ack), Frame::Data(data)], 100),
        packet(Kind::Within, &[Frame::Repair(repair)], 50),
        packet(Kind::Within, &[Frame::Part(Part { segment: data, offset: 70, length: 30 })], 30),
        packet(Kind::Within, &[Frame::RoundTrip(20_017), Frame::Data(coded)], 100),
        packet(Kind::Within, &[Frame::Data(late)], 100),
        packet(Kind::Within, &[Frame::Ping, Frame::Padding { length: 40 }], 40),
        packet(
            Kind::Within,
            &[Frame::Forward { stream: 1, base: 8 }, Frame::Credit { stream: 255, segments: 9 }, Frame::Ping],
            0,
        ),
        packet(Kind::Within, &[Frame::Challenge(0x0102_0304_0506_0708), Frame::Response(9)], 0),
        packet(Kind::Within, &[Frame::Close { reason: 2 }], 0),
    ];
    assert!(plain.iter().all(|packet| is_well_formed(&packet[12..], 0)));
    let file = folder.path().join("plain.pcap");
    fs::write(&file, capture(&plain, 40_000)).unwrap();
    let Some(shown) = dissected(&file, FIELDS) else { return };
    assert_eq!(shown.len(), plain.len());
    for ((payload, fields), packet) in shown.iter().zip(&plain) {
        assert_eq!((payload, fields), (packet, &expected(packet)));
    }
    // The same behind CP headers of either version.
    for (first, length) in [(0x10, 20), (0x20, 36)] {
        let mut header = vec![0; length];
        header[0] = first;
        let behind: Vec<Vec<u8>> = plain.iter().map(|packet| [&header[..], packet].concat()).collect();
        fs::write(&file, capture(&behind, 40_000)).unwrap();
        let shown = dissected(&file, FIELDS).unwrap();
        assert_eq!(shown.len(), plain.len());
        for ((payload, fields), (whole, packet)) in shown.iter().zip(behind.iter().zip(&plain)) {
            assert_eq!((payload, fields), (whole, &expected(packet)));
        }
    }
    // A cookie, and a sealed packet after a key update: on SLIQ's port only, since nothing distinguishes them from other packets.
    let mut cookie = packet(Kind::Within, &[], 16);
    cookie[0] = 0x54;
    let mut sealed = packet(Kind::Within, &[], 60);
    sealed[0] |= 8;
    let file = folder.path().join("sealed.pcap");
    fs::write(&file, capture(&[cookie.clone(), sealed.clone()], 7765)).unwrap();
    let shown = dissected(&file, &["kind", "cookie", "sealed", "key_phase"]).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(shown[0].1[..3], ["4", &hex(&cookie[12..]), ""]);
    assert_eq!(shown[1].1[..3], ["3", "", &hex(&sealed[12..])]);
    // Versions of tshark differ in how they write booleans.
    assert!(["1", "True"].contains(&shown[1].1[3].as_str()) && shown[0].1[3] != shown[1].1[3]);
    // On other ports, these packets and packets that are not SLIQ are left alone.
    fs::write(&file, capture(&[cookie, sealed, vec![0x53; 40]], 40_000)).unwrap();
    assert!(dissected(&file, &["kind"]).unwrap().is_empty());
}

/// A stream with a deadline that fills a lossy link, and data in the other direction, so that the link carries acknowledgements too.
const LAB: &str = r#"
[run]
duration = "3 s"
[dumbbell]
rate = "10 Mbit/s"
rtt = "20 ms"
loss = { down = 0.4, up = 0.4 }
[traffic.stream]
cc = "copa"
transport = { kind = "sliq", stream = { delivery = "arq-fec", deadline = "50 ms" } }
workload = "bulk"
[traffic.back]
cc = "copa"
transport = "sliq"
workload = "bulk"
direction = "up"
"#;

#[test]
fn a_capture_of_a_simulated_run_is_shown_as_it_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::from_str(&format!("format = 1\n{LAB}"), "lab.toml", folder.path(), &[]).unwrap();
    let run = &lab.runs()[0];
    let capture = Capture::of_link(run, "down", folder.path()).unwrap();
    let cancel = AtomicBool::new(false);
    let watch = Watch { cancel: &cancel, progress: &|_| {}, capture: Some(capture.clone()), folder: None };
    Simulator.run(run, &mut Records::default(), &watch).unwrap();
    capture.finish().unwrap();
    let Some(shown) = dissected(&folder.path().join("down.pcap"), FIELDS) else { return };
    assert!(shown.len() > 1000, "{}", shown.len());
    let mut seen = [0; 14];
    for (payload, fields) in &shown {
        assert_eq!(fields, &expected(payload));
        let frame = FIELDS.iter().position(|field| *field == "frame").unwrap();
        fields[frame]
            .split(',')
            .filter_map(|kind| kind.parse::<usize>().ok())
            .for_each(|kind| seen[kind] += 1);
    }
    // Acknowledgements, data and repair packets; and the round trip, without which no packet can be known to be late.
    assert!(seen[1..4].iter().all(|count| *count > 10) && seen[13] > 0, "{seen:?}");
}
