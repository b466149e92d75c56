//! The greatest goodput that links and shapers allow a group: their rates less all headers.

use weir_base::{Bytes, Rate};
use weir_plan::{Group, Ip, Link, Run};
use weir_queue::Config;
use weir_transport::FullPacket;

/// Headers of IP (RFC 791, RFC 8200).
const IPV4: Bytes = Bytes::new(20);
const IPV6: Bytes = Bytes::new(40);

/// The greatest goodput that these links and their shapers allow a group, at their highest rates. `None` if the transport
/// does not tell the payload of a full packet, if a recording gives a link's rate, or if no link has a rate.
pub(crate) fn ceiling(run: &Run, group: &Group, links: &[&Link]) -> Option<Rate> {
    if links.iter().any(|link| link.traces().next().is_some()) {
        return None;
    }
    let is_its = |flow: &usize| run.groups[run.flows[*flow].group].name == group.name;
    let flows: Vec<u32> = (0..run.flows.len()).filter(is_its).map(|flow| flow as u32).collect();
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
        let shaped =
            queues.filter_map(|queue| shaped(queue, &flows)).map(|(rate, overhead)| of(rate, overhead)).max();
        plain.into_iter().chain(shaped).min()
    };
    links.iter().filter_map(of_link).min()
}

/// The long-term rate at which a queue passes these flows, and the bytes that it counts for each packet beside its IP
/// length. `None` if the queue is no shaper, or shapes none of these flows.
fn shaped(queue: &Config, flows: &[u32]) -> Option<(Rate, Bytes)> {
    match queue {
        Config::Tbf(tbf) => Some((tbf.rate, tbf.overhead)),
        Config::Htb(htb) => {
            let has = |named: &Vec<u32>| flows.iter().any(|flow| named.contains(flow));
            let theirs = htb.classes.iter().filter(|class| class.flows.as_ref().is_some_and(has));
            let rates = theirs.map(|class| class.ceil.unwrap_or(class.rate).bits_per_sec());
            let sum = rates.fold(0, u64::saturating_add);
            (sum > 0).then(|| (Rate::from_bits_per_sec(sum), htb.overhead))
        }
        _ => None,
    }
}
