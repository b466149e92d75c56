//! The sending half: segments from the first unacknowledged one on, and which of them must be retransmitted.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{Span, Time};

/// Later transmissions that must be echoed before one counts as lost.
const LATER: u32 = 3;
/// Bounds of the timeout (RFC 6298 has 1 s; Linux 200 ms).
const LEAST_TIMEOUT: Span = Span::from_millis(200);
const FIRST_TIMEOUT: Span = Span::from_secs(1);
const LONGEST_TIMEOUT: Span = Span::from_secs(10);

/// What the sender does with the number of a hole, the first missing segment, in an acknowledgement. The source calls it a hint by which a
/// packet is retransmitted before duplicate acknowledgements and timeouts establish its loss (appendix C), and says no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Holes {
    /// Nothing: a transmission is lost when three later ones were echoed.
    #[default]
    Unused,
    /// The segment is retransmitted when a packet that left after its last transmission is echoed.
    Once,
    /// Each acknowledgement that names the segment has it retransmitted.
    Each,
}

/// A segment: some bytes of the stream, or its end.
#[derive(Debug, Clone, Copy)]
struct Segment {
    length: u32,
    /// Position of its first byte in the stream.
    at: u64,
    fin: bool,
    /// Number and time of its last transmission; `None` before the first.
    sent: Option<(u32, Time)>,
    acknowledged: bool,
    /// Whether it waits to be retransmitted.
    lost: bool,
    /// Whether it was ever declared lost.
    was_lost: bool,
}

/// A transmission of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) number: u32,
    pub(crate) sequence: u32,
    pub(crate) length: u32,
    /// Position of its data in the stream.
    pub(crate) at: u64,
    pub(crate) fin: bool,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    /// Bytes in a full segment.
    payload: u32,
    holes: Holes,
    /// Number of the first segment in `segments`, which is the first that is not acknowledged.
    first: u32,
    segments: VecDeque<Segment>,
    /// Written bytes that are in no segment, and their position in the stream.
    waiting: u64,
    next_at: u64,
    /// Ends of the messages among these bytes, as positions in the stream; the last message may continue. `None` if a segment may
    /// hold parts of two messages.
    ends: Option<VecDeque<u64>>,
    /// Bytes in segments that are not acknowledged.
    outstanding: u64,
    closed: bool,
    /// State of the end of the stream.
    fin: Fin,
    /// Number of the next transmission. `transmissions` holds the segment numbers of the transmissions directly before it.
    next: u32,
    transmissions: VecDeque<u32>,
    /// Number of segments that wait to be retransmitted, and of lost segments that are not acknowledged yet.
    losses: u32,
    unrepaired: u32,
    /// Smoothed round trip time and mean deviation, in seconds.
    rtt: Option<(f64, f64)>,
    /// Timeouts in a row.
    backoff: u32,
    timeout: Time,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
    pub(crate) acknowledged: u64,
}

impl Sender {
    /// A sender of segments of this many bytes.
    pub(crate) fn new(payload: u32) -> Sender {
        Sender {
            payload,
            holes: Holes::default(),
            first: 0,
            segments: VecDeque::new(),
            waiting: 0,
            next_at: 0,
            ends: None,
            outstanding: 0,
            closed: false,
            fin: Fin::NotSent,
            next: 0,
            transmissions: VecDeque::new(),
            losses: 0,
            unrepaired: 0,
            rtt: None,
            backoff: 0,
            timeout: Time::NEVER,
            retransmitted: 0,
            timeouts: 0,
            acknowledged: 0,
        }
    }

    /// The same sender, with segments that hold parts of one message only.
    pub(crate) fn with_messages_apart(self) -> Sender {
        Sender { ends: Some(VecDeque::new()), ..self }
    }

    /// The same, with this use of the numbers of holes.
    pub(crate) fn with_holes(self, holes: Holes) -> Sender {
        Sender { holes, ..self }
    }

