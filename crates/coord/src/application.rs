//! One application at an AP: its table, its flows and its path. All of this is soft state: a flow that is silent for its
//! lifetime is forgotten with its cells, and an application that is silent for its own lifetime starts anew.

use crate::cell::{Cell, FLOW, FLOW_THROUGHPUT, Family};
use crate::config;
use crate::five_tuple::FiveTuple;
use crate::header::{FLOWS, Operation, Probe, Report, Version, WORDS};
use crate::measure::{Traffic, per_second};
use crate::path::Path;
use crate::seal::{Key, ReplayWindow};
use crate::{Series, Statistic, Table};
use weir_base::{Random, Span, Time};

/// How often rates are sampled and lifetimes checked.
pub(crate) const TICK: Span = Span::from_millis(100);
/// Largest burst of reflections, as a fraction of `reflections_per_second`.
const REFLECTION_BURST: f64 = 0.1;

/// One flow.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// The five-tuple that owns the id, seen from this site: its source is the local endpoint.
    owner: Option<FiveTuple>,
    last: Time,
    /// Bytes since the last tick.
    bytes: u64,
    /// KiB/s in the last tick.
    throughput: u32,
    /// Sequence numbers of the endpoint. The window outlives the flow, so an old packet cannot revive the flow.
    window: ReplayWindow<4>,
}

impl Flow {
    /// The five-tuple that owns the flow's id, seen from this site.
    pub fn owner(&self) -> Option<&FiveTuple> {
        self.owner.as_ref()
    }
}

/// The state of one application.
#[derive(Debug, Clone)]
pub struct Application {
    config: config::Application,
    lifetimes: Lifetimes,
    random: Random,
    table: Table,
    flows: Box<[Flow]>,
    /// Flows that have an owner.
    active: u32,
    path: Path,
    traffic: Traffic,
    last_tick: Time,
    /// When the next tick is due; [`Time::NEVER`] while there is no state to age.
    next_tick: Time,
    last_packet: Time,
    /// Reflections allowed now (a token bucket), and the time of its last update.
    reflections: f64,
    reflections_at: Time,
    /// Sequence numbers of the other AP.
    pub(crate) window: ReplayWindow<64>,
}

/// The settings that all applications share.
#[derive(Debug, Clone, Copy)]
struct Lifetimes {
    flow: Span,
    application: Span,
    loss_interval: Span,
    reflections_per_second: f64,
}

