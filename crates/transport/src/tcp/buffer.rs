//! The send buffer. It counts memory, not payload: Linux charges the true size of each buffer, and grows the limit so that two
//! windows fit, or as many as the controller requests (`tcp_sndbuf_expand`).

use super::config::Config;

/// Memory of one segment: MSS and headers (`MAX_TCP_HEADER`, `skb_shared_info`) to the next power of two, and a `sk_buff`.
const HEADERS: u64 = 320 + 320;
const SK_BUFF: u64 = 256;

/// Memory charged for a buffer of one segment besides its payload: the head with its shared information, and a `sk_buff`
/// (832 bytes in Linux 6.18 on 64 bits, from `skmem` of a socket that sends single segments).
const CHARGE: u64 = 832;

/// The limit of written and unacknowledged data.
#[derive(Debug, Clone)]
pub(crate) struct SendBuffer {
    limit: u64,
    most: u64,
    mss: u64,
    /// Memory of a segment in bytes.
    per_segment: u64,
    /// Number of windows that must fit.
    windows: u64,
    /// Payload bytes that fit, in full segments, each charged with its head.
    capacity: u64,
    /// The application is woken if the buffer holds at most this many payload bytes: when a third is free (`sk_stream_write_space`).
    wakes_below: u64,
}

impl SendBuffer {
    /// A buffer that must hold this many windows.
    pub(crate) fn new(config: &Config, windows: u32) -> SendBuffer {
        let (start, most) = config.send_buffer;
        let mss = u64::from(config.mss);
        let per_segment = (mss + HEADERS).next_power_of_two() + SK_BUFF;
        let windows = u64::from(windows);
        let mut buffer =
            SendBuffer { limit: 0, most: most.get(), mss, per_segment, windows, capacity: 0, wakes_below: 0 };
        buffer.set_limit(start.get());
        if start < most {
            buffer.expand(config.initial_window);
        }
        buffer
    }

    fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.capacity = (limit / (self.mss + CHARGE)).max(1) * self.mss;
        self.wakes_below = self.capacity / 3 * 2;
    }

    /// Payload bytes that fit.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether `held` payload bytes leave enough room for the application to be woken.
    #[inline]
    pub(crate) fn wakes(&self, held: u64) -> bool {
        held <= self.wakes_below
    }

    /// Grows the limit for a window of this many segments.
    #[inline]
    pub(crate) fn expand(&mut self, segments: u32) {
        let wanted = self.windows * u64::from(segments.max(10)) * self.per_segment;
        if wanted > self.limit {
            self.set_limit(wanted.min(self.most.max(self.limit)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_to_as_many_windows_as_the_controller_asks_for() {
        // A segment takes 4096 + 256 bytes of memory and is charged with 1448 + 832; 100 of them are the window.
        let config = Config { mss: 1448, ..Config::new("newreno".parse().expect("it is in the registry")) };
        let segments = |windows: u32| {
            let mut buffer = SendBuffer::new(&config, windows);
            buffer.expand(100);
            buffer.capacity() / 1448
        };
        assert_eq!((segments(2), segments(3)), (2 * 100 * 4352 / 2280, 3 * 100 * 4352 / 2280));
    }
}
