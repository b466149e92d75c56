//! Warnings about a plan: settings that have no effect in the run, though a lab may have them.

use crate::run::Run;
use weir_base::Span;
use weir_fabric::Link;

impl Run {
    /// Warnings about the plan: changes and outages at times that the run does not reach, and applications of the Coordination
    /// Protocol that no aggregation point serves.
    pub fn warnings(&self) -> Vec<String> {
        let links = self.instrumented_links().flat_map(|(_, link)| self.too_late(link));
        links.chain(self.unserved()).collect()
    }

    fn too_late(&self, link: &Link) -> impl Iterator<Item = String> {
        let late = |what: &str, times: Vec<Span>| {
            let (first, count) = (*times.iter().min()?, times.len());
            let plural = if count == 1 { "" } else { "s" };
            let (name, end) = (&link.name, self.duration);
            Some(format!(
                "link {name}: {count} {what}{plural} from {first} on never happen{}, as the run ends at {end}",
                if count == 1 { "s" } else { "" }
            ))
        };
        let beyond = |at: &Span| *at >= self.duration;
        let changes = link.schedule.iter().map(|change| change.at).filter(beyond).collect();
        let outages = link.outages.iter().map(|outage| outage.at).filter(beyond).collect();
        [late("change", changes), late("outage", outages)].into_iter().flatten()
    }

    fn unserved(&self) -> impl Iterator<Item = String> {
        let is_served = |id: u8| {
            self.stations.iter().any(|station| match &station.station {
                weir_station::Config::AggregationPoint(point) => {
                    point.application.iter().any(|application| application.id == id)
                }
                _ => false,
            })
        };
        self.groups.iter().filter_map(move |group| {
            let id = group.transport.as_ref()?.application().filter(|id| !is_served(*id))?;
            Some(format!("traffic {}: no aggregation point serves application {id}", group.name))
        })
    }
}
