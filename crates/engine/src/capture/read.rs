//! Reads the packets of one TCP flow from a capture that weir wrote: pcap in little-endian order with nanosecond stamps and link
//! type RAW (draft-ietf-opsawg-pcap). Other formats are refused. A capture that ends within a packet ends before it.

use crate::location::RunLocation;
use crate::results::FinishedRun;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use weir_base::Time;
use weir_record::trajectory::packets::Segment;

/// The first bytes of a file with nanosecond stamps, in little-endian order.
const MAGIC: [u8; 4] = 0xa1b2_3c4d_u32.to_le_bytes();
/// Link type RAW: packets begin with their IP header.
const RAW: u32 = 101;
/// Number of bytes of a packet that are looked at: the longest headers of IPv6 (without extensions) and TCP, 40 + 60.
const HEADERS: usize = 100;
/// Largest number of packets of a flow that are kept; a difference is looked for in these.
const MOST_SEGMENTS: usize = 2_000_000;
/// The number of TCP in the IP header.
const TCP: u8 = 6;

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
/// The file cannot be read, or is no capture of weir's.
pub fn segments_of(file: &Path, port: u16) -> io::Result<Vec<Segment>> {
    segments(BufReader::new(File::open(file)?), port)
}

/// The packets to or from this TCP port in a capture.
///
/// # Errors
/// The bytes cannot be read, or are no capture of weir's.
pub fn segments(mut capture: impl Read, port: u16) -> io::Result<Vec<Segment>> {
    let mut head = [0; 24];
    capture.read_exact(&mut head)?;
    if !head.starts_with(&MAGIC) || little(&head, 20) != RAW {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a capture that weir wrote"));
    }
    let mut found = vec![];
    let mut record = [0; 16];
    let mut packet = [0; HEADERS];
    while found.len() < MOST_SEGMENTS && is_read(&mut capture, &mut record)? {
        let length = little(&record, 8) as usize;
        let told = length.min(HEADERS);
        let rest = (length - told) as u64;
        if !is_read(&mut capture, &mut packet[..told])?
            || io::copy(&mut capture.by_ref().take(rest), &mut io::sink())? < rest
        {
            break;
        }
        let nanos = u64::from(little(&record, 0)) * 1_000_000_000 + u64::from(little(&record, 4));
        found.extend(segment(&packet[..told], port, Time::from_nanos(nanos)));
    }
    Ok(found)
}

/// Fills the buffer; false if the capture ends first.
fn is_read(capture: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match capture.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn little(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}

/// Reads the headers of a packet (RFC 791, RFC 8200 without extension headers, RFC 9293). `None` if it is not of this flow.
fn segment(ip: &[u8], port: u16, at: Time) -> Option<Segment> {
    let (protocol, header, total) = match ip.first()? >> 4 {
        4 => (*ip.get(9)?, usize::from(ip[0] & 15) * 4, usize::from(u16_at(ip, 2)?)),
        6 => (*ip.get(6)?, 40, 40 + usize::from(u16_at(ip, 4)?)),
        _ => return None,
    };
    let tcp = ip.get(header..).filter(|_| protocol == TCP && header >= 20)?;
    if u16_at(tcp, 0)? != port && u16_at(tcp, 2)? != port {
        return None;
    }
    let offset = usize::from(tcp.get(12)? >> 4) * 4;
    let flags = *tcp.get(13)?;
    let options = tcp.get(20..offset).unwrap_or_default();
    Some(Segment {
        at,
        sequence: u32_at(tcp, 4)?,
        payload: total.checked_sub(header + offset)? as u32,
        syn: flags & 0x02 != 0,
        acknowledgement: if flags & 0x10 == 0 { None } else { Some(u32_at(tcp, 8)?) },
        sack: sack(options),
    })
}

/// The SACK blocks among the options (kind 5, RFC 2018 section 3).
fn sack(mut options: &[u8]) -> Vec<(u32, u32)> {
    loop {
        options = match options {
            [1, rest @ ..] => rest,
            [kind, length, ..] if *kind != 0 && *length >= 2 => {
                let Some((option, behind)) = options.split_at_checked((*length).into()) else {
                    return vec![];
                };
                if *kind == 5 {
                    let block = |block: &[u8]| Some((u32_at(block, 0)?, u32_at(block, 4)?));
                    return option[2..].chunks_exact(8).filter_map(block).collect();
                }
                behind
            }
            _ => return vec![],
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capture of these packets, each with its second.
    fn capture(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
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
        let mut bytes = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, TCP];
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
