//! Media frames at a constant frame rate: in datagrams, or written to a stream. In datagrams each frame consists of several packets, sent
//! at once or spread over a time. The
//! sizes of frames are equal, follow a pattern (as in a group of pictures), vary at random, or both. A frame is on time if the
//! receiving application has all of it within the deadline after its due time; a frame that never completes is lost. A source that adapts
//! makes frames smaller or drops whole ones ([`Adapt`]); a frame that was dropped counts as lost.
//!
//! Every packet begins with a header of twelve bytes, as long as RTP's (RFC 3550, section 5.1): the frame's number, the packet's place
//! in the frame and the frame's number of packets. The format is weir's own, not RTP.

mod log;

pub use log::{FrameFate, FrameLog, FrameRecord};

use crate::adapt::{Adapt, Governor};
use crate::checks::{self, UDP_HEADERS};
use crate::{Action, Bytes, Datagrams, Ecn, Event, Log, Parameters, Random, Role, Span, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{ParameterError, Rate};

/// Length of the header before a packet's part of the frame.
pub const PART_HEADER: usize = 12;
/// Length of all headers before a packet's part of a frame over IPv4.
const HEADERS: Bytes = Bytes::new(UDP_HEADERS.get() + PART_HEADER as u64);
/// Largest number of frames per second.
const MOST: f64 = 10_000.0;
/// Largest number of packets in a frame.
const MOST_PARTS: u64 = 10_000;

/// Parameters of media frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Frames per second.
    pub fps: f64,
    /// Mean size of a frame, without headers.
    pub size: Bytes,
    /// Sizes of successive frames relative to each other, repeated: `[4, 1, 1, 1]` makes every fourth frame four times as large as
    /// the others, with the same mean. By default all frames have the same size.
    pub pattern: Vec<f64>,
    /// Largest relative deviation of a frame's size, drawn uniformly: 0.2 means up to a fifth more or less.
    pub spread: f64,
    /// A frame is on time if its last packet is read within this time after the frame was due to leave.
    pub deadline: Span,
    /// Time over which the packets of a frame are spread evenly; 0 s sends them all at once.
    pub pace: Span,
    /// Length of a full IP packet, headers included.
    pub packet: Bytes,
    /// ECN codepoint of each packet.
    pub ecn: Ecn,
    /// What sends the packets: `fabric` injects them at exact times, `socket` sends them as an application does. `stream` writes each frame
    /// whole to a stream, as of CP-RUDP or TCP, without packets of its own.
    pub source: Source,
    /// How frames adapt to what the socket tells: `drop` drops whole frames, `shrink` makes them smaller. By default they do not adapt. A
    /// source `fabric` has no socket, so it cannot adapt.
    #[schemars(with = "Option<Adapt>")]
    pub adapt: Option<Adapt>,
    /// The smallest part of its size to which `adapt = "shrink"` makes a frame, from 0 to 1; one that would become smaller is dropped.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub least: f64,
}

/// What sends the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Source {
    /// The fabric, in datagrams at exact times.
    Fabric,
    /// A socket of the sending host, in datagrams.
    Socket,
    /// A stream of the sending host.
    Stream,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            fps: 30.0,
            size: Bytes::new(8_000),
            pattern: Vec::new(),
            spread: 0.0,
            deadline: Span::from_millis(100),
            pace: Span::ZERO,
            packet: Bytes::new(1500),
            ecn: Ecn::NotEct,
            source: Source::Fabric,
            adapt: None,
            least: 0.2,
        }
    }
}

/// A packet's part of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The frame's number, from 0.
    pub frame: u32,
    /// The packet's place in the frame, from 0.
    pub index: u16,
    /// Number of packets of the frame.
    pub parts: u16,
}

impl Part {
    /// The part's header.
    pub fn header(&self) -> [u8; PART_HEADER] {
        let mut header = [0; PART_HEADER];
        header[..4].copy_from_slice(&self.frame.to_be_bytes());
        header[4..6].copy_from_slice(&self.index.to_be_bytes());
        header[6..8].copy_from_slice(&self.parts.to_be_bytes());
        header
    }

    /// Reads a datagram's payload; `None` if it is no part of a frame.
    pub fn read(payload: &[u8]) -> Option<Part> {
        let header: &[u8; PART_HEADER] = payload.first_chunk()?;
        let [a, b, c, d, e, f, g, h, ..] = *header;
        let part = Part {
            frame: u32::from_be_bytes([a, b, c, d]),
            index: u16::from_be_bytes([e, f]),
            parts: u16::from_be_bytes([g, h]),
        };
        (part.index < part.parts).then_some(part)
    }
}

