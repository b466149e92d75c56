//! The receive window (`tcp_grow_window`, `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`, `__tcp_select_window`): the free part of the
//! receive buffer, minus the memory of buffers besides their payload. It opens with the first segments as far as the buffer allows,
//! and the buffer grows with the data that the application reads in a round trip. The application reads at once, so only
//! out-of-order data takes room.

use super::config::Config;
use super::sender::{instant, micros};
use weir_base::{Clock, Span, Time};

/// Memory of an MTU-sized buffer: a page fragment of 2 KiB and a `sk_buff`.
const TRUE_SIZE: u64 = 2304;
/// Payload in 256 bytes of memory, assumed before the first segment (`TCP_DEFAULT_SCALING_RATIO`).
const FIRST_RATIO: u64 = 128;
/// Bits of that ratio (`TCP_RMEM_TO_WIN_SCALE`).
const RATIO_SHIFT: u32 = 8;
/// Largest window of a SYN, which is not scaled.
const UNSCALED: u64 = 65_535;
/// Segments with less payload do not open the window (`tcp_event_data_recv`).
const SMALL: u64 = 128;
/// Timestamps, which the MSS of a SYN does not count.
const OPTIONS: u64 = 12;
/// Data assumed to be read in the first round trip, in segments (`TCP_INIT_CWND`).
const FIRST_READ: u64 = 10;
/// Largest shift (RFC 7323, section 2.3).
const MOST_SCALE: u32 = 14;

/// The window of one receiver.
#[derive(Debug, Clone)]
pub(crate) struct ReceiveWindow {
    buffer: u64,
    most: u64,
    mss: u64,
    /// Payload in 256 bytes of memory (`scaling_ratio`).
    ratio: u64,
    /// Payload that the buffer holds (`window_clamp`).
    clamp: u64,
    /// Largest limit that in-order data may open the window to: `clamp` without the memory of data that waits to be read.
    clamp_in_order: u64,
    /// Largest window that may be advertised now (`rcv_ssthresh`).
    limit: u64,
    /// Advertised right edge; it never moves back (RFC 9293, section 3.8.6.2.1).
    edge: u64,
    /// The last advertised window (`rcv_wnd`).
    last_advertised: u64,
    /// The unit of advertised windows less one, and the largest of them.
    below_unit: u64,
    largest: u64,
    scales: bool,
    autotunes: bool,
    /// Bytes read in the last round trip, and position and time at which the present measurement began (`rcvq_space`).
    read: u64,
    read_from: u64,
    measured_from: u64,
    /// When that round trip ends; [`Time::NEVER`] before the first RTT sample.
    measured_at: Time,
    /// Eight times the RTT measured by the receiver, in microseconds; 0 before the first sample.
    rtt8: u64,
    last_echo: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(config: &Config) -> ReceiveWindow {
        let (buffer, most) = (config.receive_buffer.0.get(), config.receive_buffer.1.get());
        let most = most.max(buffer);
        let scale = if config.window_scaling { scale(most.max(RMEM_MAX)) } else { 0 };
        let mut window = ReceiveWindow {
            buffer,
            most,
            mss: u64::from(config.mss),
            ratio: FIRST_RATIO,
            clamp: 0,
            clamp_in_order: 0,
            limit: 0,
            edge: 0,
            last_advertised: 0,
            below_unit: (1 << scale) - 1,
            largest: UNSCALED << scale,
            scales: config.window_scaling,
            autotunes: buffer < most,
            read: 0,
            read_from: 1,
            measured_from: 0,
            measured_at: Time::NEVER,
            rtt8: 0,
            last_echo: 0,
        };
        window.set_clamp(window.payload(buffer).min(window.largest));
        window.limit = window.clamp;
        window
    }

    fn set_clamp(&mut self, clamp: u64) {
        self.clamp = clamp;
        self.clamp_in_order = clamp.min(self.payload(self.buffer.saturating_sub(TRUE_SIZE)));
    }

    /// Payload bytes that fit into `memory` bytes of memory (`tcp_win_from_space`).
    fn payload(&self, memory: u64) -> u64 {
        (memory * self.ratio) >> RATIO_SHIFT
    }

