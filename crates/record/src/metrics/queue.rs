//! Metrics of a link and its queue, from counters there.

use super::reduction::Queue;
use super::value::{Value, mbps, percent, ratio};
use super::view::LinkView;
use super::{Column, Domain, Level, Metric, Reduction, Zeros};
use crate::bound::Bound;
use crate::selector::Statistic;
use weir_fabric::{DropReason, LinkCounters};

impl Queue<'_> {
    pub(super) fn link(&self) -> &LinkView {
        &self.view.links[self.link]
    }

    /// Mean queue delay of each period in which packets of this class, or any, left; in milliseconds.
    fn period_delays(&self) -> Vec<f64> {
        let of_class = |period: &[(u64, u128); 4]| match self.class {
            Some(class) => period[class as usize],
            None => period.iter().fold((0, 0), |(count, sum), (c, s)| (count + c, sum + s)),
        };
        let mean = |(count, sum): (u64, u128)| ratio(sum as f64 / 1e6, count as f64);
        self.link().delays.iter().map(of_class).filter_map(mean).collect()
    }
}

const LINK: &[Level] = &[Level::Run, Level::Link];
const LINK_AND_CLASS: &[Level] = &[Level::Run, Level::Link, Level::Class];

/// The standard deviation of a population; `None` without values.
fn deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = ratio(values.iter().sum(), count)?;
    let square = |value: &f64| (value - mean) * (value - mean);
    ratio(values.iter().map(square).sum(), count).map(libm::sqrt)
}

