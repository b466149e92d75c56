//! Hosts' cards: the kernel's own shapers at the devices of hosts, in place of the card's queue in the fabric. Packets that
//! they refuse stay in the host and never reach the fabric.

mod observed;

pub(crate) use observed::{Observed, Told};

use crate::address::{address_of, port_of};
use std::collections::BTreeMap;
use std::io;
use weir_base::{Bytes, Rate, Span};
use weir_plan::{Card, Link, Node, Run};
use weir_queue::{Config, Limit};
use weir_shaper::{Class, Device, Handle, Match, Step, Tbf};
use weir_workload::{Datagrams, Role};

/// The kernel counts the Ethernet header in addition to the IP packet (ETH_HLEN, linux/if_ether.h).
const ETHERNET: Bytes = Bytes::new(14);
/// The root discipline of a card.
const ROOT: Handle = Handle::new(1, 0);
/// Most classes: their leaves have handles of their own, after the root's.
const MOST_CLASSES: usize = 0x7000;
/// Bounds of the bytes that a class without a `quantum` sends in its turn: what its rate sends in 100 ms, within these bounds
/// (sch_htb.c, r2q of 10).
const QUANTA: (u64, u64) = (1000, 200_000);
/// Limit of the fabric's queue behind a shaper of the kernel: it takes all packets.
const ALL: Limit = Limit::Packets(u32::MAX);

/// The hosts with cards: the node, the card, and its link in the fabric.
fn cards(run: &Run) -> impl Iterator<Item = (usize, Card, &Link)> {
    let card = |(node, about): (usize, &Node)| {
        let link = run.network.links.iter().find(|link| link.from == node)?;
        Some((node, about.card?, link))
    };
    run.network.nodes.iter().enumerate().filter_map(card)
}

/// Why a card of a run cannot be set up here, and what to do about it; `None` if all can be.
pub(crate) fn unfit(run: &Run) -> Option<(String, String)> {
    cards(run).find_map(|(node, card, link)| {
        let Node { name, alike, .. } = &run.network.nodes[node];
        let section = alike.as_ref().unwrap_or(name);
        let (why, help) = match card {
            Card { shaper: None, .. } => (
                "and only the simulator models cards".to_owned(),
                format!("write shaper = \"kernel\" in [nic.{section}]"),
            ),
            Card { refuses: false, .. } => {
                ("and the kernel keeps refused packets queued".to_owned(), "leave `refuses` out".to_owned())
            }
            Card { small_queues: false, .. } => {
                ("and the kernel's TCP limits its queue".to_owned(), "leave `small_queues` out".to_owned())
            }
            _ if !link.schedule.is_empty() => (
                "and schedules do not change the kernel's shaper".to_owned(),
                "leave `schedule` out; `weir circuit change` changes a circuit that is up".to_owned(),
            ),
            _ if sends_exactly(run, node) => (
                "and datagrams that the fabric sends at exact times do not pass the kernel".to_owned(),
                "write source = \"socket\" in their workload".to_owned(),
            ),
            _ => match steps(run, link) {
                Ok(_) => return None,
                Err(what) => {
                    (format!("and the kernel's shaper has no {what}"), "change its queue".to_owned())
                }
            },
        };
        Some((format!("the host {name} has a card, {why}"), help + ", or use `--on sim`"))
    })
}

/// Whether a host has flows whose datagrams the fabric sends itself.
fn sends_exactly(run: &Run, node: usize) -> bool {
    (0..run.flows.len()).filter(|flow| run.pair(*flow).from == node).any(|flow| {
        let role = run.groups[run.flows[flow].group].workload.role();
        matches!(role, Role::Datagrams(Datagrams { exact: true, .. }))
    })
}

/// The run as the fabric sees it, behind the kernel's shapers.
pub(crate) fn behind_the_kernels(run: &Run) -> Run {
    let mut run = run.clone();
    let shaped: Vec<usize> = cards(&run).map(|(node, ..)| node).collect();
    for node in shaped {
        run.network.nodes[node].card = None;
        if let Some(link) = run.network.links.iter_mut().find(|link| link.from == node) {
            // A card with a plain queue sends at its rate in the kernel already; behind another shaper a burst still leaves at
            // the card's rate.
            if matches!(link.queue, Config::TailDrop(_)) {
                link.rate = None;
            }
            link.queue = Config::TailDrop(Default::default());
            if let Config::TailDrop(queue) = &mut link.queue {
                queue.limit = ALL;
            }
        }
    }
    run
}

/// Sets up the card of a node. The calling thread must be in the node's namespace.
///
/// # Errors
/// The kernel's.
pub(crate) fn set_up(run: &Run, node: usize) -> io::Result<()> {
    let Some((_, _, link)) = cards(run).find(|(at, ..)| *at == node) else { return Ok(()) };
    let mut device = Device::open("eth0").map_err(io::Error::other)?;
    let steps = steps(run, link).map_err(io::Error::other)?;
    steps.iter().try_for_each(|step| device.apply(step)).map_err(io::Error::other)
}

/// How many packets the card of the calling thread's namespace has sent and refused; `None` without a card.
pub(crate) fn counted() -> Option<(u64, u64)> {
    let counters = Device::open("eth0").ok()?.counters(&[ROOT]).ok()?;
    counters.first()?.map(|counters| (counters.packets, counters.drops))
}

