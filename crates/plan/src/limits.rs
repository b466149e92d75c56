//! Checks of values beyond their types: bounds that no real network exceeds, and settings that contradict each other.

mod settings;
mod wifi;

pub(crate) use settings::settings;

use crate::each::Times;
use crate::link::LONGEST_DELAY;
use crate::reader::Reader;
use crate::run::{Group, Ip, UDP_HEADER};
use crate::timing::Timing;
use crate::traffic::Traffic;
use std::collections::HashSet;
use weir_base::{Bytes, ParameterError, Rate, Span};
use weir_endpoint::Settings;
use weir_fabric::{Change, Link, Outage};
use weir_queue::Limit;
use weir_workload::Role;

const FASTEST: Rate = Rate::from_mbit_per_sec(1_000_000);
pub(crate) const LONGEST_RUN: Span = Span::from_secs(30 * 24 * 3600);
pub(crate) const SHORTEST_SAMPLE: Span = Span::from_millis(1);
/// Most sample periods of one run.
pub(crate) const MOST_PERIODS: u64 = 10_000_000;
pub(crate) const MOST_REPEATS: u32 = 10_000;
/// Most flows of one run.
pub(crate) const MOST_FLOWS: u64 = 1_000_000;
/// Largest IP packet: the field for its length has 16 bits (RFC 791, section 3.1).
pub(crate) const LARGEST_MTU: Bytes = Bytes::new(65_535);
/// Largest IP packet that every IPv4 host accepts (RFC 791, section 3.1).
const SMALLEST_MTU: Bytes = Bytes::new(576);
/// Smallest MTU of a link that carries IPv6 (RFC 8200, section 5).
const SMALLEST_MTU_V6: Bytes = Bytes::new(1280);
const LARGEST_OVERHEAD: Bytes = Bytes::new(1500);
const MOST_QUEUED: u32 = 100_000_000;
/// Most links of a network, one direction or both, and most nodes of a graph.
pub(crate) const MOST_LINKS: u64 = 1000;

/// Checks `[run]`. Returns the warm-up.
pub(crate) fn timing(reader: &mut Reader<'_>, timing: &Timing) -> Span {
    let Timing { duration, sample, start_jitter, .. } = *timing;
    if duration.is_zero() || duration > LONGEST_RUN {
        reader.wrong(
            &["run", "duration"],
            format!("a run cannot last {duration}"),
            "write a time above 0 s and up to 720 h",
        );
    } else if sample < SHORTEST_SAMPLE || sample > duration {
        let help = format!("write a time from 1 ms to the run's {duration}");
        reader.wrong(&["run", "sample"], format!("a sample period cannot be {sample} long"), help);
    }
    if duration <= LONGEST_RUN
        && sample >= SHORTEST_SAMPLE
        && duration.as_nanos() / sample.as_nanos() > MOST_PERIODS
    {
        let message = format!("a run of {duration} has too many sample periods of {sample} for a report");
        let help = format!("write a longer period: at most {MOST_PERIODS} fit into a run");
        reader.wrong(&["run", "sample"], message, help);
    }
    let warmup = timing.warmup.unwrap_or(Span::from_nanos(duration.as_nanos() / 5));
    if warmup >= duration && !duration.is_zero() {
        let message = format!("the warm-up of {warmup} leaves nothing of a run of {duration}");
        reader.wrong(&["run", "warmup"], message, "shorten the warm-up, or lengthen the run");
    }
    if timing.repeats == 0 || timing.repeats > MOST_REPEATS {
        let message = format!("a cell cannot be run {} times", timing.repeats);
        reader.wrong(&["run", "repeats"], message, format!("write a number from 1 to {MOST_REPEATS}"));
    }
    if let crate::timing::HostJitter::Within(jitter) = timing.host_jitter {
        delay(reader, &["run", "host_jitter"], jitter);
    }
    outages(reader, &["run", "host_pauses"], &timing.host_pauses, "pause");
    delay(reader, &["run", "start_jitter"], start_jitter);
    warmup
}

