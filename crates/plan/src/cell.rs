//! From one cell's settings to a run that is spelled out: its timing, its network, its traffic groups. Settings that do not fit
//! together are found here, with their places.

use crate::connection;
use crate::diagnostic::{Fault, Origin};
use crate::each::Times;
use crate::file::KEYS;
use crate::host::Hosts;
use crate::limits;
use crate::network::{self, Ends};
use crate::overlay::{self, Overlay};
use crate::reader::Reader;
use crate::route::{Route, Routes};
use crate::run::{Flow, Group, Run, Station, Window};
use crate::schema;
use crate::station;
use crate::timing::{HostJitter, Timing};
use crate::traces::Traces;
use crate::traffic::{EcnChoice, Traffic};
use crate::tree::Table;
use crate::window;
use std::collections::HashMap;
use weir_base::{Random, Rate, Span};
use weir_control::Feedback;
use weir_endpoint::{Buffer, Settings};
use weir_fabric::Network;
use weir_record::Param;
use weir_workload::Role;

/// One cell of the tree: everything but what a repeat draws.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) timing: Timing,
    pub(crate) warmup: Span,
    pub(crate) windows: Vec<Window>,
    pub(crate) network: Network,
    pub(crate) stations: Vec<Station>,
    pub(crate) groups: Vec<Group>,
    /// The flows of each group.
    pub(crate) flows: Vec<Flows>,
    /// For each group: the instrumented links that its data passes.
    pub(crate) paths: Vec<Vec<usize>>,
}

/// How many flows a group has, and when and between which hosts they run.
#[derive(Debug, Clone)]
pub(crate) struct Flows {
    pub(crate) count: u64,
    /// How many of them, one after another, receive the packets of the first of them.
    pub(crate) fan: u64,
    pub(crate) start: Times,
    pub(crate) stop: Option<Span>,
    /// For each flow the index of its pair of hosts; empty if all flows have the first pair.
    pub(crate) pairs: Vec<u32>,
}

impl Flows {
    fn pair(&self, flow: u64) -> usize {
        self.pairs.get(flow as usize).map_or(0, |pair| *pair as usize)
    }
}

impl Cell {
    /// Reads the settings of a cell.
    ///
    /// # Errors
    /// Everything found wrong.
    pub(crate) fn read(root: &Table, home: Origin, traces: &Traces) -> Result<Cell, Vec<Fault>> {
        let reader =
            |schema| Reader { root, faults: Vec::new(), schema, home, traces, describe: schema::describe };
        if root.keys().all(|key| KEYS.contains(&key))
            && let Ok(cell) = Cell::read_by(reader(false))
        {
            debug_assert_eq!(schema::check(root), Vec::new());
            return Ok(cell);
        }
        Cell::read_by(Reader { faults: schema::check(root), ..reader(true) })
    }

    fn read_by(mut reader: Reader<'_>) -> Result<Cell, Vec<Fault>> {
        let mut timing: Timing = reader.section(&["run"]).unwrap_or_default();
        timing.host_pauses.sort_by_key(|pause| pause.at);
        let mut warmup = limits::timing(&mut reader, &timing);
        let mut groups = Vec::new();
        for name in group_names(&mut reader) {
            if let Some(traffic) = reader.section::<Traffic>(&["traffic", &name]) {
                limits::traffic(&mut reader, &name, &traffic, &timing);
                groups.push((name, traffic));
            }
        }
        // Metrics of transfers are about the whole of them.
        let finite = |(_, traffic): &(String, Traffic)| traffic.workload.name() == "transfer";
        if timing.warmup.is_none() && !groups.is_empty() && groups.iter().all(finite) {
            warmup = Span::ZERO;
        }
        let network = network::build(&mut reader);
        let Some((network, routes)) = network else { return Err(reader.faults) };
        let mut stations = station::place(&mut reader, &network);
        let mut overlay = overlay::place(&mut reader, &network, &mut stations);
        let mut cell = Cell {
            timing,
            warmup,
            windows: Vec::new(),
            network,
            stations,
            groups: Vec::new(),
            flows: Vec::new(),
            paths: Vec::new(),
        };
        let mut hosts = Hosts::read(&mut reader, &groups, &cell.network);
        for (name, traffic) in groups {
            cell.attach(&mut reader, &name, traffic, &routes, &mut hosts, &mut overlay);
        }
        overlay.finish(&mut reader);
        network::fit_access(&mut cell.network);
        network::pause(&mut cell.network, &cell.timing.host_pauses);
        for group in &cell.groups {
            let ends = group.pairs.iter().flat_map(|pair| [pair.from, pair.to]);
            let mtu = ends.map(|node| cell.network.nodes[node].mtu).min().unwrap_or_default();
            limits::workload(&mut reader, group, mtu);
        }
        let starts: Vec<(&str, Span)> = cell
            .groups
            .iter()
            .zip(&cell.flows)
            .map(|(group, flows)| (group.name.as_str(), flows.start.least()))
            .collect();
        cell.windows = window::windows(&mut reader, &cell.timing, &starts);
        cell.check_flows(&mut reader);
        if reader.faults.is_empty() { Ok(cell) } else { Err(reader.faults) }
    }

