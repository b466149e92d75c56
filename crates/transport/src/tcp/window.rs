//! The receive window (`tcp_grow_window`, `tcp_rcv_space_adjust`, `__tcp_select_window`): what of the receive buffer is free, less
//! the memory that buffers cost beside their payload. It opens with the first segments as far as the buffer allows, and the
//! buffer grows with what the application reads in a round trip. The application reads at once, so only out-of-order data
//! takes room.

use super::config::Config;
use super::sender::micros;
use weir_base::Time;

/// Memory of an MTU-sized buffer: a page fragment of 2 KiB and a `sk_buff`.
const TRUE_SIZE: u64 = 2304;
/// Largest window of a SYN, which is not scaled.
const UNSCALED: u64 = 65_535;
/// Segments with less payload do not open the window (`tcp_event_data_recv`).
const SMALL: u64 = 128;
/// Options that the MSS of the SYN does not count.
const OPTIONS: u64 = 12;
/// What is taken to be read in a round trip at first, in segments (`TCP_INIT_CWND`).
const FIRST_READ: u64 = 10;

/// The window of one receiver.
#[derive(Debug, Clone)]
pub(crate) struct ReceiveWindow {
    buffer: u64,
    /// Payload that the buffer holds.
    payload: u64,
    most: u64,
    mss: u64,
    /// Largest window that may be told now (`rcv_ssthresh`).
    limit: u64,
    /// Right edge as told to the peer: it never moves back (RFC 9293, section 3.8.6.2.1).
    edge: u64,
    scale: u32,
    autotunes: bool,
    /// What was read in the last round trip, and where and when the next measurement began (`rcvq_space`).
    read: u64,
    read_from: u64,
    measured_from: u64,
    /// Eight times the RTT that the receiver sees, microseconds; 0 before the first sample.
    rtt8: u64,
    last_echo: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(config: &Config) -> ReceiveWindow {
        let (buffer, most) = (config.receive_buffer.0.get(), config.receive_buffer.1.get());
        let mss = u64::from(config.mss);
        let most = most.max(buffer);
        let mut window = ReceiveWindow {
            buffer,
            payload: payload(buffer, mss),
            most,
            mss,
            limit: 0,
            edge: 0,
            scale: scale(most),
            autotunes: buffer < most,
            read: FIRST_READ * mss,
            read_from: 1,
            measured_from: 0,
            rtt8: 0,
            last_echo: 0,
        };
        window.limit = (window.payload.min(UNSCALED) / mss * mss).max(mss);
        window
    }

    /// The window of a SYN.
    pub(crate) fn of_syn(&mut self, next: u64, now: Time) -> u32 {
        self.edge = next + self.limit.min(UNSCALED);
        self.measured_from = micros(now);
        (self.edge - next) as u32
    }

    /// The window to tell when `next` is expected and `held` bytes wait out of order.
    pub(crate) fn tell(&mut self, next: u64, held: u64) -> u32 {
        let free = self.payload.saturating_sub(held).min(self.limit);
        // Told in units of the scale, rounded up.
        let below = (1 << self.scale) - 1;
        let window = (free.max(self.edge.saturating_sub(next)) + below) & !below;
        self.edge = self.edge.max(next + window);
        window as u32
    }

    /// First position beyond what was offered.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// What was offered beyond `next`.
    pub(crate) fn offered(&self, next: u64) -> u64 {
        self.edge.saturating_sub(next)
    }

    /// Data has come: the window opens by two segments while the buffer has room. Answers whether it did, which is worth an
    /// acknowledgement (`tcp_grow_window`).
    pub(crate) fn open(&mut self, len: u64, held: u64) -> bool {
        let room = self.payload.saturating_sub(held).saturating_sub(self.limit);
        if len < SMALL || room == 0 {
            return false;
        }
        self.limit += room.min(2 * (self.mss + OPTIONS).max(len));
        true
    }

