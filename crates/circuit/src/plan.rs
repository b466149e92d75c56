//! The settings of a host for a circuit. Every number follows from the circuit's rate and round trip: the window from both,
//! the shaper's buffer from the window, the sockets' buffers from the window (sections 3.3 and 3.5).
//!
//! One difference: the thesis has a token bucket filter for a circuit that is alone. Here it has a class of HTB at the root too, as each
//! of several has (section 3.5.2), so that another circuit can be added without a gap.

use crate::burst::{Reason, burst};
use crate::{Guarantee, Headers, Priority, Refusal, Request};
use serde::{Serialize, Serializer};
use weir_base::{Bytes, Rate, Span};
use weir_control::circuit_window;

/// The settings of a host for a circuit, and the goodput that they give.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The request.
    pub request: Request,
    /// The congestion control.
    pub control: Control,
    /// The bandwidth-delay product of the circuit, in bytes of frames.
    #[serde(rename = "bdp_bytes", serialize_with = "bytes")]
    pub bdp: Bytes,
    /// The largest amount in flight: Circuit TCP's fixed window, or the bound of H-TCP's; bytes of frames.
    #[serde(rename = "window_bytes", serialize_with = "bytes")]
    pub window: Bytes,
    /// The window in segments.
    pub window_segments: u64,
    /// Rate of the circuit's class at the sender's shaper, in frames as `tc` counts them.
    #[serde(rename = "shaper_rate_bit_per_s", serialize_with = "bits")]
    pub shaper_rate: Rate,
    /// How many bytes the shaper sends back to back.
    #[serde(rename = "burst_bytes", serialize_with = "bytes")]
    pub burst: Bytes,
    /// How many bytes may wait in the shaper: the whole window and a burst of other traffic to the destination, so that neither has
    /// the shaper refuse the other.
    #[serde(rename = "limit_bytes", serialize_with = "bytes")]
    pub limit: Bytes,
    /// `net.ipv4.tcp_wmem` at the sender: least, first and largest buffer in bytes.
    pub tcp_wmem: [u64; 3],
    /// `net.ipv4.tcp_rmem` at the receiver: least, first and largest buffer in bytes.
    pub tcp_rmem: [u64; 3],
    /// `net.ipv4.tcp_mem` at both hosts, in pages of 4 KiB: the least that these buffers need.
    pub tcp_mem: [u64; 3],
    /// The goodput of the circuit's rate: the rate without all headers.
    #[serde(rename = "ceiling_bit_per_s", serialize_with = "bits")]
    pub ceiling: Rate,
    /// The goodput that the window allows: less than the ceiling if the window is smaller than the bandwidth-delay product.
    #[serde(rename = "expected_bit_per_s", serialize_with = "bits")]
    pub expected: Rate,
    /// Delay in the shaper of the part of the window that exceeds the bandwidth-delay product.
    #[serde(rename = "standing_delay_ms", serialize_with = "millis")]
    pub standing_delay: Span,
    /// The queue that the first burst leaves behind a faster card; `None` if the card's rate is unknown.
    #[serde(rename = "start_up_queue_bytes", serialize_with = "some_bytes")]
    pub start_up_queue: Option<Bytes>,
    /// Lengths of a full segment.
    #[serde(skip)]
    pub headers: Headers,
    /// The reason for the size of the burst.
    #[serde(skip)]
    pub(crate) burst_reason: Reason,
}

/// The congestion control of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// Circuit TCP: the window is fixed.
    Ctcp,
    /// H-TCP: it reduces its window at losses.
    Htcp,
}

/// H-TCP halves its window at a loss; from twice the bandwidth-delay product it falls to exactly that (section 3.5.3).
const HTCP_WINDOW_PERCENT: u32 = 200;
/// The kernel uses half of a buffer for the window (section 4.3).
const BUFFERS_PER_WINDOW: u64 = 2;
/// Linux's first field of `tcp_wmem` and `tcp_rmem`, which only matters under memory pressure.
const LEAST_BUFFER: u64 = 4096;
/// The largest value of these settings, which have the type `int` in C.
const MOST_BUFFER: u64 = i32::MAX as u64;
/// Page size of x86-64 and most ARM systems, the unit of `tcp_mem`.
const PAGE: u64 = 4096;

impl Plan {
    /// Makes the plan for a request.
    ///
    /// # Errors
    /// No setting can meet the request.
    pub fn of(request: &Request) -> Result<Plan, Refusal> {
        request.check()?;
        let headers = Headers::of(request);
        let rate = headers.in_frames(request.rate, request.layer);
        let control = match (request.guarantee, request.priority) {
            (Guarantee::Semi, Priority::Background) => Control::Htcp,
            _ => Control::Ctcp,
        };
        let percent = if control == Control::Ctcp { request.window_percent } else { HTCP_WINDOW_PERCENT };
        let bdp = circuit_window(rate, request.rtt, 100);
        let window = circuit_window(rate, request.rtt, percent);
        let window_segments = window.get().div_ceil(headers.frame.get()).max(2);
        let in_flight = Bytes::new(window_segments * headers.frame.get());
        let (burst, burst_reason) = burst(request, &headers, rate);
        let buffer = (BUFFERS_PER_WINDOW * in_flight.get()).min(MOST_BUFFER);
        let ceiling = headers.goodput(rate);
        let held = Rate::from_bytes_in(in_flight, request.rtt);
        Ok(Plan {
            control,
            bdp,
            window,
            window_segments,
            shaper_rate: rate,
            burst,
            limit: in_flight + burst,
            tcp_wmem: [LEAST_BUFFER, buffer, buffer],
            tcp_rmem: [LEAST_BUFFER, buffer, buffer],
            tcp_mem: memory(2 * buffer),
            ceiling,
            expected: ceiling.min(headers.goodput(held)),
            standing_delay: rate.time_to_send(in_flight).saturating_sub(request.rtt),
            start_up_queue: request.card.map(|card| piled_up(burst, rate, card)),
            headers,
            burst_reason,
            request: request.clone(),
        })
    }
}

/// `tcp_mem` for this many bytes of buffers: they stay below the first threshold; the other thresholds have the kernel's own
/// ratio to it (Linux `tcp_init_mem`: 3 to 4 to 6).
fn memory(buffers: u64) -> [u64; 3] {
    let pages = buffers.div_ceil(PAGE);
    [pages, (pages * 4).div_ceil(3), pages * 2]
}

/// The queue that a burst at the card's rate leaves at a hop of the circuit's rate.
fn piled_up(burst: Bytes, rate: Rate, card: Rate) -> Bytes {
    let spare = u128::from(card.bits_per_sec().saturating_sub(rate.bits_per_sec()));
    let piled = u128::from(burst.get()) * spare / u128::from(card.bits_per_sec().max(1));
    Bytes::new(piled as u64)
}

fn bytes<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.get())
}
fn some_bytes<S: Serializer>(bytes: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
    bytes.map(Bytes::get).serialize(serializer)
}
fn bits<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(rate.bits_per_sec())
}
fn millis<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(span.as_millis_f64())
}

#[cfg(test)]
mod tests;
