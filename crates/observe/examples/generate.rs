//! Writes a capture to standard output, by which the speed and the memory of an analysis are measured: TCP flows whose packets alternate at
//! random, an acknowledgement for each two segments when the flow comes next, one segment in a thousand retransmitted.
//!
//!     cargo run --release --example generate -- BYTES FLOWS SNAP > large.pcap

use std::io::{self, BufWriter, Write};
use weir_base::Random;

/// Bytes of IP in a data packet: 20 of IP, 32 of TCP with timestamps, 1448 of data.
const DATA: usize = 1500;
const PAYLOAD: u32 = 1448;
/// Bytes of IP in an acknowledgement.
const ACK: usize = 52;
/// Time between packets in nanoseconds.
const GAP: u64 = 1000;

#[derive(Clone, Copy, Default)]
struct Flow {
    sequence: u32,
    segments: u32,
    is_open: bool,
}

fn main() -> io::Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [bytes, flows, snap] = numbers[..] else {
        return Err(io::Error::other("give the number of bytes, of flows, and of bytes kept of a packet"));
    };
    let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    let mut header = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    header.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
    out.write_all(&header)?;
    let mut written = header.len() as u64;
    let mut random = Random::stream(1, "generate");
    let mut state = vec![Flow::default(); flows as usize];
    let mut packet = [0; DATA];
    let mut now = 0;
    let mut write = |number: u64, is_back: bool, sequence: u32, ack: u32, flags: u8, length: usize| {
        now += GAP;
        let captured = length.min(snap as usize);
        let stamp = (now / 1_000_000) as u32;
        fill(&mut packet, number as u32, is_back, [sequence, ack], flags, stamp, length as u16);
        let words =
            [(now / 1_000_000_000) as u32, (now % 1_000_000_000) as u32, captured as u32, length as u32];
        for word in words {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&packet[..captured])?;
        written += 16 + captured as u64;
        io::Result::Ok(written < bytes)
    };
    loop {
        let number = random.below(flows);
        let flow = &mut state[number as usize];
        if !flow.is_open {
            flow.is_open = true;
            write(number, false, 0, 0, 0x02, ACK)?;
            write(number, true, 0, 1, 0x12, ACK)?;
            flow.sequence = 1;
        }
        if flow.segments % 2 == 0 && flow.segments > 0 {
            write(number, true, 1, flow.sequence, 0x10, ACK)?;
        }
        let is_again = flow.segments > 0 && random.below(1000) == 0;
        let sequence = if is_again { flow.sequence.wrapping_sub(PAYLOAD) } else { flow.sequence };
        let goes_on = write(number, false, sequence, 1, 0x10, DATA)?;
        if !is_again {
            flow.sequence = flow.sequence.wrapping_add(PAYLOAD);
            flow.segments += 1;
        }
        if !goes_on {
            break;
        }
    }
    out.flush()
}

/// Writes the headers of IPv4 and TCP.
fn fill(packet: &mut [u8], flow: u32, is_back: bool, numbers: [u32; 2], flags: u8, stamp: u32, length: u16) {
    let mut ends = [([10, 0, 0, 1], (flow >> 16) as u16 + 1024), ([10, 0, 0, 2], flow as u16)];
    if is_back {
        ends.reverse();
    }
    packet[..10].copy_from_slice(&[0x45, 2, (length >> 8) as u8, length as u8, 0, 0, 0x40, 0, 64, 6]);
    packet[12..16].copy_from_slice(&ends[0].0);
    packet[16..20].copy_from_slice(&ends[1].0);
    packet[20..22].copy_from_slice(&ends[0].1.to_be_bytes());
    packet[22..24].copy_from_slice(&ends[1].1.to_be_bytes());
    packet[24..28].copy_from_slice(&numbers[0].to_be_bytes());
    packet[28..32].copy_from_slice(&numbers[1].to_be_bytes());
    packet[32..40].copy_from_slice(&[0x80, flags, 16, 0, 0, 0, 0, 0]);
    packet[40..44].copy_from_slice(&[1, 1, 8, 10]);
    packet[44..48].copy_from_slice(&stamp.to_be_bytes());
    packet[48..52].copy_from_slice(&stamp.to_be_bytes());
}