    /// The echo of a timestamp on a full segment tells the receiver's RTT (`tcp_rcv_rtt_measure_ts`).
    pub(crate) fn sample_rtt(&mut self, echo: u32, ticks: u32) {
        if echo == 0 || echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let sample = ticks.wrapping_sub(echo);
        if sample == 0 || (sample as i32) < 0 {
            return;
        }
        let sample = u64::from(sample) * 1_000;
        self.rtt8 = if self.rtt8 == 0 { sample << 3 } else { self.rtt8 - (self.rtt8 >> 3) + sample };
    }

    /// Eight times the receiver's RTT in microseconds, 0 before a sample.
    pub(crate) fn rtt8(&self) -> u64 {
        self.rtt8
    }

    /// The application has read up to `next`: once a round trip the buffer grows to hold twice what came in it, and as
    /// much more as the rate has grown (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`). `beyond` is how far out-of-order data reaches.
    pub(crate) fn autotune(&mut self, next: u64, beyond: u64, now: Time) {
        let at = micros(now);
        if !self.autotunes || self.rtt8 == 0 || at.saturating_sub(self.measured_from) < self.rtt8 >> 3 {
            return;
        }
        let read = next.saturating_sub(self.read_from);
        if read > self.read {
            let window = 2 * read;
            let growth = window.saturating_mul(read - self.read) / self.read;
            let wanted = window + growth.min(self.most) * 2 + beyond;
            let buffer = wanted * TRUE_SIZE.max(self.mss) / self.mss;
            self.buffer = self.buffer.max(buffer.min(self.most));
            self.payload = payload(self.buffer, self.mss);
            self.read = read;
        }
        (self.read_from, self.measured_from) = (next, at);
    }
}

/// Payload that a buffer of this memory holds.
fn payload(buffer: u64, mss: u64) -> u64 {
    buffer * mss / TRUE_SIZE.max(mss)
}

/// The scale that lets 16 bits tell the largest window (`tcp_select_initial_window`).
fn scale(most: u64) -> u32 {
    (0..14).find(|scale| most >> scale <= UNSCALED).unwrap_or(14)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Bytes, Span};

    fn window(start: u64, most: u64) -> ReceiveWindow {
        let mut config = Config::new("newreno".parse().unwrap());
        config.receive_buffer = (Bytes::new(start), Bytes::new(most));
        ReceiveWindow::new(&config)
    }

    #[test]
    fn a_syn_offers_whole_segments_below_64_kib() {
        assert_eq!(window(131_072, 6 << 20).of_syn(1, Time::ZERO), 65_160);
    }

    #[test]
    fn the_first_segments_open_the_window_to_what_the_buffer_holds() {
        let mut window = window(131_072, 131_072);
        window.of_syn(1, Time::ZERO);
        let mut opened = 0;
        while window.open(1448, 0) {
            opened += 1;
        }
        assert_eq!(opened, 6);
        assert_eq!(window.tell(1, 0), (131_072 * 1448 / 2304u32).div_ceil(4) * 4);
    }

    #[test]
    fn the_edge_never_moves_back() {
        let mut window = window(131_072, 131_072);
        let offered = window.tell(1, 0);
        assert!(window.tell(1001, 50_000) + 1000 >= offered);
    }

    #[test]
    fn the_buffer_grows_with_what_comes_in_a_round_trip_up_to_its_limit() {
        let mut window = window(131_072, 6 << 20);
        window.of_syn(1, Time::ZERO);
        window.sample_rtt(1, 21);
        window.autotune(28_961, 0, Time::ZERO + Span::from_millis(20));
        // Twice 28,960, and twice that again since the rate has doubled.
        assert_eq!(window.buffer, 57_920 * 3 * 2304 / 1448);
        window.autotune(1 << 30, 0, Time::ZERO + Span::from_millis(40));
        assert_eq!(window.buffer, 6 << 20);
    }
}