    /// Checks the groups together: the number of flows, and that no two flows have the same name.
    fn check_flows(&self, reader: &mut Reader<'_>) {
        let flows = self.flow_count();
        if flows > limits::MOST_FLOWS && self.flows.iter().all(|flows| flows.count <= limits::MOST_FLOWS) {
            reader.wrong(
                &["traffic"],
                format!("{flows} flows in one run are too many"),
                format!("write at most {}", limits::MOST_FLOWS),
            );
            return;
        }
        // The seed decides how many flows arrive at random.
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for (group, flows) in self.groups.iter().zip(&self.flows) {
            counts.insert(
                &group.name,
                if group.workload.has_random_arrivals() { u64::MAX } else { flows.count },
            );
        }
        for other in &self.groups {
            let Some((group, number)) = other.name.rsplit_once('-') else { continue };
            let (Some(&count), Ok(number)) = (counts.get(group), number.parse::<u64>()) else { continue };
            if count > 1 && (1..=count).contains(&number) {
                let message = format!("`{}` is also the name of a flow of the group `{group}`", other.name);
                reader.wrong(&["traffic", &other.name], message, "give one of the groups another name");
            }
        }
    }

    /// Adds a traffic group and its hosts.
    fn attach(
        &mut self,
        reader: &mut Reader<'_>,
        name: &str,
        mut traffic: Traffic,
        routes: &Routes,
        hosts: &mut Hosts,
        overlay: &mut Overlay,
    ) {
        let is_multicast = traffic.multicast.is_some();
        let fan = overlay::spread(reader, name, &mut traffic);
        let Some(found) = routes.find_all(reader, name, &traffic, &self.stations) else { return };
        let host = traffic.host.as_deref();
        let senders = host.map_or(1, |host| hosts.count(host));
        let (ways, pairs, of_flows) = ways(reader, name, &traffic, &found, senders);
        let places: Vec<usize> = found.iter().flat_map(|route| [route.from, route.to]).collect();
        let carriage = overlay.carries(reader, name, &traffic, is_multicast, &places, &self.network);
        let jitter = carriage.as_ref().map_or(self.timing.host_jitter, |_| HostJitter::Within(Span::ZERO));
        let attached = network::attach(&mut self.network, hosts, (name, host), &ways, &pairs, jitter);
        let Some(pairs) = attached else {
            let message = "groups that share a host must send from the same router, over paths that do not contradict each other";
            reader.wrong(&["traffic", name, "host"], message, "give the group a host of its own");
            return;
        };
        let mut transport = limits::transport(reader, name, &traffic);
        let role = traffic.workload.role();
        let uses_settings =
            role == Role::Command || transport.as_ref().is_some_and(|transport| !transport.keys().is_empty());
        let settings = uses_settings.then(|| settings(reader, name, &traffic, &mut transport));
        let ip = traffic.ip.unwrap_or(self.timing.ip);
        let to_station = found.iter().any(|route| route.to_station);
        limits::receivers(reader, name, &traffic.workload, to_station, pairs.len());
        let count = traffic.flows();
        let Traffic { workload, dscp, .. } = traffic;
        if role == Role::Command && !dscp.is_default() {
            let message = "a command chooses the DSCP of its packets itself";
            reader.wrong(
                &["traffic", name, "dscp"],
                message,
                "remove it, and give the command an option for it",
            );
        }
        let has_host = traffic.host.is_some();
        let group =
            Group { name: name.into(), pairs, ip, dscp, workload, transport, settings, overlay: carriage };
        let earlier = self.groups.iter().zip(self.flows.iter().map(|flows| flows.count));
        connection::check(reader, &group, count, has_host, earlier);
        self.groups.push(group);
        self.flows.push(Flows { count, fan, start: traffic.start, stop: traffic.stop, pairs: of_flows });
        let mut passed: Vec<usize> = found.into_iter().flat_map(|route| route.links).collect();
        passed.sort_unstable();
        passed.dedup();
        self.paths.push(passed);
    }