/// The steps that make a card's queue in the kernel.
///
/// # Errors
/// A setting that the kernel does not have.
fn steps(run: &Run, link: &Link) -> Result<Vec<Step>, String> {
    let Some(rate) = link.rate else { return Err("card without a rate".into()) };
    let frame = link.mtu + ETHERNET;
    match &link.queue {
        Config::TailDrop(queue) => {
            // A bucket of one frame: packets leave one by one at the card's rate.
            let tbf = Tbf { rate, burst: frame, limit: frame, peakrate: None, mtu: frame };
            Ok(vec![Step::Tbf { handle: ROOT, parent: Handle::ROOT, tbf }, leaf(queue.limit, rate, 1)?])
        }
        Config::Tbf(config) => {
            has_header(config.overhead)?;
            if let Some(tick) = config.timer {
                return Err(format!("timer of {tick}: it has its own"));
            }
            let mtu = config.mtu.unwrap_or(frame);
            let limit = match config.limit {
                Limit::Bytes(bytes) => bytes,
                Limit::Time(latency) => waits(config.rate, latency, config.burst, config.peakrate, mtu),
                other => return Err(format!("limit of {other} in a token bucket filter")),
            };
            let (rate, burst, peakrate) = (config.rate, config.burst, config.peakrate);
            let mut steps = vec![Step::Tbf {
                handle: ROOT,
                parent: Handle::ROOT,
                tbf: Tbf { rate, burst, limit, peakrate, mtu },
            }];
            match config.queue.as_deref() {
                None => {}
                Some(Config::TailDrop(queue)) => steps.push(leaf(queue.limit, rate, 1)?),
                Some(other) => return Err(format!("queue `{}` in a shaper", other.name())),
            }
            Ok(steps)
        }
        Config::Htb(config) => {
            has_header(config.overhead)?;
            if config.classes.len() > MOST_CLASSES {
                return Err(format!("room for {} classes", config.classes.len()));
            }
            tree(run, config)
        }
        other => Err(format!("queue `{}`", other.name())),
    }
}

/// The limit that `tc` computes from a latency: the lesser of those by rate and by peak rate.
fn waits(rate: Rate, latency: Span, burst: Bytes, peak: Option<Rate>, mtu: Bytes) -> Bytes {
    let limit = rate.bytes_in(latency) + burst;
    peak.map_or(limit, |peak| limit.min(peak.bytes_in(latency) + mtu))
}

fn has_header(overhead: Bytes) -> Result<(), String> {
    if overhead == ETHERNET { Ok(()) } else { Err(format!("overhead of {overhead}; it counts {ETHERNET}")) }
}

/// The queue below a class of the root, with a limit in packets: labs count bytes without the Ethernet header, the kernel with
/// it.
fn leaf(limit: Limit, rate: Rate, minor: u16) -> Result<Step, String> {
    let (handle, parent) = (Handle::new(minor + 1, 0), Handle::new(ROOT.major(), minor));
    match limit {
        Limit::Packets(limit) => Ok(Step::Pfifo { handle, parent, limit }),
        Limit::Time(_) | Limit::Bytes(_) | Limit::Bdp(_) => {
            Err(format!("queue of {limit} below {rate}; it counts packets"))
        }
    }
}

/// A tree of classes, with each flow's packets in the leaf that names the flow.
fn tree(run: &Run, config: &weir_queue::htb::Config) -> Result<Vec<Step>, String> {
    let minors: BTreeMap<&str, u16> =
        config.classes.iter().map(|class| class.name.as_str()).zip(1..).collect();
    let handle = |name: &str| Handle::new(ROOT.major(), minors.get(name).copied().unwrap_or(0));
    let is_leaf = |name: &str| config.classes.iter().all(|class| class.parent.as_deref() != Some(name));
    let rest = config.classes.iter().find(|it| is_leaf(&it.name) && it.flows.is_none() && !it.has_filter());
    let default = rest.map_or(0, |class| handle(&class.name).minor());
    let direct_limit = config.direct_limit;
    let mut steps = vec![Step::Htb { handle: ROOT, parent: Handle::ROOT, default, direct_limit }];
    for class in &config.classes {
        let quantum = Bytes::new((class.rate.bits_per_sec() / 80).clamp(QUANTA.0, QUANTA.1));
        steps.push(Step::Class(Class {
            handle: handle(&class.name),
            parent: class.parent.as_deref().map_or(ROOT, handle),
            rate: class.rate,
            ceil: class.ceil.unwrap_or(class.rate),
            burst: class.burst,
            cburst: class.cburst,
            quantum: class.quantum.unwrap_or(quantum),
            prio: class.prio,
        }));
    }
    for class in config.classes.iter().filter(|class| is_leaf(&class.name)) {
        if class.has_filter() {
            return Err("classes by codepoint or DSCP here; name their flows".into());
        }
        match &class.queue {
            Config::TailDrop(queue) => {
                steps.push(leaf(queue.limit, class.rate, handle(&class.name).minor())?)
            }
            other => return Err(format!("queue `{}` in a shaper", other.name())),
        }
        for flow in
            class.flows.iter().flatten().map(|flow| *flow as usize).filter(|flow| *flow < run.flows.len())
        {
            let group = &run.groups[run.flows[flow].group];
            let address = address_of(run.pair(flow).to, group.ip);
            let length = if address.is_ipv4() { 32 } else { 128 };
            let matches = Match { address, length, port: Some(port_of(flow)) };
            steps.push(Step::Filter { parent: ROOT, matches, class: handle(&class.name) });
        }
    }
    Ok(steps)
}
