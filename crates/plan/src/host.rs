//! Sending hosts that groups share, and their network cards. A name may stand for several equal hosts, to which a group's flows are
//! assigned in turn.

use crate::diagnostic::suggest;
use crate::limits;
use crate::reader::{Reader, bad_name};
use crate::traffic::Traffic;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use weir_base::{Bytes, Rate, Span};
use weir_fabric::{Card, Change, Link, Network, Shaper};

/// Most hosts that one name stands for.
const MOST_HOSTS: u64 = 1000;

/// The network card of a host. All packets that the host sends pass it first.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nic {
    /// Rate at which it sends.
    pub(crate) rate: Rate,
    /// How many equal hosts the name stands for, each with a card of its own; by default one. A group's flows (or their sources, if the
    /// flows arrive at random) are assigned to them in turn. The hosts and the links of their cards are named NAME-1, NAME-2 and so on.
    #[serde(default = "one")]
    pub(crate) hosts: u64,
    /// Largest IP packet that it sends or receives; by default the largest that all links on the paths of its groups carry.
    #[serde(default)]
    pub(crate) mtu: Option<Bytes>,
    /// The queue in front of it; by default tail drop of 1000 packets, as in Linux.
    #[serde(default)]
    pub(crate) queue: Option<weir_queue::Config>,
    /// Whether packets for which its queue has no room stay in the host, unsent, as on Linux; by default true. Otherwise the queue
    /// drops them.
    #[serde(default = "yes")]
    pub(crate) refuses: bool,
    /// The shaper that implements its queue in live runs: "kernel" is Linux's own, for `tbf`, `htb` and `tail-drop`. Without it, the lab
    /// runs on the simulator only. The simulator ignores it.
    #[serde(default)]
    pub(crate) shaper: Option<Shaper>,
    /// Whether TCP bounds the data of each flow that waits in its queue (TCP small queues, Linux 3.6 and newer); by default true.
    #[serde(default = "yes")]
    pub(crate) small_queues: bool,
    /// Changes of its queue over time: `[{ at = "10 s", queue = { kind = "htb", classes = [..] } }]`, all parameters of a queue of
    /// the same kind, `tbf` or `htb`. On the simulator only.
    #[serde(default)]
    pub(crate) schedule: Vec<QueueChange>,
}

/// A change of a card's queue at a time.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueChange {
    /// When, from the start of the run.
    pub(crate) at: Span,
    /// Its parameters from then on; classes of `htb` are matched by name. Waiting packets stay, except those of a class that is no longer
    /// named.
    pub(crate) queue: weir_queue::Config,
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

/// The hosts that groups name, and their nodes in the network so far.
#[derive(Default)]
pub(crate) struct Hosts {
    cards: BTreeMap<String, Nic>,
    /// The nodes of each name's hosts, without hosts that no flow needs.
    nodes: BTreeMap<String, Vec<usize>>,
}

impl Hosts {
    /// Reads and checks the hosts of a lab. None is in the network yet.
    pub(crate) fn read(reader: &mut Reader<'_>, groups: &[(String, Traffic)], network: &Network) -> Hosts {
        let hosts = Hosts { cards: cards(reader), nodes: BTreeMap::new() };
        hosts.check_used(reader, groups);
        hosts.check_names(reader, groups, network);
        hosts
    }

