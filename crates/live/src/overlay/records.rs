//! What daemons tell of themselves, as the records of simulated nodes: their states, what they have admitted of each flow, and what they have
//! decided. A thread inside each node's namespace asks; a daemon answers about ten times a second.

use super::Site;
use super::daemons::Asking;
use super::multicast::copies;
use crate::relay::Relay;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_base::{Histogram, Span, Time};
use weir_linux::clock::Clock;
use weir_linux::namespace::Namespace;
use weir_plan::Run;
use weir_plan::address::{FIRST_PORT, address_of};
use weir_record::{Component, DecisionRecord, Recorder, StateSample, TransitSample};
use weir_workload::Role;

/// Longest time between two questions, so that decisions are told soon after they were made.
const AGAIN: Span = Span::from_millis(100);
/// Answers that may be missing, one after the other: a busy machine may hold a daemon up.
const PATIENCE: u32 = 3;
/// States of all nodes; the others are recorded if the lab asks for details.
const SUMS: [&str; 14] = [
    "payload_bytes",
    "header_bytes",
    "signal_bytes",
    "data_packets",
    "signal_packets",
    "zombie_bytes_added",
    "zombie_bytes_left",
    "expired_packets",
    "overflowed_packets",
    "admitted_bit_per_s",
    "real_bytes",
    "zombie_bytes",
    "depths_age_ms",
    "capacity_bit_per_s",
];

/// A node that is asked for its records.
pub(crate) struct Watched<'a> {
    /// The run as it was planned.
    pub(crate) planned: &'a Run,
    pub(crate) site: &'a Site,
    pub(crate) namespace: &'a Namespace,
    pub(crate) asking: Asking,
    pub(crate) clock: Clock,
}

/// What was recorded of a flow so far.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    admitted: u64,
    /// When the last decision was made, by the daemon's clock in seconds.
    decided: f64,
}

impl Watched<'_> {
    /// Asks from the start of the clock until it is over. To be called on a thread of its own, which moves into the node's namespace.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub(crate) fn watch(&self, over: &AtomicBool, mut relay: Relay) -> io::Result<()> {
        self.namespace.join()?;
        let (mut known, mut sampled, mut missing) = (BTreeMap::new(), Time::ZERO, 0);
        std::thread::sleep(Duration::from_nanos(self.clock.until_start().as_nanos()));
        while !over.load(Ordering::Acquire) {
            let asked = self.clock.now();
            match self.asking.ask() {
                Ok(told) => {
                    let now = self.clock.now();
                    missing = 0;
                    self.record_decisions(&told, &mut known, now, &mut relay);
                    let period = self.planned.sample.as_nanos().max(1);
                    let at = Time::from_nanos(now.as_nanos() / period * period);
                    if at > sampled {
                        sampled = at;
                        self.record_states(&told, at, &mut relay);
                        self.record_flows(&told, &mut known, at, &mut relay);
                    }
                }
                Err(_) if over.load(Ordering::Acquire) => break,
                Err(error) => {
                    missing += 1;
                    if missing >= PATIENCE {
                        return Err(error);
                    }
                }
            }
            let rest = AGAIN.saturating_sub(self.clock.now().since(asked));
            std::thread::sleep(Duration::from_nanos(rest.as_nanos()));
        }
        Ok(())
    }

    fn has_details(&self) -> bool {
        match &self.planned.stations[self.site.station].station {
            weir_station::Config::OverlayNode(overlay) => overlay.details,
            _ => false,
        }
    }

    fn record_states(&self, told: &Value, at: Time, relay: &mut Relay) {
        let (of, details) = (Component::Station(self.site.station as u32), self.has_details());
        for (name, value) in told["states"].as_object().into_iter().flatten() {
            let is_wanted = details || SUMS.contains(&name.as_str()) || name == "k" || name == "held_packets";
            if let Some(value) = value.as_f64().filter(|_| is_wanted) {
                relay.state(&StateSample { at, of, name, value });
            }
        }
    }

    /// The flows that the daemon tells of, and that are those of the run.
    fn flows<'t>(&self, told: &'t Value) -> impl Iterator<Item = (usize, &'t Value)> {
        let all = told["flows"].as_array().map_or(&[][..], Vec::as_slice);
        all.iter().filter_map(|flow| Some((flow_of(self.planned, flow)?, flow)))
    }

    fn record_flows(&self, told: &Value, known: &mut BTreeMap<usize, Known>, at: Time, relay: &mut Relay) {
        let details = self.has_details();
        for (flow, told) in self.flows(told) {
            let group = &self.planned.groups[self.planned.flows[flow].group];
            let Some(carriage) = &group.overlay else { continue };
            let of = Component::Controller(flow as u32);
            let mut state = |name: &str, value: Option<f64>| {
                if let Some(value) = value {
                    relay.state(&StateSample { at, of, name, value });
                }
            };
            if carriage.admit.may_be_refused() {
                state("admission_standing", told["standing"].as_f64());
                state("admitted_bit_per_s", told["rate_mbps"].as_f64().map(|mbps| 1e6 * mbps));
            }
            if details {
                state("price_bits", told["price_bits"].as_f64());
            }
            // Packets of streams are those of proxies, of which nothing else is known.
            if !matches!(group.workload.role(), Role::Datagrams(_)) {
                continue;
            }
            let known: &mut Known = known.entry(flow).or_default();
            let all = told["admitted"].as_u64().unwrap_or(0);
            let admitted = all.saturating_sub(std::mem::replace(&mut known.admitted, all));
            // What is admitted goes to all receivers of its group.
            for flow in std::iter::once(flow).chain(copies(self.planned, flow)).filter(|_| admitted > 0) {
                relay.transit(&TransitSample {
                    at,
                    flow: flow as u32,
                    admitted,
                    in_time: 0,
                    links: 0,
                    hops: Histogram::default(),
                    times: Histogram::default(),
                    waits: Histogram::default(),
                });
            }
        }
    }

    fn record_decisions(
        &self,
        told: &Value,
        known: &mut BTreeMap<usize, Known>,
        now: Time,
        relay: &mut Relay,
    ) {
        for (flow, told) in self.flows(told) {
            let known = known.entry(flow).or_default();
            let before = known.decided;
            // The newest is the first.
            for one in told["decisions"].as_array().into_iter().flatten().rev() {
                let (Some(at), Some(ago)) = (one["at_s"].as_f64(), one["ago_s"].as_f64()) else { continue };
                if at <= before {
                    continue;
                }
                known.decided = at;
                let word = |key: &str| one[key].as_str().unwrap_or_default();
                let number = |key: &str| one[key].as_f64().unwrap_or_default();
                relay.decision(&DecisionRecord {
                    at: Time::from_nanos(now.as_nanos().saturating_sub((1e9 * ago) as u64)),
                    flow: flow as u32,
                    by: word("by"),
                    standing: word("stands"),
                    rule: word("rule"),
                    value: number("value"),
                    bound: number("bound"),
                });
            }
        }
    }
}

/// The flow of a run that a daemon tells of: by its port, in the direction of its data.
fn flow_of(run: &Run, told: &Value) -> Option<usize> {
    let port = told["keys"]["ports"].as_str()?.parse::<u16>().ok()?;
    let flow = usize::from(port.checked_sub(FIRST_PORT)?);
    let pair = (flow < run.flows.len()).then(|| run.pair(flow))?;
    let from = format!("{}/32", address_of(pair.from, run.groups[run.flows[flow].group].ip));
    (told["keys"]["from"] == from.as_str()).then_some(flow)
}