/// Checks a delay of any kind.
pub(crate) fn delay(reader: &mut Reader<'_>, path: &[&str], delay: Span) {
    if delay > LONGEST_DELAY {
        reader.wrong(path, format!("a delay of {delay} is too long"), "write at most 1 h");
    }
}

pub(crate) fn rate(reader: &mut Reader<'_>, path: &[&str], rate: Rate) {
    if rate.bits_per_sec() == 0 {
        reader.wrong(
            path,
            "a link at 0 bit/s sends nothing",
            "write a rate above 0 bit/s; `outage` gives the times in which a link sends nothing",
        );
    } else if rate > FASTEST {
        reader.wrong(path, format!("a rate of {rate} is too high"), "write at most 1000 Gbit/s");
    }
}

/// Checks one direction of a link.
pub(crate) fn link(reader: &mut Reader<'_>, path: &[&str], way: &str, link: &Link) {
    let at = |keys: &[&'static str]| -> Vec<String> {
        path.iter().chain(keys).chain([&way]).map(|key| (*key).to_string()).collect()
    };
    let mut check = |key: &'static str, check: &mut dyn FnMut(&mut Reader<'_>, &[&str])| {
        let path = at(&[key]);
        check(reader, &path.iter().map(String::as_str).collect::<Vec<_>>());
    };
    check("rate", &mut |reader, path| rate(reader, path, link.rate.unwrap_or_default()));
    check("delay", &mut |reader, path| delay(reader, path, link.delay));
    check("wifi", &mut |reader, path| wifi::check(reader, path, link));
    check("outage", &mut |reader, path| outages(reader, path, &link.outages, "outage"));
    check("overhead", &mut |reader, path| {
        if link.overhead > LARGEST_OVERHEAD {
            reader.wrong(
                path,
                format!("an overhead of {} is too large for a packet", link.overhead),
                "an Ethernet header is 14 B",
            );
        }
    });
    check("drop", &mut |reader, path| script(reader, path, &link.drop));
    check("reorder", &mut |reader, path| holds(reader, path, link));
    check("schedule", &mut |reader, path| schedule(reader, path, link));
    check("queue", &mut |reader, path| queue(reader, path, &link.queue, link.mtu));
    mtu(reader, &[path, &["mtu"]].concat(), link.mtu);
    if let Some(largest) = link.largest {
        mtu(reader, &[path, &["largest"]].concat(), largest);
    }
}

/// Checks the largest packet of a link or host.
pub(crate) fn mtu(reader: &mut Reader<'_>, path: &[&str], mtu: Bytes) {
    if !(SMALLEST_MTU..=LARGEST_MTU).contains(&mtu) {
        let help = format!("write from {SMALLEST_MTU} to {LARGEST_MTU}");
        reader.wrong(path, format!("an MTU cannot be {mtu}"), help);
    }
}

fn script(reader: &mut Reader<'_>, path: &[&str], packets: &[u64]) {
    if packets.first() == Some(&0) {
        reader.wrong(
            path,
            "there is no packet 0",
            "packets are counted from 1, in order of arrival at the link",
        );
    }
    if let Some(pair) = packets.windows(2).find(|pair| pair[0] == pair[1]) {
        reader.wrong(path, format!("packet {} is listed twice", pair[0]), "list each packet once");
    }
}

fn holds(reader: &mut Reader<'_>, path: &[&str], link: &Link) {
    let packets: Vec<u64> = link.reorder.iter().map(|hold| hold.packet).collect();
    script(reader, path, &packets);
    if let Some(hold) = link.reorder.iter().find(|hold| hold.by == 0 || hold.by > 1_000_000) {
        let message = format!("packet {} cannot be overtaken by {} others", hold.packet, hold.by);
        reader.wrong(path, message, "write by = 1 or more, up to 1000000");
    }
    if let Some(packet) = packets.iter().find(|packet| link.drop.binary_search(packet).is_ok()) {
        reader.wrong(
            path,
            format!("packet {packet} is both dropped and held"),
            "take it out of one of the two",
        );
    }
}

