//! A run, fully spelled out, as an engine receives it. It leaves no default, unit or random draw open.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use weir_base::{Bytes, Ecn, Random, Span, Time};
use weir_endpoint::{Settings, Setup};
use weir_fabric::{Link, Network, RoundTrips};
use weir_record::Param;
use weir_workload::{Application, Log};

/// One cell of a lab's tree, in one repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Stable name: made from the levels' labels and the repeat, fit for a folder.
    pub id: String,
    /// The lab's name.
    pub lab: String,
    /// The choice of this run on each level, in the order of the tree.
    pub params: Vec<Param>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Seed of every random stream in the run.
    pub seed: u64,
    /// How long it runs.
    pub duration: Span,
    /// Time from the start of the run that metrics leave out.
    pub warmup: Span,
    /// Parts of the run that have metrics of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Length of a sample period.
    pub sample: Span,
    /// Whether every packet is recorded.
    pub packets: bool,
    /// How RTT samples are taken.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub round_trips: RoundTrips,
    /// Nodes and links.
    pub network: Network,
    /// Stations at routers, at most one at each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stations: Vec<Station>,
    /// Traffic groups.
    pub groups: Vec<Group>,
    /// The flows of all groups; a flow's number is its place here.
    pub flows: Vec<Flow>,
}

/// A named part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// Where it begins, from the start of the run.
    pub from: Span,
    /// Where it ends, from the start of the run.
    pub to: Span,
    /// How close one-second means must be to their final value to count as settled, as a share of that value.
    pub tolerance: f64,
}

/// A machine at a router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Station {
    /// Its name.
    pub name: String,
    /// Index of its node.
    pub at: usize,
    /// It sees only packets that reach the node by one of these links or leave it by one; if empty, all packets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<usize>,
    /// Its kind and parameters.
    pub station: weir_station::Config,
}

/// Two hosts between which flows of a group run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The sending host: index of a node.
    pub from: usize,
    /// The receiving host, or the node of a station that answers: index of a node.
    pub to: usize,
    /// Base RTT between them, without queues and serialisation.
    pub rtt: Span,
}

/// A traffic group: flows of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The hosts between which its flows run: one pair, unless they differ in sender, receiver or RTT. Never empty.
    pub pairs: Vec<Pair>,
    /// IP version of its hosts.
    #[serde(default, skip_serializing_if = "Ip::is_default")]
    pub ip: Ip,
    /// What the applications do.
    pub workload: weir_workload::Config,
    /// Transport of its flows; `None` if a command opens connections of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<weir_transport::Config>,
    /// Settings of its connections, or of its hosts' TCP for a command; `None` if the transport takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// How the overlay carries its flows; `None` if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Carriage>,
}

/// How the overlay carries a group's flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carriage {
    /// The utility by which each flow is admitted.
    pub admit: weir_overlay::utility::Config,
    /// The time within which each packet must arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
    /// Each flow ends when so many bytes of its payload were admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// The number of the set of flows that are on together or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupled: Option<u32>,
    /// Whether its packets are sensitive to latency.
    pub is_sensitive: bool,
    /// Whether they are a network's control, and go first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_control: bool,
    /// The number of the multicast group that its packets go to; `None` if each goes to one receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast: Option<u32>,
}

impl Run {
    /// Whether packets may be sent from a node and addressed to it: it is a host, or has a station.
    pub fn is_addressed(&self, node: usize) -> bool {
        self.network.nodes[node].host || self.stations.iter().any(|station| station.at == node)
    }
}

impl Group {
    /// The shortest base RTT of its pairs.
    pub fn rtt(&self) -> Span {
        self.pairs.iter().map(|pair| pair.rtt).min().unwrap_or_default()
    }

    /// Whether a node is an end of one of its flows.
    pub fn is_at(&self, node: usize) -> bool {
        self.pairs.iter().any(|pair| pair.from == node || pair.to == node)
    }

    /// The connection whose streams its flows are, if they share one.
    pub fn connection(&self) -> Option<&str> {
        self.transport.as_ref()?.connection()
    }

    /// Header bytes that its transport puts before an application's bytes in a datagram.
    pub(crate) fn layer_header(&self) -> u32 {
        self.transport.as_ref().map_or(0, weir_transport::Config::layer_header)
    }

    /// Length of all headers before an application's bytes in a datagram, from the IP header on.
    fn datagram_headers(&self) -> Bytes {
        Bytes::new((self.ip.header() + UDP_HEADER + self.layer_header()).into())
    }

    /// The congestion controller of its connections; `None` if they have none.
    pub fn controller(&self) -> Option<&weir_control::Config> {
        let settings = self.settings.as_ref().filter(|_| self.transport.is_some())?;
        Some(&settings.cc)
    }

    /// The settings of its connections; `None` unless its transport is TCP, which in live runs is the kernel's.
    pub fn tcp(&self) -> Option<&Settings> {
        let is_tcp = matches!(self.transport, Some(weir_transport::Config::Tcp(_)));
        self.settings.as_ref().filter(|_| is_tcp)
    }
}

/// A version of the Internet protocol. In lab files and JSON its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Ip {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// A UDP header (RFC 768).
pub(crate) const UDP_HEADER: u32 = 8;

impl Ip {
    /// Length of its header: without options (RFC 791, section 3.1), without extensions (RFC 8200, section 3).
    pub const fn header(self) -> u32 {
        match self {
            Ip::V4 => 20,
            Ip::V6 => 40,
        }
    }

    fn is_default(&self) -> bool {
        *self == Ip::default()
    }
}

