//! Checks of a group's TCP settings: socket buffers, timeouts, delayed acknowledgements, clocks.

use crate::reader::Reader;
use std::ops::RangeInclusive;
use weir_base::{Bytes, Span};
use weir_endpoint::{Buffer, Settings};

/// About the largest value that Linux takes: `tcp_wmem` and `tcp_rmem` are signed 32-bit numbers.
const LARGEST_BUFFER: Bytes = Bytes::new(2047 << 20);
/// Room for a segment of 1500 bytes in a socket buffer of Linux (skb overhead included), and some more.
const SMALLEST_BUFFER: Bytes = Bytes::new(4096);
const RTO_MINS: RangeInclusive<Span> = Span::from_millis(1)..=Span::from_secs(10);
/// How long an acknowledgement may wait: less than half a second (RFC 9293, section 3.8.6.3).
const ACK_DELAYS: RangeInclusive<Span> = Span::from_millis(1)..=Span::from_millis(500);
const FINEST_TICK: Span = Span::from_micros(1);
const COARSEST_TICK: Span = Span::from_secs(1);
/// Largest skew of a clock, in ppm: a tenth.
const MOST_SKEW: u32 = 100_000;

/// Checks the settings of a group.
pub(crate) fn settings(reader: &mut Reader<'_>, name: &str, settings: &Settings) {
    buffers(reader, name, settings);
    timeouts(reader, name, settings);
    clocks(reader, name, settings);
}

/// Checks a group's socket buffers.
fn buffers(reader: &mut Reader<'_>, name: &str, settings: &Settings) {
    for (key, Buffer { min, initial, max }) in
        [("send_buffer", settings.send_buffer), ("receive_buffer", settings.receive_buffer)]
    {
        let path = ["traffic", name, key];
        if max < SMALLEST_BUFFER || max > LARGEST_BUFFER || min == Bytes::ZERO {
            let message =
                format!("a socket buffer cannot hold {}", if min == Bytes::ZERO { min } else { max });
            reader.wrong(&path, message, format!("write from {SMALLEST_BUFFER} to {LARGEST_BUFFER}"));
        } else if !(min <= initial && initial <= max) {
            let message = format!("the buffer's {min}, {initial} and {max} are not in order");
            reader.wrong(
                &path,
                message,
                "min is at most initial, and initial at most max; Linux's defaults hold for those that are left out",
            );
        }
    }
}

/// Checks a group's least retransmission timeout, and how long acknowledgements may wait.
fn timeouts(reader: &mut Reader<'_>, name: &str, settings: &Settings) {
    if !RTO_MINS.contains(&settings.rto_min) {
        let message =
            format!("a retransmission timeout cannot have a minimum variance of {}", settings.rto_min);
        let help = format!("write from {} to {}", RTO_MINS.start(), RTO_MINS.end());
        reader.wrong(&["traffic", name, "rto_min"], message, help);
    }
    if let Some(delay) = settings.delayed_ack.filter(|delay| !ACK_DELAYS.contains(delay)) {
        let message = format!("an acknowledgement cannot wait for {delay}");
        let help = format!("write from {} to {}", ACK_DELAYS.start(), ACK_DELAYS.end());
        reader.wrong(&["traffic", name, "delayed_ack"], message, help);
    }
    if settings.window_updates && settings.delayed_ack.is_none() {
        let message = "the rule by which Linux's receivers acknowledge has no window updates";
        let help = "write delayed_ack beside it (\"100 ms\" is FreeBSD's)";
        reader.wrong(&["traffic", name, "window_updates"], message, help);
    }
}

/// Checks the clocks of a group's hosts.
fn clocks(reader: &mut Reader<'_>, name: &str, settings: &Settings) {
    for (key, clock) in [("sender_clock", settings.sender_clock), ("receiver_clock", settings.receiver_clock)]
    {
        if clock.tick < FINEST_TICK || clock.tick > COARSEST_TICK {
            let message = format!("a clock cannot have ticks of {}", clock.tick);
            let help = format!("write from {FINEST_TICK} to {COARSEST_TICK}");
            reader.wrong(&["traffic", name, key, "tick"], message, help);
        }
        if clock.skew_ppm.unsigned_abs() > MOST_SKEW {
            let message = format!("a clock cannot be off by {} millionths", clock.skew_ppm);
            let help = format!("write from -{MOST_SKEW} to {MOST_SKEW}");
            reader.wrong(&["traffic", name, key, "skew_ppm"], message, help);
        }
    }
}