/// Checks a link's schedule.
pub(crate) fn schedule(reader: &mut Reader<'_>, path: &[&str], link: &Link) {
    for change in &link.schedule {
        if let Some(new) = change.rate {
            rate(reader, path, new);
        }
        delay(reader, path, change.delay.unwrap_or(Span::ZERO));
        if let Some(largest) = change.largest {
            mtu(reader, path, largest);
        }
        if *change == (Change { at: change.at, ..Change::default() }) {
            let help =
                "add rate, delay, loss, largest, jitter, duplicate, corrupt or queue, or remove the entry";
            reader.wrong(path, format!("nothing changes at {}", change.at), help);
        }
    }
    changes(reader, path, &link.queue, &link.schedule);
}

/// Checks that the changes of a schedule are at different times, and that the queue can take its new parameters.
pub(crate) fn changes(
    reader: &mut Reader<'_>,
    path: &[&str],
    first: &weir_queue::Config,
    schedule: &[Change],
) {
    let mut now = first;
    for (at, next) in schedule.iter().filter_map(|change| Some((change.at, change.queue.as_ref()?))) {
        if let Some(fault) = now.change_fault(next) {
            let help =
                "write all parameters of the same kind, `tbf` or `htb`, and change only what can change";
            reader.wrong(path, format!("the change at {at}: {fault}"), help);
        }
        now = next;
    }
    if let Some(pair) = schedule.windows(2).find(|pair| pair[0].at == pair[1].at) {
        reader.wrong(path, format!("two changes at {}", pair[0].at), "join them into one");
    }
}

/// Checks outages or pauses, which are in order.
fn outages(reader: &mut Reader<'_>, path: &[&str], outages: &[Outage], name: &str) {
    for outage in outages {
        if outage.length.is_zero() {
            reader.wrong(
                path,
                format!("the {name} at {} has no length", outage.at),
                "write for = \"2 s\", or remove it",
            );
        }
        delay(reader, path, outage.length);
    }
    let overlap = |pair: &&[Outage]| pair[0].at + pair[0].length >= pair[1].at;
    if let Some([first, second]) = outages.windows(2).find(overlap) {
        let message = format!("the {name} at {} begins before the one at {} is over", second.at, first.at);
        reader.wrong(path, message, "join the two into one");
    }
}

/// The path of a queue's parameter in the lab file. `path` ends with the direction, even if the lab file does not.
fn parameter_of<'a>(reader: &Reader<'_>, path: &[&'a str], name: &'a str) -> Vec<&'a str> {
    let both = [&path[..path.len() - 1], &[name]].concat();
    if reader.has(&both) { both } else { [path, &[name]].concat() }
}

fn queue(reader: &mut Reader<'_>, path: &[&str], queue: &weir_queue::Config, mtu: Bytes) {
    let section = path[0];
    if section != "dumbbell" && !reader.has(&[section, "base_rtt"]) {
        let (inner, queues) = queue.inner();
        let nested = queues.into_iter().any(weir_queue::Config::counts_in_bdp).then_some(inner);
        let own = queue.limits().into_iter().filter(|(_, limit)| matches!(limit, Limit::Bdp(_)));
        for name in own.map(|(name, _)| name).chain(nested) {
            let path = parameter_of(reader, path, name);
            let help = format!(
                "add base_rtt = \"20 ms\" under [{section}], or write the {name} in packets, bytes or time"
            );
            let message = format!(
                "a {} has no round-trip time of its own to compute a bdp from",
                section.replace('_', " ")
            );
            reader.wrong(&path, message, help);
        }
    }
    let path = parameter_of(reader, path, "limit");
    match queue.limit() {
        Some(Limit::Packets(packets)) if packets > MOST_QUEUED => {
            reader.wrong(
                &path,
                format!("a queue cannot hold {packets} packets"),
                format!("write at most {MOST_QUEUED} packets"),
            );
        }
        Some(Limit::Bytes(bytes)) if bytes > Bytes::new(1 << 40) => {
            reader.wrong(&path, format!("a queue cannot hold {bytes}"), "write at most 1024 GiB");
        }
        Some(Limit::Bytes(bytes)) if bytes < mtu => {
            reader.wrong(
                &path,
                format!("a queue of {bytes} holds no packet"),
                format!("write at least {mtu}"),
            );
        }
        Some(Limit::Time(time)) => delay(reader, &path, time),
        Some(Limit::Bdp(factor)) if factor > 1000.0 => {
            reader.wrong(
                &path,
                format!("a queue of {factor} bdp is longer than allowed"),
                "write at most 1000 bdp",
            );
        }
        _ => {}
    }
}

