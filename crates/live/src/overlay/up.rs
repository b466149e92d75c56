//! The overlay of a lab without its traffic, for programs that are started by hand in its namespaces (`weir overlay up`).

use super::{Daemons, Dissolved, dissolved, join};
use crate::card;
use crate::engine::Live;
use crate::pump::{Setup, pump};
use crate::testbed::Testbed;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_base::{Span, not_started};
use weir_engine::{Engine, EngineError};
use weir_linux::clock::Clock;
use weir_linux::namespace::Namespace;
use weir_plan::address::address_of;
use weir_plan::{Ip, Run};

/// Longer than anybody keeps it.
const ENDLESS: Span = Span::from_secs(100 * 365 * 24 * 3600);
/// Interval between two looks whether it is over.
const LOOK_UP: Duration = Duration::from_millis(50);

/// A namespace of the overlay, and the way into it.
#[derive(Debug, Clone)]
pub struct Entrance {
    /// The name of the node or host.
    pub name: String,
    /// Its address.
    pub address: String,
    /// The file of its network namespace, for `nsenter --net=FILE`. It is there as long as the overlay is.
    pub namespace: PathBuf,
    /// The name of the node that carries its packets, if it is a host.
    pub behind: Option<String>,
}

/// Keeps the overlay of a run up, without its traffic, until `stop` is set. `joined` is told of the nodes and of the hosts behind them once all
/// nodes have found their neighbours; links change as their schedules say from then on.
///
/// # Errors
/// The run cannot be on this host, a daemon ends or finds no neighbour, or the kernel refuses something.
pub fn up(run: &Run, stop: &AtomicBool, joined: &dyn Fn(&[Entrance])) -> Result<(), EngineError> {
    Live.check(run)?;
    if run.stations.is_empty() || run.groups.iter().all(|group| group.overlay.is_none()) {
        return Err(EngineError::Unable {
            what: "the lab has no overlay".into(),
            help: "write [overlay] with nodes = [\"a\", \"b\"]".into(),
        });
    }
    let failed = |error: io::Error| EngineError::Failed(format!("the overlay cannot be kept up: {error}"));
    let mut dissolved_run = dissolved(run);
    let testbed = Testbed::build(&dissolved_run.run, &dissolved_run.sites).map_err(failed)?;
    dissolved_run.run = card::behind_the_kernels(&dissolved_run.run);
    let mut daemons = Daemons::start(run, &dissolved_run, &testbed)?;
    join(&dissolved_run, &testbed, &mut daemons, stop)?;
    (dissolved_run.run.flows, dissolved_run.run.duration) = (Vec::new(), ENDLESS);
    let of = &dissolved_run;
    let over = AtomicBool::new(false);
    let setup = Setup::idle(&of.run, Clock::starting_in(Span::ZERO), &testbed, &over, Some(of));
    let setup = setup.map_err(failed)?;
    std::thread::scope(|scope| {
        let pumping =
            std::thread::Builder::new().name("weir-pump".into()).spawn_scoped(scope, || pump(setup));
        let pumping = pumping.map_err(not_started).map_err(failed)?;
        joined(&entrances(of, &testbed));
        let mut ended = None;
        while !stop.load(Ordering::Acquire) && !pumping.is_finished() && ended.is_none() {
            std::thread::sleep(LOOK_UP);
            ended = daemons.ended();
        }
        over.store(true, Ordering::Release);
        let pumped = pumping.join().unwrap_or_else(|_| Err(io::Error::other("the pump panicked")));
        ended.map_or(Ok(()), |ended| Err(EngineError::Failed(ended)))?;
        pumped.map(drop).map_err(failed)
    })
}

fn entrances(of: &Dissolved, testbed: &Testbed) -> Vec<Entrance> {
    let entrance = |node: usize, namespace: &Namespace, behind: Option<&str>| Entrance {
        name: of.run.network.nodes[node].name.clone(),
        address: address_of(node, Ip::V4).to_string(),
        namespace: format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd()).into(),
        behind: behind.map(str::to_owned),
    };
    let mut all = Vec::new();
    for (site, place) in of.sites.iter().zip(&testbed.sites) {
        all.push(entrance(site.at, &place.namespace, None));
        for host in testbed.hosts.iter().filter(|host| site.hosts.contains(&host.node)) {
            all.push(entrance(host.node, &host.namespace, Some(&site.name)));
        }
    }
    all
}