    /// The window of a SYN, in whole segments. Only the answering side knows that segments carry timestamps
    /// (`tcp_select_initial_window`).
    pub(crate) fn of_syn(&mut self, next: u64, answers: bool) -> u32 {
        let segment = if answers { self.mss } else { self.mss + OPTIONS };
        if self.clamp > segment {
            self.limit = self.clamp / segment * segment;
        }
        self.last_advertised = self.limit;
        self.edge = next + self.last_advertised;
        self.limit.min(UNSCALED) as u32
    }

    /// The connection is established (`tcp_init_buffer_space`): one segment is reserved, and the first round trip begins.
    pub(crate) fn begin(&mut self, now: Time) {
        self.limit = self.limit.min(self.clamp.saturating_sub(self.mss).max(2 * self.mss));
        self.read = self.limit.min(self.last_advertised).min(FIRST_READ * self.mss).max(1);
        self.measured_from = micros(now);
    }

    /// Updates the ratio of payload to memory by a segment longer than any before (`tcp_measure_rcv_mss`).
    pub(crate) fn measure(&mut self, len: u64) {
        let ratio = ((len.min(TRUE_SIZE) << RATIO_SHIFT) / TRUE_SIZE).max(1);
        if ratio == self.ratio {
            return;
        }
        self.ratio = ratio;
        let before = self.clamp;
        self.set_clamp(self.payload(self.buffer));
        // As in `tcp_set_window_clamp`.
        self.limit = if self.clamp < before {
            self.limit.min(self.clamp)
        } else {
            self.limit.max(self.last_advertised.min(self.clamp))
        };
        self.read = self.read.min(self.clamp).max(1);
    }

    /// Whether the window doubles now that only the `held` bytes out of order are in the buffer, so that an acknowledgement tells it
    /// (`tcp_cleanup_rbuf`).
    #[inline]
    pub(crate) fn doubles(&self, next: u64, held: u64) -> bool {
        let twice = 2 * self.offered(next);
        twice <= self.clamp && self.free(held) >= twice.max(1)
    }

    /// The window for which there is room, while `held` bytes wait in the buffer.
    #[inline]
    fn free(&self, held: u64) -> u64 {
        self.payload(self.buffer).saturating_sub(held).min(self.limit)
    }

    /// The window to advertise when `next` is expected and `held` bytes wait, out of order or to be read, in bytes.
    #[inline]
    pub(crate) fn tell(&mut self, next: u64, held: u64) -> u32 {
        let free = self.free(held);
        let offered = self.offered(next);
        let window = if self.scales {
            // Advertised in units of the scale, rounded up.
            (free.max(offered) + self.below_unit) & !self.below_unit
        } else {
            // Whole segments, and a new value only if there is one more segment (`__tcp_select_window`).
            let stays = offered <= free && offered + self.mss > free;
            let free = if stays { offered } else { free / self.mss * self.mss };
            free.max(offered)
        };
        let window = window.min(self.largest);
        self.edge = self.edge.max(next + window);
        self.last_advertised = window;
        window as u32
    }

    /// The last advertised window.
    pub(crate) fn last_advertised(&self) -> u32 {
        self.last_advertised as u32
    }

    /// First position beyond the advertised window.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// Bytes of the advertised window beyond `next`.
    pub(crate) fn offered(&self, next: u64) -> u64 {
        self.edge.saturating_sub(next)
    }

    /// Data has arrived: the window opens by two segments while the buffer has room. In-order data waits to be read, besides the
    /// `held` bytes out of order. Returns whether the window has opened, which demands an acknowledgement (`tcp_grow_window`).
    #[inline(always)]
    pub(crate) fn open(&mut self, len: u64, held: u64, in_order: bool) -> bool {
        // In nearly all cases it is open already.
        if in_order && self.limit >= self.clamp_in_order {
            return false;
        }
        self.open_further(len, held, in_order)
    }

