//! A running node: one thread drives its socket, its device, the connections to its neighbours, and the site.

mod told;

use super::bundle::Bundle;
use super::carrier::{Asker, Carrier, host};
use super::config::{HEADERS, Plan};
use super::control::{self, Asked, Question, refusal};
use super::device::Device;
use super::drawn;
use super::key_log::KeyLog;
use super::networks::Networks;
use super::proxies::{Interception, Proxies, Segments};
use super::repairs::ReedSolomon;
use super::sealing::Sealing;
use crate::failure::Failure;
use crate::frame::status::Board;
use crate::frame::{Process, log};
use crate::sliq::{Application, Now, drive};
use crate::transfer::{Keys, guard, stamp};
use rustix::event::PollFlags;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_base::{Bytes, Span, Time};
use weir_linux::privileges::CapabilitySet;
use weir_linux::transparent;
use weir_linux::udp::UdpPort;
use weir_overlay::site::{Config, Outside, Places, Service, Site};
use weir_overlay::{Inner, Reported, Signal};
use weir_sliq::host::Host;

/// Time between two looks whether it is to stop, what was asked, and whether a neighbour is silent.
const LOOK: Span = Span::from_millis(100);
/// Datagrams of programs that are taken before packets of neighbours are looked at again.
const TURN: usize = 64;
/// Longest datagram of a program.
const LONGEST: usize = 1 << 16;

/// Runs the node of this file, with a log of its connections' secrets if a file for them is given.
///
/// # Errors
/// The file is wrong, the host does not allow what it needs, or its device is removed.
pub(super) fn run(file: &Path, key_log: Option<&Path>, process: &Process) -> Result<(), Failure> {
    let plan = Plan::read(file)?;
    process.name(&plan.name)?;
    let epoch = next_epoch(&plan.key)?;
    let mut port = UdpPort::bind(plan.listen, true).map_err(|error| {
        Failure::bad_input(
            format!("cannot listen on {}: {error}", plan.listen),
            "`listen` names an address of this host",
        )
    })?;
    let mut host = host(&plan, Keys::of_command(&plan.key, "overlay")?.pair)?;
    let device = Device::open(&plan)?;
    let proxies = plan.proxies.then(|| proxies(&plan, &device)).transpose()?;
    let mut networks = Networks::open(&plan)?;
    networks.join(proxies.as_ref().map_or_else(|| device.as_fd(), AsFd::as_fd))?;
    let key_log = key_log.map(|path| KeyLog::open(path, plan.neighbours.len())).transpose()?;
    let questions = control::listen(&plan.name)?;
    let services = reloads(file, process);
    let board = Board::default();
    let shown = board.clone();
    let rights = proxies.as_ref().map_or(CapabilitySet::empty(), |_| transparent::rights());
    process.begin_with(rights, move || shown.read())?;
    log::info(&format!("{plan}interrupt it to end"));
    let asker = Asker::new(&plan, stamp());
    let mut running = Running {
        site: site(&plan, &networks, epoch)?,
        carriers: plan.neighbours.iter().map(Carrier::new).collect(),
        left: BTreeSet::new(),
        plan: &plan,
        asker,
        device,
        networks,
        proxies,
        segments: Segments::default(),
        bundle: Bundle::default(),
        questions,
        services,
        board,
        key_log,
        process,
        due: Time::ZERO,
        look: Time::ZERO,
        done: None,
        come: Vec::new(),
        ends: Vec::new(),
        datagram: vec![0; LONGEST],
    };
    let driven = drive(&mut port, &mut host, &mut running, Now::default());
    driven.map_err(|error| Failure::failed(format!("the socket at {} failed: {error}", plan.listen)))?;
    running.done.unwrap_or(Ok(()))
}

/// The epoch of this start: the time in seconds, but beyond that of the last start, which is kept beside the key.
fn next_epoch(key: &Path) -> Result<u32, Failure> {
    let path: PathBuf =
        [key.as_os_str(), ".epoch".as_ref()].iter().copied().collect::<std::ffi::OsString>().into();
    let last = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = u32::try_from(since.as_secs()).unwrap_or(u32::MAX).max(last.saturating_add(1));
    let part = path.with_extension("epoch-part");
    fs::write(&part, format!("{epoch}\n")).and_then(|()| fs::rename(&part, &path)).map_err(|error| {
        let help = "the node keeps the number of its last start beside its key, so that no packet is sealed twice alike";
        Failure::bad_input(format!("cannot write {}: {error}", path.display()), help)
    })?;
    Ok(epoch)
}

