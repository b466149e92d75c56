//! TCP connections of this site's programs to other sites. The kernel steers them to a socket of the node ([`Interception`]); the proxies of both
//! sites end them, and carry their bytes between each other as segments in packets of the overlay ([`weir_overlay::proxy::tcp`]). Hosts see the
//! addresses of each other.

mod connection;
mod held;
mod interception;

use super::sealing::Sealing;
use connection::Connection;
pub(super) use interception::Interception;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use weir_base::{Bytes, Time};
use weir_linux::process::raise_open_files;
use weir_linux::transparent;
use weir_overlay::proxy::tcp::Segment;
use weir_overlay::site::{Outside, Site, stream};
use weir_overlay::{Inner, Reported};

/// The most connections at a time. More are reset.
const MOST: usize = 2000;
/// Bytes that all hosts' connections may hold until the other proxies have them: half a second of a Gbit/s. Each has an equal share, so that
/// a node with many connections keeps within its memory.
const HELD: Bytes = Bytes::new(64 << 20);
/// Open files that are left for all else.
const OTHER_FILES: u64 = 64;
/// Bytes that a segment's header takes beside its data, unless much is missing.
const HEADER: u64 = 64;
/// Bytes that one call takes from a socket at most.
const SPACE: usize = 1 << 18;
/// Events that one call tells at most.
const EVENTS: usize = 256;
/// The numbers of the listener and of the device among the descriptors that are waited for.
const LISTENER: u64 = u64::MAX;
const DEVICE: u64 = u64::MAX - 1;

/// Segments that have come from other proxies, until they are handed over.
#[derive(Debug, Default)]
pub(super) struct Segments {
    bytes: Vec<u8>,
    ends: Vec<(Inner, usize)>,
}