/// The time from the first frame's due time to that of frame `number`; computed from the first, so that rounding does not accumulate.
fn due(fps: f64, number: u32) -> Span {
    Span::from_nanos((f64::from(number) * 1e9 / fps + 0.5) as u64)
}

impl Config {
    /// Bytes of a frame in a full packet with `headers` bytes of headers.
    fn room(&self, headers: Bytes) -> u64 {
        self.packet.saturating_sub(headers).get().max(1)
    }

    /// The size of each frame of the pattern relative to the mean.
    fn factors(&self) -> Vec<f64> {
        let mean = self.pattern.iter().sum::<f64>() / self.pattern.len().max(1) as f64;
        self.pattern.iter().map(|part| part / mean).collect()
    }

    /// The largest frame of the pattern relative to the mean.
    fn peak(&self) -> f64 {
        if self.pattern.is_empty() { 1.0 } else { self.factors().into_iter().fold(0.0, f64::max) }
    }

    /// The largest possible frame, in bytes.
    fn largest(&self) -> f64 {
        self.size.get() as f64 * self.peak() * (1.0 + self.spread)
    }

    /// What the source knows of its socket; `None` if it does not adapt. What waits is to leave within a frame's interval, or as many of
    /// them as the largest frame of the pattern takes.
    fn governor(&self, headers: Bytes) -> Option<Governor> {
        self.adapt?;
        let bytes = self.largest() as u64;
        let headers = match self.source {
            Source::Stream => 0,
            _ => bytes.div_ceil(self.room(headers)) * headers.get(),
        };
        Some(Governor::new(due(self.fps, 1).scale(self.peak()), bytes + headers))
    }
}

impl Parameters for Config {
    fn role(&self) -> Role {
        match self.source {
            Source::Stream => Role::OneWay,
            source => Role::Datagrams(Datagrams { ecn: self.ecn, exact: source == Source::Fabric }),
        }
    }
    fn build(&self, _: Option<Bytes>, headers: Bytes, random: Random) -> Box<dyn Workload> {
        let headers = headers + Bytes::new(PART_HEADER as u64);
        Box::new(Frames {
            factors: self.factors(),
            headers,
            room: self.room(headers),
            governor: self.governor(headers),
            config: self.clone(),
            random,
            start: Time::ZERO,
            part: Part { frame: 0, index: 0, parts: 0 },
            left: 0,
        })
    }
    fn faults(&self, mtu: Bytes) -> Vec<ParameterError> {
        let header = Bytes::new(PART_HEADER as u64 + 1);
        let mut faults: Vec<ParameterError> = [
            checks::per_second("fps", "frames", self.fps, MOST),
            checks::size("size", "a frame", self.size),
            checks::span("deadline", "a deadline", self.deadline, Span::from_millis(1)),
            checks::packet("packet", self.packet, header, mtu),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.adapt.is_some() && self.source == Source::Fabric {
            let message = "the fabric sends frames at exact times, whatever a socket tells";
            faults.push(ParameterError::new("adapt", message, "write source = \"socket\" or \"stream\""));
        }
        if !(0.0..=1.0).contains(&self.least) {
            let message = format!("a frame cannot become {} of its size", self.least);
            faults.push(ParameterError::new("least", message, "write a number from 0 to 1"));
        }
        if self.source == Source::Stream && !self.pace.is_zero() {
            let message = "a frame is written to a stream at once";
            faults.push(ParameterError::new("pace", message, "remove it, or write source = \"socket\""));
        }
        if !(0.0..1.0).contains(&self.spread) {
            let message = format!("a frame cannot be {} of its size larger or smaller", self.spread);
            faults.push(ParameterError::new(
                "spread",
                message,
                "write a number from 0 up to, but not including, 1",
            ));
        }
        let sum: f64 = self.pattern.iter().sum();
        if !self.pattern.is_empty()
            && (self.pattern.iter().any(|part| *part < 0.0) || !(sum > 0.0 && sum.is_finite()))
        {
            let message = "the sizes of a pattern must be at least 0, and one above 0";
            faults.push(ParameterError::new(
                "pattern",
                message,
                "write sizes relative to each other: [4, 1, 1, 1]",
            ));
        }
        if faults.is_empty() && self.pace > due(self.fps, 1) {
            let message = format!("a frame spread over {} runs into the next one", self.pace);
            faults.push(ParameterError::new("pace", message, format!("write at most {}", due(self.fps, 1))));
        }
        if faults.is_empty() && self.largest() / self.room(HEADERS) as f64 > MOST_PARTS as f64 {
            let message = "a frame consists of more packets than its header can number".to_string();
            let help =
                format!("make frames smaller, or packets larger: at most {MOST_PARTS} packets a frame");
            faults.push(ParameterError::new("size", message, help));
        }
        faults
    }
    fn wanted(&self, time: Span) -> Option<Bytes> {
        let parts = match self.source {
            Source::Stream => 0.0,
            _ => (self.size.get() as f64 / self.room(HEADERS) as f64).ceil(),
        };
        let frame = self.size.get() as f64 + parts * HEADERS.get() as f64;
        Some(Bytes::new((self.fps * time.as_secs_f64() * frame) as u64))
    }
    fn datagram(&self) -> Option<(Bytes, Bytes)> {
        (self.source != Source::Stream).then_some((self.packet, Bytes::new(PART_HEADER as u64 + 1)))
    }
    fn adapt(&self) -> Option<Adapt> {
        self.adapt
    }
    fn deadline(&self) -> Option<Span> {
        Some(self.deadline)
    }
    fn log(&self, start: Time, stop: Time, end: Time) -> Option<Log> {
        Some(Log::Frames(FrameLog::new(self.fps, self.deadline, start, stop, end)))
    }
}

#[derive(Debug)]
struct Frames {
    config: Config,
    factors: Vec<f64>,
    /// What is known of the socket; `None` if frames do not adapt.
    governor: Option<Governor>,
    /// Length of all headers before a packet's part of a frame, and bytes of a frame in a full packet.
    headers: Bytes,
    room: u64,
    random: Random,
    start: Time,
    /// The packet that is sent next.
    part: Part,
    /// Bytes of the frame that have not been sent.
    left: u64,
}

impl Frames {
    /// Begins the frame with this number and draws its size.
    fn begin(&mut self, frame: u32) {
        let factor = match self.factors.len() {
            0 => 1.0,
            length => self.factors[frame as usize % length],
        };
        let spread = self.config.spread;
        let drawn = if spread > 0.0 { 1.0 + spread * (2.0 * self.random.unit() - 1.0) } else { 1.0 };
        self.left = ((self.config.size.get() as f64 * factor * drawn + 0.5) as u64).max(1);
        self.part = Part { frame, index: 0, parts: self.parts() };
    }

