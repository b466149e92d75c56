//! Sending hosts that groups share, and their network cards.

use crate::diagnostic::suggest;
use crate::limits;
use crate::reader::Reader;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use weir_base::{Bytes, Rate};
use weir_fabric::{Card, Link, Shaper};

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
        link.queue = self.queue.clone().unwrap_or_else(|| weir_queue::Config::TailDrop(Default::default()));
        link.instrumented = true;
    }
}