impl Segments {
    /// Keeps a segment that came in a packet of this flow.
    pub(super) fn push(&mut self, flow: &Inner, segment: &[u8]) {
        self.bytes.extend_from_slice(segment);
        self.ends.push((*flow, self.bytes.len()));
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// What has become of connections since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Connections of this site's hosts that were accepted, and those that were begun in the name of other sites' hosts.
    pub(super) accepted: u64,
    pub(super) begun: u64,
    /// Connections that could not be made or carried.
    pub(super) refused: u64,
}

/// All connections of a site.
pub(super) struct Proxies {
    epoll: OwnedFd,
    interception: Interception,
    all: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections by the flow of their segments.
    by_flow: BTreeMap<Inner, usize>,
    /// The most connections at a time.
    limit: usize,
    agenda: BTreeSet<(Time, usize)>,
    /// Those that have something to do now.
    listed: Vec<usize>,
    /// The longest segment, and the most data of one.
    longest: usize,
    most: Bytes,
    counts: Counts,
    /// Kept for their space.
    events: Vec<Event>,
    space: Vec<u8>,
    segment: Vec<u8>,
    opened: Vec<Inner>,
}

type NodeSite<'a> = Site<Reported, Sealing<'a>>;

impl Proxies {
    /// Proxies for what is intercepted, whose segments are `longest` bytes at most. The descriptor of [`AsFd`] is ready when `device` is, too.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(
        interception: Interception,
        device: BorrowedFd<'_>,
        longest: Bytes,
    ) -> io::Result<Proxies> {
        // Each connection is an open file.
        let files = raise_open_files().map_or(u64::MAX, |files| files.saturating_sub(OTHER_FILES));
        let limit = usize::try_from(files).unwrap_or(usize::MAX).min(MOST);
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, device, EventData::new_u64(DEVICE), EventFlags::IN)?;
        epoll::add(&epoll, interception.listener(), EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Proxies {
            epoll,
            interception,
            all: Vec::new(),
            free: Vec::new(),
            by_flow: BTreeMap::new(),
            limit,
            agenda: BTreeSet::new(),
            listed: Vec::new(),
            longest: longest.get() as usize,
            most: longest.saturating_sub(Bytes::new(HEADER)),
            counts: Counts::default(),
            events: Vec::with_capacity(EVENTS),
            space: vec![0; SPACE],
            segment: Vec::new(),
            opened: Vec::new(),
        })
    }

    /// What has become of connections.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// When [`Proxies::on_timer`] is due.
    pub(super) fn next_time(&self) -> Time {
        self.agenda.first().map_or(Time::NEVER, |(due, _)| *due)
    }

    /// Looks which sockets are ready. [`Proxies::serve`] does the rest.
    pub(super) fn on_ready(&mut self, now: Time) {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        // An interrupted call finds them the next time.
        let _ =
            epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&rustix::time::Timespec::default()));
        for event in events.drain(..) {
            let Event { flags, data } = event;
            match data.u64() {
                DEVICE => {}
                LISTENER => self.accept(now),
                number => {
                    let Ok(at) = usize::try_from(number) else { continue };
                    let failed = EventFlags::ERR | EventFlags::HUP;
                    let to_read = flags.intersects(EventFlags::IN | EventFlags::RDHUP | failed);
                    let to_write = flags.intersects(EventFlags::OUT | failed);
                    if let Some(Some(connection)) = self.all.get_mut(at) {
                        connection.is_ready(to_read, to_write);
                        self.list(at);
                    }
                }
            }
        }
        self.events = events;
    }

    /// Looks whose time has come. [`Proxies::serve`] does the rest.
    pub(super) fn on_timer(&mut self, now: Time) {
        while let Some(&(_, at)) = self.agenda.first().filter(|(due, _)| *due <= now) {
            self.set_due(at, Time::NEVER);
            self.list(at);
        }
    }

    /// Takes the segments that have come, and serves all connections that have something to do.
    pub(super) fn serve(
        &mut self,
        segments: &mut Segments,
        site: &mut NodeSite<'_>,
        outside: &mut impl Outside,
        now: Time,
    ) {
        let mut begin = 0;
        for (flow, end) in segments.ends.drain(..) {
            let bytes = &segments.bytes[std::mem::replace(&mut begin, end)..end];
            // Whoever sends what is no segment is no proxy.
            let Ok((segment, data)) = Segment::decode(bytes, 0) else { continue };
            self.take(&stream::back(&flow), &segment, data, site, outside, now);
        }
        segments.clear();
        self.serve_listed(site, outside, now);
    }

    /// Takes a segment for the connection whose segments leave in this flow.
    fn take(
        &mut self,
        flow: &Inner,
        segment: &Segment,
        data: &[u8],
        site: &mut NodeSite<'_>,
        outside: &mut impl Outside,
        now: Time,
    ) {
        let known = self.by_flow.get(flow).copied();
        let at = known.or_else(|| segment.opens.then(|| self.begin(flow, now)).flatten());
        let Some(at) = at else {
            // Nobody is here: the other proxy learns it, unless it is over there too.
            if !segment.resets {
                let reset = Segment { resets: true, ..Segment::default() };
                self.segment.clear();
                reset.encode(&mut self.segment);
                site.send_segment(flow, &self.segment, false, now, outside);
            }
            return;
        };
        let admission = site.admission(flow, now, outside);
        if let Some(connection) = &mut self.all[at] {
            connection.receive(segment, data, &admission, now);
        }
        self.list(at);
    }

    /// Begins a connection to a host of this site in the name of another site's host. `flow` leads back to that one.
    fn begin(&mut self, flow: &Inner, now: Time) -> Option<usize> {
        let address = |address: u32, port: u16| SocketAddrV4::new(Ipv4Addr::from_bits(address), port);
        let (to, from) =
            (address(flow.source, flow.source_port), address(flow.destination, flow.destination_port));
        let stream = (self.by_flow.len() < self.limit)
            .then(|| transparent::begin(from, to, self.interception.own_mark).ok())
            .flatten();
        let at = stream.and_then(|stream| self.add(*flow, stream, false, now));
        self.counts.begun += u64::from(at.is_some());
        self.counts.refused += u64::from(at.is_none());
        at
    }

    /// Accepts the connections that wait.
    fn accept(&mut self, now: Time) {
        while let Ok((stream, from)) = self.interception.listener().accept() {
            let to = stream.local_addr();
            let (SocketAddr::V4(from), Ok(SocketAddr::V4(to))) = (from, to) else { continue };
            let flow = stream::flow((from.ip().to_bits(), from.port()), (to.ip().to_bits(), to.port()));
            let may_be = self.by_flow.len() < self.limit && !self.by_flow.contains_key(&flow);
            let is_steered =
                SocketAddr::V4(to) != self.interception.address() && stream.set_nonblocking(true).is_ok();
            let added = (may_be && is_steered).then(|| self.add(flow, stream, true, now)).flatten();
            self.counts.accepted += u64::from(added.is_some());
            self.counts.refused += u64::from(added.is_none());
            added.into_iter().for_each(|at| self.list(at));
        }
    }

    fn add(&mut self, flow: Inner, stream: TcpStream, is_connected: bool, now: Time) -> Option<usize> {
        // What it says is sent as it comes: the segments are made here.
        stream.set_nodelay(true).ok()?;
        let at = self.free.pop().unwrap_or(self.all.len());
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if epoll::add(&self.epoll, &stream, EventData::new_u64(at as u64), flags).is_err() {
            self.free.extend((at < self.all.len()).then_some(at));
            return None;
        }
        if at == self.all.len() {
            self.all.push(None);
        }
        self.all[at] = Some(Connection::new(flow, stream, is_connected, self.most, now));
        self.by_flow.insert(flow, at);
        Some(at)
    }

    fn list(&mut self, at: usize) {
        if let Some(Some(connection)) = self.all.get_mut(at)
            && !std::mem::replace(&mut connection.is_listed, true)
        {
            self.listed.push(at);
        }
    }

    fn set_due(&mut self, at: usize, due: Time) {
        let Some(Some(connection)) = self.all.get_mut(at) else { return };
        let before = std::mem::replace(&mut connection.due, due);
        if before != due {
            self.agenda.remove(&(before, at));
            if due < Time::NEVER {
                self.agenda.insert((due, at));
            }
        }
    }

    /// Serves the connections that have something to do.
    fn serve_listed(&mut self, site: &mut NodeSite<'_>, outside: &mut impl Outside, now: Time) {
        loop {
            site.take_opened(&mut self.opened);
            while let Some(flow) = self.opened.pop() {
                if let Some(at) = self.by_flow.get(&flow).copied() {
                    self.list(at);
                }
            }
            let Some(at) = self.listed.pop() else { return };
            let Some(Some(connection)) = self.all.get_mut(at) else { continue };
            connection.is_listed = false;
            let share = Bytes::new(HELD.get() / self.by_flow.len().max(1) as u64);
            connection.exchange(&mut self.space, share, now);
            let flow = connection.flow;
            loop {
                let admission = site.admission(&flow, now, outside);
                let next = connection.next(&admission, self.longest, &mut self.segment, now);
                let Some(has_data) = next else { break };
                site.send_segment(&flow, &self.segment, has_data, now, outside);
            }
            if connection.is_over(now) {
                self.forget(at, site);
            } else {
                let due = connection.next_time(now);
                self.set_due(at, due);
            }
        }
    }

    fn forget(&mut self, at: usize, site: &mut NodeSite<'_>) {
        self.set_due(at, Time::NEVER);
        if let Some(connection) = self.all[at].take() {
            self.by_flow.remove(&connection.flow);
            site.close_stream(&connection.flow);
            self.free.push(at);
            if let Some(stream) = connection.into_stream() {
                transparent::reset(stream);
            }
        }
    }
}

impl AsFd for Proxies {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
