//! Reads the packets of one TCP flow from a capture. A capture that ends within a packet ends before it.

use crate::location::RunLocation;
use crate::results::FinishedRun;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use weir_base::Time;
use weir_observe::{Capture, CaptureError, Packet, Tcp};
use weir_record::trajectory::packets::Segment;

/// Largest number of packets of a flow that are kept; a difference is looked for in these.
const MOST_SEGMENTS: usize = 2_000_000;

/// The captured links of a run, each with its file.
pub fn captured(run: &FinishedRun) -> Vec<(String, PathBuf)> {
    let RunLocation::Folder(folder) = &run.location else { return vec![] };
    let links = run.file.run.instrumented_links().map(|(_, link)| link.name.as_str());
    let files = links.map(|link| (link.to_string(), folder.join(format!("{link}.pcap"))));
    files.filter(|(_, file)| file.is_file()).collect()
}

/// The packets to or from this TCP port in a file, which all belong to one flow.
///
/// # Errors
/// The file cannot be read, or is no capture.
pub fn segments_of(file: &Path, port: u16) -> io::Result<Vec<Segment>> {
    segments(File::open(file)?, port)
}

/// The packets to or from this TCP port in a capture.
///
/// # Errors
/// The bytes cannot be read, or are no capture.
pub fn segments(capture: impl Read, port: u16) -> io::Result<Vec<Segment>> {
    let mut capture = Capture::open(capture).map_err(|error| match error {
        CaptureError::Read(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    })?;
    let mut found = vec![];
    while found.len() < MOST_SEGMENTS {
        let Some(frame) = capture.next_frame()? else { break };
        if let Ok(Packet { ports, tcp: Some(tcp), .. }) = Packet::of(&frame)
            && ports.contains(&port)
        {
            found.push(segment(frame.at, &tcp));
        }
    }
    Ok(found)
}

fn segment(at: Time, tcp: &Tcp) -> Segment {
    let Tcp { sequence, acknowledgement, payload, syn, .. } = *tcp;
    let sack = tcp.sack.iter().map_while(|block| *block).collect();
    Segment { at, sequence, payload, syn, acknowledgement, sack }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capture of these packets, each with its second.
    fn capture(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0]);
        for (second, packet) in packets {
            for word in [*second, 500, packet.len() as u32, packet.len() as u32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(packet);
        }
        bytes
    }

    /// An IPv4 packet with a TCP header that has these options, and this payload.
    fn packet(ports: [u16; 2], numbers: [u32; 2], flags: u8, options: &[u8], payload: usize) -> Vec<u8> {
        let total = 40 + options.len() + payload;
        let mut bytes = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, weir_observe::TCP];
        bytes.resize(20, 0);
        ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
        numbers.iter().for_each(|number| bytes.extend(number.to_be_bytes()));
        bytes.extend([(((20 + options.len()) / 4) << 4) as u8, flags, 0, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.resize(total, 0);
        bytes
    }

    #[test]
    fn a_capture_gives_the_packets_of_one_flow() {
        // Two paddings, then two SACK blocks: 5 to 7 and 9 to 12.
        let options = [1, 1, 5, 18, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 12];
        let bytes = capture(&[
            (1, packet([40_000, 23_000], [77, 0], 0x02, &[], 0)),
            (2, packet([40_000, 23_001], [77, 0], 0x02, &[], 0)),
            (3, packet([40_000, 23_000], [78, 9], 0x10, &[], 1448)),
            (4, packet([23_000, 40_000], [9, 1526], 0x10, &options, 0)),
        ]);
        let at = |second: u64| Time::from_nanos(second * 1_000_000_000 + 500);
        let expected = [
            Segment { at: at(1), sequence: 77, syn: true, ..Segment::default() },
            Segment {
                at: at(3),
                sequence: 78,
                payload: 1448,
                acknowledgement: Some(9),
                ..Segment::default()
            },
            Segment {
                at: at(4),
                sequence: 9,
                acknowledgement: Some(1526),
                sack: vec![(5, 7), (9, 12)],
                ..Segment::default()
            },
        ];
        assert_eq!(segments(&bytes[..], 23_000).unwrap(), expected);
        // A capture that ends within a packet has those before it.
        assert_eq!(segments(&bytes[..bytes.len() - 1], 23_000).unwrap(), expected[..2]);
        assert!(segments(&bytes[..20], 23_000).is_err());
        assert!(segments(&b"something else, at least as long as a head"[..], 23_000).is_err());
    }
}