    /// Accepts bytes of a message up to `threshold` written and unacknowledged bytes, and returns their number. If messages are kept
    /// apart, a message that does not fit is accepted in full segments.
    pub(crate) fn write(&mut self, bytes: u64, threshold: u64) -> u64 {
        let room = if self.closed { 0 } else { threshold.saturating_sub(self.held()) };
        let mut taken = bytes.min(room);
        if let Some(ends) = &mut self.ends {
            if (1..=room).contains(&bytes) {
                ends.push_back(self.next_at + self.waiting + bytes);
            } else {
                taken -= taken % u64::from(self.payload);
            }
        }
        self.waiting += taken;
        taken
    }

    /// Takes the bytes of the next segment from the waiting bytes, and returns their number.
    fn cut(&mut self) -> u32 {
        let mut length = self.waiting.min(self.payload.into());
        if let Some(ends) = &mut self.ends
            && let Some(left) = ends.front().map(|end| end - self.next_at).filter(|left| *left <= length)
        {
            ends.pop_front();
            length = left;
        }
        self.waiting -= length;
        self.outstanding += length;
        self.next_at += length;
        length as u32
    }

    /// Position in the stream of the first segment that is not acknowledged.
    pub(crate) fn settled_to(&self) -> u64 {
        self.segments.front().map_or(self.next_at, |segment| segment.at)
    }

    /// Bytes that are written and not acknowledged.
    pub(crate) fn held(&self) -> u64 {
        self.waiting + self.outstanding
    }

    /// Bytes that are written and were not sent.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The application writes no more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether there is something to send.
    pub(crate) fn has_more(&self) -> bool {
        self.losses > 0 || self.waiting > 0 || (self.closed && self.fin == Fin::NotSent)
    }

    /// Whether all data is acknowledged, and also the end of the stream if it was closed.
    pub(crate) fn all_acknowledged(&self) -> bool {
        self.held() == 0 && (!self.closed || self.fin == Fin::Acknowledged)
    }

    /// The next transmission: lost segments first, then new data, then the end of the stream; `None` if there is none.
    pub(crate) fn transmit(&mut self, now: Time) -> Option<Transmission> {
        let at = match self.segments.iter().position(|segment| segment.lost).filter(|_| self.losses > 0) {
            Some(at) => {
                self.losses -= 1;
                self.retransmitted += 1;
                at
            }
            None => {
                let fin = self.waiting == 0;
                if fin && !(self.closed && self.fin == Fin::NotSent) {
                    return None;
                }
                if fin {
                    self.fin = Fin::Sent;
                }
                let at = self.next_at;
                let length = self.cut();
                self.segments.push_back(Segment {
                    length,
                    at,
                    fin,
                    sent: None,
                    acknowledged: false,
                    lost: false,
                    was_lost: false,
                });
                self.segments.len() - 1
            }
        };
        let (number, sequence) = (self.next, self.first.wrapping_add(at as u32));
        self.next = self.next.wrapping_add(1);
        self.transmissions.push_back(sequence);
        if self.timeout == Time::NEVER {
            self.timeout = now + self.patience();
        }
        let segment = &mut self.segments[at];
        (segment.sent, segment.lost) = (Some((number, now)), false);
        let Segment { length, at, fin, .. } = *segment;
        Some(Transmission { number, sequence, length, at, fin })
    }

    /// Takes an acknowledgement: the number of the transmission that it echoes, and the next expected segment.
    pub(crate) fn acknowledged(&mut self, echo: u32, ack: u32, now: Time) {
        let oldest = self.next.wrapping_sub(self.transmissions.len() as u32);
        let (age, arrived) = (echo.wrapping_sub(oldest), ack.wrapping_sub(self.first));
        if arrived as usize > self.segments.len() {
            return;
        }
        if let Some(sequence) = self.transmissions.get(age as usize).copied() {
            let at = sequence.wrapping_sub(self.first) as usize;
            if let Some(segment) = self.segments.get_mut(at) {
                // Each transmission has its own number, so retransmissions give samples too.
                if let Some((_, sent)) = segment.sent.filter(|(number, _)| *number == echo) {
                    self.take_rtt(now.since(sent).as_secs_f64());
                }
                self.settle(at);
            }
            // Transmissions are lost once three later ones were echoed.
            for _ in 0..(age + 1).saturating_sub(LATER) {
                let Some(sequence) = self.transmissions.pop_front() else { break };
                let number = self.next.wrapping_sub(self.transmissions.len() as u32 + 1);
                self.lose(sequence.wrapping_sub(self.first) as usize, Some(number));
            }
        }
        for at in 0..arrived as usize {
            self.settle(at);
        }
        while self.segments.front().is_some_and(|segment| segment.acknowledged) {
            let fin = self.segments.pop_front().is_some_and(|segment| segment.fin);
            self.first = self.first.wrapping_add(1);
            if fin {
                self.fin = Fin::Acknowledged;
            }
        }
        self.backoff = 0;
        self.timeout = if self.segments.is_empty() { Time::NEVER } else { now + self.patience() };
    }

