//! Builds the fabric of a run from its plan, for both engines.

use crate::{EngineError, overlay};
use weir_base::Random;
use weir_fabric as fabric;
use weir_plan::Run;
use weir_plan::address::{address_of, port_of};
use weir_station::{Coordinated, StationContext};

/// The fabric of a run, with its stations.
pub fn fabric<P: fabric::Wire + 'static>(run: &Run) -> fabric::Fabric<P> {
    let coordinated = coordinated(run);
    let mut seats = overlay::seats(run);
    let placed = |(number, station): (u64, &weir_plan::Station)| fabric::Placed {
        at: station.at,
        links: station.links.clone(),
        station: station.station.build(&StationContext {
            seed: Random::stream_of(run.seed, "station", number).bits(),
            coordinated: coordinated.clone(),
            overlay: seats.remove(&station.at),
        }),
    };
    let stations = (0..).zip(&run.stations).map(placed).collect();
    fabric::Fabric::with_stations(&fabric_config(run), stations)
}

/// The same, whose instrumented links may change at any time.
pub fn changeable_fabric<P: fabric::Wire + 'static>(run: &Run) -> fabric::Fabric<P> {
    let mut fabric = fabric(run);
    fabric.expect_changes(&fabric_config(run));
    fabric
}

/// The groups of a run whose packets carry headers of the Coordination Protocol.
fn coordinated(run: &Run) -> Vec<Coordinated> {
    let flows = |(number, group): (usize, &weir_plan::Group)| {
        let application = group.transport.as_ref()?.application()?;
        let own = |flow: &weir_plan::Flow| flow.group == number;
        let first = run.flows.iter().position(own)?;
        let last = run.flows.iter().rposition(own)?;
        let ends = group.pairs.iter().flat_map(|pair| [pair.from, pair.to]);
        let hosts = ends.map(|node| address_of(node, group.ip)).collect();
        Some(Coordinated { application, hosts, ports: port_of(first)..=port_of(last) })
    };
    run.groups.iter().enumerate().filter_map(flows).collect()
}

/// The network that a run describes, without its stations.
fn fabric_config(run: &Run) -> fabric::Config {
    fabric::Config {
        network: run.network.clone(),
        flows: run
            .flows
            .iter()
            .enumerate()
            .map(|(number, flow)| {
                let pair = run.pair(number);
                fabric::Flow { from: pair.from, to: pair.to, group: flow.group }
            })
            .collect(),
        groups: run.groups.len(),
        round_trips: run.round_trips,
        seed: run.seed,
    }
}

/// Refuses a run whose recordings are not loaded: a run that was read back from its results holds only their digests.
///
/// # Errors
/// A recording is not loaded; the error names its file.
pub fn check_traces(run: &Run) -> Result<(), EngineError> {
    let mut traces = run.network.links.iter().flat_map(weir_plan::Link::traces);
    match traces.find(|trace| trace.recording.is_none()) {
        None => Ok(()),
        Some(trace) => Err(EngineError::Unable {
            what: format!("the trace {} is not loaded", trace.file),
            help: "run the lab, which reads the trace's file".into(),
        }),
    }
}