impl TryFrom<u8> for Ip {
    type Error = String;
    fn try_from(number: u8) -> Result<Ip, String> {
        match number {
            4 => Ok(Ip::V4),
            6 => Ok(Ip::V6),
            _ => Err(format!("there is no IPv{number} here; write 4 or 6")),
        }
    }
}

impl JsonSchema for Ip {
    fn schema_name() -> Cow<'static, str> {
        "Ip".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "integer", "enum": [4, 6] })
    }
}

impl From<Ip> for u8 {
    fn from(ip: Ip) -> u8 {
        match ip {
            Ip::V4 => 4,
            Ip::V6 => 6,
        }
    }
}

fn is_usual(round_trips: &RoundTrips) -> bool {
    *round_trips == RoundTrips::default()
}

fn is_first(index: &usize) -> bool {
    *index == 0
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its name: the group's, and a number when the group has several.
    pub name: String,
    /// Index of its group.
    pub group: usize,
    /// Its hosts: index of a pair of the group.
    #[serde(default, skip_serializing_if = "is_first")]
    pub pair: usize,
    /// When it starts, jitter included.
    pub start: Span,
    /// When its application stops sending; `None` for the end of the run.
    pub stop: Option<Span>,
    /// How much it sends; `None` unless it was drawn at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// The flow whose packets it receives at a receiver of its own; `None` unless the packets go to many receivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<usize>,
}

impl Run {
    /// The hosts of a flow.
    pub fn pair(&self, flow: usize) -> Pair {
        let Flow { group, pair, .. } = self.flows[flow];
        self.groups[group].pairs[pair]
    }

    /// The largest IP packet that a flow's hosts exchange.
    pub fn mtu(&self, flow: usize) -> Bytes {
        let Pair { from, to, .. } = self.pair(flow);
        self.network.nodes[from].mtu.min(self.network.nodes[to].mtu)
    }

    /// The applications, not yet started, each with the flows that it drives: one, or all flows of a group.
    pub fn applications(&self) -> Vec<(Application, Range<usize>)> {
        let mut applications: Vec<(Application, Range<usize>)> = Vec::new();
        for (number, flow) in self.flows.iter().enumerate() {
            let workload = &self.groups[flow.group].workload;
            let (plan, log) = self.part_of(number);
            match applications.last_mut() {
                Some((application, flows))
                    if workload.is_shared() && self.flows[flows.start].group == flow.group =>
                {
                    application.add(plan, log);
                    flows.end += 1;
                }
                _ => {
                    let headers = plan.headers;
                    let random = Random::stream_of(self.seed, "workload", number as u64);
                    let workload = match flow.copy_of {
                        Some(_) => weir_workload::listener(),
                        None => workload.build(flow.size, headers, random),
                    };
                    let ensembles = self.groups[flow.group].workload.ensemble_log();
                    let application = Application::new(workload, plan, log).with_ensembles(ensembles);
                    applications.push((application, number..number + 1));
                }
            }
        }
        applications
    }

    /// The plan of a flow's application, and the log of its messages, if it has one.
    fn part_of(&self, flow: usize) -> (weir_workload::Plan, Option<Log>) {
        let Flow { group, start, stop, .. } = self.flows[flow];
        let workload = &self.groups[group].workload;
        let end = Time::ZERO + self.duration;
        let plan = weir_workload::Plan {
            role: workload.role(),
            headers: self.groups[group].datagram_headers(),
            start: Time::ZERO + start,
            stop: stop.map_or(end, |stop| end.min(Time::ZERO + stop)),
        };
        let log = workload.log(plan.start, plan.stop, end);
        (plan, log)
    }

    /// The two ends of a flow's connection, not yet open: at the sending host and at the receiving host. `None` for commands.
    pub fn ends(&self, flow: usize) -> Option<[weir_transport::End; 2]> {
        Some(self.groups[self.flows[flow].group].transport.as_ref()?.ends(&self.setup(flow)))
    }

    /// The two ends of a flow that joins the connection of these ends as one more stream. `None` if the connection has no room
    /// for it.
    pub fn join(&self, flow: usize, ends: [&mut weir_transport::End; 2]) -> Option<[weir_transport::End; 2]> {
        let transport = self.groups[self.flows[flow].group].transport.as_ref()?;
        let [from, to] = ends.map(|end| end.join(transport, &self.setup(flow)));
        Some([from?, to?])
    }

    /// What the ends of a flow's connection are made from.
    pub fn setup(&self, flow: usize) -> Setup<'_> {
        let group = &self.groups[self.flows[flow].group];
        Setup {
            settings: group.settings.as_ref(),
            datagrams: matches!(group.workload.role(), weir_workload::Role::Datagrams(_)),
            admitted: group.overlay.is_some(),
            ecn: group.workload.role().datagrams().map_or(Ecn::NotEct, |datagrams| datagrams.ecn),
            mtu: self.mtu(flow),
            ip_header: group.ip.header(),
            seed: self.seed,
            flow: flow as u64,
        }
    }

    /// The layer between the application and a UDP socket at one end of a flow; `None` if there is none.
    pub fn layer(&self, flow: usize) -> Option<weir_coord::layer::Layer> {
        self.groups[self.flows[flow].group].transport.as_ref()?.layer(flow as u64)
    }

    /// The links of the lab itself, with their indices.
    pub fn instrumented_links(&self) -> impl Iterator<Item = (usize, &Link)> {
        self.network.links.iter().enumerate().filter(|(_, link)| link.instrumented)
    }
}