    #[inline(never)]
    fn open_further(&mut self, len: u64, held: u64, in_order: bool) -> bool {
        let (waiting, held) = if in_order { (TRUE_SIZE, held) } else { (0, held.saturating_sub(len)) };
        let space = self.payload(self.buffer.saturating_sub(waiting)).saturating_sub(held);
        let room = space.min(self.clamp).saturating_sub(self.limit);
        if len < SMALL || room == 0 {
            return false;
        }
        self.limit += room.min(2 * self.mss.max(len));
        true
    }

    /// Samples the receiver's RTT by the echoed timestamp of a full segment (`tcp_rcv_rtt_measure_ts`). A smaller sample replaces
    /// the RTT, a larger one is averaged (`tcp_rcv_rtt_update`).
    #[inline(always)]
    pub(crate) fn sample_rtt(&mut self, echo: u32, clock: &Clock, now: Time) {
        if echo == 0 || echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let sample = clock.since(echo, now).map_or(0, Span::as_micros);
        if sample == 0 {
            return;
        }
        let smaller = self.rtt8 == 0 || sample << 3 < self.rtt8;
        self.rtt8 = if smaller { sample << 3 } else { self.rtt8 - (self.rtt8 >> 3) + sample };
        self.set_end();
    }

    /// Sets the end of the present measurement.
    fn set_end(&mut self) {
        self.measured_at = instant(self.measured_from + (self.rtt8 >> 3));
    }

    /// Eight times the receiver's RTT in microseconds; 0 before the first sample.
    pub(crate) fn rtt8(&self) -> u64 {
        self.rtt8
    }

    /// The application has read up to `next`. Once a round trip, the buffer grows to twice the data of that round trip, plus the
    /// growth of the rate (`tcp_rcv_space_adjust`). `beyond` is the extent of out-of-order data beyond `next`, in bytes.
    #[inline(always)]
    pub(crate) fn autotune(&mut self, next: u64, beyond: u64, now: Time) {
        if now >= self.measured_at {
            self.end_round_trip(next, beyond, now);
        }
    }

    #[inline(never)]
    fn end_round_trip(&mut self, next: u64, beyond: u64, now: Time) {
        let read = next.saturating_sub(self.read_from);
        if read > self.read {
            self.grow(read, beyond);
        }
        (self.read_from, self.measured_from) = (next, micros(now));
        self.set_end();
    }

    /// Out-of-order data has arrived, which extends `beyond` bytes: the buffer must hold it too.
    pub(crate) fn hold(&mut self, beyond: u64) {
        self.provide(2 * self.read + beyond);
    }

    /// More data than ever was read in a round trip (`tcp_rcvbuf_grow`).
    fn grow(&mut self, read: u64, beyond: u64) {
        let before = std::mem::replace(&mut self.read, read);
        let window = 2 * read;
        let growth = window.saturating_mul(read - before) / before;
        self.provide(window + growth.min(self.most) * 2 + beyond);
    }

    /// Enlarges the buffer so that it holds this much payload, as far as it may grow.
    fn provide(&mut self, payload: u64) {
        if !self.autotunes {
            return;
        }
        let buffer = ((payload << RATIO_SHIFT) / self.ratio).min(self.most);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.set_clamp(self.payload(buffer));
        }
    }
}

/// The largest buffer that an application may ask for (`net.core.rmem_max`), as Linux 6.18 has it. The scale allows for it even where
/// TCP's own buffers stay smaller.
const RMEM_MAX: u64 = 4 << 20;

