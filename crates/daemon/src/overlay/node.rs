//! A running node: one thread drives its socket, its device, the connections to its neighbours, and the site.

use super::carrier::{Asker, Carrier, host};
use super::config::{HEADERS, Known, Plan};
use super::control::{self, Asked, Question, refusal};
use super::{device, signing};
use crate::failure::Failure;
use crate::frame::status::{Board, Counters, Part, Status};
use crate::frame::{Process, log};
use crate::sliq::{Application, Now, drive};
use crate::transfer::{Keys, guard, random};
use rustix::event::PollFlags;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_base::{Bytes, Span, Time};
use weir_linux::tun::Tun;
use weir_linux::udp::UdpPort;
use weir_overlay::admission::By;
use weir_overlay::site::{Config, Cover, Outside, Places, Service, Signature, Site, Told};
use weir_overlay::utility::bits;
use weir_overlay::{Cat, Inner, Key, NodeId, Reported, Signal};
use weir_sliq::envelope::Envelope;
use weir_sliq::host::Host;

/// Time between two looks whether it is to stop, what was asked, and whether a neighbour is silent.
const LOOK: Span = Span::from_millis(100);
/// Datagrams of programs that are taken before packets of neighbours are looked at again.
const TURN: usize = 64;
/// Longest datagram of a program.
const LONGEST: usize = 1 << 16;

/// Runs the node of this file.
///
/// # Errors
/// The file is wrong, the host does not allow what it needs, or its device is removed.
pub(super) fn run(file: &Path, process: &Process) -> Result<(), Failure> {
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
    let tun = device::open(&plan)?;
    let questions = control::listen(&plan.name)?;
    let services = reloads(file, process);
    let board = Board::default();
    let shown = board.clone();
    process.begin(move || shown.read())?;
    log::info(&format!("{plan}interrupt it to end"));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let asker = Asker::new(&plan, u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2));
    let mut running = Running {
        site: site(&plan, epoch)?,
        carriers: plan.neighbours.iter().map(Carrier::new).collect(),
        left: BTreeSet::new(),
        plan: &plan,
        asker,
        tun,
        questions,
        services,
        board,
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

fn site(plan: &Plan, epoch: u32) -> Result<Site<Reported, Sealing<'_>>, Failure> {
    let seed =
        random().map_err(|error| Failure::failed(format!("the system gives no random bytes: {error}")))?;
    let config = Config {
        id: plan.id,
        epoch,
        seed: u64::from_be_bytes(seed),
        node: plan.policy.node(),
        places: Places::new(plan.prefixes.clone()),
        services: plan.services.clone(),
        around: Bytes::new(HEADERS) + plan.policy.link.headers(false),
    };
    let fault = |fault: weir_base::ParameterError| {
        Failure::bad_input(format!("[policy] {}", fault.message), fault.help)
    };
    let mut site = Site::new(config, Sealing::new(plan, epoch)?).map_err(fault)?;
    for _ in &plan.neighbours {
        site.node_mut().connect(Reported::default());
    }
    Ok(site)
}

/// Seals what programs send from the node where it enters to the node where it leaves, and signs what this node announces.
struct Sealing<'a> {
    envelopes: BTreeMap<NodeId, Envelope>,
    plan: &'a Plan,
}

impl Sealing<'_> {
    fn new(plan: &Plan, epoch: u32) -> Result<Sealing<'_>, Failure> {
        let others = plan.nodes.iter().filter(|(id, _)| **id != plan.id);
        let envelope = |(id, node): (&NodeId, &Known)| {
            let envelope = Envelope::between(&plan.keys.pair, &node.key.0, epoch).ok_or_else(|| {
                let help = "give what `weir overlay keygen` printed there";
                Failure::bad_input(format!("the key of node {:?} is no public key", node.name), help)
            })?;
            Ok((*id, envelope))
        };
        let envelopes = others.map(envelope).collect::<Result<_, Failure>>()?;
        Ok(Sealing { envelopes, plan })
    }
}

/// The fields of a flow as they are authenticated.
fn bound(inner: &Inner) -> [u8; 14] {
    let mut bound = [0; 14];
    bound[..4].copy_from_slice(&inner.source.to_be_bytes());
    bound[4..8].copy_from_slice(&inner.destination.to_be_bytes());
    bound[8..10].copy_from_slice(&inner.source_port.to_be_bytes());
    bound[10..12].copy_from_slice(&inner.destination_port.to_be_bytes());
    (bound[12], bound[13]) = (inner.protocol, inner.dscp);
    bound
}

