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
use crate::testbed::{HostSettings, Testbed};
use internet::WayOut;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_base::Span;
use weir_engine::{EngineError, Outcome, Watch};
use weir_linux::clock::Clock;
use weir_linux::namespace::{set_sysctl, sysctl};
use weir_plan::{Ip, Run, WRAPPED};
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

/// Runs a program at the receiving host of the run's only group. `title` is the program as it was typed.
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
    let run = &Run { duration: ENDLESS, ..run.clone() };
    let pair = run.pair(0);
    let (near, far) = (pair.to, pair.from);
    let settings = |node| HostSettings {
        versions: versions(),
        // The far end is a router: it has no way to other networks unless it is given one.
        reaches: (node == far).then_some(near),
        ..HostSettings::default()
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
        program: Some(engine::Program { drive: &drive, flow: WRAPPED, beyond: far }),
    };
    let outcome = session
        .go(Observed::default(), recorder)
        .map_err(|error| EngineError::Failed(format!("the network failed: {error}")))??;
    let status = ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let status = status.ok_or_else(|| EngineError::Failed("the program has no status".into()))?;
    Ok(Wrapped { status, outcome })
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
