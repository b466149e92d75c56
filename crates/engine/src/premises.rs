//! What the plan of a run permits to conclude from its numbers: whether its paths keep packets in order, whether losses bound its
//! retransmissions, and whether its only flow must use its link. The oracles of `weir_record` and the tests of plain labs hold runs
//! against these.

use std::collections::BTreeSet;
use weir_base::{Bytes, Span};
use weir_endpoint::Settings;
use weir_fabric::Paths;
use weir_plan::{Change, Link, Run};
use weir_queue::Limit;
use weir_record::Premises;
use weir_transport::Config;
use weir_workload::Role;

/// Controllers that look for all of a link's capacity.
pub const SEEKING: [&str; 6] = ["bbr", "cubic", "newreno", "htcp", "dctcp", "westwood"];
/// The least buffer, in bandwidth-delay products. A flow of Reno keeps 75 % of a link busy without a buffer, and more with one.
pub const LEAST_BUFFER_BDP: f64 = 0.5;
/// The smallest product in packets: with a smaller window, losses end in timeouts.
pub const LEAST_BDP_PACKETS: f64 = 10.0;
/// The smallest buffer in packets, for the same reason.
pub const LEAST_BUFFER_PACKETS: f64 = 5.0;
/// Socket buffers hold so many bandwidth-delay products.
const SOCKET_BDP: f64 = 2.0;
/// Memory that Linux accounts for a full segment, in bytes: 1,448 bytes of data, headers, a page fragment and the `sk_buff`.
pub const SEGMENT_MEMORY: f64 = 2280.0;
/// Round trips with a full buffer in a long run of BBR and of any other. The others gain a packet each round trip, and
/// need as many as the product has packets if these are more.
pub const ROUND_TRIPS: (f64, f64) = (60.0, 160.0);
/// Most jitter of a host, in transmission times of a full packet; the default is one, with the link's overhead.
const MOST_JITTER: f64 = 1.25;
/// Length of a full packet.
const PACKET: Bytes = weir_fabric::MTU;

/// The premises of a run.
pub(crate) fn premises(run: &Run, paths: &Paths) -> Premises {
    let links = &run.network.links;
    let orderly = run.stations.is_empty()
        && run.network.nodes.iter().all(|node| node.card.is_none())
        && links.iter().all(is_orderly);
    let counted = orderly
        && links.iter().all(|link| link.schedule.is_empty())
        && run.groups.iter().all(|group| group.tcp().map_or(is_datagrams(group), recovers_by_sack));
    let spaced = orderly && is_spaced(run, paths);
    Premises { orderly, spaced, counted, fills: counted && fills(run, paths).unwrap_or(false) }
}

/// Whether a link keeps packets as they are: it may drop or lose them, and its rate and loss may change.
fn is_orderly(link: &Link) -> bool {
    let changes_nothing_else = |change: &Change| {
        let Change { at: _, rate: _, trace, delay, loss: _, jitter, duplicate, corrupt, largest, queue } =
            change;
        trace.is_none()
            && delay.is_none()
            && jitter.is_none()
            && duplicate.is_none()
            && corrupt.is_none()
            && largest.is_none()
            && queue.is_none()
    };
    link.trace.is_none()
        && link.wifi.is_none()
        && link.jitter.is_none()
        && link.duplicate == 0.0
        && link.corrupt == 0.0
        && link.largest.is_none()
        && link.outages.is_empty()
        && link.reorder.is_empty()
        && link.schedule.iter().all(changes_nothing_else)
}

