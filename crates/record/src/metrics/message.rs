//! Metrics of messages: requests and their answers, media frames, and echoes. They exist only for groups that send such
//! messages.

use super::value::{Value, ratio};
use super::view::MessageSums;
use super::{Column, Domain, Flows, Level, Metric, Plot, Reduction, Zeros};
use crate::selector::Statistic;
use crate::types::{MessageFate, MessageKind};

impl Flows<'_> {
    pub(super) fn messages(&self) -> impl Iterator<Item = &MessageSums> {
        self.each().filter_map(|flow| flow.messages.as_deref())
    }
}

const OF: &[Level] = &[Level::Group, Level::Flow];

family! {
    REQUEST_TIME {
        name: "request_time_ms",
        title: "Request time",
        unit: "ms",
        of: OF,
        definition: "Time from the client's write of a request's first byte until it has read the last byte of the answer, of requests that were answered in the window. The connection is open already.",
        source: "RFC 7928, section 2.1 (flow completion time), for each request",
        absent: "had no request answered",
        columns: &[
            Column::new(6, "request", "request p50").of(Statistic::P50).main(),
            Column::new(7, "request-p99", "request p99").of(Statistic::P99),
        ],
        plot: Some(Plot { place: 2, key: "requests", title: "Request time" }),
        reduction: Reduction::Took(MessageKind::Request),
    }

    REQUESTS_PER_SECOND {
        name: "requests_per_s",
        title: "Requests per second",
        unit: "1/s",
        of: OF,
        definition: "Requests answered in the window, over the same time as goodput.",
        source: "weir",
        reduction: Reduction::Messages(|f| {
            let answered: usize = f.messages().map(|sums| sums.took[MessageKind::Request as usize].len()).sum();
            let span = f.active().filter(|_| answered > 0);
            Value::from(span.and_then(|span| ratio(answered as f64, span.as_secs_f64())))
        }),
    }

    ECHO_TIME {
        name: "echo_time_ms",
        title: "Echo time",
        unit: "ms",
        of: OF,
        definition: "Time from the application's sending of an echo request until it has read the answer, of requests that were answered within their timeout.",
        source: "RFC 2681 (round-trip delay), as the application sees it",
        absent: "had no echo answered",
        columns: &[
            Column::new(12, "echo", "echo p50").of(Statistic::P50).main(),
            Column::new(13, "echo-p99", "echo p99").of(Statistic::P99),
        ],
        plot: Some(Plot { place: 5, key: "echoes", title: "Echo time" }),
        reduction: Reduction::Took(MessageKind::Echo),
    }

    ECHOES_LOST {
        name: "echoes_lost_percent",
        title: "Echoes lost",
        unit: "%",
        of: OF,
        definition: "Echo requests without an answer within their timeout, as a share of the requests whose outcome became known in the window.",
        source: "RFC 6673 (round-trip loss)",
        domain: Domain::Percent,
        columns: &[Column::new(14, "echoes-lost", "echoes lost").zeros(Zeros::Hidden)],
        plot: Some(Plot { place: 6, key: "echoes-lost", title: "Echoes lost" }),
        reduction: Reduction::Share(MessageKind::Echo, MessageFate::Lost),
    }

    FRAME_DELAY {
        name: "frame_delay_ms",
        title: "Frame delay",
        unit: "ms",
        of: OF,
        definition: "Time from when a frame is due to leave until the receiving application has read its last packet. Late frames are included, lost ones are not.",
        source: "weir",
        absent: "received no whole frame",
        plot: Some(Plot { place: 3, key: "frames", title: "Frame delay" }),
        reduction: Reduction::Took(MessageKind::Frame),
    }

    FRAMES_ON_TIME {
        name: "frames_on_time_percent",
        title: "Frames on time",
        unit: "%",
        of: OF,
        definition: "Frames whose packets were all read within the deadline, as a share of the frames whose outcome became known in the window: complete, or given up a second after the deadline.",
        source: "weir",
        domain: Domain::Percent,
        columns: &[Column::new(8, "on-time", "frames on time").main()],
        plot: Some(Plot { place: 4, key: "on-time", title: "Frames on time" }),
        reduction: Reduction::Share(MessageKind::Frame, MessageFate::Done),
    }

    FRAMES_LOST {
        name: "frames_lost_percent",
        title: "Frames lost",
        unit: "%",
        of: OF,
        definition: "Frames with a packet that had not been read a second after the deadline, or at the end of the run, as a share of the frames whose outcome became known in the window.",
        source: "weir",
        domain: Domain::Percent,
        columns: &[Column::new(11, "frames-lost", "frames lost")],
        reduction: Reduction::Share(MessageKind::Frame, MessageFate::Lost),
    }
}