family! {
    UTILISATION {
        name: "utilisation_percent",
        title: "Utilisation",
        unit: "%",
        of: LINK_AND_CLASS,
        definition: "Bytes sent, link overhead included, over the bytes that the link could have sent: those that it sent, and those that it could have sent at its current rate while it was idle; a link whose queue shapes its flows to a lower rate could have sent no more than the shaper lets through. Of a class, the bytes sent are those of the class. A packet in transmission at an end of the window counts for its part within.",
        source: "RFC 5136, section 2.3 (IP-layer link utilisation)",
        bound: Some(Bound::Absolute(2.0)),
        domain: Domain::Percent,
        columns: &[Column::new(3, "used", "used")],
        reduction: Reduction::Packets(|p| Value::from(percent(p.sent_bytes(), p.sum.capacity.get()))),
    }

    QUEUE_DELAY {
        name: "queue_delay_ms",
        title: "Queue delay",
        unit: "ms",
        of: LINK_AND_CLASS,
        definition: "Time from a packet's arrival at the queue to the start of its transmission, of every packet sent. The mean is exact, percentiles are within 0.8 %.",
        source: "RFC 7928, section 2.6 (latency); counted at the queue",
        bound: Some(Bound::Relative(0.15)),
        // 10 us: a live run's packet in an empty queue waits for its turn on a processor.
        negligible: 0.01,
        columns: &[
            Column::new(1, "delay", "queue delay").main().by_class(),
            Column::new(2, "p99", "p99").of(Statistic::P99).by_class(),
        ],
        reduction: Reduction::Delays,
    }

    QUEUE_DELAY_DEVIATION {
        name: "queue_delay_deviation_ms",
        title: "Deviation of queue delay",
        unit: "ms",
        of: LINK_AND_CLASS,
        definition: "Standard deviation, over the sample periods in which packets left, of the mean queue delay in each.",
        source: "weir; counted at the queue",
        reduction: Reduction::Queue(|q| Value::from(deviation(&q.period_delays()))),
    }

    DROP_PROBABILITY {
        name: "drop_probability_percent",
        title: "Drop probability",
        unit: "%",
        of: LINK_AND_CLASS,
        definition: "Packets that the queue dropped, for any reason, over all packets that it dropped or sent in the window.",
        source: "RFC 7928, section 2.3 (packet loss); counted at the queue",
        domain: Domain::Percent,
        columns: &[Column::new(4, "dropped", "dropped").by_class()],
        reduction: Reduction::Packets(|p| Value::from(percent(p.dropped(), p.settled()))),
    }

    MARK_PROBABILITY {
        name: "mark_probability_percent",
        title: "Mark probability",
        unit: "%",
        of: LINK_AND_CLASS,
        definition: "Packets that the queue marked CE, over all ECN-capable packets that it dropped or sent in the window.",
        source: "RFC 3168, section 5; counted at the queue",
        domain: Domain::Percent,
        columns: &[Column::new(5, "marked", "marked").by_class().zeros(Zeros::Hidden)],
        reduction: Reduction::Packets(|p| Value::from(percent(p.marked(), p.markable()))),
    }

    ARRIVED {
        name: "arrived_packets",
        title: "Arrived",
        unit: "packets",
        of: LINK_AND_CLASS,
        definition: "Packets that reached the queue.",
        source: "counted at the queue",
        reduction: Reduction::Packets(|p| Value::Count(p.count(&p.sum.arrived))),
    }

    DROPPED {
        name: "dropped_packets",
        title: "Dropped",
        unit: "packets",
        of: LINK_AND_CLASS,
        definition: "Packets that the queue dropped, for any reason.",
        source: "counted at the queue",
        reduction: Reduction::Packets(|p| Value::Count(p.dropped())),
    }

    DROPPED_FULL {
        name: "dropped_full_packets",
        title: "Dropped, queue full",
        unit: "packets",
        of: LINK,
        definition: "Packets that were dropped because the queue was full.",
        source: "counted at the queue",
        reduction: Reduction::Packets(|p| Value::Count(p.sum.dropped_for[DropReason::Full as usize])),
    }

    DROPPED_SIGNAL {
        name: "dropped_signal_packets",
        title: "Dropped, as a signal",
        unit: "packets",
        of: LINK,
        definition: "Packets that the AQM dropped to signal congestion, or by its policy.",
        source: "counted at the queue",
        reduction: Reduction::Packets(|p| Value::Count(p.sum.dropped_for[DropReason::Signal as usize])),
    }

    DROPPED_OVERLOAD {
        name: "dropped_overload_packets",
        title: "Dropped, in overload",
        unit: "packets",
        of: LINK,
        definition: "Packets that the AQM dropped although it could have marked them, because it was overloaded.",
        source: "counted at the queue",
        reduction: Reduction::Packets(|p| Value::Count(p.sum.dropped_for[DropReason::Overload as usize])),
    }

    MARKED {
        name: "marked_packets",
        title: "Marked",
        unit: "packets",
        of: LINK_AND_CLASS,
        definition: "Packets that the queue marked CE, counted when they leave it.",
        source: "counted at the queue",
        reduction: Reduction::Packets(|p| Value::Count(p.marked())),
    }

    BACKLOG {
        name: "backlog_packets",
        title: "Backlog",
        unit: "packets",
        of: LINK,
        definition: "Packets in the queue at the end of a sample period, mean over periods.",
        source: "counted at the queue",
        reduction: Reduction::Queue(|q| Value::from(ratio(q.link().backlog_packets as f64, q.link().periods as f64))),
        curve: Some(Reduction::Packets(|p| Value::Count(p.sum.backlog_packets.into()))),
    }

    LINK_THROUGHPUT {
        name: "link_throughput_mbps",
        title: "Link throughput",
        unit: "Mbit/s",
        of: LINK_AND_CLASS,
        definition: "Bytes sent, link overhead included, over the length of the window. A packet in transmission at an end of the window counts for its part within.",
        source: "RFC 5136, section 2.3 (IP-layer link usage)",
        reduction: Reduction::Packets(|p| Value::from(mbps(p.sent_bytes(), p.time))),
    }

    LINK_CAPACITY {
        name: "link_capacity_mbps",
        title: "Link capacity",
        unit: "Mbit/s",
        of: LINK,
        definition: "Bytes that the link could have sent, link overhead included, over the length of the window: those that it sent, and those that it could have sent at its current rate while it was idle; a link whose queue shapes its flows to a lower rate could have sent no more than the shaper lets through.",
        source: "RFC 5136, section 2.3 (IP-layer link capacity)",
        reduction: Reduction::Packets(|p| match p.sum.capacity.get() {
            0 => Value::Undefined,
            bytes => Value::from(mbps(bytes, p.time)),
        }),
        // An outage is no gap in a curve.
        curve: Some(Reduction::Packets(|p| Value::from(mbps(p.sum.capacity.get(), p.time)))),
    }

    LINK_LOST {
        name: "link_lost_packets",
        title: "Lost by the link",
        unit: "packets",
        of: LINK,
        definition: "Packets that the link itself lost: by script on arrival, or at random on the way. The queue's drops are not included.",
        source: "counted at the link",
        reduction: Reduction::Packets(|p| Value::Count(p.sum.lost)),
    }

    LINK_LOSS {
        name: "link_loss_percent",
        title: "Loss by the link",
        unit: "%",
        of: LINK,
        definition: "Packets that the link itself lost, as a share of all packets that it lost or transmitted.",
        source: "counted at the link",
        domain: Domain::Percent,
        reduction: Reduction::Packets(|p| {
            let LinkCounters { lost, forwarded, .. } = p.sum.counters;
            Value::from(percent(lost, lost.saturating_add(forwarded)))
        }),
    }

    LINK_DUPLICATED {
        name: "link_duplicated_packets",
        title: "Duplicated by the link",
        unit: "packets",
        of: LINK,
        definition: "Copies that the link made of packets.",
        source: "counted at the link",
        reduction: Reduction::Packets(|p| Value::Count(p.sum.duplicated)),
    }

    LINK_CORRUPTED {
        name: "link_corrupted_packets",
        title: "Damaged by the link",
        unit: "packets",
        of: LINK,
        definition: "Packets that the link damaged on the way, duplicates included. The receiving host discards them.",
        source: "counted at the link",
        reduction: Reduction::Packets(|p| Value::Count(p.sum.corrupted)),
    }
}
