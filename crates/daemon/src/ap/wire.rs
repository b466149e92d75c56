//! An aggregation point of the Coordination Protocol on a real host: a wire between two devices, with the state machine of
//! `weir_coord::Point` on it. Each frame that one device receives leaves by the other unchanged, whatever its type and address,
//! except packets of the configured applications: the state machine rewrites their headers and may refuse them.
//!
//! The wire holds no packet: a frame that the outgoing device does not accept at once is dropped and counted. While the wire
//! stands, both devices belong to it alone: their input is shut to the kernel's own stack ([`weir_linux::shut`]), which would
//! otherwise answer or forward the same packets. All changes to the devices end with the process, however it ends.

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_base::{Span, Time};
use weir_coord::{Config, FiveTuple, Packet, Point, Refusal, Side, Verdict};
use weir_linux::clock::{Clock, claim_processor, timespec_of};
use weir_linux::device::{addresses, index_of_name};
use weir_linux::port::{Batch, Frames, Port, Slot};
use weir_linux::shut::Shut;
use weir_live::{ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_IPV6, answer, datagram};

/// The longest sleep, so that a request to stop is noticed.
const LOOK_UP: Span = Span::from_millis(100);
/// Tags of VLANs (IEEE 802.1Q and 802.1ad).
const TAGGED: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
/// Most VLAN tags of a frame whose packet is examined.
const MOST_TAGS: usize = 2;

/// Why a wire cannot be put between two devices.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApError {
    /// There is no such device.
    #[error("there is no device {0}")]
    NoDevice(String),
    /// Both sides are the same device, or one is the loopback device.
    #[error("{0}")]
    Unfit(String),
    /// A device has an address, which would no longer answer.
    #[error(
        "{device} has the address {address}, which would be unreachable while the aggregation point runs"
    )]
    Addressed {
        /// The device.
        device: String,
        /// Its address.
        address: IpAddr,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] weir_coord::config::ConfigError),
    /// The kernel refused something.
    #[error("{what}: {error}")]
    Kernel {
        /// What was tried.
        what: String,
        /// The kernel's answer.
        error: io::Error,
    },
}

impl ApError {
    /// How to correct it.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            ApError::NoDevice(_) => "`ip link` lists the devices",
            ApError::Unfit(_) => {
                "name two Ethernet devices: one towards this site's endpoints, one towards the other site"
            }
            ApError::Addressed { .. } => {
                "the two devices are ports of a wire: remove the address (`ip address flush dev DEV`), and reach this host by a third device"
            }
            ApError::Config(_) => "`weir ap --help` shows a configuration",
            ApError::Kernel { .. } => {
                "it needs Linux 6.6 and root (CAP_NET_ADMIN and CAP_NET_RAW; CAP_BPF in the first user namespace)"
            }
        }
    }
}

/// Counters and measurements of an aggregation point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Snapshot {
    /// The device towards this site's endpoints.
    pub local: String,
    /// The device towards the other site.
    pub path: String,
    /// Seconds since it was started.
    pub up_s: f64,
    /// Frames at both devices, and packets by outcome: name and count.
    pub packets: Vec<(String, u64)>,
    /// Each application.
    pub applications: Vec<ApplicationSnapshot>,
}

/// The snapshot of one application.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApplicationSnapshot {
    /// Its number.
    pub id: u8,
    /// Its name.
    pub name: String,
    /// Measured values, with their unit in the name.
    pub values: Vec<(String, f64)>,
}

/// The state machine and the counters of the wire.
#[derive(Debug)]
struct State {
    point: Point,
    frames: [Frames; 2],
    /// Bundles of datagrams (`UDP_SEGMENT`) dropped because one datagram was not to be forwarded: a bundle is forwarded whole
    /// or not at all.
    bundles: u64,
}

/// Reads the counters of an aggregation point while it works.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    devices: [String; 2],
    clock: Clock,
    state: Arc<Mutex<State>>,
}

