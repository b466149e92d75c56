//! Metrics of admission by the overlay: which flows were on, since when, and how often that changed. They exist only of flows that may be
//! refused.

use super::value::{Distribution, Value, percent};
use super::{Domain, Flows, Level, Metric, Plot, Reduction, View};
use crate::records::Records;
use std::collections::BTreeMap;
use weir_base::{Span, Time};

/// How a flow stands: 2 is on, 0 and 4 are triaged, and beyond 4 it is not there.
const STANDING: &str = "admission_standing";
const ON: f64 = 2.0;
const TRIAGED: [f64; 2] = [0.0, 4.0];
const LAST_PRESENT: f64 = 4.0;
/// The rate at which a flow is admitted.
const ADMITTED: &str = "admitted_bit_per_s";
/// A flow that started by itself and stopped within this time has probed (digest of the study's planner: 1.5 periods of 2 s).
const PROBE: Span = Span::from_secs(3);

/// A decision about a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Decided {
    at: Time,
    is_on: bool,
    /// It tries again by itself.
    is_restart: bool,
}

impl View<'_> {
    pub(super) fn add_decisions(&mut self, records: &Records) {
        for decision in &records.decisions {
            let Some(flow) = self.flows.get_mut(decision.flow as usize) else { continue };
            let (is_on, is_restart) = (&*decision.standing == "on", &*decision.rule == "restart");
            flow.decisions.push(Decided { at: decision.at, is_on, is_restart });
        }
    }
}

impl Flows<'_> {
    /// How each flow stood at the end of each sample period.
    fn standings(&self) -> impl Iterator<Item = impl Iterator<Item = (Time, f64)>> {
        let told = self.each().filter_map(|flow| flow.states.get(STANDING));
        told.map(|told| told.at.iter().copied().zip(told.within.iter().copied()))
    }

    /// The number of flows that stood in one of some ways at the end of each sample period in which one was there.
    fn standing_in(&self, ways: &[f64]) -> Option<Distribution> {
        let mut counts: BTreeMap<Time, u32> = BTreeMap::new();
        for (at, standing) in self.standings().flatten().filter(|(_, standing)| *standing <= LAST_PRESENT) {
            *counts.entry(at).or_default() += u32::from(ways.contains(&standing));
        }
        Distribution::of(counts.into_values().map(f64::from))
    }

    /// The share of sample periods in which a flow that was there was on.
    fn on_percent(&self) -> Option<f64> {
        let present = self.standings().flatten().filter(|(_, standing)| *standing <= LAST_PRESENT);
        let (on, all) =
            present.fold((0, 0), |(on, all), (_, standing)| (on + u64::from(standing == ON), all + 1));
        percent(on, all)
    }

    /// For each flow that was on at the end of the window, the time from the window's begin since which it was.
    fn settled(&self) -> Option<Distribution> {
        let begin = self.view.window().from;
        let since = |standings: &mut dyn Iterator<Item = (Time, f64)>| {
            let mut since = None;
            for (at, standing) in standings.filter(|(_, standing)| *standing <= LAST_PRESENT) {
                since = if standing == ON { since.or(Some(at)) } else { None };
            }
            since
        };
        let settled = self.standings().filter_map(|mut standings| since(&mut standings));
        Distribution::of(settled.map(|at| at.since(begin).as_secs_f64()))
    }

    /// Decisions in a minute of the window for each flow that had any state, in probes or beside them.
    fn decisions(&self, probes: bool) -> Option<f64> {
        let window = self.view.window();
        let minutes = window.length().as_secs_f64() / 60.0;
        let told: Vec<_> = self.each().filter(|flow| flow.states.get(STANDING).is_some()).collect();
        if told.is_empty() || minutes <= 0.0 {
            return None;
        }
        let count = |decisions: &[Decided]| {
            let is_probe = |first: usize| {
                let (Some(first), Some(next)) = (decisions.get(first), decisions.get(first + 1)) else {
                    return false;
                };
                first.is_on && first.is_restart && !next.is_on && next.at.since(first.at) < PROBE
            };
            let within = (0..decisions.len()).filter(|at| window.holds(decisions[*at].at));
            let of = within.filter(|at| (is_probe(*at) || *at > 0 && is_probe(*at - 1)) == probes);
            of.count()
        };
        let all: usize = told.iter().map(|flow| count(&flow.decisions)).sum();
        Some(all as f64 / minutes / told.len() as f64)
    }
}