    /// How many flows a run of it has.
    pub(crate) fn flow_count(&self) -> u64 {
        (0..self.groups.len()).map(|group| self.flows_of(group)).fold(0, u64::saturating_add)
    }

    /// Number of flows of a group in a run; the expected number if they arrive at random.
    fn flows_of(&self, group: usize) -> u64 {
        let expected = self.groups[group].workload.expected_arrivals(self.time_of(group));
        expected.unwrap_or(self.flows[group].count)
    }

    /// How long the applications of a group send, at most.
    fn time_of(&self, group: usize) -> Span {
        self.end_of(group).saturating_sub(self.flows[group].start.least())
    }

    /// When the applications of a group stop.
    fn end_of(&self, group: usize) -> Span {
        let run = self.timing.duration;
        self.flows[group].stop.unwrap_or(run).min(run)
    }

    /// The run of one repeat.
    pub(crate) fn run(&self, id: String, lab: &str, params: Vec<Param>, repeat: u32) -> Run {
        let seed = seed(self.timing.seed, repeat);
        Run {
            id,
            lab: lab.into(),
            params,
            repeat,
            seed,
            duration: self.timing.duration,
            warmup: self.warmup,
            windows: self.windows.clone(),
            sample: self.timing.sample,
            packets: self.timing.packets,
            round_trips: self.timing.round_trips,
            network: self.network.clone(),
            stations: self.stations.clone(),
            groups: self.groups.clone(),
            flows: self.draw_flows(seed),
        }
    }

    /// The flows of all groups, each with its start drawn from a stream of its own.
    fn draw_flows(&self, seed: u64) -> Vec<Flow> {
        let mut flows = Vec::new();
        for (group, of_group) in self.flows.iter().enumerate() {
            let Flows { count, fan, start, stop, .. } = of_group;
            let name = &self.groups[group].name;
            let workload = &self.groups[group].workload;
            if workload.has_random_arrivals() {
                let arrivals = (0..*count).flat_map(|source| {
                    let mut random = Random::stream_of(seed, &format!("arrivals of {name}"), source);
                    let (from, to) = (start.of(source, *count), self.end_of(group));
                    let arrivals = workload.arrivals(from, to, *count, &mut random);
                    arrivals.into_iter().map(move |arrival| (arrival, of_group.pair(source)))
                });
                let mut arrivals: Vec<_> = arrivals.collect();
                arrivals.sort_by_key(|(arrival, _)| arrival.at);
                flows.extend((1..).zip(arrivals).map(|(number, (arrival, pair))| Flow {
                    name: numbered(name, number),
                    group,
                    pair,
                    start: arrival.at,
                    // No flow arrives after the group's stop; flows that have begun send all that they have.
                    stop: None,
                    size: Some(arrival.size),
                    copy_of: None,
                }));
                continue;
            }
            let first = flows.len();
            for number in 0..*count {
                let source = number / fan;
                let own = first + (source * fan) as usize;
                let jitter = Random::stream_of(seed, "start", own as u64).within(self.timing.start_jitter);
                let name = if *count == 1 { name.clone() } else { numbered(name, number + 1) };
                let start = start.of(source, count / fan) + jitter;
                let copy_of = (own < flows.len()).then_some(own);
                let pair = of_group.pair(number);
                flows.push(Flow { name, group, pair, start, stop: *stop, size: None, copy_of });
            }
        }
        flows
    }

