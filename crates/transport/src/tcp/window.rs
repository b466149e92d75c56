//! The receive window: what of the receive buffer is free, less the memory that buffers cost beside their payload
//! (`tcp_win_from_space`, `tcp_select_window`). The application reads at once, so only out-of-order data takes room.

use super::config::Config;

/// Memory of an MTU-sized buffer for 1448 bytes of payload: 2304, the page fragment of a veth or a network card.
const TRUE_SIZE: u64 = 2304;
/// Largest window of a SYN, which is not scaled.
const UNSCALED: u64 = 65_535;

/// The window of one receiver. Grows with use from the start of the buffer's range to its end.
#[derive(Debug, Clone)]
pub(crate) struct ReceiveWindow {
    buffer: u64,
    most: u64,
    mss: u64,
    /// Right edge as told to the peer: it never moves back (RFC 9293, section 3.8.6.2.1).
    edge: u64,
    /// Bytes received in the measured round trip, for autotuning.
    copied_at: u64,
    measured_from: weir_base::Time,
    shift: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(config: &Config) -> ReceiveWindow {
        let (start, most) = (config.receive_buffer.0.get(), config.receive_buffer.1.get());
        let mss = u64::from(config.mss);
        let most = most.max(start);
        ReceiveWindow {
            buffer: start,
            most,
            mss,
            edge: 0,
            copied_at: 1,
            measured_from: weir_base::Time::ZERO,
            shift: scale(most),
        }
    }

    /// Payload that so much buffer holds.
    fn payload(&self, buffer: u64) -> u64 {
        buffer * self.mss / TRUE_SIZE.max(self.mss)
    }

    /// The window of a SYN.
    pub(crate) fn of_syn(&mut self, next: u64) -> u32 {
        let window = self.payload(self.buffer).min(UNSCALED) / self.mss * self.mss;
        self.edge = next + window;
        window as u32
    }

    /// The window to tell when `next` is expected and `held` bytes wait out of order.
    pub(crate) fn tell(&mut self, next: u64, held: u64) -> u32 {
        let free = self.payload(self.buffer).saturating_sub(held);
        let unit = 1 << self.shift;
        let edge = self.edge.max(next + free / unit * unit);
        // A window is told in units of the scale, rounded up so that the edge stays.
        let window = (edge - next).div_ceil(unit) * unit;
        self.edge = next + window;
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

    /// The application has read up to `next`: once a round trip the buffer grows to hold twice what came in it, and room
    /// for the growth of slow start (`tcp_rcv_space_adjust`).
    pub(crate) fn autotune(&mut self, next: u64, rtt: Option<u64>, now: weir_base::Time) {
        let Some(rtt) = rtt else { return };
        if now.since(self.measured_from).as_micros() < rtt {
            return;
        }
        let copied = next - self.copied_at;
        (self.copied_at, self.measured_from) = (next, now);
        let wanted = (2 * copied + 16 * self.mss) * 2;
        let buffer = wanted * TRUE_SIZE.max(self.mss) / self.mss;
        self.buffer = self.buffer.max(buffer.min(self.most));
    }
}

/// The scale that lets 16 bits tell the largest window (`tcp_select_initial_window`).
fn scale(most: u64) -> u32 {
    (0..14).find(|shift| most >> shift <= UNSCALED).unwrap_or(14)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Bytes, Span, Time};

    fn window(start: u64, most: u64) -> ReceiveWindow {
        let controller = "newreno".parse().unwrap();
        let mut config = Config::new(controller);
        config.receive_buffer = (Bytes::new(start), Bytes::new(most));
        ReceiveWindow::new(&config)
    }

    #[test]
    fn a_syn_offers_whole_segments_below_64_kib() {
        assert_eq!(window(131_072, 6 << 20).of_syn(1), 65_160);
    }

    #[test]
    fn the_edge_never_moves_back() {
        let mut window = window(131_072, 131_072);
        let offered = window.tell(1, 0);
        assert!(u64::from(window.tell(1001, 50_000)) + 1000 >= u64::from(offered));
    }

    #[test]
    fn the_window_grows_with_what_comes_in_a_round_trip_up_to_its_limit() {
        let mut window = window(131_072, 6 << 20);
        let before = window.tell(1, 0);
        window.autotune(200_001, Some(20_000), Time::ZERO + Span::from_millis(20));
        let after = window.tell(200_001, 0);
        assert!(after > 2 * before, "{after}");
        window.autotune(1 << 30, Some(20_000), Time::ZERO + Span::from_millis(40));
        assert!(window.tell(1 << 30, 0) <= 6 << 20);
    }
}