    /// How many hosts a name stands for.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.cards.get(name).map_or(1, |nic| nic.hosts.max(1))
    }

    /// The card of each host of a name; `None` if the lab gives none.
    pub(crate) fn card(&self, name: &str) -> Option<&Nic> {
        self.cards.get(name)
    }

    /// The nodes of a name's hosts that are in the network so far.
    pub(crate) fn nodes(&mut self, name: &str) -> &mut Vec<usize> {
        self.nodes.entry(name.into()).or_default()
    }

    /// Name of the host with this number, from 0.
    pub(crate) fn name(&self, name: &str, number: u64) -> String {
        if self.count(name) == 1 { name.into() } else { format!("{name}-{}", number + 1) }
    }

    /// Checks that each card belongs to a host of some group.
    fn check_used(&self, reader: &mut Reader<'_>, groups: &[(String, Traffic)]) {
        let hosts: Vec<&str> = groups.iter().filter_map(|(_, traffic)| traffic.host.as_deref()).collect();
        for name in self.cards.keys().filter(|name| !hosts.contains(&name.as_str())) {
            let help = match hosts[..] {
                [] => format!("write host = \"{name}\" in the traffic groups that send through it"),
                _ => suggest(name, hosts.iter().copied()),
            };
            reader.wrong(&["nic", name], format!("no traffic group has the host `{name}`"), help);
        }
    }

    /// Whether `host` is the name of one of the hosts that `name` stands for.
    fn is_one_of(&self, name: &str, host: &str) -> bool {
        let number = match self.count(name) {
            1 => Some(1),
            _ => host.rsplit_once('-').and_then(|(_, number)| number.parse().ok()),
        };
        number.is_some_and(|number| {
            (1..=self.count(name)).contains(&number) && self.name(name, number - 1) == host
        })
    }

    /// Checks that no host has the name of a router, of a group's own host, of another host or of a flow.
    fn check_names(&self, reader: &mut Reader<'_>, groups: &[(String, Traffic)], network: &Network) {
        for (group, traffic) in groups {
            if self.count(group) > 1 {
                let message = format!("`{group}-1` would be a flow of the group `{group}` and a host");
                reader.wrong(&["nic", group, "hosts"], message, "give the hosts a name of their own");
            }
            let Some(host) = &traffic.host else { continue };
            let is = |what: String| (format!("`{host}` is {what}"), "choose another name".to_owned());
            let own = || {
                let own = host.ends_with("-sender") || host.ends_with("-receiver");
                own.then(|| is("a name of a group's own host".into()))
            };
            let node = || {
                let node = network.nodes.iter().find(|node| self.is_one_of(host, &node.name))?;
                let message = format!("`{}` is a node of the network", node.name);
                Some((message, "choose another name for the host".to_owned()))
            };
            let other = || {
                let (several, _) = host.rsplit_once('-')?;
                let count = self.count(several);
                (count > 1 && self.is_one_of(several, host))
                    .then(|| is(format!("one of the {count} hosts `{several}`")))
            };
            if let Some((message, help)) = bad_name("host", host).or_else(own).or_else(node).or_else(other) {
                reader.wrong(&["traffic", group, "host"], message, help);
            }
        }
    }
}

/// The cards of a lab, by the names of their hosts.
fn cards(reader: &mut Reader<'_>) -> BTreeMap<String, Nic> {
    let Some(cards) = reader.node(&["nic"]) else { return BTreeMap::new() };
    let Some(table) = cards.as_table() else {
        reader.wrong(
            &["nic"],
            "a card needs the name of its host",
            "write [nic.NAME], and host = \"NAME\" in a traffic group",
        );
        return BTreeMap::new();
    };
    let names: Vec<String> = table.keys().map(String::from).collect();
    let mut cards = BTreeMap::new();
    for name in names {
        reader.name("host", &["nic", &name]);
        if let Some(nic) = reader.section::<Nic>(&["nic", &name]) {
            limits::rate(reader, &["nic", &name, "rate"], nic.rate);
            if !(1..=MOST_HOSTS).contains(&nic.hosts) {
                let message = format!("a name cannot stand for {} hosts", nic.hosts);
                let help = format!("write a number from 1 to {MOST_HOSTS}");
                reader.wrong(&["nic", &name, "hosts"], message, help);
            }
            if let Some(mtu) = nic.mtu {
                limits::mtu(reader, &["nic", &name, "mtu"], mtu);
            }
            limits::changes(reader, &["nic", &name, "schedule"], &nic.queue(), &nic.changes());
            cards.insert(name, nic);
        }
    }
    cards
}

impl Nic {
    /// The card in the plan, without its link.
    pub(crate) fn card(&self) -> Card {
        Card { refuses: self.refuses, small_queues: self.small_queues, shaper: self.shaper }
    }

    /// Gives a host's first link this name, and the card's rate, queue and changes.
    pub(crate) fn fit(&self, name: &str, link: &mut Link) {
        link.name = name.into();
        link.rate = Some(self.rate);
        link.queue = self.queue();
        link.schedule = self.changes();
        link.instrumented = true;
    }

    fn queue(&self) -> weir_queue::Config {
        self.queue.clone().unwrap_or_else(|| weir_queue::Config::TailDrop(Default::default()))
    }

    fn changes(&self) -> Vec<Change> {
        let of = |change: &QueueChange| Change {
            at: change.at,
            queue: Some(change.queue.clone()),
            ..Change::default()
        };
        let mut changes: Vec<Change> = self.schedule.iter().map(of).collect();
        changes.sort_by_key(|change| change.at);
        changes
    }
}