/// Checks the names of all links of a chain or graph. Returns false if there are too many.
pub(crate) fn links(reader: &mut Reader<'_>, section: &str, names: &[String]) -> bool {
    if names.len() as u64 > MOST_LINKS {
        let message = match section {
            "chain" => format!("{} links in a row are too many", names.len()),
            _ => format!("{} links are too many", names.len()),
        };
        reader.wrong(&[section, "links"], message, format!("write at most {MOST_LINKS}"));
        return false;
    }
    let named: HashSet<&str> = names.iter().map(String::as_str).collect();
    for name in names {
        let other = format!("{name}-up");
        if named.contains(other.as_str()) {
            let message = format!("`{other}` is the name of the other direction of `{name}`");
            reader.wrong(&[section, "links", &other], message, "give the link another name");
        }
    }
    true
}

/// Checks a traffic group's own settings.
pub(crate) fn traffic(reader: &mut Reader<'_>, name: &str, traffic: &Traffic, timing: &Timing) {
    let at = |key: &'static str| ["traffic", name, key];
    let flows = traffic.flows();
    if flows > MOST_FLOWS {
        let message = format!("a group cannot have {flows} flows");
        reader.wrong(&at("flows"), message, format!("write a number from 0 to {MOST_FLOWS}"));
    }
    for rtt in traffic.rtt.iter().flat_map(Times::written) {
        delay(reader, &at("rtt"), rtt);
    }
    let listed = traffic.listed();
    if let Some(given) = traffic.flows.filter(|given| (1..listed).contains(given)) {
        let message = format!("the group has {given} flows, but one of its lists or ranges needs {listed}");
        let help = format!("write flows = {listed} or more, or leave `flows` out");
        reader.wrong(&at("flows"), message, help);
    }
    let start = traffic.start.most();
    let last_start = start + timing.start_jitter;
    if timing.duration.is_zero() {
        // Already reported.
    } else if start >= timing.duration {
        let message = format!("the group starts at {start}, and the run ends at {}", timing.duration);
        reader.wrong(&at("start"), message, "start it earlier, or lengthen run.duration");
    } else if last_start > timing.duration {
        let message =
            format!("with run.start_jitter a flow may start at {last_start}, after the end of the run");
        reader.wrong(&at("start"), message, "shorten run.start_jitter, or lengthen run.duration");
    }
    if let Some(stop) = traffic.stop {
        if stop <= start {
            let message = format!("the group stops at {stop}, not after its start at {start}");
            reader.wrong(&at("stop"), message, "stop it later, or leave stop out");
        } else if stop < last_start {
            let message =
                format!("with run.start_jitter a flow may start at {last_start}, after it has stopped");
            reader.wrong(&at("stop"), message, "stop it later, or shorten run.start_jitter");
        }
    }
}

