//! A program behind a network (`weir wrap`): the program's host and the far end are network namespaces, the network between them is
//! that of a live run, and the run lasts as long as the program.

mod forward;
mod internet;
mod keeper;
mod replay;

pub use internet::{check_internet, resolver_note, restore_forwarding};
pub use keeper::{Keeper, Program};
pub use replay::Replay;

use crate::address::address_of;
use crate::card::Observed;
use crate::controls::Controls;
use crate::engine::{self, Session};
use crate::outside::{Branch, Outside};
use crate::testbed::{HostSettings, Testbed};
use internet::WayOut;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_base::{Bytes, Prefix, Span};
use weir_engine::{EngineError, Outcome, Watch};
use weir_linux::clock::Clock;
use weir_linux::device::index_of_name;
use weir_linux::namespace::{Namespace, set_sysctl, sysctl};
use weir_linux::netlink::Netlink;
use weir_plan::{Ip, Pair, Run, WRAPPED};
use weir_record::Recorder;

/// Longer than any program runs.
const ENDLESS: Span = Span::from_secs(100 * 365 * 24 * 3600);

/// How a wrapped program ended.
#[derive(Debug)]
pub struct Wrapped {
    /// The program's status, or why it could not be run.
    pub status: io::Result<ExitStatus>,
    /// What was measured of the network around it.
    pub outcome: Outcome,
}

/// What the far end has beside the network.
#[derive(Debug, Clone, Copy)]
pub struct Beyond<'a> {
    /// Ports whose connections are relayed to this host.
    pub forward: &'a [u16],
    /// Whether it has a way to other networks ([`check_internet`]).
    pub internet: bool,
    /// The prefixes whose packets have links of their own, one for each further group of the run, in the order of the groups. Without a way
    /// to other networks the far end has all addresses with these prefixes itself.
    pub prefixes: &'a [Prefix],
}

impl Beyond<'_> {
    /// The prefixes whose addresses are the far end's: those that it does not reach elsewhere.
    fn at_far_end(&self) -> impl Iterator<Item = &Prefix> {
        self.prefixes.iter().filter(|prefix| !(self.internet && prefix.address().is_ipv4()))
    }
}

/// Refuses prefixes that cannot be told from the network's own addresses, or that this kernel does not speak.
///
/// # Errors
/// A prefix of the far end has the address of a host or router of the run; the kernel has no IPv6.
pub fn check_prefixes(run: &Run, beyond: Beyond<'_>) -> Result<(), EngineError> {
    if let Some(six) = beyond.prefixes.iter().find(|prefix| prefix.address().is_ipv6())
        && !versions().contains(&Ip::V6)
    {
        return Err(EngineError::Unable {
            what: format!("no packet goes to {six}: this kernel has no IPv6"),
            help: "boot it without ipv6.disable=1, or take the link with this `to` out".into(),
        });
    }
    let own = |prefix: &&Prefix| {
        let addresses =
            (0..run.network.nodes.len()).flat_map(|node| [Ip::V4, Ip::V6].map(|ip| address_of(node, ip)));
        addresses.into_iter().any(|address| prefix.contains(address))
    };
    match beyond.at_far_end().find(own) {
        Some(prefix) => Err(EngineError::Unable {
            what: format!("to={prefix} has addresses of the emulated network, which begin at {}", address_of(0, Ip::V4)),
            help: "choose other addresses, for example to=192.0.2.0/24; with --internet such a prefix may stand for real hosts".into(),
        }),
        None => Ok(()),
    }
}

/// The addresses of the far end in a run: IPv4, and IPv6 if this kernel has it.
pub fn far_end(run: &Run) -> Vec<IpAddr> {
    let far = run.pair(0).from;
    versions().iter().map(|ip| address_of(far, *ip)).collect()
}

/// The IP versions that this kernel speaks.
fn versions() -> &'static [Ip] {
    if sysctl("ipv6.conf.all.disable_ipv6").is_some() { &[Ip::V4, Ip::V6] } else { &[Ip::V4] }
}

/// Runs a program at the receiving host of the run's first group. `title` is the program as it was typed.
///
/// # Errors
/// The network cannot be built, or this host cannot give the far end what it is to have; the program cannot be run.
pub fn wrap(
    run: &Run,
    keeper: &Keeper,
    title: &str,
    beyond: Beyond<'_>,
    recorder: &mut dyn Recorder,
) -> Result<Wrapped, EngineError> {
    let wrapped = wrap_kept(run, keeper, title, beyond, recorder);
    keeper.end();
    wrapped
}