    /// About how many flows a run has.
    pub(crate) fn flows(&self) -> u64 {
        self.counted_flows(true).saturating_add(self.counted_flows(false))
    }

    /// About how many flows a run has in groups with random arrivals, or in all other groups.
    fn counted_flows(&self, random_arrivals: bool) -> u64 {
        let groups = self
            .groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.workload.has_random_arrivals() == random_arrivals);
        groups.map(|(number, _)| self.flows_of(number)).fold(0, u64::saturating_add)
    }

    /// About how many samples of links and flows a run records; flows that arrive at random are sampled only while they last.
    pub(crate) fn records(&self) -> u64 {
        let periods = self.timing.duration.as_nanos() / self.timing.sample.as_nanos().max(1);
        let links = self.network.links.iter().filter(|link| link.instrumented).count() as u64;
        periods.saturating_mul(links + self.counted_flows(false)).saturating_add(self.counted_flows(true))
    }

    /// About how many data packets a run sends over the lab's links: the lesser of what a link can carry and what its workloads
    /// want.
    pub(crate) fn packets(&self) -> u64 {
        let run = self.timing.duration;
        let carried = |link: usize| -> u64 {
            let mtu = self.network.links[link].mtu;
            let rate = self.network.links[link].rate.unwrap_or(Rate::from_bits_per_sec(0));
            let users = self.paths.iter().enumerate().filter(|(_, path)| path.contains(&link));
            let wanted = users.map(|(group, _)| {
                let (time, workload) = (self.time_of(group), &self.groups[group].workload);
                match workload.wanted(time) {
                    Some(bytes) if workload.has_random_arrivals() => bytes.get(),
                    Some(bytes) => self.flows[group].count.saturating_mul(bytes.get()),
                    None => rate.bytes_in(time).get(),
                }
            });
            wanted.fold(0u64, u64::saturating_add).min(rate.bytes_in(run).get()) / mtu.get()
        };
        (0..self.network.links.len()).filter(|link| self.network.links[*link].instrumented).map(carried).sum()
    }
}