    /// Number of packets of the frame.
    fn parts(&self) -> u16 {
        self.left.div_ceil(self.room).min(MOST_PARTS) as u16
    }

    /// Bytes of the frame with all headers of its packets.
    fn with_headers(&self) -> Bytes {
        let headers = if self.is_stream() { 0 } else { self.headers.get() * u64::from(self.parts()) };
        Bytes::new(self.left + headers)
    }

    fn is_stream(&self) -> bool {
        self.config.source == Source::Stream
    }

    /// Makes a frame that begins now as small as the socket tells. Returns whether it is to be sent.
    fn adapt(&mut self) -> bool {
        let Some(governor) = self.governor else { return true };
        // The next frame is due already: the application was still writing an earlier one.
        if self.start + due(self.config.fps, self.part.frame + 1) <= governor.at() {
            return false;
        }
        if self.config.adapt == Some(Adapt::Drop) {
            return governor.is_clear();
        }
        let whole = self.left;
        let part = governor.fits() as f64 / self.with_headers().get() as f64;
        if part < 1.0 {
            self.left = (whole as f64 * part) as u64;
            self.part.parts = self.parts();
        }
        self.left > 0 && self.left as f64 >= self.config.least * whole as f64
    }

    /// The action of a time at which a packet or a frame is due.
    fn leave(&mut self) -> Action {
        if self.part.index == 0 {
            if !self.adapt() {
                self.begin(self.part.frame + 1);
                return Action::WaitUntil(self.due());
            }
            let bytes = self.with_headers();
            self.governor.iter_mut().for_each(|governor| governor.sent(bytes));
        }
        if self.is_stream() { Action::Frame(Bytes::new(self.left), self.part.frame) } else { self.send() }
    }

    /// The action that sends the next packet.
    fn send(&self) -> Action {
        Action::Send(self.headers + Bytes::new(self.left.min(self.room)), Some(self.part))
    }

    /// When the packet `part` is due.
    fn due(&self) -> Time {
        let Part { frame, index, parts } = self.part;
        let within = self.config.pace.as_nanos() * u64::from(index) / u64::from(parts.max(1));
        self.start + due(self.config.fps, frame) + Span::from_nanos(within)
    }
}

impl Workload for Frames {
    fn next(&mut self, event: Event, now: Time) -> Action {
        match event {
            Event::Start => {
                self.start = now;
                self.begin(0);
                if self.is_stream() { Action::Open } else { self.leave() }
            }
            Event::Opened => Action::WaitUntil(self.due()),
            Event::Written => {
                self.begin(self.part.frame + 1);
                Action::WaitUntil(self.due())
            }
            Event::Sent => {
                self.left -= self.left.min(self.room);
                self.part.index += 1;
                if self.part.index == self.part.parts {
                    self.begin(self.part.frame + 1);
                    return Action::WaitUntil(self.due());
                }
                if self.config.pace.is_zero() { self.send() } else { Action::WaitUntil(self.due()) }
            }
            _ => self.leave(),
        }
    }

