//! What links and shapers leave for the payload of a group's stream, after all headers.

use weir_base::{Bytes, Rate};
use weir_plan::{Group, Ip, Link, Run};
use weir_queue::Config;
use weir_transport::FullPacket;

/// Headers of IP (RFC 791, RFC 8200).
const IPV4: Bytes = Bytes::new(20);
const IPV6: Bytes = Bytes::new(40);

/// What these links and the shapers before them leave for a group's payload, at their fastest; none for a transport that does not say what
/// a full packet carries, and where a recording says how fast a link is.
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

/// The rate at which a queue lets these flows through in the long run, and what it counts of each packet beside its IP length; none for a
/// queue that is no shaper, or that shapes none of them.
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