impl Cover for Sealing<'_> {
    fn seal(&mut self, to: NodeId, inner: &Inner, body: &mut Vec<u8>) -> bool {
        self.envelopes.get_mut(&to).is_some_and(|envelope| envelope.seal(&bound(inner), body))
    }
    fn open<'a>(&mut self, from: NodeId, inner: &Inner, body: &'a mut [u8]) -> Option<&'a [u8]> {
        self.envelopes.get_mut(&from)?.open(&bound(inner), body)
    }
    fn signs(&self) -> bool {
        true
    }
    fn sign(&mut self, announcement: &[u8]) -> Signature {
        self.plan.signing.sign(announcement)
    }
    fn verify(&mut self, origin: NodeId, announcement: &[u8], signature: &Signature) -> bool {
        self.plan.nodes.get(&origin).is_some_and(|node| signing::verify(&node.sign, announcement, signature))
    }
}

/// Carries out what the site decides.
struct Way<'a> {
    carriers: &'a mut [Carrier],
    tun: &'a Tun,
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
        self.tun.send(datagram);
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
    tun: Tun,
    questions: Receiver<Asked>,
    services: Reloaded,
    board: Board,
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
        (&mut self.site, Way { carriers: &mut self.carriers, tun: &self.tun, host, now })
    }

    fn settle(&mut self, now: Time) {
        self.due = self.site.next_time(now);
    }

    /// The link of a connection. One that a neighbour has asked for is taken over.
    fn port_of(&mut self, number: usize, host: &mut Host, now: Time) -> Option<usize> {
        if let Some(port) = self.carriers.iter().position(|carrier| carrier.number == Some(number)) {
            return Some(port);
        }
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
            Question::Priority { flow, priority } => {
                match self.site.set_priority(|inner| name_of(inner) == *flow, *priority) {
                    true => json!({}),
                    false => refusal(
                        format!("no flow {flow:?} has sent lately"),
                        "`weir overlay status` lists the flows",
                    ),
                }
            }
        }
    }

    /// All that is told of the node.
    fn document(&self, now: Time) -> Value {
        let node = self.site.node();
        let neighbours = self.carriers.iter().enumerate().map(|(port, carrier)| {
            let (cat, sent) = (node.cat(port).copied().unwrap_or_default(), node.sent(port));
            json!({
                "name": carrier.name,
                "number": carrier.id.number(),
                "up": node.neighbour(port).is_some(),
                "capacity_mbps": cat.capacity().bits_per_sec() as f64 / 1e6,
                "delay_ms": cat.delay().mean.as_millis_f64(),
                "loss_percent": 100.0 * cat.loss(),
                "sent_bytes": sent.data + sent.signals,
                "waiting_bytes": cat.waiting.get(),
            })
        });
        let flows = self.site.told().map(|flow| self.flow(&flow, now));
        let packets: Map<String, Value> =
            self.counts().into_iter().map(|(name, count)| (name, count.into())).collect();
        json!({
            "name": self.plan.name,
            "number": self.plan.id.number(),
            "up_s": now.as_secs_f64(),
            "k": node.k(),
            "neighbours": neighbours.collect::<Vec<_>>(),
            "flows": flows.collect::<Vec<_>>(),
            "packets": packets,
        })
    }

    fn flow(&self, flow: &Told<'_>, now: Time) -> Value {
        let decisions = flow.events.iter().rev().map(|event| {
            let by = match event.by {
                By::Flow => "flow",
                By::Planner => "planner",
            };
            json!({
                "ago_s": now.since(event.at).as_secs_f64(),
                "stands": event.standing.name(),
                "by": by,
                "rule": event.reason.rule.name(),
                "value": event.reason.value,
                "bound": event.reason.bound,
            })
        });
        let to = match flow.to {
            Key::Node(id) => self.plan.name_of(id).to_owned(),
            Key::Group(group) => Ipv4Addr::from_bits(group.0).to_string(),
        };
        json!({
            "flow": name_of(&flow.inner),
            "service": flow.service,
            "to": to,
            "utility": flow.utility,
            "priority": flow.priority,
            "stands": flow.standing.name(),
            "rate_mbps": flow.rate.bits_per_sec() as f64 / 1e6,
            "price_bits": bits(flow.price),
            "sent_bytes": flow.sent.get(),
            "waiting": flow.waiting,
            "refused": flow.refused,
            "decisions": decisions.collect::<Vec<_>>(),
        })
    }

    fn counts(&self) -> Vec<(String, u64)> {
        let (counts, node) = (self.site.counts(), self.site.node().counters());
        let all = [
            ("admitted", counts.admitted),
            ("delivered", counts.delivered),
            ("forwarded", node.packets),
            ("refused", counts.refused),
            ("overflowed", counts.overflowed),
            ("expired", counts.expired),
            ("foreign_source", counts.foreign),
            ("unknown_destination", counts.unknown),
            ("not_opened", counts.unsealed),
            ("forged_announcements", counts.forged),
            ("other_ip_version", counts.other_version),
            ("malformed", counts.malformed),
            ("lost", counts.lost),
        ];
        all.map(|(name, count)| (name.to_owned(), count)).to_vec()
    }

    fn status(&self) -> Status {
        let node = self.site.node();
        let parts = self.carriers.iter().enumerate().map(|(port, carrier)| {
            let (cat, sent) = (node.cat(port).copied().unwrap_or_default(), node.sent(port));
            let up = f64::from(u8::from(node.neighbour(port).is_some()));
            Part {
                labels: vec![("name".into(), carrier.name.as_str().into())],
                values: vec![
                    ("up".into(), up),
                    ("capacity_mbps".into(), cat.capacity().bits_per_sec() as f64 / 1e6),
                    ("delay_ms".into(), cat.delay().mean.as_millis_f64()),
                    ("loss_percent".into(), 100.0 * cat.loss()),
                    ("sent_bytes".into(), (sent.data + sent.signals) as f64),
                ],
            }
        });
        Status {
            place: format!("{} at {}", self.plan.name, self.plan.listen),
            labels: vec![("node".into(), self.plan.name.clone())],
            counters: Counters {
                name: "packets".into(),
                meaning: "Packets of programs by what became of them, and packets forwarded to neighbours."
                    .into(),
                values: self.counts(),
            },
            part: "neighbour".into(),
            parts: parts.collect(),
            ..Status::default()
        }
    }
}