/// Whether acknowledgements arrive as far apart as the slowest link sends the data: none waits behind data, and hosts delay packets
/// by no more than a packet takes there. Of a host's jitter that is the default.
fn is_spaced(run: &Run, paths: &Paths) -> bool {
    let links = |from: usize, to: usize| {
        let crossed = paths.links(from, to).into_iter();
        crossed.filter(|&link| run.network.links[link].rate.is_some()).collect::<Vec<_>>()
    };
    let pairs = || run.groups.iter().flat_map(|group| &group.pairs);
    let data: BTreeSet<usize> = pairs().flat_map(|pair| links(pair.from, pair.to)).collect();
    let back: BTreeSet<usize> = pairs().flat_map(|pair| links(pair.to, pair.from)).collect();
    let slowest = data.iter().filter_map(|&link| run.network.links[link].rate).min();
    let packet = slowest.map(|rate| 8.0 * PACKET.get() as f64 / rate.bits_per_sec() as f64);
    let is_steady = |jitter: Span| packet.is_some_and(|packet| jitter.as_secs_f64() <= MOST_JITTER * packet);
    let is_steadily_sent =
        |node: &weir_plan::Node| node.pauses.is_empty() && (node.jitter.is_zero() || is_steady(node.jitter));
    data.is_disjoint(&back) && run.network.nodes.iter().all(is_steadily_sent)
}

/// Whether a group's flows retransmit nothing.
fn is_datagrams(group: &weir_plan::Group) -> bool {
    matches!(group.transport, Some(Config::Udp(_)))
}

/// Whether a sender knows what has arrived, and waits as long as by default before it sends again.
fn recovers_by_sack(settings: &Settings) -> bool {
    settings.sack && settings.rto_min >= weir_endpoint::RTO_MIN
}

/// Whether the only flow of a run must use its link; `None` if this cannot be told. The run's links are constant and orderly.
fn fills(run: &Run, paths: &Paths) -> Option<bool> {
    let ([group], [flow]) = (&run.groups[..], &run.flows[..]) else { return None };
    let settings = group.tcp().filter(|settings| SEEKING.contains(&settings.cc.name()))?;
    let pair = group.pairs.first()?;
    let (there, back) = (paths.links(pair.from, pair.to), paths.links(pair.to, pair.from));
    let rated = |links: &[usize]| -> Vec<&Link> {
        let links = links.iter().map(|&link| &run.network.links[link]);
        links.filter(|link| link.rate.is_some()).collect()
    };
    let (there, back) = (rated(&there), rated(&back));
    let link = there.iter().min_by_key(|link| link.rate)?;
    let rate = link.rate?.bits_per_sec() as f64 / 8.0;
    let rtt = group.rtt().as_secs_f64();
    let bdp = rate * rtt / PACKET.get() as f64;
    let buffer = packets(link.queue.limit()?, rate, run.network.base_rtt);
    let is_plain = |link: &&Link| {
        let is_slower = back.iter().any(|back| back.rate < link.rate);
        link.queue.name() == "tail-drop" && link.loss.is_none() && link.drop.is_empty() && !is_slower
    };
    let round_trips = if settings.cc.name() == "bbr" { ROUND_TRIPS.0 } else { bdp.max(ROUND_TRIPS.1) };
    let full_rtt = rtt * (1.0 + buffer / bdp);
    let time = run.duration.saturating_sub(flow.start).as_secs_f64();
    let memory = SOCKET_BDP * bdp * SEGMENT_MEMORY;
    let holds = |buffer: &weir_endpoint::Buffer| buffer.max.get() as f64 >= memory;
    let is_bulk = group.workload.role() == Role::OneWay
        && group.workload.wanted(Span::from_secs(1)).is_none()
        && (flow.size, flow.stop) == (None, None);
    Some(
        is_bulk
            && there.iter().chain(&back).all(is_plain)
            && there.iter().all(|other| other.mtu >= PACKET)
            && settings.window_scaling
            && holds(&settings.send_buffer)
            && holds(&settings.receive_buffer)
            && bdp >= LEAST_BDP_PACKETS
            && buffer >= LEAST_BUFFER_PACKETS.max(LEAST_BUFFER_BDP * bdp)
            && time >= round_trips * full_rtt,
    )
}

/// A queue's limit in full packets, at this rate in bytes a second.
fn packets(limit: Limit, rate: f64, base_rtt: Option<Span>) -> f64 {
    let bytes = match limit {
        Limit::Packets(packets) => return f64::from(packets),
        Limit::Bytes(bytes) => bytes.get() as f64,
        Limit::Time(time) => rate * time.as_secs_f64(),
        Limit::Bdp(factor) => factor * rate * base_rtt.unwrap_or_default().as_secs_f64(),
    };
    bytes / PACKET.get() as f64
}
