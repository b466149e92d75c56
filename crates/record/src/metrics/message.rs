//! Metrics of messages: requests and their answers, media frames, and echoes. They exist only for groups that send such
//! messages.

use super::value::{Distribution, Value, percent, ratio};
use super::view::MessageSums;
use super::{Domain, Flows, Formula, Level, Metric};
use weir_base::Span;

impl Flows<'_> {
    pub(super) fn messages(&self) -> impl Iterator<Item = &MessageSums> {
        self.each().filter_map(|flow| flow.messages.as_deref())
    }

    /// A count of frames as a share of all frames of all flows, in percent. `None` if there are no frames.
    fn of_frames(&self, count: impl Fn(&MessageSums) -> u64) -> Option<f64> {
        let (part, whole) =
            self.messages().fold((0, 0), |(part, whole), sums| (part + count(sums), whole + sums.frames()));
        percent(part, whole)
    }
}

/// The distribution of times, in milliseconds.
pub(super) fn millis<'a>(times: impl Iterator<Item = &'a [Span]>) -> Value {
    Value::from(Distribution::of(times.flatten().map(|time| time.as_millis_f64())))
}

const OF: &[Level] = &[Level::Group, Level::Flow];

/// Time from request to answer.
pub(super) const REQUEST_TIME: Metric = Metric {
    name: "request_time_ms",
    title: "Request time",
    unit: "ms",
    of: OF,
    definition: "Time from the client's write of a request's first byte until it has read the last byte of the answer, of requests that were answered in the window. The connection is open already.",
    source: "RFC 7928, section 2.1 (flow completion time), for each request",
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::Messages(|f| millis(f.messages().map(|sums| sums.requests.as_slice()))),
};

/// Rate of answered requests.
pub(super) const REQUESTS_PER_SECOND: Metric = Metric {
    name: "requests_per_s",
    title: "Requests per second",
    unit: "1/s",
    of: OF,
    definition: "Requests answered in the window, over the same time as goodput.",
    source: "weir",
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::Messages(|f| {
        let answered: usize = f.messages().map(|sums| sums.requests.len()).sum();
        let span = f.active().filter(|_| answered > 0);
        Value::from(span.and_then(|span| ratio(answered as f64, span.as_secs_f64())))
    }),
};

/// Time from echo request to answer.
pub(super) const ECHO_TIME: Metric = Metric {
    name: "echo_time_ms",
    title: "Echo time",
    unit: "ms",
    of: OF,
    definition: "Time from the application's sending of an echo request until it has read the answer, of requests that were answered within their timeout.",
    source: "RFC 2681 (round-trip delay), as the application sees it",
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::Messages(|f| millis(f.messages().map(|sums| sums.echoes.as_slice()))),
};

/// Share of echo requests without an answer.
pub(super) const ECHOES_LOST: Metric = Metric {
    name: "echoes_lost_percent",
    title: "Echoes lost",
    unit: "%",
    of: OF,
    definition: "Echo requests without an answer within their timeout, as a share of the requests whose outcome became known in the window.",
    source: "RFC 6673 (round-trip loss)",
    bound: None,
    domain: Domain::Percent,
    formula: Formula::Messages(|f| {
        let counts = |(lost, all): (u64, u64), sums: &MessageSums| {
            (lost + sums.unanswered, all + sums.unanswered + sums.echoes.len() as u64)
        };
        let (lost, all) = f.messages().fold((0, 0), counts);
        Value::from(percent(lost, all))
    }),
};

/// Delay of frames.
pub(super) const FRAME_DELAY: Metric = Metric {
    name: "frame_delay_ms",
    title: "Frame delay",
    unit: "ms",
    of: OF,
    definition: "Time from when a frame is due to leave until the receiving application has read its last packet. Late frames are included, lost ones are not.",
    source: "weir",
    bound: None,
    domain: Domain::NotNegative,
    formula: Formula::Messages(|f| millis(f.messages().map(|sums| sums.delays.as_slice()))),
};

/// Share of frames on time.
pub(super) const FRAMES_ON_TIME: Metric = Metric {
    name: "frames_on_time_percent",
    title: "Frames on time",
    unit: "%",
    of: OF,
    definition: "Frames whose packets were all read within the deadline, as a share of the frames whose outcome became known in the window: complete, or given up a second after the deadline.",
    source: "weir",
    bound: None,
    domain: Domain::Percent,
    formula: Formula::Messages(|f| Value::from(f.of_frames(|sums| sums.on_time))),
};

/// Share of lost frames.
pub(super) const FRAMES_LOST: Metric = Metric {
    name: "frames_lost_percent",
    title: "Frames lost",
    unit: "%",
    of: OF,
    definition: "Frames with a packet that had not been read a second after the deadline, or at the end of the run, as a share of the frames whose outcome became known in the window.",
    source: "weir",
    bound: None,
    domain: Domain::Percent,
    formula: Formula::Messages(|f| Value::from(f.of_frames(|sums| sums.lost))),
};
