//! Links as a section draws them, between places: each direction spelled out and checked.

use crate::bottleneck::{Bottleneck, Change, Held};
use crate::limits;
use crate::link::{Jitters, Losses, Speed};
use crate::per_direction::PerDirection;
use crate::probability::Probability;
use crate::reader::Reader;
use crate::route::{LabNode, Shape};
use weir_base::{Bytes, Rate, Span};
use weir_fabric::{Link, Loss, MTU, Outage, Playback, Reorder};

/// The header that a TUN device puts before each packet (`struct tun_pi` of linux/if_tun.h): flags and protocol.
const TUN_HEADER: Bytes = Bytes::new(4);

/// A network as a section draws it.
pub(crate) struct Drawn {
    pub(crate) shape: Shape,
    pub(crate) base_rtt: Option<Span>,
    pub(crate) nodes: Vec<LabNode>,
    pub(crate) links: Vec<Drawing>,
}

/// A link between two places: one direction, or both.
pub(crate) struct Drawing {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) down: Link,
    pub(crate) up: Option<Link>,
}

/// The routers around `links` links in a row.
pub(crate) fn routers_in_a_row(links: usize) -> Vec<LabNode> {
    (0..=links).map(|n| LabNode::router(format!("n{n}"))).collect()
}

/// Links from each place to the next.
pub(crate) fn in_a_row(links: Vec<[Link; 2]>) -> Vec<Drawing> {
    let drawing =
        |(left, [down, up]): (usize, [Link; 2])| Drawing { from: left, to: left + 1, down, up: Some(up) };
    links.into_iter().enumerate().map(drawing).collect()
}