fn wrap_kept(
    run: &Run,
    keeper: &Keeper,
    title: &str,
    beyond: Beyond<'_>,
    recorder: &mut dyn Recorder,
) -> Result<Wrapped, EngineError> {
    let failed = |error: io::Error| EngineError::Failed(format!("cannot build the network: {error}"));
    let outside = outside(run, beyond.prefixes);
    let Outside { near, far, .. } = outside;
    let run = &Run { duration: ENDLESS, ..fitted(run, &outside) };
    let settings = |node| {
        (outside.host_of(node) == node).then(|| HostSettings {
            versions: versions(),
            // The far end is a router: it has no way to other networks unless it is given one.
            reaches: (node == far).then_some(near),
            ..HostSettings::default()
        })
    };
    let testbed = Testbed::build_with(run, &[], settings).map_err(failed)?;
    let host = |node| testbed.hosts.iter().find(|host| host.node == node);
    let (Some(near_host), Some(far_host)) = (host(near), host(far)) else {
        return Err(failed(io::Error::other("the ends of the network are no hosts")));
    };
    near_host.namespace.inside(|| permit(&PROGRAM)).map_err(failed)?;
    far_host.namespace.inside(|| permit(&FAR_END)).map_err(failed)?;
    for &port in beyond.forward {
        forward::forward(&far_host.namespace, port, versions().contains(&Ip::V6)).map_err(|error| {
            EngineError::Failed(format!("cannot listen at port {port} of the far end: {error}"))
        })?;
    }
    give(&far_host.namespace, beyond.at_far_end()).map_err(failed)?;
    let inside = address_of(near, Ip::V4);
    let _way = beyond.internet.then(|| WayOut::open(&far_host.namespace, inside)).transpose()?;
    let ended = Mutex::new(None);
    let drive = |clock: Clock, over: &AtomicBool| {
        std::thread::sleep(Duration::from_nanos(clock.until_start().as_nanos()));
        keeper.begin(near_host.namespace.as_fd(), far_host.namespace.as_fd())?;
        let status = keeper.wait(over)?;
        let how = status.as_ref().map_or_else(|error| format!("cannot be run: {error}"), ToString::to_string);
        *ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(status);
        Ok(how)
    };
    let session = Session {
        run,
        testbed: &testbed,
        controls: &Controls::load(run)?,
        watch: &Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None },
        title,
        between: None,
        program: Some(engine::Program { drive: &drive, flow: WRAPPED, beyond: &outside }),
    };
    let outcome = session
        .go(Observed::default(), recorder)
        .map_err(|error| EngineError::Failed(format!("the network failed: {error}")))??;
    let status = ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let status = status.ok_or_else(|| EngineError::Failed("the program has no status".into()))?;
    Ok(Wrapped { status, outcome })
}

/// The ends of a run's network. The groups behind the first one are those of the prefixes.
fn outside(run: &Run, prefixes: &[Prefix]) -> Outside {
    let pair = run.pair(0);
    let ways = run.groups.iter().skip(1).map(|group| group.pairs[0]);
    let branch = |(prefix, way): (&Prefix, Pair)| Branch { prefix: *prefix, near: way.to, far: way.from };
    Outside::new(pair.to, pair.from, prefixes.iter().zip(ways).map(branch).collect())
}

/// The run with ends that send no longer packets than the links of their stand-ins carry.
fn fitted(run: &Run, outside: &Outside) -> Run {
    let mut run = run.clone();
    for end in [outside.near, outside.far] {
        let nodes = run.network.nodes.iter().enumerate();
        let least = nodes.filter(|(node, _)| outside.host_of(*node) == end).map(|(_, node)| node.mtu);
        run.network.nodes[end].mtu = least.fold(run.network.nodes[end].mtu, Bytes::min);
    }
    run
}

/// Gives the far end all addresses with these prefixes.
fn give<'a>(far: &Namespace, prefixes: impl Iterator<Item = &'a Prefix> + Send) -> io::Result<()> {
    far.inside(|| {
        let (mut netlink, loopback) = (Netlink::open()?, index_of_name("lo"));
        let loopback = loopback.ok_or_else(io::Error::last_os_error)?;
        prefixes.into_iter().try_for_each(|prefix| netlink.add_local_route(loopback, prefix))
    })
}

/// Settings of the program's host: who may send echoes without the rights of root (icmp(7)).
const PROGRAM: [(&str, &str); 1] = [PING];
/// Settings of the far end: it forwards, answers for what it cannot reach, and lets any user serve at any port.
const FAR_END: [(&str, &str); 4] = [
    PING,
    ("ipv4.conf.all.forwarding", "1"),
    ("ipv6.conf.all.forwarding", "1"),
    ("ipv4.ip_unprivileged_port_start", "0"),
];
/// All groups. In a user namespace only the user's own group is one.
const PING: (&str, &str) = ("ipv4.ping_group_range", "0 2147483647");

/// Applies settings of the namespace that the calling thread is in.
fn permit(settings: &[(&str, &str)]) -> io::Result<()> {
    let group = rustix::process::getegid().as_raw();
    for &(name, value) in settings {
        if name.starts_with("ipv6.") && versions().len() == 1 {
            continue;
        }
        if (name, value) == PING && set_sysctl(name, value).is_err() {
            set_sysctl(name, &format!("{group} {group}"))?;
        } else {
            set_sysctl(name, value)?;
        }
    }
    Ok(())
}
