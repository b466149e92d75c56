//! The overlay of a lab without its traffic, for programs that are started by hand in its namespaces (`weir overlay up`).

use super::joined::wait;
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

/// What joins the nodes and the hosts behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Links {
    /// The fabric, which gives each link the rate, the delay and all else that the lab says.
    #[default]
    Fabric,
    /// Pairs of veth devices, which are as fast as the kernel, whatever the lab says of rates, delays and losses.
    Veth,
}

/// Keeps the overlay of a run up, without its traffic, until `stop` is set. `joined` is told of the nodes and of the hosts behind them once all
/// nodes have found their neighbours; links of the fabric change as their schedules say from then on.
///
/// # Errors
/// The run cannot be on this host, a daemon ends or finds no neighbour, or the kernel refuses something. Veth pairs cannot be a network with
/// routers that are no nodes.
pub fn up(
    run: &Run,
    links: Links,
    stop: &AtomicBool,
    joined: &dyn Fn(&[Entrance]),
) -> Result<(), EngineError> {
    Live.check(run)?;
    if run.stations.is_empty() || run.groups.iter().all(|group| group.overlay.is_none()) {
        return Err(EngineError::Unable {
            what: "the lab has no overlay".into(),
            help: "write [overlay] with nodes = [\"a\", \"b\"]".into(),
        });
    }
    match links {
        Links::Fabric => over_fabric(run, dissolved(run), stop, joined),
        Links::Veth => over_veth(run, &dissolved(run), stop, joined),
    }
}

fn failed(error: io::Error) -> EngineError {
    EngineError::Failed(format!("the overlay cannot be kept up: {error}"))
}

fn over_fabric(
    run: &Run,
    mut of: Dissolved,
    stop: &AtomicBool,
    joined: &dyn Fn(&[Entrance]),
) -> Result<(), EngineError> {
    let testbed = Testbed::build(&of.run, &of.sites).map_err(failed)?;
    of.run = card::behind_the_kernels(&of.run);
    let mut daemons = Daemons::start(run, &of, &testbed)?;
    join(&of, &testbed, &mut daemons, stop)?;
    (of.run.flows, of.run.duration) = (Vec::new(), ENDLESS);
    let over = AtomicBool::new(false);
    let setup = Setup::idle(&of.run, Clock::starting_in(Span::ZERO), &testbed, &over, Some(&of));
    let setup = setup.map_err(failed)?;
    std::thread::scope(|scope| {
        let pumping =
            std::thread::Builder::new().name("weir-pump".into()).spawn_scoped(scope, || pump(setup));
        let pumping = pumping.map_err(not_started).map_err(failed)?;
        joined(&entrances(&of, &testbed));
        let kept = keep(&mut daemons, || stop.load(Ordering::Acquire) || pumping.is_finished());
        over.store(true, Ordering::Release);
        let pumped = pumping.join().unwrap_or_else(|_| Err(io::Error::other("the pump panicked")));
        kept.and_then(|()| pumped.map(drop).map_err(failed))
    })
}

fn over_veth(
    run: &Run,
    of: &Dissolved,
    stop: &AtomicBool,
    joined: &dyn Fn(&[Entrance]),
) -> Result<(), EngineError> {
    check_pairs(of)?;
    let testbed = Testbed::direct(&of.run, &of.sites).map_err(failed)?;
    let mut daemons = Daemons::start(run, of, &testbed)?;
    wait(of, &mut daemons, stop)?;
    joined(&entrances(of, &testbed));
    keep(&mut daemons, || stop.load(Ordering::Acquire))
}

/// Waits until it is over, or a daemon ends.
fn keep(daemons: &mut Daemons<'_>, is_over: impl Fn() -> bool) -> Result<(), EngineError> {
    loop {
        if is_over() {
            return Ok(());
        }
        std::thread::sleep(LOOK_UP);
        if let Some(ended) = daemons.ended() {
            return Err(EngineError::Failed(ended));
        }
    }
}

/// Refuses a network of which a router is no node.
fn check_pairs(of: &Dissolved) -> Result<(), EngineError> {
    let is_known =
        |node: usize| of.sites.iter().any(|site| site.has(node) || site.behind().any(|host| host == node));
    let links = of.run.network.links.iter();
    let stray =
        links.flat_map(|link| [(link, link.from), (link, link.to)]).find(|(_, node)| !is_known(*node));
    stray.map_or(Ok(()), |(link, node)| {
        let router = &of.run.network.nodes[node].name;
        Err(EngineError::Unable {
            what: format!(
                "the link {} leads to {router}, which is neither a node of the overlay nor a host behind one; veth pairs join no others",
                link.name
            ),
            help: format!("add \"{router}\" to the nodes of [overlay], or take --links fabric"),
        })
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
        for host in testbed.hosts.iter().filter(|host| site.behind().any(|node| node == host.node)) {
            all.push(entrance(host.node, &host.namespace, Some(&site.name)));
        }
    }
    all
}
