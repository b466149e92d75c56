//! What a running node tells of itself, its neighbours and its flows.

use super::{HEADERS, Running};
use crate::frame::status::{Counters, Details, Part, Status};
use crate::overlay::proxies::Proxies;
use serde_json::{Map, Value, json};
use std::net::Ipv4Addr;
use weir_base::{Span, Time};
use weir_overlay::admission::By;
use weir_overlay::site::Told;
use weir_overlay::site::datagram::{PROTOCOL_TCP, PROTOCOL_UDP};
use weir_overlay::site::parts;
use weir_overlay::utility::bits;
use weir_overlay::{Cat, Inner, Key};

/// What is told of a neighbour.
struct Neighbour {
    is_up: bool,
    capacity_mbps: f64,
    delay_ms: f64,
    loss_percent: f64,
    sent_bytes: u64,
    waiting_bytes: u64,
    over_quota: u64,
}

impl Running<'_> {
    /// All that is told of the node.
    pub(super) fn document(&self, now: Time) -> Value {
        let node = self.site.node();
        let neighbours = self.carriers.iter().enumerate().map(|(port, carrier)| {
            let Neighbour {
                is_up,
                capacity_mbps,
                delay_ms,
                loss_percent,
                sent_bytes,
                waiting_bytes,
                over_quota,
            } = self.neighbour(port);
            json!({
                "name": carrier.name,
                "number": carrier.id.number(),
                "up": is_up,
                "capacity_mbps": capacity_mbps,
                "delay_ms": delay_ms,
                "loss_percent": loss_percent,
                "sent_bytes": sent_bytes,
                "waiting_bytes": waiting_bytes,
                "over_quota": over_quota,
            })
        });
        let flows = self.site.told().map(|flow| self.flow(&flow, now));
        let packets: Map<String, Value> =
            self.counts().into_iter().map(|(name, count)| (name, count.into())).collect();
        json!({
            "name": self.plan.name,
            "number": self.plan.id.number(),
            "up_s": now.as_secs_f64(),
            "k": node.k(),
            "drained": node.is_drained(),
            "held": node.held(),
            "groups": node.joined().iter().map(|group| Ipv4Addr::from_bits(group.0).to_string()).collect::<Vec<_>>(),
            "services": self.site.services(),
            "neighbours": neighbours.collect::<Vec<_>>(),
            "flows": flows.collect::<Vec<_>>(),
            "packets": packets,
            "states": self.states(now),
        })
    }

    /// The states of the node by the names that records of simulated nodes have. Headers are those of packets that leave for the first time.
    fn states(&self, now: Time) -> Map<String, Value> {
        let (node, mut states) = (self.site.node(), Map::new());
        let mut report = |name: &str, value: f64| drop(states.insert(name.to_owned(), value.into()));
        node.tell(now, &mut report);
        node.tell_parts(self.carriers.iter().map(|carrier| carrier.id), &mut report);
        let (sent, around) = (node.counters(), HEADERS + self.plan.policy.link.headers(false).get());
        report("header_bytes", (sent.header_bytes + around * sent.packets) as f64);
        report("signal_bytes", (sent.signal_bytes + around * sent.signals) as f64);
        report("expired_packets", self.site.counts().expired as f64);
        report("held_packets", node.held() as f64);
        let rates: u64 = self.site.told().map(|flow| flow.rate.bits_per_sec()).sum();
        report("admitted_bit_per_s", rates as f64);
        states
    }

    fn neighbour(&self, port: usize) -> Neighbour {
        let node = self.site.node();
        let (cat, sent) = (node.cat(port).copied().unwrap_or_default(), node.sent(port));
        Neighbour {
            is_up: node.neighbour(port).is_some(),
            capacity_mbps: cat.capacity().bits_per_sec() as f64 / 1e6,
            delay_ms: cat.delay().mean.as_millis_f64(),
            loss_percent: 100.0 * cat.loss(),
            sent_bytes: sent.data + sent.signals,
            waiting_bytes: cat.waiting.get(),
            over_quota: self.site.over_quota(port),
        }
    }

    fn flow(&self, flow: &Told<'_>, now: Time) -> Value {
        let decisions = flow.events.iter().rev().map(|event| {
            let by = match event.by {
                By::Flow => "flow",
                By::Planner => "planner",
            };
            json!({
                "at_s": event.at.as_secs_f64(),
                "ago_s": now.since(event.at).as_secs_f64(),
                "stands": event.standing.name(),
                "by": by,
                "rule": event.reason.rule.name(),
                "value": event.reason.value,
                "bound": event.reason.bound,
            })
        });
        json!({
            "flow": name_of(&flow.inner),
            "keys": keys_of(&flow.inner),
            "service": flow.service,
            "to": self.name_of(flow.to),
            "utility": flow.utility,
            "priority": flow.priority,
            "deadline_ms": flow.deadline.map(Span::as_millis_f64),
            "stands": flow.standing.name(),
            "standing": flow.standing.number(),
            "rate_mbps": flow.rate.bits_per_sec() as f64 / 1e6,
            "price_bits": bits(flow.price),
            "sent_bytes": flow.sent.get(),
            "admitted": flow.admitted,
            "waiting": flow.waiting,
            "refused": flow.refused,
            "decisions": decisions.collect::<Vec<_>>(),
        })
    }

    /// The name of where a flow goes.
    fn name_of(&self, to: Key) -> String {
        match to {
            Key::Node(id) => self.plan.name_of(id).to_owned(),
            Key::Group(group) => Ipv4Addr::from_bits(group.0).to_string(),
        }
    }

    fn counts(&self) -> Vec<(String, u64)> {
        let (counts, node) = (self.site.counts(), self.site.node().counters());
        let all = [
            ("admitted", counts.admitted),
            ("delivered", counts.delivered),
            ("forwarded", node.packets),
            ("refused", counts.refused),
            ("overflowed", counts.overflowed),
            ("over_quota", counts.over_quota),
            ("expired", counts.expired),
            ("foreign_source", counts.foreign),
            ("unknown_destination", counts.unknown),
            ("not_opened", counts.unsealed),
            ("forged_announcements", counts.forged + node.strangers),
            ("too_long", counts.too_long),
            ("restored", counts.restored),
            ("incomplete", counts.incomplete),
            ("other_ip_version", counts.other_version),
            ("malformed", counts.malformed),
            ("lost", counts.lost),
        ];
        let proxies = self.proxies.as_ref().map_or_else(Default::default, Proxies::counts);
        let connections = [
            ("tcp_accepted", proxies.accepted),
            ("tcp_begun", proxies.begun),
            ("tcp_refused", proxies.refused),
        ];
        all.iter().chain(&connections).map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    /// What the frame of all daemons tells.
    pub(super) fn status(&self) -> Status {
        let parts = self.carriers.iter().enumerate().map(|(port, carrier)| {
            let of = self.neighbour(port);
            let values = [
                ("up", f64::from(u8::from(of.is_up))),
                ("capacity_mbps", of.capacity_mbps),
                ("delay_ms", of.delay_ms),
                ("loss_percent", of.loss_percent),
                ("sent_bytes", of.sent_bytes as f64),
                ("over_quota_packets", of.over_quota as f64),
            ];
            Part {
                labels: vec![("name".into(), carrier.name.as_str().into())],
                values: values.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            }
        });
        // Rows of flows are for the page alone, and there may be thousands.
        let flows = self.process.has_page().then(|| self.site.told()).into_iter().flatten();
        let rows = flows.map(|flow| self.row(&flow)).collect();
        Status {
            place: format!("{} at {}", self.plan.name, self.plan.listen),
            labels: vec![("node".into(), self.plan.name.clone())],
            counters: Counters {
                name: "packets".into(),
                meaning: "Packets of programs by what became of them, and packets forwarded to neighbours."
                    .into(),
                values: self.counts(),
            },
            part: "neighbour".into(),
            parts: parts.collect(),
            details: Details { name: "flow".into(), rows },
            ..Status::default()
        }
    }

    /// A flow on the page.
    fn row(&self, flow: &Told<'_>) -> Part {
        let labels = [
            ("flow", name_of(&flow.inner)),
            ("to", self.name_of(flow.to)),
            ("service", flow.service.unwrap_or("-").to_owned()),
            ("stands", flow.standing.name().to_owned()),
        ];
        let values = [
            ("admitted_mbps", flow.rate.bits_per_sec() as f64 / 1e6),
            ("sent_bytes", flow.sent.get() as f64),
            ("waiting", flow.waiting as f64),
            ("refused", flow.refused as f64),
        ];
        Part {
            labels: labels.map(|(name, value)| (name.to_owned(), value.into())).to_vec(),
            values: values.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        }
    }
}

/// The keys of a service for this flow alone.
fn keys_of(inner: &Inner) -> Value {
    let prefix = |address: u32| format!("{}/32", Ipv4Addr::from_bits(address));
    let ports = (inner.destination_port > 0).then(|| inner.destination_port.to_string());
    json!({ "from": prefix(inner.source), "to": prefix(inner.destination), "ports": ports })
}

/// A flow's name: addresses with ports, and what is carried.
pub(super) fn name_of(inner: &Inner) -> String {
    let end = |address: u32, port: u16| {
        let address = Ipv4Addr::from_bits(address);
        if port == 0 { address.to_string() } else { format!("{address}:{port}") }
    };
    let (from, to) = (end(inner.source, inner.source_port), end(inner.destination, inner.destination_port));
    let (whole, parts) = match parts::whole(inner) {
        Some(whole) => (whole, ",parts"),
        None => (*inner, ""),
    };
    let kind = match whole.protocol {
        PROTOCOL_UDP => "udp",
        PROTOCOL_TCP => "tcp",
        _ => "ip",
    };
    format!("{from}-{to}/{kind}{parts}")
}
