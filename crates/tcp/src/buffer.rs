//! The send buffer. It counts memory, not payload: Linux charges the true size of each buffer, and grows the limit so that two
//! windows fit, or as many as the controller requests (`tcp_sndbuf_expand`).

use super::config::Config;

/// Room for headers before the payload (`MAX_TCP_HEADER`), `skb_shared_info` behind it, and the `sk_buff` itself, in Linux 6.18 on 64
/// bits without wireless drivers. With them the headers have 320 bytes; then a segment of 1448 bytes requests 4352 bytes instead
/// of 2304.
const HEADERS: u64 = 256;
const SHARED_INFO: u64 = 320;
const SK_BUFF: u64 = 256;

/// The option that each segment carries (timestamps, RFC 7323), which is part of the MSS that peers announce.
const OPTIONS: u64 = 12;

/// Memory that a segment is charged with besides its payload: 832 bytes, as `skmem` of a socket shows that sends single segments.
const CHARGE: u64 = HEADERS + SHARED_INFO + SK_BUFF;

/// The buffer is sized for at least this many segments (`TCP_INIT_CWND`).
const LEAST_WINDOW: u32 = 10;

/// The limit of written and unacknowledged data.
#[derive(Debug, Clone)]
pub(crate) struct SendBuffer {
    most: u64,
    mss: u64,
    /// Memory requested for a segment of the window, in bytes.
    per_segment: u64,
    /// Number of windows that must fit.
    windows: u64,
    /// The largest window, in segments, for which the limit is large enough.
    enough_for: u32,
    /// Payload bytes that fit, in full segments, each charged with its head.
    capacity: u64,
    /// The application is woken if the buffer holds at most this many payload bytes: when a third is free (`sk_stream_write_space`).
    wakes_below: u64,
    /// Whether an application waits for room (`SOCK_NOSPACE`).
    awaited: bool,
}

impl SendBuffer {
    /// A buffer that must hold this many windows, at its first limit.
    pub(crate) fn new(config: &Config, windows: u32) -> SendBuffer {
        let (start, most) = config.send_buffer;
        let mss = u64::from(config.mss);
        let per_segment = (mss + OPTIONS + HEADERS + SHARED_INFO).next_power_of_two() + SK_BUFF;
        let windows = u64::from(windows);
        let mut buffer = SendBuffer {
            most: most.get(),
            mss,
            per_segment,
            windows,
            enough_for: 0,
            capacity: 0,
            wakes_below: 0,
            awaited: false,
        };
        buffer.set_limit(start.get());
        buffer
    }

    fn set_limit(&mut self, limit: u64) {
        let windows = limit / (self.windows * self.per_segment);
        self.enough_for = if limit < self.most { windows.min(u32::MAX.into()) as u32 } else { u32::MAX };
        // A segment may begin as long as the limit is not reached (`sk_stream_memory_free`), and may pass it.
        self.capacity = limit.div_ceil(self.mss + CHARGE).max(1) * self.mss;
        self.wakes_below = limit * 2 / 3 / (self.mss + CHARGE) * self.mss;
    }

    /// Whether [`SendBuffer::expand`] would grow the limit.
    #[inline]
    pub(crate) fn is_short_of(&self, segments: u32) -> bool {
        segments.max(LEAST_WINDOW) > self.enough_for
    }

    /// Grows the limit for a window of this many segments, up to the largest.
    #[inline]
    pub(crate) fn expand(&mut self, segments: u32) {
        if self.is_short_of(segments) {
            let requested = self.windows * u64::from(segments.max(LEAST_WINDOW)) * self.per_segment;
            self.set_limit(requested.min(self.most));
        }
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

    /// Payload bytes that fit in addition, in full segments, where this many segments have no head of their own.
    #[inline]
    pub(crate) fn shared(&self, merged: u32) -> u64 {
        if merged == 0 { 0 } else { u64::from(merged) * CHARGE / (self.mss + CHARGE) * self.mss }
    }

    /// An application waits for room from now on.
    pub(crate) fn wait(&mut self) {
        self.awaited = true;
    }

    /// Whether an application waits for room.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited
    }

    /// The buffer holds `held` payload bytes: the application that waits is woken if that leaves enough room.
    #[inline]
    pub(crate) fn wake(&mut self, held: u64) {
        self.awaited &= !self.wakes(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Bytes;

    fn buffer(windows: u32, start: u64, most: u64) -> SendBuffer {
        let config = Config::new("newreno".parse().expect("it is in the registry"));
        let send_buffer = (Bytes::new(start), Bytes::new(most));
        SendBuffer::new(&Config { mss: 1448, send_buffer, ..config }, windows)
    }

    #[test]
    fn a_buffer_grows_to_as_many_windows_as_the_controller_asks_for() {
        // A segment requests 2048 + 256 bytes of memory and is charged with 1448 + 832; 100 of them are the window.
        let segments = |windows| {
            let mut buffer = buffer(windows, 16_384, 4 << 20);
            buffer.expand(100);
            buffer.capacity() / 1448
        };
        assert_eq!((segments(2), segments(3)), (2 * 100 * 2304 / 2280 + 1, 3 * 100 * 2304 / 2280 + 1));
    }

    #[test]
    fn a_buffer_begins_with_two_windows_of_ten_segments_and_ends_at_its_largest() {
        // 46,080 bytes hold 20.2 segments: the twenty-first begins below the limit.
        let mut grown = buffer(2, 16_384, 100_000);
        grown.expand(10);
        assert_eq!(grown.capacity(), 21 * 1448);
        assert!(!grown.is_short_of(10) && grown.is_short_of(11));
        grown.expand(1000);
        assert_eq!(grown.capacity(), 44 * 1448, "100,000 bytes are 43.9 segments");
        assert!(!grown.is_short_of(1001));
        let mut fixed = buffer(2, 104_000, 104_000);
        fixed.expand(1000);
        assert_eq!(fixed.capacity(), 46 * 1448, "104,000 bytes are 45.6 segments");
    }

    #[test]
    fn whoever_waits_is_woken_when_a_third_of_the_memory_is_free() {
        // Two thirds of 46,080 bytes are 13.5 segments.
        let mut buffer = buffer(2, 46_080, 46_080);
        buffer.wait();
        buffer.wake(14 * 1448);
        assert!(buffer.is_awaited());
        buffer.wake(13 * 1448);
        assert!(!buffer.is_awaited());
    }
}