/// A flow's name: addresses with ports, and what is carried.
fn name_of(inner: &Inner) -> String {
    let end = |address: u32, port: u16| {
        let address = Ipv4Addr::from_bits(address);
        if port == 0 { address.to_string() } else { format!("{address}:{port}") }
    };
    let (from, to) = (end(inner.source, inner.source_port), end(inner.destination, inner.destination_port));
    let kind = if inner.protocol == weir_overlay::site::datagram::PROTOCOL_UDP { "udp" } else { "ip" };
    format!("{from}-{to}/{kind}")
}

impl Application for Running<'_> {
    fn on_moved(&mut self, number: usize, host: &mut Host, now: Time) {
        let Some(port) = self.port_of(number, host, now) else { return };
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
        self.settle(now);
    }

    fn on_sent(&mut self, number: usize, host: &mut Host, now: Time) {
        if let Some(port) = self.carriers.iter().position(|carrier| carrier.number == Some(number)) {
            self.report(port, host, now);
            self.settle(now);
        }
    }

    fn on_over(&mut self, number: usize, host: &mut Host, now: Time) {
        self.left.remove(&number);
        if let Some(port) = self.carriers.iter().position(|carrier| carrier.number == Some(number)) {
            self.carriers[port].is_over();
            self.report(port, host, now);
            self.settle(now);
        }
    }

    fn next_timer(&self) -> Time {
        self.due.min(self.look)
    }

    fn on_timer(&mut self, host: &mut Host, now: Time) {
        let (site, mut way) = self.parts(host, now);
        site.on_timer(now, &mut way);
        if now >= self.look {
            self.look = now + LOOK;
            self.look_around(host, now);
        }
        self.settle(now);
    }

    fn waits_for(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        Some((self.tun.as_fd(), PollFlags::IN))
    }

    fn on_ready(&mut self, host: &mut Host, now: Time) {
        let mut datagram = std::mem::take(&mut self.datagram);
        for _ in 0..TURN {
            match self.tun.receive(&mut datagram) {
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
        self.datagram = datagram;
        self.settle(now);
    }

    fn is_done(&self) -> bool {
        self.done.is_some()
    }
}