/// The services of the file as SIGHUP finds them, until they are taken.
type Reloaded = Arc<Mutex<Option<Vec<Service>>>>;

/// Reads the services again on SIGHUP.
fn reloads(file: &Path, process: &Process) -> Reloaded {
    let services = Reloaded::default();
    let (to_node, file) = (services.clone(), file.to_owned());
    process.on_hang_up(move |_: super::NodeArgs| {
        *guard(&to_node) = Some(Plan::read(&file)?.services);
        Ok(())
    });
    services
}

fn site<'a>(plan: &'a Plan, networks: &Networks, epoch: u32) -> Result<Site<Reported, Sealing<'a>>, Failure> {
    let config = Config {
        id: plan.id,
        epoch,
        seed: u64::from_be_bytes(drawn()?),
        node: plan.policy.node(),
        places: Places::new(plan.prefixes.clone()).with_groups(plan.groups.prefixes.clone()),
        networks: networks.addresses(),
        services: plan.services.clone(),
        longest: plan.room(),
        code: &ReedSolomon,
        around: Bytes::new(HEADERS) + plan.policy.link.headers(false),
    };
    let fault = |fault: weir_base::ParameterError| {
        Failure::bad_input(format!("[policy] {}", fault.message), fault.help)
    };
    let mut site = Site::new(config, Sealing::new(plan, epoch)?).map_err(fault)?;
    for neighbour in &plan.neighbours {
        site.connect(Reported::default(), neighbour.id, neighbour.quota.as_ref());
    }
    Ok(site)
}

/// The proxies of the site's TCP connections.
fn proxies(plan: &Plan, device: &Device) -> Result<Proxies, Failure> {
    let interception = Interception::open(plan, device.index())?;
    let proxies = Proxies::new(interception, device.as_fd(), plan.room());
    proxies.map_err(|error| Failure::failed(format!("cannot wait for connections: {error}")))
}

/// Carries out what the site decides.
struct Way<'a> {
    carriers: &'a mut [Carrier],
    segments: &'a mut Segments,
    bundle: &'a mut Bundle,
    device: &'a Device,
    networks: &'a Networks,
    host: &'a mut Host,
    now: Time,
}

impl Outside for Way<'_> {
    fn packet(&mut self, port: usize, header: &[u8], body: &[u8], is_sensitive: bool) {
        if let Some(carrier) = self.carriers.get_mut(port) {
            carrier.packet(header, body, is_sensitive, self.host, self.now);
        }
    }
    fn signal(&mut self, port: usize, datagram: &[u8], what: Signal) {
        if let Some(carrier) = self.carriers.get_mut(port) {
            carrier.signal(datagram, what, self.host, self.now);
        }
    }
    fn deliver(&mut self, datagram: &[u8]) {
        self.bundle.deliver(datagram, self.device);
    }
    fn deliver_to_network(&mut self, network: usize, datagram: &[u8]) {
        self.networks.send(network, datagram);
    }
    fn segment(&mut self, flow: &Inner, segment: &[u8]) {
        self.segments.push(flow, segment);
    }
}

/// A node at work.
struct Running<'a> {
    plan: &'a Plan,
    site: Site<Reported, Sealing<'a>>,
    carriers: Vec<Carrier>,
    /// Connections whose place others have taken, until they are over.
    left: BTreeSet<usize>,
    asker: Asker<'a>,
    device: Device,
    networks: Networks,
    /// The proxies of TCP connections, and what has come for them; `None` if TCP is carried as all else is.
    proxies: Option<Proxies>,
    segments: Segments,
    /// Datagrams that leave for programs.
    bundle: Bundle,
    questions: Receiver<Asked>,
    services: Reloaded,
    board: Board,
    /// Where secrets of connections are written; `None` unless that was asked for.
    key_log: Option<KeyLog>,
    process: &'a Process,
    /// When the site has something to do, and when the next look is.
    due: Time,
    look: Time,
    done: Option<Result<(), Failure>>,
    /// What a connection has brought, and where each message ends; a program's datagram. Kept for their space.
    come: Vec<u8>,
    ends: Vec<usize>,
    datagram: Vec<u8>,
}

