//! Waiting times of a group's applications over time.

use super::Values;
use super::grid::Grid;
use crate::info::RunInfo;
use crate::records::Records;
use crate::types::{FlowEventKind, MessageFate, MessageKind};
use weir_base::Time;

/// The names of the series.
const NAMES: [&str; 9] = [
    "request_time_ms",
    "frame_delay_ms",
    "frames_on_time_percent",
    "completion_time_s",
    "echo_time_ms",
    "echoes_lost_percent",
    "ensemble_delay_ms",
    "stall_time_ms",
    "completion_asynchrony_ms",
];

/// Values of one group with their times, in the order of [`NAMES`]: requests, frames, frames on time (100 or 0), completions
/// of flows with random arrivals, echoes, lost echoes (100 or 0), and for ensembles the delays of frames, stalls and completion asynchrony.
#[derive(Clone, Default)]
pub(super) struct Waits([Vec<(Time, f64)>; NAMES.len()]);

impl Waits {
    /// The values of each group.
    pub(super) fn of_groups(info: &RunInfo, records: &Records) -> Vec<Waits> {
        let group_of = |flow: u32| info.flows.get(flow as usize).map_or(0, |flow| flow.group as usize);
        let mut groups = vec![Waits::default(); info.groups.len()];
        for message in &records.messages {
            let Some(Waits(of)) = groups.get_mut(group_of(message.flow)) else { continue };
            let took = message.took.map(|took| (message.at, took.as_millis_f64()));
            match message.kind {
                MessageKind::Request => of[0].extend(took),
                MessageKind::Frame => {
                    of[1].extend(took);
                    of[2].push((message.at, if message.fate == MessageFate::Done { 100.0 } else { 0.0 }));
                }
                MessageKind::Echo => {
                    of[4].extend(took);
                    of[5].push((message.at, if message.took.is_none() { 100.0 } else { 0.0 }));
                }
                MessageKind::Part => of[6].extend(took),
                MessageKind::Stall => of[7].extend(took),
                MessageKind::Ensemble => of[8].extend(took),
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
                    groups[group_of(event.flow)].0[3].push((event.at, took));
                }
                _ => {}
            }
        }
        groups
    }

    /// The values of the series of this name, means over each point. `None` if there are no such values.
    pub(super) fn values(&self, name: &str, grid: &Grid) -> Option<Values> {
        let waited = &self.0[NAMES.iter().position(|known| *known == name)?];
        (!waited.is_empty()).then(|| grid.means_of(waited.iter().copied()))
    }
}