/// The two directions of a link, checked.
pub(crate) fn directions(
    reader: &mut Reader<'_>,
    path: &[&str],
    link: Bottleneck,
    names: [String; 2],
) -> Option<[Link; 2]> {
    let before = reader.faults.len();
    let delays = match (link.rtt, link.delay) {
        (Some(rtt), None) => {
            limits::delay(reader, &[path, &["rtt"]].concat(), rtt);
            let up = Span::from_nanos(rtt.as_nanos() / 2);
            [Some(rtt - up), Some(up)]
        }
        (None, Some(delay)) => delay.both(),
        (None, None) => {
            reader.wrong(
                path,
                "the link has no delay",
                "add rtt = \"20 ms\", or delay = \"10 ms\" for each way",
            );
            [Some(Span::ZERO); 2]
        }
        (Some(_), Some(_)) => {
            let at = [path, &["delay"]].concat();
            reader.wrong(&at, "rtt and delay both set the link's delay", "remove one of the two");
            [Some(Span::ZERO); 2]
        }
    };
    let mut rates = link.rate.both();
    let mut wifis = link.wifi.map_or([None; 2], PerDirection::both);
    let mut queues = link.queue.map_or([None, None], PerDirection::both);
    let overheads = link.overhead.map_or([None; 2], PerDirection::both);
    let reports = link.report.map_or([None; 2], PerDirection::both);
    let losses = link.loss.map_or([None; 2], PerDirection::down_only);
    let largest = link.largest.map_or([None; 2], PerDirection::down_only);
    let mut jitters = link.jitter.map_or([None, None], PerDirection::down_only);
    let duplicates = link.duplicate.map_or([None; 2], PerDirection::down_only);
    let corruptions = link.corrupt.map_or([None; 2], PerDirection::down_only);
    let mut outages = link.outage.map_or([None, None], PerDirection::down_only);
    let mut drops = link.drop.map_or([None, None], PerDirection::down_only);
    let mut holds = link.reorder.map_or([None, None], PerDirection::down_only);
    let mut schedules = link.schedule.map_or([None, None], PerDirection::down_only);
    let mut made = Vec::new();
    for (side, (name, way)) in names.into_iter().zip(["down", "up"]).enumerate() {
        for (key, missing) in [("rate", rates[side].is_none()), ("delay", delays[side].is_none())] {
            if missing {
                let message = format!("`{key}` has no value for the direction {way}");
                let help = format!("add {way} = .., or give one value for both");
                reader.wrong(&[path, &[key]].concat(), message, help);
            }
        }
        // A missing rate is reported above; its stand-in here is never used.
        let rate = rates[side].take().unwrap_or(Speed::Constant(Rate::from_mbit_per_sec(1)));
        let (rate, trace) = speed_of(reader, rate);
        let opportunities = trace
            .as_ref()
            .and_then(|trace| trace.recording.as_ref())
            .is_some_and(|trace| trace.is_opportunities());
        let link = Link {
            name,
            from: 0,
            to: 0,
            rate: Some(rate),
            trace,
            wifi: wifis[side].take(),
            delay: delays[side].unwrap_or_default(),
            loss: losses[side].map_or(Loss::NONE, |Losses(loss)| loss),
            jitter: jitters[side].take().map(|Jitters(jitter)| jitter),
            duplicate: duplicates[side].map_or(0.0, |Probability(p)| p),
            corrupt: corruptions[side].map_or(0.0, |Probability(p)| p),
            largest: largest[side],
            outages: outages_of(outages[side].take().unwrap_or_default()),
            // Mahimahi's opportunities count the TUN header of each packet.
            overhead: overheads[side].unwrap_or(if opportunities { TUN_HEADER } else { Bytes::ZERO }),
            mtu: link.mtu.unwrap_or(MTU),
            queue: queues[side].take().unwrap_or_else(|| weir_queue::Config::TailDrop(Default::default())),
            report: reports[side],
            drop: sorted(drops[side].take().unwrap_or_default()),
            reorder: reorders_of(holds[side].take().unwrap_or_default()),
            schedule: changes_of(reader, schedules[side].take().unwrap_or_default()),
            instrumented: true,
        };
        limits::link(reader, path, way, &link);
        made.push(link);
    }
    if reader.faults.len() > before {
        return None;
    }
    made.try_into().ok()
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

fn reorders_of(held: Vec<Held>) -> Vec<Reorder> {
    let mut holds: Vec<Reorder> =
        held.into_iter().map(|Held { packet, by }| Reorder { packet, by }).collect();
    holds.sort_by_key(|hold| hold.packet);
    holds
}

/// A constant rate, or a trace with its mean rate. All traces that a lab names have been read before.
fn speed_of(reader: &Reader<'_>, speed: Speed) -> (Rate, Option<Playback>) {
    match speed {
        Speed::Constant(rate) => (rate, None),
        Speed::Trace(file) => {
            let trace = reader.traces.get(&file.trace, file.repeat.unwrap_or(true));
            let mean =
                trace.as_ref().and_then(|trace| trace.recording.as_ref()).map(|trace| trace.mean_rate());
            (mean.unwrap_or_default(), trace)
        }
    }
}

fn outages_of(mut outages: Vec<Outage>) -> Vec<Outage> {
    outages.sort_by_key(|outage| outage.at);
    outages
}

fn changes_of(reader: &Reader<'_>, changes: Vec<Change>) -> Vec<weir_fabric::Change> {
    let mut changes: Vec<weir_fabric::Change> =
        changes.into_iter().map(|change| change_of(reader, change)).collect();
    changes.sort_by_key(|change| change.at);
    changes
}

/// A change, with the recording that it begins.
pub(crate) fn change_of(reader: &Reader<'_>, change: Change) -> weir_fabric::Change {
    let (rate, trace) = change.rate.map(|speed| speed_of(reader, speed)).unzip();
    weir_fabric::Change {
        at: change.at,
        rate,
        trace: trace.flatten(),
        delay: change.delay,
        loss: change.loss.map(|Losses(loss)| loss),
        largest: change.largest,
        jitter: change.jitter.map(|Jitters(jitter)| jitter),
        duplicate: change.duplicate.map(|Probability(p)| p),
        corrupt: change.corrupt.map(|Probability(p)| p),
        queue: change.queue,
    }
}