impl Application {
    /// An application without traffic. `first` is the number of the first packet to the other AP.
    pub(crate) fn new(
        config: config::Application,
        shared: &config::Config,
        first: u64,
        mut random: Random,
    ) -> Application {
        let lifetimes = Lifetimes {
            flow: shared.flow_lifetime,
            application: shared.application_lifetime,
            loss_interval: shared.loss_interval,
            reflections_per_second: shared.reflections_per_second.into(),
        };
        let stream = Random::stream(random.bits(), "filter");
        let path = Path::new(&config.measurement(), lifetimes.loss_interval, first, stream);
        Application {
            config,
            lifetimes,
            random,
            table: Table::default(),
            flows: vec![Flow::default(); FLOWS].into(),
            active: 0,
            path,
            traffic: Traffic::default(),
            last_tick: Time::ZERO,
            next_tick: Time::NEVER,
            last_packet: Time::ZERO,
            reflections: lifetimes.reflections_per_second * REFLECTION_BURST,
            reflections_at: Time::ZERO,
            window: ReplayWindow::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The key shared with its endpoints; `None` if their headers are not sealed.
    pub(crate) fn key(&self) -> Option<&Key> {
        self.config.key.as_ref()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The flow with this id; `None` if the id is above 127.
    pub fn flow(&self, flow: u8) -> Option<&Flow> {
        self.flows.get(usize::from(flow))
    }

    /// Flows that have sent within their lifetime.
    pub fn active_flows(&self) -> u32 {
        self.active
    }

    /// Whether the configuration permits a five-tuple, seen from this site.
    pub(crate) fn permits(&self, tuple: &FiveTuple) -> bool {
        let config::Application { local, local_ports, remote, remote_ports, .. } = &self.config;
        local_ports.contains(tuple.source_port)
            && remote_ports.contains(tuple.destination_port)
            && local.iter().any(|prefix| prefix.contains(tuple.source))
            && remote.iter().any(|prefix| prefix.contains(tuple.destination))
    }

    /// Whether the flow id is below the application's number of flows.
    pub(crate) fn has_flow(&self, flow: u8) -> bool {
        flow < self.config.flows
    }

    /// The owner of a flow id, seen from this site.
    #[inline]
    pub(crate) fn owner(&self, flow: u8) -> Option<&FiveTuple> {
        self.flows[usize::from(flow)].owner.as_ref()
    }

    /// Whether the endpoint's sequence number is new.
    pub(crate) fn admit(&mut self, flow: u8, sequence: u64) -> bool {
        self.flows[usize::from(flow)].window.admit(sequence)
    }

    /// Whether a packet may be reflected now. If so, it counts against the limit.
    pub(crate) fn may_reflect(&mut self, now: Time) -> bool {
        let rate = self.lifetimes.reflections_per_second;
        let burst = (rate * REFLECTION_BURST).max(1.0);
        let earned = now.since(self.reflections_at).as_secs_f64() * rate;
        (self.reflections, self.reflections_at) = ((self.reflections + earned).min(burst), now);
        let may = rate > 0.0 && self.reflections >= 1.0;
        self.reflections -= f64::from(u8::from(may));
        may
    }

    /// Takes an endpoint's packet: renews the flow's lifetime and carries out the operations.
    #[inline]
    pub(crate) fn operate(&mut self, flow: u8, tuple: &FiveTuple, words: [u32; WORDS], now: Time) {
        let state = &mut self.flows[usize::from(flow)];
        if state.owner.is_none() {
            state.owner = Some(*tuple);
            self.active += 1;
        }
        state.last = now;
        self.alive(now);
        for word in words {
            self.table.write(flow, Operation::from_word(word));
        }
    }

    /// Counts a packet of `length` bytes that leaves for the other AP, and returns its probe.
    #[inline]
    pub(crate) fn leave(&mut self, flow: u8, length: u32, now: Time) -> Probe {
        self.flows[usize::from(flow)].bytes += u64::from(length);
        self.traffic.left(length);
        self.path.probe(now)
    }

    /// Takes a packet of `length` bytes from the other AP.
    #[inline]
    pub(crate) fn arrive(&mut self, probe: &Probe, version: Version, length: u32, now: Time) {
        self.alive(now);
        self.path.arrived(probe, version, length, now);
    }

    /// The reports that the flow's pointers select now.
    #[inline]
    pub(crate) fn reports(&mut self, flow: u8) -> [u32; WORDS] {
        self.table.pointers(flow).map(|pointer| {
            let Some(pointer) = pointer else { return 0 };
            let cell = Cell { address: pointer.address, offset: pointer.offset };
            Report { id: pointer.id, value: self.read(cell) }.word()
        })
    }

    /// The value of any cell; zero if it has none.
    pub fn read(&mut self, cell: Cell) -> u32 {
        if cell.address < crate::cell::NET {
            return self.table.read(cell);
        }
        match Family::of(cell) {
            Some((Family::Flows, Statistic::Latest)) => self.active,
            Some((family, statistic)) => self.series(family).value(statistic),
            None if cell.address == FLOW && cell.offset >= FLOW_THROUGHPUT => {
                self.flows[usize::from(cell.offset - FLOW_THROUGHPUT)].throughput
            }
            None => 0,
        }
    }

    fn series(&self, family: Family) -> &Series {
        match family {
            Family::Rtt => self.path.rtt().samples(),
            Family::Loss => &self.path.loss,
            Family::Bandwidth => &self.path.bandwidth,
            Family::InboundLoss => &self.path.inbound_loss,
            Family::InboundBandwidth => &self.path.inbound_bandwidth,
            Family::Flows => &self.traffic.flows,
            Family::Throughput => &self.traffic.throughput,
            Family::PacketSize => &self.traffic.packet_size,
        }
    }

    /// When [`Application::tick`] is due next; [`Time::NEVER`] while the application is silent and its state forgotten.
    pub(crate) fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn alive(&mut self, now: Time) {
        self.last_packet = now;
        if self.next_tick == Time::NEVER {
            (self.last_tick, self.next_tick) = (now, now + TICK);
        }
    }

    /// Samples rates and forgets silent flows and a silent application.
    pub(crate) fn tick(&mut self, now: Time) {
        let since = now.since(self.last_tick);
        (self.last_tick, self.next_tick) = (now, now + TICK);
        for id in 0..FLOWS as u8 {
            let flow = &mut self.flows[usize::from(id)];
            if flow.owner.is_none() {
                continue;
            }
            flow.throughput = (per_second(flow.bytes, since) + 0.5) as u32;
            flow.bytes = 0;
            if now.since(flow.last) >= self.lifetimes.flow {
                (flow.owner, flow.throughput) = (None, 0);
                self.active -= 1;
                self.table.forget(id);
            }
        }
        self.traffic.tick(since, self.active);
        self.path.tick(now);
        if self.active == 0 && now.since(self.last_packet) >= self.lifetimes.application {
            let stream = Random::stream(self.random.bits(), "filter");
            let first = self.path.next();
            self.path = Path::new(&self.config.measurement(), self.lifetimes.loss_interval, first, stream);
            self.traffic = Traffic::default();
            self.next_tick = Time::NEVER;
        }
    }

    /// Internal state as names and values, for the records.
    pub fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("flows", self.active.into());
        report("outbound_mbps", f64::from(self.traffic.throughput.value(Statistic::Latest)) * 8.192e-3);
        self.path.state(report);
    }
}