/// The transport of a group's flows; `None` for a command. Checks that it fits the workload and the keys of the group.
pub(crate) fn transport(
    reader: &mut Reader<'_>,
    name: &str,
    traffic: &Traffic,
) -> Option<weir_transport::Config> {
    use weir_transport::Config;
    let at = |key: &'static str| ["traffic", name, key];
    let (role, workload) = (traffic.workload.role(), traffic.workload.name());
    let given = traffic.transport.clone();
    let transport = match role {
        Role::Command => None,
        Role::Datagrams(_) | Role::Echo(_) => given.clone().or(Some(Config::Udp(Default::default()))),
        Role::OneWay | Role::RequestResponse => given.clone().or(Some(Config::Tcp(Default::default()))),
    };
    if let Some(given) = given {
        let datagrams = role.datagrams().is_some();
        let fault = match role {
            Role::Command => Some(format!("the command of `{workload}` opens connections of its own")),
            _ if given.carries(datagrams) => None,
            _ if datagrams => {
                Some(format!("the workload {workload} sends datagrams, but {} carries streams", given.name()))
            }
            _ => Some(format!(
                "the workload {workload} writes streams, but {} carries datagrams",
                given.name()
            )),
        };
        if let Some(message) = fault {
            reader.wrong(&at("transport"), message, "remove it: the default fits the workload");
        }
    }
    let keys = transport.as_ref().map_or(&[][..], Config::keys);
    let coordinated = matches!(&transport, Some(Config::Sliq(sliq)) if sliq.coordination.is_some());
    let reported =
        |key| format!("`{key}` has no effect beside `coordination`: aggregation points report the rate");
    for key in ["second", "fast_start"].into_iter().filter(|_| coordinated) {
        let path = ["traffic", name, "transport", key];
        if reader.has(&path) {
            reader.wrong(&path, reported(key), "remove it, or `coordination`");
        }
    }
    for key in Settings::KEYS {
        if keys.contains(&key) || !reader.has(&at(key)) {
            continue;
        }
        let message = match &transport {
            Some(_) if coordinated && key == "cc" => reported(key),
            Some(transport) => {
                format!("`{key}` has no effect on {}, which carries the group's data", transport.name())
            }
            None => format!("`{key}` has no effect on a command, which opens connections of its own"),
        };
        let help = if key == "ecn" {
            "remove it; the workload has its own: { kind = \"udp\", ecn = \"ect1\" }"
        } else {
            "remove it"
        };
        reader.wrong(&at(key), message, help);
    }
    transport
}

/// Checks that stations receive only echo requests, and that a command runs between one pair of hosts.
pub(crate) fn receivers(
    reader: &mut Reader<'_>,
    name: &str,
    workload: &weir_workload::Config,
    to_station: bool,
    pairs: usize,
) {
    let role = workload.role();
    if to_station && !matches!(role, Role::Echo(_)) {
        let help = "write workload = \"ping\", or a router or host in `to`";
        let message =
            format!("the station in `to` answers echo requests only, and `{}` sends none", workload.name());
        reader.wrong(&["traffic", name, "to"], message, help);
    }
    if role == Role::Command && pairs > 1 {
        let keys = ["rtt", "to", "host"];
        let key = keys.into_iter().find(|key| reader.has(&["traffic", name, key])).unwrap_or("flows");
        let message = "a command runs between one pair of hosts";
        reader.wrong(&["traffic", name, key], message, "write one value, and a group for each further pair");
    }
}

/// Checks a group's workload; `mtu` is the largest IP packet that its paths carry.
pub(crate) fn workload(reader: &mut Reader<'_>, group: &Group, mtu: Bytes) {
    let Group { name, workload, ip, .. } = group;
    if *ip == Ip::V6 && mtu < SMALLEST_MTU_V6 {
        let message = format!("the group speaks IPv6 over a path with an MTU of {mtu}");
        let help = format!("write ip = 4, or an mtu of {SMALLEST_MTU_V6} or more for its links");
        reader.wrong(&["traffic", name], message, help);
    }
    datagrams(reader, group, mtu);
    for ParameterError { key, message, help } in workload.faults(mtu) {
        let path = ["traffic", name, "workload", key];
        // A fault of a key that is left out is reported at the workload.
        let path = if reader.has(&path) { &path[..] } else { &path[..3] };
        reader.wrong(path, message, help);
    }
}

/// Checks that a group's datagrams have room for the headers of IPv6 and of the transport.
fn datagrams(reader: &mut Reader<'_>, group: &Group, mtu: Bytes) {
    let Group { name, workload, ip, .. } = group;
    let Some((packet, payload)) = workload.datagram() else { return };
    let least = |ip: Ip, layer: u32| Bytes::new((ip.header() + UDP_HEADER + layer).into()) + payload;
    let smallest = least(*ip, group.layer_header());
    // A packet too short even for plain UDP over IPv4 is reported by the workload itself.
    if (least(Ip::V4, 0)..smallest).contains(&packet) {
        let message = format!("an IP packet with UDP cannot be {packet} long");
        let help = format!("write from {smallest} to {mtu}, headers included");
        reader.wrong(&["traffic", name, "workload", "packet"], message, help);
    }
}