    /// The acknowledgement that echoes this transmission names the first missing segment.
    pub(crate) fn hole(&mut self, hole: u32, echo: u32) {
        let at = hole.wrapping_sub(self.first) as usize;
        let last = self.segments.get(at).and_then(|segment| segment.sent).map(|(number, _)| number);
        let later = last.is_some_and(|last| (echo.wrapping_sub(last) as i32) > 0);
        if self.holes == Holes::Each || self.holes == Holes::Once && later {
            self.lose(at, None);
        }
    }

    /// A segment has arrived.
    fn settle(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        if !segment.acknowledged {
            segment.acknowledged = true;
            self.losses -= u32::from(std::mem::take(&mut segment.lost));
            self.unrepaired -= u32::from(segment.was_lost);
            self.outstanding -= u64::from(segment.length);
            self.acknowledged += u64::from(segment.length);
        }
    }

    /// Declares a segment lost if it is unacknowledged and `number` is its last transmission. `None` stands for any transmission.
    fn lose(&mut self, at: usize, number: Option<u32>) {
        let Some(segment) = self.segments.get_mut(at) else { return };
        let last = segment.sent.map(|(number, _)| number);
        if !segment.acknowledged && !segment.lost && last.is_some() && (number.is_none() || number == last) {
            self.unrepaired += u32::from(!segment.was_lost);
            (segment.lost, segment.was_lost) = (true, true);
            self.losses += 1;
        }
    }

    /// Whether a lost segment is not acknowledged yet.
    pub(crate) fn is_recovering(&self) -> bool {
        self.unrepaired > 0
    }

    /// If the timeout has passed, all unacknowledged segments are declared lost.
    pub(crate) fn on_timer(&mut self, now: Time) {
        if now < self.timeout {
            return;
        }
        for at in 0..self.segments.len() {
            self.lose(at, None);
        }
        self.timeouts += 1;
        self.backoff += 1;
        self.timeout = now + self.patience();
    }

    /// When [`Sender::on_timer`] is due.
    pub(crate) fn next_timer(&self) -> Time {
        self.timeout
    }

    /// The timeout, doubled for each consecutive timeout.
    pub(crate) fn patience(&self) -> Span {
        let timeout = self.rtt.map_or(FIRST_TIMEOUT, |(srtt, deviation)| {
            Span::from_secs_f64(srtt + 4.0 * deviation).max(LEAST_TIMEOUT)
        });
        (timeout * (1 << self.backoff.min(6))).min(LONGEST_TIMEOUT)
    }

    /// The smoothed round trip time of acknowledgements.
    pub(crate) fn rtt(&self) -> Option<Span> {
        self.rtt.map(|(srtt, _)| Span::from_secs_f64(srtt))
    }

    /// Number of segments that have left and are neither acknowledged nor lost.
    pub(crate) fn in_flight(&self) -> u32 {
        self.segments.iter().filter(|segment| !segment.acknowledged && !segment.lost).count() as u32
    }

    /// RFC 6298, section 2.
    fn take_rtt(&mut self, sample: f64) {
        self.rtt = Some(match self.rtt {
            Some((srtt, deviation)) => {
                let deviation = deviation + ((srtt - sample).abs() - deviation) / 4.0;
                (srtt + (sample - srtt) / 8.0, deviation)
            }
            None => (sample, sample / 2.0),
        });
    }
}

/// State of the end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fin {
    NotSent,
    Sent,
    Acknowledged,
}