impl<'p> Running<'p> {
    /// The site, and the way out for what it decides.
    fn parts<'a>(
        &'a mut self,
        host: &'a mut Host,
        now: Time,
    ) -> (&'a mut Site<Reported, Sealing<'p>>, Way<'a>) {
        let Running { site, carriers, segments, bundle, device, networks, .. } = self;
        (site, Way { carriers, segments, bundle, device, networks, host, now })
    }

    /// Calls the proxies, which have segments and timers, lets go of the datagrams that wait for others, and then notes when the site has
    /// something to do.
    fn settle(&mut self, host: &mut Host, now: Time) {
        let mut come = std::mem::take(&mut self.segments);
        let Running { proxies, segments, bundle, site, carriers, device, networks, .. } = self;
        let way = &mut Way { carriers, segments, bundle, device, networks, host, now };
        match proxies {
            Some(proxies) => proxies.serve(&mut come, site, way, now),
            None => come.clear(),
        }
        self.bundle.flush(&self.device);
        self.segments = come;
        self.due = self.site.next_time(now);
    }

    /// The link of a connection.
    fn port_of(&self, number: usize) -> Option<usize> {
        self.carriers.iter().position(|carrier| carrier.number == Some(number))
    }

    /// The link of a connection that a neighbour has asked for, and that is now the neighbour's.
    fn adopt(&mut self, number: usize, host: &mut Host, now: Time) -> Option<usize> {
        // One that is over still answers its peer for some time.
        let is_over = host.link(number)?.is_over() || self.left.contains(&number);
        let key = host.key(number).filter(|_| !is_over)?;
        let port = self.carriers.iter().position(|carrier| carrier.has_key(&key))?;
        self.left.extend(self.carriers[port].adopt(number, &self.plan.policy.link, host, now));
        log::info(&format!("{} has connected", self.carriers[port].name));
        Some(port)
    }

    /// Tells the node how a link is. If the link takes more than before, the node goes on.
    fn report(&mut self, port: usize, host: &mut Host, now: Time) {
        let reported = self.carriers[port].reported(host, now);
        let Some(told) = self.site.node_mut().cat_mut(port) else { return };
        let takes_more = reported.waiting < told.waiting || reported.is_up && !told.is_up;
        *told = reported;
        if takes_more {
            let (site, mut way) = self.parts(host, now);
            site.refill(now, &mut way);
        }
    }

    /// What is done each tenth of a second.
    fn look_around(&mut self, host: &mut Host, now: Time) {
        if self.process.stops() && self.done.is_none() {
            self.carriers.iter_mut().for_each(|carrier| carrier.end(host));
            self.done = Some(Ok(()));
        }
        if let Some(services) = guard(&self.services).take() {
            self.site.serve(services, now);
        }
        for carrier in &mut self.carriers {
            if let Err(failure) = carrier.look(&mut self.asker, host, now) {
                log::error(&format!("weir: {}: {}", carrier.name, failure.message));
            }
        }
        (0..self.carriers.len()).for_each(|port| self.report(port, host, now));
        if let Some(log) = &mut self.key_log {
            let numbers = self.carriers.iter().enumerate().filter_map(|(port, of)| Some((port, of.number?)));
            numbers.for_each(|(port, number)| log.note(port, number, host));
        }
        while let Ok(asked) = self.questions.try_recv() {
            asked.answer(self.obey(&asked.question, now));
        }
        let status = self.status();
        self.board.change(|shown| *shown = status);
    }

    fn obey(&mut self, question: &Question, now: Time) -> Value {
        match question {
            Question::Status => self.document(now),
            Question::K(k) | Question::Priority { priority: k, .. } if !(k.is_finite() && *k > 0.0) => {
                refusal(format!("{k} is out of range"), "write a number above 0")
            }
            Question::K(k) => {
                self.site.node_mut().set_k(*k);
                json!({})
            }
            Question::Drain(is_drained) => {
                self.site.node_mut().set_drained(*is_drained);
                json!({})
            }
            Question::Add(service) => {
                if let Some(fault) = service.fault() {
                    return refusal(format!("service {:?}: {}", service.name, fault.message), fault.help);
                }
                if self.site.services().iter().any(|other| other.name == service.name) {
                    let message = format!("there is a service {:?} already", service.name);
                    return refusal(message, "`weir overlay del` removes it; or choose another name");
                }
                let services = [&[Service::clone(service)], self.site.services()].concat();
                self.site.serve(services, now);
                json!({})
            }
            Question::Remove(name) => {
                let (gone, left): (Vec<_>, Vec<_>) =
                    self.site.services().iter().cloned().partition(|service| service.name == *name);
                if gone.is_empty() {
                    let names: Vec<&str> = left.iter().map(|service| service.name.as_str()).collect();
                    let help = match names[..] {
                        [] => "the node has no services".to_owned(),
                        _ => format!("its services are {}", names.join(", ")),
                    };
                    return refusal(format!("no service has the name {name:?}"), help);
                }
                self.site.serve(left, now);
                json!({})
            }
            Question::Priority { flow, priority } => {
                match self.site.set_priority(|inner| told::name_of(inner) == *flow, *priority, now) {
                    true => json!({}),
                    false => refusal(
                        format!("no flow {flow:?} has sent lately"),
                        "`weir overlay status` lists the flows",
                    ),
                }
            }
        }
    }
}

