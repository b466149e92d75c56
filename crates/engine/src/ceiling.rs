//! The greatest goodput that links and shapers allow a group: their rates less all headers; and the rate of a link's shaper.

use std::cell::OnceCell;
use weir_base::{Bytes, Rate};
use weir_endpoint::FullPacket;
use weir_fabric::Paths;
use weir_plan::{Group, Ip, Link, Run};
use weir_queue::Shaping;

/// Headers of IP (RFC 791, RFC 8200).
const IPV4: Bytes = Bytes::new(20);
const IPV6: Bytes = Bytes::new(40);

/// The greatest goodput that these links and their shapers allow a group, at their highest rates. `None` if the transport
/// does not tell the payload of a full packet, if a recording gives a link's rate, or if no link has a rate.
pub(crate) fn ceiling(run: &Run, group: &Group, links: &[&Link]) -> Option<Rate> {
    if links.iter().any(|link| link.traces().next().is_some()) {
        return None;
    }
    let flows = flows_of(run, group);
    let ip_header = if group.ip == Ip::V6 { IPV6 } else { IPV4 };
    let FullPacket { payload, length } =
        group.transport.as_ref()?.full_packet(run.mtu(*flows.first()? as usize), ip_header)?;
    let of = |rate: Rate, overhead: Bytes| {
        let bits = u128::from(rate.bits_per_sec()) * u128::from(payload.get())
            / u128::from((length + overhead).get());
        Rate::from_bits_per_sec(u64::try_from(bits).unwrap_or(u64::MAX))
    };
    let of_link = |link: &&Link| {
        let rates = link.rate.into_iter().chain(link.schedule.iter().filter_map(|change| change.rate));
        let plain = rates.max().map(|rate| of(rate, link.overhead));
        let queues = std::iter::once(&link.queue)
            .chain(link.schedule.iter().filter_map(|change| change.queue.as_ref()));
        let shaped = queues.filter_map(|queue| queue.shaping(&flows));
        let shaped = shaped.map(|Shaping { rate, overhead }| of(rate, overhead)).max();
        plain.into_iter().chain(shaped).min()
    };
    links.iter().filter_map(of_link).min()
}

/// The rate at which a link's queue shapes all flows that cross it; `None` if it does not, or if a schedule changes the queue.
/// `paths` are computed if they are needed first: of large networks they take much time and memory, and few links shape.
pub(crate) fn shaped(run: &Run, paths: &OnceCell<Paths>, index: usize) -> Option<Rate> {
    let link = run.network.links.get(index)?;
    if link.schedule.iter().any(|change| change.queue.is_some()) {
        return None;
    }
    let shapes = |flow: u32| link.queue.shaping(&[flow]).is_some();
    if link.queue.shaping(&[]).is_none() && !(0..run.flows.len() as u32).any(shapes) {
        return None;
    }
    let paths = paths.get_or_init(|| Paths::new(&run.network));
    let crosses = |group: &&Group| group.pairs.iter().any(|pair| paths.crosses(pair.from, pair.to, index));
    let flows: Vec<u32> = run.groups.iter().filter(crosses).flat_map(|group| flows_of(run, group)).collect();
    link.queue.shaping(&flows).map(|shaping| shaping.rate)
}

/// The rate at which the queue of a link shapes all flows that cross it; `None` if it does not, or if a schedule changes the queue.
pub fn shaper_rate(run: &Run, link: usize) -> Option<Rate> {
    shaped(run, &OnceCell::new(), link)
}

/// The numbers of a group's flows.
pub(crate) fn flows_of(run: &Run, group: &Group) -> Vec<u32> {
    let flows = (0..).zip(&run.flows);
    let its = flows.filter(|(_, flow)| run.groups[flow.group].name == group.name);
    its.map(|(number, _)| number).collect()
}