    fn adapts(&self) -> bool {
        self.governor.is_some()
    }

    fn on_backlog(&mut self, _: usize, unsent: Bytes, rate: Option<Rate>, now: Time) {
        self.governor.iter_mut().for_each(|governor| governor.update(unsent, rate, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first packets: when each leaves, its IP length and its part.
    fn packets(config: &Config, count: usize) -> Vec<(Span, u64, Part)> {
        packets_after(UDP_HEADERS, config, count)
    }

    /// The first packets with `headers` bytes of IP and UDP headers.
    fn packets_after(headers: Bytes, config: &Config, count: usize) -> Vec<(Span, u64, Part)> {
        let mut frames = config.build(None, headers, Random::stream(1, "test"));
        let (mut now, mut sent) = (Time::ZERO, vec![]);
        let mut action = frames.next(Event::Start, now);
        while sent.len() < count {
            action = match action {
                Action::Send(length, Some(part)) => {
                    sent.push((now.since(Time::ZERO), length.get(), part));
                    frames.next(Event::Sent, now)
                }
                Action::WaitUntil(at) => {
                    now = at;
                    frames.next(Event::Woken, now)
                }
                other => panic!("{other:?}"),
            }
        }
        sent
    }

    #[test]
    fn a_frame_is_split_into_packets_that_leave_together() {
        // 3000 bytes are 1460, 1460 and 80, each with 40 bytes of headers; 50 frames per second.
        let config = Config { fps: 50.0, size: Bytes::new(3000), ..Config::default() };
        let sent = packets(&config, 4);
        let part = |frame, index| Part { frame, index, parts: 3 };
        assert_eq!(sent[0], (Span::ZERO, 1500, part(0, 0)));
        assert_eq!(sent[1], (Span::ZERO, 1500, part(0, 1)));
        assert_eq!(sent[2], (Span::ZERO, 120, part(0, 2)));
        assert_eq!(sent[3], (Span::from_millis(20), 1500, part(1, 0)));
    }

    #[test]
    fn over_ipv6_a_packet_holds_twenty_bytes_less() {
        let config = Config { size: Bytes::new(3000), ..Config::default() };
        let lengths = packets_after(Bytes::new(48), &config, 3).into_iter().map(|(_, length, _)| length);
        assert_eq!(lengths.collect::<Vec<_>>(), [1500, 1500, 3000 - 2 * 1440 + 60]);
    }

    #[test]
    fn a_paced_frame_is_spread_evenly() {
        let config =
            Config { fps: 50.0, size: Bytes::new(2920), pace: Span::from_millis(10), ..Config::default() };
        let times: Vec<u64> = packets(&config, 4).iter().map(|(at, ..)| at.as_millis()).collect();
        assert_eq!(times, [0, 5, 20, 25]);
    }

    #[test]
    fn a_pattern_keeps_the_mean() {
        // A mean of 1000 with a ratio of 3:1: 1500 and 500 bytes.
        let config = Config { size: Bytes::new(1000), pattern: vec![3.0, 1.0], ..Config::default() };
        let lengths: Vec<u64> = packets(&config, 6).iter().map(|(_, length, _)| *length).collect();
        assert_eq!(lengths, [1500, 80, 540, 1500, 80, 540]);
    }

    #[test]
    fn sizes_stay_within_the_spread_around_their_mean() {
        let config = Config { size: Bytes::new(1000), spread: 0.2, ..Config::default() };
        let sizes: Vec<u64> = packets(&config, 2000).iter().map(|(_, length, _)| length - 40).collect();
        assert!(sizes.iter().all(|size| (800..=1200).contains(size)));
        let mean = sizes.iter().sum::<u64>() as f64 / 2000.0;
        assert!((mean - 1000.0).abs() < 10.0, "{mean}");
    }

    #[test]
    fn a_header_reads_back_and_other_bytes_are_no_header() {
        let part = Part { frame: 70_000, index: 3, parts: 9 };
        assert_eq!(Part::read(&part.header()), Some(part));
        assert_eq!(Part::read(&[0; PART_HEADER]), None);
        assert_eq!(Part::read(&[1; PART_HEADER - 1]), None);
    }
}
