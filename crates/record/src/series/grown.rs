//! Counters of stations over time: how much each has grown in each point.

use super::{SeriesSet, Values};
use crate::types::Component;

impl<'r> SeriesSet<'r> {
    /// The growth of the stations' counters of the wanted names: station, name, and a value for each point. A counter starts at zero;
    /// a point without a record of it has no growth.
    pub fn grown(&self, wanted: impl Fn(&str) -> bool) -> Vec<(u32, &'r str, Values)> {
        let view: &'r crate::View<'r> = self.view;
        let states = &view.states;
        let mut found: Vec<Option<(f64, Values)>> = states
            .all
            .iter()
            .map(|(of, name)| {
                let is_wanted = matches!(of, Component::Station(_)) && wanted(name);
                is_wanted.then(|| (0.0, vec![Some(0.0); self.grid.count()]))
            })
            .collect();
        for (sample, state) in self.records.states.iter().zip(&states.of) {
            let Some((before, points)) = &mut found[*state as usize] else { continue };
            let growth = sample.value - std::mem::replace(before, sample.value);
            if let Some(Some(point)) = points.get_mut(self.grid.point(sample.at)) {
                *point += growth;
            }
        }
        let named = states.all.iter().zip(found);
        let station = |of: &Component| match of {
            Component::Station(station) => Some(*station),
            _ => None,
        };
        let mut grown: Vec<_> =
            named.filter_map(|((of, name), found)| Some((station(of)?, &**name, found?.1))).collect();
        grown.sort_by_key(|(station, name, _)| (*station, *name));
        grown
    }

    /// For each point, the time that its records cover, in seconds.
    pub fn covered_s(&self) -> impl Iterator<Item = f64> {
        self.grid.covered().iter().map(|time| time.as_secs_f64())
    }
}