impl Watch {
    /// What it has counted and measured up to now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = held(&self.state);
        let mut packets = vec![];
        let mut count = |name: String, value: u64| packets.push((name, value));
        for (side, frames) in ["local", "path"].into_iter().zip(&state.frames) {
            let Frames { received, sent, not_sent, missed } = *frames;
            for (name, value) in
                [("received", received), ("sent", sent), ("not_sent", not_sent), ("missed", missed)]
            {
                count(format!("{side}_{name}"), value);
            }
        }
        let counters = state.point.counters();
        for (name, value) in [
            ("passed", counters.passed),
            ("outbound", counters.outbound),
            ("inbound", counters.inbound),
            ("returned", counters.returned),
            ("absorbed", counters.absorbed),
        ] {
            count(name.to_owned(), value);
        }
        for (refusal, name) in Refusal::ALL {
            count(name.to_owned(), counters.refused[refusal as usize]);
        }
        count("refused_bundles".to_owned(), state.bundles);
        let applications = state.point.applications().map(|(id, application)| {
            let mut values = vec![];
            application.state(&mut |name, value| values.push((name.to_owned(), value)));
            ApplicationSnapshot { id, name: application.name().to_owned(), values }
        });
        let applications = applications.collect();
        let [local, path] = self.devices.clone();
        Snapshot { local, path, up_s: self.clock.now().as_secs_f64(), packets, applications }
    }
}

impl Watch {
    /// Begins anew with another configuration, as after a restart: what was measured is forgotten, and `epoch` is higher. The wire
    /// goes on.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub(crate) fn begin_anew(&self, config: &Config, seed: u64, epoch: u32) -> Result<(), ApError> {
        held(&self.state).point = Point::new(config, seed, epoch)?;
        Ok(())
    }
}

