//! The sending side of the UDP proxy: an application's packets become chunks, groups of chunks gain repairs (digest A 7.1).

use super::trailer::{Chunk, Kind, MOST, Repair, Trailers};
use super::{Code, Service, symbol};
use weir_base::{Span, Time};

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
}

impl Sending {
    /// A flow of this service.
    pub fn new(service: Service) -> Sending {
        let (symbols, closes) = (Vec::new(), Time::NEVER);
        Sending { service, sequence: 0, packet: 0, total: 0, group: 0, symbols, closes }
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
        let chunks = payload.len().div_ceil(size).max(1);
        if chunks > usize::from(MOST) {
            return false;
        }
        let packet = self.packet;
        self.packet = (packet + 1) & MOST;
        for chunk in 0..chunks {
            let end = payload.len().min((chunk + 1) * size);
            let part = &payload[chunk * size..end];
            let (chunk, chunks) = (chunk as u8, chunks as u8);
            self.chunk(part, Chunk { packet, chunk, chunks }, code, now, &mut send);
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
        self.closes
    }

    /// A group has waited for long enough: its repairs go.
    pub fn on_timer(&mut self, code: &dyn Code, now: Time, mut send: impl FnMut(&[u8])) {
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
        let Service { priority, threshold, hold_back, is_ordered, .. } = self.service;
        Trailers {
            kind,
            is_ordered,
            is_coded: self.service.is_coded(),
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
