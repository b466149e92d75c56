//! The sending side of the UDP proxy: an application's packets become chunks, short ones are joined to blobs, and groups of chunks gain repairs
//! (digest A 7.1).

use super::release::Origin;
use super::trailer::{Chunk, Kind, MOST, Repair, Trailers};
use super::{Code, Service, symbol};
use weir_base::{Span, Time};

/// Bytes of the length of a packet in a blob.
const LENGTH: usize = 2;

/// The packets of a flow become datagrams.
#[derive(Debug)]
pub struct Sending {
    service: Service,
    sequence: u32,
    packet: u8,
    total: u64,
    group: u32,
    /// The symbols of the present group; empty without repairs.
    symbols: Vec<Vec<u8>>,
    /// When the present group is closed though it has not all its sources.
    closes: Time,
    /// Packets that are joined, each after its length, how many they are, and when they leave though there is room for others.
    blob: Vec<u8>,
    joined: usize,
    leaves: Time,
    /// Space for a packet with the time of its origin.
    whole: Vec<u8>,
}

impl Sending {
    /// A flow of this service.
    pub fn new(service: Service) -> Sending {
        Sending {
            service,
            sequence: 0,
            packet: 0,
            total: 0,
            group: 0,
            symbols: Vec::new(),
            closes: Time::NEVER,
            blob: Vec::new(),
            joined: 0,
            leaves: Time::NEVER,
            whole: Vec::new(),
        }
    }

    /// The application has sent a packet. Its datagrams go to `send`. A packet of more than [`MOST`] chunks is refused: the result is
    /// false.
    pub fn packet(
        &mut self,
        payload: &[u8],
        code: &dyn Code,
        now: Time,
        mut send: impl FnMut(&[u8]),
    ) -> bool {
        let size = usize::from(self.service.chunk).max(1);
        let mut whole = self.whole_of(payload, now);
        let fits = match self.service.join {
            Some(wait) if LENGTH + whole.len() <= size => {
                if self.blob.len() + LENGTH + whole.len() > size {
                    self.send_blob(code, now, &mut send);
                }
                if self.joined == 0 {
                    self.leaves = now + wait;
                }
                self.blob.extend_from_slice(&(whole.len() as u16).to_be_bytes());
                self.blob.append(&mut whole);
                self.joined += 1;
                true
            }
            _ => {
                self.send_blob(code, now, &mut send);
                self.cut(&whole, code, now, &mut send)
            }
        };
        self.whole = whole;
        fits
    }

    /// The same for a packet that is joined to no other one.
    pub fn packet_apart(
        &mut self,
        payload: &[u8],
        code: &dyn Code,
        now: Time,
        mut send: impl FnMut(&[u8]),
    ) -> bool {
        let whole = self.whole_of(payload, now);
        let fits = self.cut(&whole, code, now, &mut send);
        self.whole = whole;
        fits
    }

    /// What is carried of a packet, in the space for it.
    fn whole_of(&mut self, payload: &[u8], now: Time) -> Vec<u8> {
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        whole.extend_from_slice(payload);
        if self.service.is_timed {
            whole.extend_from_slice(&Origin::at(now).to_bytes());
        }
        whole
    }

    /// The packets that wait for others to be joined to leave now.
    pub fn flush(&mut self, code: &dyn Code, now: Time, mut send: impl FnMut(&[u8])) {
        self.send_blob(code, now, &mut send);
    }

    /// One packet alone is no blob.
    fn send_blob(&mut self, code: &dyn Code, now: Time, send: &mut impl FnMut(&[u8])) {
        let (joined, mut blob) = (std::mem::take(&mut self.joined), std::mem::take(&mut self.blob));
        self.leaves = Time::NEVER;
        match joined {
            0 => {}
            1 => drop(self.cut(&blob[LENGTH..], code, now, send)),
            _ => {
                let chunk = Chunk { packet: self.next_packet(), chunk: 0, chunks: 1, is_blob: true };
                self.chunk(&blob, chunk, code, now, send);
            }
        }
        blob.clear();
        self.blob = blob;
    }

    fn next_packet(&mut self) -> u8 {
        let next = (self.packet + 1) & MOST;
        std::mem::replace(&mut self.packet, next)
    }

    fn cut(&mut self, payload: &[u8], code: &dyn Code, now: Time, send: &mut impl FnMut(&[u8])) -> bool {
        let size = usize::from(self.service.chunk).max(1);
        let chunks = payload.len().div_ceil(size).max(1);
        if chunks > usize::from(MOST) {
            return false;
        }
        let packet = self.next_packet();
        for chunk in 0..chunks {
            let end = payload.len().min((chunk + 1) * size);
            let part = &payload[chunk * size..end];
            let (chunk, chunks) = (chunk as u8, chunks as u8);
            self.chunk(part, Chunk { packet, chunk, chunks, is_blob: false }, code, now, send);
        }
        true
    }

    fn chunk(&mut self, part: &[u8], chunk: Chunk, code: &dyn Code, now: Time, send: &mut impl FnMut(&[u8])) {
        self.total += part.len() as u64;
        let slot = self.symbols.len() as u8;
        let trailers = self.trailers(Kind::Original(chunk), slot, self.sequence);
        let mut bytes = part.to_vec();
        trailers.encode(&mut bytes);
        send(&bytes);
        self.sequence = self.sequence.wrapping_add(1);
        if !self.service.is_coded() {
            self.group = self.group.wrapping_add(1) & 0xff_ffff;
            return;
        }
        if self.symbols.is_empty() {
            self.closes = now + self.service.hold;
        }
        self.symbols.push(symbol(part, chunk));
        if self.symbols.len() == usize::from(self.service.base) {
            self.close(code, send);
        }
    }

    /// When [`Sending::on_timer`] is due.
    pub fn next_time(&self) -> Time {
        self.closes.min(self.leaves)
    }

    /// What has waited for long enough goes: packets for others to be joined to, and the repairs of a group.
    pub fn on_timer(&mut self, code: &dyn Code, now: Time, mut send: impl FnMut(&[u8])) {
        if now >= self.leaves {
            self.send_blob(code, now, &mut send);
        }
        if now >= self.closes {
            self.close(code, &mut send);
        }
    }

    fn close(&mut self, code: &dyn Code, send: &mut impl FnMut(&[u8])) {
        let symbols = std::mem::take(&mut self.symbols);
        self.closes = Time::NEVER;
        let sources: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
        let first = self.sequence.wrapping_sub(sources.len() as u32);
        let repairs = self.service.total - self.service.base;
        for slot in 0..repairs {
            let mut bytes = Vec::new();
            code.encode(&sources, slot.into(), &mut bytes);
            let repair = Repair { base: sources.len() as u8, repairs, length: bytes.len() as u16 };
            self.trailers(Kind::Repair(repair), slot, first).encode(&mut bytes);
            send(&bytes);
        }
        self.group = self.group.wrapping_add(1) & 0xff_ffff;
    }

    fn trailers(&self, kind: Kind, slot: u8, sequence: u32) -> Trailers {
        let Service { priority, threshold, hold_back, is_ordered, is_timed, .. } = self.service;
        Trailers {
            kind,
            is_ordered,
            is_coded: self.service.is_coded(),
            is_timed,
            slot,
            group: self.group,
            sequence,
            total: self.total,
            priority,
            threshold,
            hold: hold_back.unwrap_or(Span::ZERO),
        }
    }
}
