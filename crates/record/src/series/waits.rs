//! Waiting times of a group's applications over time.

use super::Values;
use super::grid::Grid;
use crate::info::RunInfo;
use crate::metrics::Reduction;
use crate::records::Records;
use crate::types::{FlowEventKind, Message, MessageKind};
use weir_base::Time;

/// What the flows of one group waited for.
#[derive(Clone, Default)]
pub(super) struct Waits<'r> {
    /// The messages of each kind.
    messages: [Vec<&'r Message>; MessageKind::ALL.len()],
    /// When flows with random arrivals completed, and how long they took, in seconds.
    completions: Vec<(Time, f64)>,
}

impl<'r> Waits<'r> {
    /// The waiting times of each group.
    pub(super) fn of_groups(info: &RunInfo, records: &'r Records) -> Vec<Waits<'r>> {
        let group_of = |flow: u32| info.flows.get(flow as usize).map_or(0, |flow| flow.group as usize);
        let mut groups = vec![Waits::default(); info.groups.len()];
        for message in &records.messages {
            if let Some(group) = groups.get_mut(group_of(message.flow)) {
                group.messages[message.kind as usize].push(message);
            }
        }
        let random_arrivals =
            |flow: u32| info.groups.get(group_of(flow)).is_some_and(|group| group.random_arrivals);
        let mut started = vec![Time::ZERO; info.flows.len()];
        for event in records.events.iter().filter(|event| random_arrivals(event.flow)) {
            let Some(start) = started.get_mut(event.flow as usize) else { continue };
            match event.kind {
                FlowEventKind::Started => *start = event.at,
                FlowEventKind::Completed => {
                    let took = event.at.since(*start).as_secs_f64();
                    groups[group_of(event.flow)].completions.push((event.at, took));
                }
                _ => {}
            }
        }
        groups
    }

    /// A metric of waiting times over time: means over each point. `None` if it is no such metric, or if there are no such values.
    pub(super) fn values(&self, reduction: Reduction, grid: &Grid) -> Option<Values> {
        let values: Vec<(Time, f64)> = match reduction {
            Reduction::Completions => self.completions.clone(),
            Reduction::Took(kind) => {
                let took = self.messages[kind as usize].iter();
                took.filter_map(|message| Some((message.at, message.took?.as_millis_f64()))).collect()
            }
            Reduction::Share(kind, fate) => {
                let percent = |message: &Message| if message.fate == fate { 100.0 } else { 0.0 };
                self.messages[kind as usize].iter().map(|message| (message.at, percent(message))).collect()
            }
            _ => return None,
        };
        (!values.is_empty()).then(|| grid.means_of(values.into_iter()))
    }
}