const OF: &[Level] = &[Level::Run, Level::Group, Level::Flow];
const SOURCE: &str = "the admission's own state, read once a sample period";
const DECISIONS: &str = "the decisions that nodes of the overlay recorded";
const STATES: &[&str] = &[STANDING, ADMITTED];

family! {
    ON_PERCENT {
        name: "admitted_percent",
        title: "Admitted",
        unit: "%",
        of: OF,
        definition: "Sample periods at whose end a flow was on, over all in which it was there: it had begun and had not ended. Only of flows that may be refused.",
        source: SOURCE,
        domain: Domain::Percent,
        states: STATES,
        reduction: Reduction::FlowStates(|f, _| Value::from(f.on_percent())),
    }

    ON_FLOWS {
        name: "admitted_flows",
        title: "Flows admitted",
        unit: "",
        of: OF,
        definition: "Number of flows that were on, read at the end of each sample period: the distribution over these periods.",
        source: SOURCE,
        domain: Domain::NotNegative,
        states: STATES,
        reduction: Reduction::FlowStates(|f, _| Value::from(f.standing_in(&[ON]))),
    }

    PROBING_FLOWS {
        name: "probing_flows",
        title: "Flows that probe",
        unit: "",
        of: OF,
        definition: "Number of flows that have stopped themselves and try again by themselves, read at the end of each sample period: the distribution over these periods.",
        source: SOURCE,
        domain: Domain::NotNegative,
        states: STATES,
        reduction: Reduction::FlowStates(|f, _| Value::from(f.standing_in(&TRIAGED))),
    }

    ADMITTED_RATE {
        name: "admitted_mbps",
        title: "Admitted rate",
        unit: "Mbit/s",
        of: OF,
        definition: "Rate of payload at which flows were admitted, read at the end of each sample period: the mean over these periods, added up over flows. A flow that is off has 0.",
        source: SOURCE,
        domain: Domain::NotNegative,
        states: &[ADMITTED],
        reduction: Reduction::StateSum { per: 1e6 },
    }

    PRICE {
        name: "price_kbit",
        title: "Price",
        unit: "kbit",
        of: OF,
        definition: "Depth toward a flow's destination that the flow saw last at the node where it enters, read at the end of each sample period: mean over flows and sample periods. Recorded with `details`.",
        source: "the node's own state, read once a sample period",
        domain: Domain::NotNegative,
        states: &["price_bits"],
        plot: Some(Plot { place: 10, key: "overlay-price", title: "Price" }),
        reduction: Reduction::StateMean { per: 1e3 },
    }

    SETTLED {
        name: "admission_settled_s",
        title: "Settled admission",
        unit: "s",
        of: OF,
        definition: "Time from the begin of the window since which a flow was on at the end of each sample period, to the end of the window, or its own: the distribution over flows. Flows that were not on at its end are left out.",
        source: SOURCE,
        domain: Domain::NotNegative,
        states: STATES,
        reduction: Reduction::FlowStates(|f, _| Value::from(f.settled())),
    }

    DECIDED {
        name: "admission_decisions_per_minute",
        title: "Decisions",
        unit: "",
        of: OF,
        definition: "Decisions by which a flow was started or stopped, in a minute of the window for each flow, without probes: a flow that tried again by itself and stopped within 3 s.",
        source: DECISIONS,
        domain: Domain::NotNegative,
        states: STATES,
        reduction: Reduction::FlowStates(|f, _| Value::from(f.decisions(false))),
    }

    PROBES {
        name: "admission_probes_per_minute",
        title: "Decisions of probes",
        unit: "",
        of: OF,
        definition: "Decisions by which a flow tried again by itself and stopped within 3 s, in a minute of the window for each flow: two for each probe.",
        source: DECISIONS,
        domain: Domain::NotNegative,
        states: STATES,
        reduction: Reduction::FlowStates(|f, _| Value::from(f.decisions(true))),
    }
}
