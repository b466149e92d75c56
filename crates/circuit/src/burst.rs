//! How many bytes a shaper may send back to back: the least that keeps the rate, since a larger burst leaves at the card's rate and queues
//! behind it (sections 3.3.2 and 4.4.3).

use crate::{Headers, Request, Timers};
use weir_base::{Bytes, Rate};

/// The largest packet of many segments that the kernel hands to a device (Linux `GSO_LEGACY_MAX_SIZE`).
const GSO: u64 = 65_536;

/// The reason for the size of the burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A fine timer expires for each packet.
    Packet,
    /// The bytes that fall due while a busy host wakes the shaper late.
    Late,
    /// The bytes that fall due in a tick.
    Tick,
    /// A packet of many segments must fit the bucket.
    Offloads,
}

/// The largest packet of many segments as `tc` counts it: each segment with headers of its own (`qdisc_pkt_len_init`).
fn largest_packet(headers: &Headers) -> Bytes {
    let payload = GSO - headers.of_frame().get();
    let segments = (payload / headers.payload.get()).max(1);
    Bytes::new(segments * headers.frame.get())
}

/// The burst at a rate in frames, and the reason for its size.
pub(crate) fn burst(request: &Request, headers: &Headers, rate: Rate) -> (Bytes, Reason) {
    let frame = headers.frame.get();
    let by_timer = match request.timers {
        Timers::Fine => (headers.frame, Reason::Packet),
        Timers::Late(late) => {
            let meanwhile = rate.bytes_in(late).get();
            (Bytes::new(meanwhile.div_ceil(frame).max(1) * frame), Reason::Late)
        }
        Timers::Tick(hz) => {
            // rate / HZ; the thesis prints rate x HZ, its example divides (section 4.4.3).
            let in_a_tick = (rate.bits_per_sec() / 8).div_ceil(hz.into());
            (Bytes::new(in_a_tick.div_ceil(frame) * frame), Reason::Tick)
        }
    };
    let by_offloads = (largest_packet(headers), Reason::Offloads);
    if request.offloads && by_offloads.0 > by_timer.0 { by_offloads } else { by_timer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Span;

    fn at(rate: Rate, timers: Timers, offloads: bool) -> (u64, Reason) {
        let request = Request { timers, offloads, ..Request::new(rate, Span::from_millis(26)) };
        let (burst, reason) = burst(&request, &Headers::of(&request), rate);
        (burst.get(), reason)
    }

    #[test]
    fn a_fine_timer_needs_a_burst_of_one_packet_and_a_tick_that_of_all_bytes_due_in_it() {
        let slow = Rate::from_mbit_per_sec(20);
        assert_eq!(at(slow, Timers::Fine, false), (1514, Reason::Packet));
        // 20 Mbit/s and 4 ms: 10,000 bytes, 7 frames (section 4.4.3).
        assert_eq!(at(slow, Timers::Tick(250), false), (7 * 1514, Reason::Tick));
        // 4 Gbit/s: 2 MB at 250 ticks a second, 500 kB at 1,000; rounded up to 1,322 and 331 frames.
        let fast = Rate::from_mbit_per_sec(4000);
        assert_eq!(at(fast, Timers::Tick(250), true), (1322 * 1514, Reason::Tick));
        assert_eq!(at(fast, Timers::Tick(1000), true), (331 * 1514, Reason::Tick));
    }

    #[test]
    fn a_late_timer_needs_a_burst_of_the_bytes_due_in_its_lateness() {
        let rate = Rate::from_mbit_per_sec(1000);
        // 4 ms at 1 Gbit/s are 500,000 bytes, 331 frames.
        assert_eq!(at(rate, Timers::Late(Span::from_millis(4)), true), (331 * 1514, Reason::Late));
        assert_eq!(at(rate, Timers::Late(Span::from_micros(100)), true), (68_130, Reason::Offloads));
        assert_eq!(at(rate, Timers::Late(Span::ZERO), false), (1514, Reason::Late));
    }

    #[test]
    fn with_offloads_the_bucket_holds_the_largest_packet() {
        // 65,470 bytes without headers are 45 segments of 1,448; 45 frames of 1,514.
        assert_eq!(at(Rate::from_mbit_per_sec(4000), Timers::Fine, true), (68_130, Reason::Offloads));
    }
}