fn held(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An aggregation point between two devices.
#[derive(Debug)]
pub(crate) struct AggregationPoint {
    /// Towards the endpoints, and towards the other site.
    ports: [Port; 2],
    indices: [u32; 2],
    _shut: [Shut; 2],
    watch: Watch,
}

impl AggregationPoint {
    /// Puts an aggregation point between two devices of the calling thread's network namespace. `seed` seeds the filter's
    /// draws; `epoch` grows with each restart.
    ///
    /// # Errors
    /// What is wrong with a device or with the configuration, or what the kernel refuses.
    pub(crate) fn open(
        local: &str,
        path: &str,
        config: &Config,
        seed: u64,
        epoch: u32,
    ) -> Result<AggregationPoint, ApError> {
        let point = Point::new(config, seed, epoch)?;
        if local == path {
            return Err(ApError::Unfit(format!("{local} cannot be both devices of an aggregation point")));
        }
        let indices = [index_of(local)?, index_of(path)?];
        let open = |n: usize, device: &str| {
            let port = Port::open(indices[n]);
            port.map_err(|error| ApError::Kernel { what: format!("cannot open {device} for packets"), error })
        };
        let shut = |n: usize, device: &str| {
            let shut = Shut::new(indices[n]);
            let what = format!("cannot keep the kernel's own stack off {device}");
            shut.map_err(|error| ApError::Kernel { what, error })
        };
        let ports = [open(0, local)?, open(1, path)?];
        let shut = [shut(0, local)?, shut(1, path)?];
        let state = State { point, frames: Default::default(), bundles: 0 };
        let watch = Watch {
            devices: [local.to_owned(), path.to_owned()],
            clock: Clock::starting_in(Span::ZERO),
            state: Arc::new(Mutex::new(state)),
        };
        Ok(AggregationPoint { ports, indices, _shut: shut, watch })
    }

    /// A handle that reads its counters from any thread.
    pub(crate) fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Works until `stop` is set.
    ///
    /// # Errors
    /// The kernel's, for example because a device has gone away.
    pub(crate) fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut batch = Batch::default();
        // This thread sleeps whenever no packet waits. With ordinary scheduling on a busy machine it woke up milliseconds late.
        let _ = claim_processor();
        while !stop.load(Ordering::Relaxed) {
            let local = self.turn(Side::Local, &mut batch)?;
            let path = self.turn(Side::Path, &mut batch)?;
            let wait = self.settle();
            if !local && !path {
                self.sleep(wait)?;
            }
        }
        Ok(())
    }

    /// Receives a batch from one side and forwards it. Returns whether more frames may wait.
    fn turn(&mut self, side: Side, batch: &mut Batch) -> io::Result<bool> {
        let at = side as usize;
        let more = match self.ports[at].receive(batch) {
            // The socket reports once that its device is down. That device may come up again; a removed one does not come back.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                let device = &self.watch.devices[at];
                if index_of_name(device) != Some(self.indices[at]) {
                    return Err(io::Error::other(format!("{device} was removed")));
                }
                false
            }
            received => received?,
        };
        if batch.frames().is_empty() {
            return Ok(more);
        }
        let mut ways = [None; weir_linux::port::BATCH];
        {
            let mut state = held(&self.watch.state);
            let now = self.watch.clock.now();
            for (slot, way) in batch.frames().iter_mut().zip(&mut ways) {
                *way = state.take(slot, side, now);
            }
        }
        for to in [Side::Local, Side::Path] {
            let mut frames =
                batch.frames().iter_mut().zip(ways).filter(|(_, way)| *way == Some(to)).peekable();
            if frames.peek().is_some() {
                self.ports[to as usize].send(frames.map(|(slot, _)| slot));
            }
        }
        Ok(more)
    }

    /// Runs the timers that are due and updates the counters. Returns how long the thread may sleep.
    fn settle(&mut self) -> Span {
        let mut state = held(&self.watch.state);
        let now = self.watch.clock.now();
        state.point.on_timer(now);
        state.frames = self.ports.each_ref().map(|port| port.counted);
        state.point.next_timer().map_or(LOOK_UP, |next| next.since(now)).min(LOOK_UP)
    }

    /// Sleeps until a packet arrives, for `span` at most.
    fn sleep(&mut self, span: Span) -> io::Result<()> {
        self.ports.iter_mut().for_each(Port::count_missed);
        let mut sockets =
            self.ports.each_ref().map(|port| PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN));
        match rustix::event::poll(&mut sockets, Some(&timespec_of(span))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl State {
    /// Handles a frame that arrived on `side`. Returns the side by which it leaves; `None` if it is dropped.
    fn take(&mut self, slot: &mut Slot, side: Side, now: Time) -> Option<Side> {
        let across = match side {
            Side::Local => Side::Path,
            Side::Path => Side::Local,
        };
        let (bundled, partial) = (slot.bundled(), slot.needs_checksum());
        let frame = slot.frame();
        let Some(at) = packet_at(frame) else { return Some(across) };
        let ip = &mut frame[at..];
        let total = ip_length(ip);
        let Some(view) = datagram(ip) else { return Some(across) };
        let tuple = FiveTuple {
            source: view.source.ip(),
            source_port: view.source.port(),
            destination: view.destination.ip(),
            destination_port: view.destination.port(),
        };
        if let Some(each) = bundled {
            let headers = total - view.head.len() as u32;
            let mut whole = true;
            // A bundle's checksums are filled in where it is taken apart.
            for payload in view.head.chunks_mut(each) {
                let length = headers + payload.len() as u32;
                let verdict = self.point.handle(Packet { side, tuple, length, payload, checksum: None }, now);
                whole &= matches!(verdict, Verdict::Pass | Verdict::Forward);
            }
            self.bundles += u64::from(!whole);
            return whole.then_some(across);
        }
        let mut sum = view.checksum.as_ref().map(|sum| u16::from_be_bytes(**sum));
        let checksum = if partial { None } else { sum.as_mut() };
        let verdict =
            self.point.handle(Packet { side, tuple, length: total, payload: view.head, checksum }, now);
        if let Some((field, sum)) = view.checksum.zip(sum) {
            *field = sum.to_be_bytes();
        }
        match verdict {
            Verdict::Pass | Verdict::Forward => Some(across),
            Verdict::Return if answer(&mut frame[at..]) => {
                frame[..12].rotate_left(6);
                Some(side)
            }
            Verdict::Return | Verdict::Absorb | Verdict::Refuse(_) => None,
        }
    }
}

/// The offset of the IP packet in an Ethernet frame; `None` if the frame holds no IP packet.
fn packet_at(frame: &[u8]) -> Option<usize> {
    let kind = |at: usize| frame.get(at - 2..at)?.first_chunk::<2>().copied();
    let mut at = ETHERNET;
    for _ in 0..MOST_TAGS {
        if !TAGGED.contains(&kind(at)?) {
            break;
        }
        at += 4;
    }
    [ETHERTYPE_IPV4, ETHERTYPE_IPV6].contains(&kind(at)?).then_some(at)
}

/// The length of an IP packet in bytes, by its header; a length field that is cut short counts as zero.
fn ip_length(ip: &[u8]) -> u32 {
    let word =
        |at: usize| ip.get(at..).and_then(|ip| ip.first_chunk()).map_or(0, |word| u16::from_be_bytes(*word));
    match ip.first() {
        Some(first) if first >> 4 == 4 => word(2).into(),
        _ => 40 + u32::from(word(4)),
    }
}

/// The index of a device that can be a side of a wire.
fn index_of(device: &str) -> Result<u32, ApError> {
    let index = index_of_name(device).ok_or_else(|| ApError::NoDevice(device.to_owned()))?;
    let kernel = |what: &str| {
        let what = what.to_owned();
        move |error| ApError::Kernel { what, error }
    };
    let addresses = addresses(device).map_err(kernel("cannot read the addresses of devices"))?;
    if addresses.iter().any(IpAddr::is_loopback) || device == "lo" {
        return Err(ApError::Unfit(format!("{device} is a loopback device")));
    }
    // The kernel adds link-local IPv6 addresses by itself.
    let own = |address: &&IpAddr| !matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    match addresses.iter().find(own) {
        Some(address) => Err(ApError::Addressed { device: device.to_owned(), address: *address }),
        None => Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_coord::header::{self, Flags, Version};
    use weir_linux::port::Slot;

    /// Application 1: datagrams within 10.0.0.0/8 at port 9000.
    fn state() -> State {
        let text = "[[application]]\nid = 1\nname = 'a'\nlocal = ['10.0.0.0/8']\nlocal_ports = 9000\n\
                    remote = ['10.0.0.0/8']\nremote_ports = 9000\n";
        let point = Point::new(&Config::from_toml(text).unwrap(), 1, 1).unwrap();
        State { point, frames: Default::default(), bundles: 0 }
    }

    /// A frame from 10.0.0.1 to 10.0.0.2 of datagrams with headers of version 1 and these flags, with `tags` VLAN tags.
    fn frame(flags: &[Flags], tags: usize) -> Vec<u8> {
        let mut payload = vec![];
        for flags in flags {
            let mut head = [0xff; 20];
            header::Prefix { version: Version::One, application: 1, flow: 0, protocol: 2, flags: *flags }
                .write(&mut head);
            payload.extend(head);
        }
        let mut ip =
            vec![0x45, 0, 0, 28 + payload.len() as u8, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip.extend([0x23, 0x28, 0x23, 0x28, 0, 8 + payload.len() as u8, 0x12, 0x34]);
        let mut frame = vec![1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 7]));
        [frame, vec![8, 0], ip, payload].concat()
    }

    fn flags_at(frame: &[u8], at: usize) -> u8 {
        frame[ETHERNET + 28 + at + 3]
    }

    #[test]
    fn every_datagram_of_a_bundle_is_rewritten_and_a_bundle_is_sent_whole_or_not_at_all() {
        let mut state = state();
        let none = Flags::default();
        let mut bundle = Slot::of(&frame(&[none, none, none], 0), Some(20));
        assert_eq!(state.take(&mut bundle, Side::Local, Time::ZERO), Some(Side::Path));
        assert_eq!([0, 20, 40].map(|at| flags_at(bundle.frame(), at)), [Flags::DATAPATH.0; 3]);
        let checksum = bundle.frame()[ETHERNET + 26..ETHERNET + 28].to_vec();
        assert_eq!(checksum, [0x12, 0x34], "it is filled in where the bundle is taken apart");
        let mut mixed = Slot::of(&frame(&[none, Flags::DATAPATH], 0), Some(20));
        assert_eq!(state.take(&mut mixed, Side::Local, Time::ZERO), None);
        assert_eq!((state.bundles, state.point.counters().outbound), (1, 4));
    }

    #[test]
    fn an_applications_packet_is_found_behind_two_vlan_tags_and_passes_behind_three() {
        let mut state = state();
        for (tags, outbound) in [(0, 1), (1, 2), (2, 3), (3, 3)] {
            let mut slot = Slot::of(&frame(&[Flags::default()], tags), None);
            assert_eq!(state.take(&mut slot, Side::Local, Time::ZERO), Some(Side::Path));
            assert_eq!(state.point.counters().outbound, outbound, "{tags} tags");
        }
    }

    #[test]
    fn a_reflected_packet_leaves_where_it_arrived_with_all_addresses_swapped() {
        let mut slot = Slot::of(&frame(&[Flags::REFLECT], 0), None);
        assert_eq!(state().take(&mut slot, Side::Local, Time::ZERO), Some(Side::Local));
        assert_eq!(slot.frame()[..12], [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]);
        assert_eq!(slot.frame()[ETHERNET + 12..ETHERNET + 20], [10, 0, 0, 2, 10, 0, 0, 1]);
    }

    #[test]
    fn truncated_frames_cause_no_panic() {
        let (mut state, whole) = (state(), frame(&[Flags::default()], 1));
        for length in 14..whole.len() {
            for side in [Side::Local, Side::Path] {
                state.take(&mut Slot::of(&whole[..length], None), side, Time::ZERO);
            }
        }
    }
}