impl Application for Running<'_> {
    fn on_moved(&mut self, number: usize, host: &mut Host, now: Time) {
        let Some(port) = self.port_of(number).or_else(|| self.adopt(number, host, now)) else { return };
        let (mut come, mut ends) = (std::mem::take(&mut self.come), std::mem::take(&mut self.ends));
        come.clear();
        ends.clear();
        if let Some(link) = host.link(number) {
            weir_endpoint::Endpoint::read(link, &mut |_, read| {
                come.extend_from_slice(read.head);
                ends.push(come.len());
            });
        }
        self.report(port, host, now);
        let mut begin = 0;
        let (site, mut way) = self.parts(host, now);
        for end in &ends {
            site.from_neighbour(port, &come[begin..*end], now, &mut way);
            begin = *end;
        }
        (self.come, self.ends) = (come, ends);
        self.settle(host, now);
    }

    fn on_sent(&mut self, number: usize, host: &mut Host, now: Time) {
        if let Some(port) = self.port_of(number) {
            self.report(port, host, now);
            self.settle(host, now);
        }
    }

    fn on_over(&mut self, number: usize, host: &mut Host, now: Time) {
        self.left.remove(&number);
        if let Some(port) = self.port_of(number) {
            self.carriers[port].is_over();
            self.report(port, host, now);
            self.settle(host, now);
        }
    }

    fn next_timer(&self) -> Time {
        let proxies = self.proxies.as_ref().map_or(Time::NEVER, Proxies::next_time);
        self.due.min(self.look).min(proxies)
    }

    fn on_timer(&mut self, host: &mut Host, now: Time) {
        let (site, mut way) = self.parts(host, now);
        site.on_timer(now, &mut way);
        if let Some(proxies) = &mut self.proxies {
            proxies.on_timer(now);
        }
        if now >= self.look {
            self.look = now + LOOK;
            self.look_around(host, now);
        }
        self.settle(host, now);
    }

    fn waits_for(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let alone = || self.proxies.as_ref().map_or_else(|| self.device.as_fd(), AsFd::as_fd);
        Some((self.networks.ready().unwrap_or_else(alone), PollFlags::IN))
    }

    fn on_ready(&mut self, host: &mut Host, now: Time) {
        let mut datagram = std::mem::take(&mut self.datagram);
        for _ in 0..TURN {
            match self.device.receive(&mut datagram) {
                Ok(Some(length)) => {
                    let (site, mut way) = self.parts(host, now);
                    site.from_program(&datagram[..length], now, &mut way);
                }
                Ok(None) => break,
                Err(error) => {
                    let message = format!("the device {} is gone: {error}", self.plan.device);
                    self.done = Some(Err(Failure::failed(message)));
                    break;
                }
            }
        }
        for network in 0..self.networks.len() {
            for _ in 0..TURN {
                let Some(length) = self.networks.receive(network, &mut datagram) else { break };
                let (site, mut way) = self.parts(host, now);
                site.from_network(network, &datagram[..length], now, &mut way);
            }
        }
        self.datagram = datagram;
        if let Some(proxies) = &mut self.proxies {
            proxies.on_ready(now);
        }
        self.settle(host, now);
    }

    fn is_done(&self) -> bool {
        self.done.is_some()
    }
}
