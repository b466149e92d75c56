//! Sending hosts that groups share, and their network cards.

use crate::diagnostic::suggest;
use crate::limits;
use crate::reader::{Reader, bad_name};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use weir_base::{Bytes, Rate, Span};
use weir_fabric::{Card, Change, Link, Shaper};

/// The network card of a host: what all that the host sends passes first.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nic {
    /// How fast it sends.
    pub(crate) rate: Rate,
    /// Largest IP packet that it sends or takes; by default the largest that all links on the paths of its groups carry.
    #[serde(default)]
    pub(crate) mtu: Option<Bytes>,
    /// The queue before it; by default tail drop of 1000 packets, as Linux has it.
    #[serde(default)]
    pub(crate) queue: Option<weir_queue::Config>,
    /// Whether data that its queue has no room for stays unsent in the host, as on Linux; by default true. Otherwise the queue drops
    /// it, and it is lost.
    #[serde(default = "yes")]
    pub(crate) refuses: bool,
    /// Whose shaper its queue is in live runs: "kernel" is Linux's own, which has `tbf`, `htb` and `tail-drop`. Without it the lab runs
    /// on the simulator only, for which this makes no difference.
    #[serde(default)]
    pub(crate) shaper: Option<Shaper>,
    /// Whether TCP bounds what waits in its queue (TCP small queues, Linux 3.6 and newer); by default true.
    #[serde(default = "yes")]
    pub(crate) small_queues: bool,
    /// Changes of its queue over time: `[{ at = "10 s", queue = { kind = "htb", classes = [..] } }]`, all parameters of the same kind,
    /// `tbf` or `htb`. On the simulator only.
    #[serde(default)]
    pub(crate) schedule: Vec<QueueChange>,
}

/// A change of a card's queue at a time.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueChange {
    /// When, from the start of the run.
    pub(crate) at: Span,
    /// Its parameters from then on; classes of `htb` are told apart by their names. What waits stays, but for what waits in a class that
    /// is named no more.
    pub(crate) queue: weir_queue::Config,
}

fn yes() -> bool {
    true
}

/// The cards of a lab, by the names of their hosts.
pub(crate) fn cards(reader: &mut Reader<'_>) -> BTreeMap<String, Nic> {
    let Some(cards) = reader.node(&["nic"]) else { return BTreeMap::new() };
    let Some(table) = cards.as_table() else {
        reader.wrong(
            &["nic"],
            "a card has a name",
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
            if let Some(mtu) = nic.mtu {
                limits::mtu(reader, &["nic", &name, "mtu"], mtu);
            }
            limits::changes(reader, &["nic", &name, "schedule"], &nic.queue(), &nic.changes());
            cards.insert(name, nic);
        }
    }
    cards
}

/// Looks that each card belongs to a host of some group.
pub(crate) fn check_used(reader: &mut Reader<'_>, cards: &BTreeMap<String, Nic>, hosts: &[&str]) {
    for name in cards.keys().filter(|name| !hosts.contains(&name.as_str())) {
        let help = match hosts {
            [] => format!("write host = \"{name}\" in the traffic groups that send by it"),
            hosts => suggest(name, hosts.iter().copied()),
        };
        reader.wrong(&["nic", name], format!("no traffic group has the host `{name}`"), help);
    }
}

impl Nic {
    /// What the plan keeps of it beside its link.
    pub(crate) fn card(&self) -> Card {
        Card { refuses: self.refuses, small_queues: self.small_queues, shaper: self.shaper }
    }

    /// Makes a host's first link this card's.
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

/// Checks the name of a sending host: it may be that of no group's own hosts.
pub(crate) fn check_name(reader: &mut Reader<'_>, group: &str, host: &str) {
    let fault = bad_name("host", host).or_else(|| {
        let own = host.ends_with("-sender") || host.ends_with("-receiver");
        own.then(|| {
            (format!("`{host}` is what a group's own host is called"), "choose another name".to_owned())
        })
    });
    if let Some((message, help)) = fault {
        reader.wrong(&["traffic", group, "host"], message, help);
    }
}