/// The paths of a group's flows, each with the delay that its hosts add to it; the pairs of a sending host, one of `senders`,
/// and a path; and for each flow the index of its pair, empty if all flows have the first.
fn ways<'a>(
    reader: &mut Reader<'_>,
    name: &str,
    traffic: &Traffic,
    found: &'a [Route],
    senders: u64,
) -> (Vec<(&'a Route, Span)>, Vec<Ends>, Vec<u32>) {
    let (mut ways, mut pairs, mut of_flows) = (Vec::new(), Vec::new(), Vec::new());
    let mut known_ways: HashMap<(usize, Span), u32> = HashMap::new();
    let mut known_pairs: HashMap<Ends, u32> = HashMap::new();
    let mut told = false;
    let count = traffic.flows();
    for flow in 0..count.max(1) {
        let place = (flow % found.len() as u64) as usize;
        let route = &found[place];
        let rtt = traffic.rtt.as_ref().map_or(route.rtt, |rtt| rtt.of(flow, count));
        if rtt < route.rtt && !std::mem::replace(&mut told, true) {
            let message = format!("the group's rtt of {rtt} is shorter than that of its path, {}", route.rtt);
            let help = format!("write {} or more, or shorten the path", route.rtt);
            reader.wrong(&["traffic", name, "rtt"], message, help);
        }
        let way = *known_ways.entry((place, rtt)).or_insert_with(|| {
            ways.push((route, rtt.saturating_sub(route.rtt)));
            ways.len() as u32 - 1
        });
        let ends = (flow % senders, way);
        of_flows.push(*known_pairs.entry(ends).or_insert_with(|| {
            pairs.push(ends);
            pairs.len() as u32 - 1
        }));
        // With one sending host and no lists or ranges all flows are alike.
        if traffic.listed() == 1 && senders == 1 {
            break;
        }
    }
    if pairs.len() == 1 {
        of_flows.clear();
    }
    (ways, pairs, of_flows)
}

/// How a group's connections are set up, with Linux's defaults for what the lab leaves out.
fn settings(
    reader: &mut Reader<'_>,
    name: &str,
    traffic: &Traffic,
    transport: &mut Option<weir_transport::Config>,
) -> Settings {
    let cc = traffic.cc.clone().unwrap_or_else(|| default_controller(transport));
    let (own_codepoint, own_feedback) = cc.signals();
    let feedback = traffic.feedback.unwrap_or(own_feedback);
    let (ecn, codepoint) = match traffic.ecn {
        // As the kernel does for controllers that need it (TCP_CONG_NEEDS_ECN).
        None => (feedback != Feedback::Classic, own_codepoint),
        Some(EcnChoice::Agreed(agreed)) => (agreed, own_codepoint),
        Some(EcnChoice::As(codepoint)) => (true, codepoint),
    };
    if !ecn && traffic.feedback.is_some() {
        let message = "the group has no marks to report, since it has no ECN";
        reader.wrong(&["traffic", name, "feedback"], message, "write ecn = true beside it, or remove it");
    }
    let settings = Settings {
        cc,
        ecn,
        codepoint,
        feedback,
        window_scaling: traffic.window_scaling.unwrap_or(true),
        sack: traffic.sack.unwrap_or(true),
        rto_min: traffic.rto_min.unwrap_or(weir_endpoint::RTO_MIN),
        limited_transmit: traffic.limited_transmit.unwrap_or(true),
        delayed_ack: traffic.delayed_ack,
        window_updates: traffic.window_updates.unwrap_or(false),
        send_buffer: traffic.send_buffer.map_or(Buffer::SEND, |memory| memory.or(Buffer::SEND)),
        receive_buffer: traffic.receive_buffer.map_or(Buffer::RECEIVE, |memory| memory.or(Buffer::RECEIVE)),
        pacing: traffic.pacing.unwrap_or(false),
        sender_clock: traffic.sender_clock.unwrap_or_default(),
        receiver_clock: traffic.receiver_clock.unwrap_or_default(),
    };
    limits::settings(reader, name, &settings);
    settings
}

/// The controller of a group that names none. SLIQ has a second one then, unless the lab names another second one.
fn default_controller(transport: &mut Option<weir_transport::Config>) -> weir_control::Config {
    let Some(weir_transport::Config::Sliq(sliq)) = transport else {
        return weir_control::Config::Cubic(Default::default());
    };
    let [first, second] = weir_sliq::default_controllers();
    match &sliq.second {
        // Two controllers of one kind would be one.
        Some(named) if named.name() == first.name() => second,
        Some(_) => first,
        None => {
            sliq.second = Some(second);
            first
        }
    }
}

/// The name of a group's flow. There may be a hundred thousand: a formatted text would take four times as long.
fn numbered(group: &str, number: u64) -> String {
    [group, "-", itoa::Buffer::new().format(number)].concat()
}

/// The seed of a repeat: from the lab's seed and the repeat's number alone, so that the cells of one repeat are paired. It has
/// 53 bits, so that every reader of JSON reads it exactly.
fn seed(lab: u64, repeat: u32) -> u64 {
    Random::stream_of(lab, "repeat", repeat.into()).bits() >> 11
}

/// The names of the traffic groups, in the order of the file.
fn group_names(reader: &mut Reader<'_>) -> Vec<String> {
    let help = "write [traffic.NAME], and under it for example cc = \"cubic\" and flows = 2";
    match reader.root.get("traffic").map(|node| (node, node.as_table())) {
        Some((_, Some(groups))) if !groups.0.is_empty() => {
            let names: Vec<String> = groups.keys().map(String::from).collect();
            names.iter().for_each(|name| reader.name("traffic group", &["traffic", name]));
            return names;
        }
        Some((_, Some(_))) | None => {
            let path = if reader.has(&["traffic"]) { "traffic" } else { "format" };
            reader.wrong(&[path], "the lab has no traffic", help);
        }
        Some((node, None)) => {
            let message = format!("traffic is {}, not groups by name", node.what());
            reader.wrong(&["traffic"], message, help);
        }
    }
    Vec::new()
}