/// The scale with which 16 bits express the largest window (`tcp_select_initial_window`).
fn scale(most: u64) -> u32 {
    (0..MOST_SCALE).find(|scale| most >> scale <= UNSCALED).unwrap_or(MOST_SCALE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Bytes;

    fn window(start: u64, most: u64) -> ReceiveWindow {
        let mut config = Config::new("newreno".parse().unwrap());
        config.receive_buffer = (Bytes::new(start), Bytes::new(most));
        ReceiveWindow::new(&config)
    }

    /// The window of a server when the connection is established.
    fn begun(start: u64, most: u64) -> ReceiveWindow {
        let mut window = window(start, most);
        window.of_syn(1, true);
        window.begin(Time::ZERO);
        window
    }

    #[test]
    fn a_syn_offers_whole_segments_of_half_the_buffer() {
        // As captured from Linux 6.18.
        assert_eq!(window(131_072, 6 << 20).of_syn(1, false), 64_240);
        assert_eq!(window(131_072, 6 << 20).of_syn(1, true), 65_160);
        assert_eq!(window(4 << 20, 4 << 20).of_syn(1, true), 65_535);
    }

    #[test]
    fn the_first_segments_open_the_window_in_the_steps_of_linux() {
        // As advertised by Linux 6.18 after each of the first segments, in units of 128.
        let mut window = begun(131_072, 6 << 20);
        window.measure(1448);
        let mut last_advertised = vec![];
        for n in 1..=7 {
            window.open(1448, 0, true);
            last_advertised.push(window.tell(1 + n * 1448, 0) / 128);
        }
        assert_eq!(last_advertised, [532, 555, 577, 600, 623, 629, 629]);
    }

    #[test]
    fn without_scaling_the_window_is_whole_segments_below_64_kib() {
        let mut config = Config::new("newreno".parse().unwrap());
        config.window_scaling = false;
        config.receive_buffer = (Bytes::new(131_072), Bytes::new(6 << 20));
        let mut window = ReceiveWindow::new(&config);
        assert_eq!(window.of_syn(1, true), 65_160);
        window.begin(Time::ZERO);
        window.measure(1448);
        for n in 1..100 {
            window.open(1448, 0, true);
            let last_advertised = window.tell(1 + n * 1448, 0);
            assert!((63_712..=65_535).contains(&last_advertised), "{last_advertised}");
        }
    }

    #[test]
    fn the_right_edge_of_the_window_never_moves_back() {
        let mut window = window(131_072, 131_072);
        let offered = window.tell(1, 0);
        assert!(window.tell(1001, 50_000) + 1000 >= offered);
    }

    #[test]
    fn the_buffer_grows_with_the_data_received_per_round_trip_up_to_its_limit() {
        let mut window = begun(131_072, 6 << 20);
        window.measure(1448);
        window.sample_rtt(1, &Clock::default(), Time::ZERO + Span::from_millis(20));
        window.autotune(28_961, 0, Time::ZERO + Span::from_millis(20));
        // Twice 28,960, and twice that again since the rate has doubled; 160 of 256 bytes are payload.
        assert_eq!(window.buffer, 57_920 * 3 * 256 / 160);
        window.autotune(1 << 30, 0, Time::ZERO + Span::from_millis(40));
        assert_eq!(window.buffer, 6 << 20);
    }

    #[test]
    fn the_buffer_grows_with_out_of_order_data() {
        let mut window = begun(131_072, 6 << 20);
        window.measure(1448);
        window.hold(200_000);
        assert_eq!(window.buffer, (2 * 14_480 + 200_000) * 256 / 160);
    }

    #[test]
    fn the_unit_of_windows_allows_for_the_largest_buffer_that_an_application_may_ask_for() {
        // As captured from Linux 6.18 with `tcp_rmem` up to 32 KiB: a scale of 7.
        let mut window = begun(32 << 10, 32 << 10);
        window.measure(1448);
        window.limit = window.clamp;
        assert_eq!(window.clamp, 20_480);
        assert_eq!(window.tell(1, 1), 20_480);
        assert!(!window.doubles(1, 0));
        // 13,032 bytes more have arrived and are not read, so that 7,448 are free; the read doubles that.
        assert_eq!((window.tell(19_001, 13_032), window.doubles(19_001, 0)), (7_552, true));
    }

    #[test]
    fn the_receivers_rtt_falls_at_once_and_rises_slowly() {
        let mut window = begun(131_072, 6 << 20);
        for (echo, millis, expected) in [(1, 40, 40_000), (50, 97, 41_000), (60, 89, 30_000)] {
            window.sample_rtt(echo, &Clock::default(), Time::ZERO + Span::from_millis(millis));
            assert_eq!(window.rtt8() >> 3, expected);
        }
    }
}
