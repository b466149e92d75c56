//! The aggregation point: how it handles each packet that passes (sections 3.1, 3.2 and 5.1).
//!
//! The driver passes in the head of each UDP payload with the packet's addresses and the side from which it came, and carries
//! out the [`Verdict`]. Packets of no configured application pass unchanged. The point holds no packet.
//!
//! Where the source is silent, this holds: LSCOPE and REFLECT packets refresh state but are not counted as throughput, since
//! they do not cross the path; with both set, LSCOPE applies. Both directions of a connection have one flow id. Its owner is
//! the first five-tuple that uses it in an outbound packet of this site; packets from the path create no flow. `FLOW.num`
//! therefore counts endpoints that send any packet, acknowledgements included.

use crate::application::Application;
use crate::checksum;
use crate::config::{Config, ConfigError};
use crate::five_tuple::FiveTuple;
use crate::header::{self, APPLICATIONS, Flags, HeaderError, Prefix, Probe, Version};
use crate::seal::{self, Key, Leg};
use weir_base::{Random, Time};

/// The side from which a packet comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// From the endpoints of this site.
    Local,
    /// From the other site.
    Path,
}

/// A UDP packet that passes.
#[derive(Debug)]
pub struct Packet<'a> {
    /// The side from which it comes.
    pub side: Side,
    /// Its addresses and ports.
    pub tuple: FiveTuple,
    /// Length of the IP packet in bytes.
    pub length: u32,
    /// The UDP payload or its head; at most its first [`header::LONGEST`] bytes are read and rewritten.
    pub payload: &'a mut [u8],
    /// The UDP checksum to repair; `None` if there is none.
    pub checksum: Option<&'a mut u16>,
}

/// What the driver must do with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The packet belongs to no configured application: forward it unchanged.
    Pass,
    /// Forward it with its header rewritten.
    Forward,
    /// Send it back to its source: swap its addresses and its ports. Neither changes the checksum.
    Return,
    /// Its operations are carried out: drop it.
    Absorb,
    /// Drop it because of an error.
    Refuse(Refusal),
}

/// Why a packet is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// Its addresses and ports belong to an application, but it has no complete CP header.
    NoHeader,
    /// Its header names an application that is not configured, or not for these addresses and ports.
    Foreign,
    /// An endpoint's packet with DATAPATH, or one from the path without it.
    Direction,
    /// A header without a tag where there is a key.
    Unsealed,
    /// The tag is wrong.
    Tag,
    /// Its sequence number was seen before or is too old.
    Replay,
    /// The flow id is not below the application's number of flows.
    FlowId,
    /// The flow id belongs to another five-tuple.
    Owner,
    /// More reflections than are allowed.
    Reflections,
}

impl Refusal {
    /// All of them with their names in counters.
    pub const ALL: [(Refusal, &'static str); 9] = [
        (Refusal::NoHeader, "refused_no_header"),
        (Refusal::Foreign, "refused_foreign"),
        (Refusal::Direction, "refused_direction"),
        (Refusal::Unsealed, "refused_unsealed"),
        (Refusal::Tag, "refused_tag"),
        (Refusal::Replay, "refused_replay"),
        (Refusal::FlowId, "refused_flow_id"),
        (Refusal::Owner, "refused_owner"),
        (Refusal::Reflections, "refused_reflections"),
    ];
}

/// Numbers of packets by verdict and direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets of no application.
    pub passed: u64,
    /// From an endpoint to the path.
    pub outbound: u64,
    /// From the path to an endpoint.
    pub inbound: u64,
    /// Reflected.
    pub returned: u64,
    /// Absorbed (LSCOPE).
    pub absorbed: u64,
    /// Refused, by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
}

/// An aggregation point.
#[derive(Debug, Clone)]
pub struct Point {
    applications: [Option<Box<Application>>; APPLICATIONS],
    peer_key: Option<Key>,
    counters: Counters,
}

impl Point {
    /// An aggregation point of this configuration. `seed` seeds the filters' random numbers. `epoch` is a number that grows
    /// with each restart (for example seconds since 1970), so that the other AP recognizes a restart.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: &Config, seed: u64, epoch: u32) -> Result<Point, ConfigError> {
        config.check()?;
        let mut applications = [const { None }; APPLICATIONS];
        let first = u64::from(epoch) << 32;
        for application in &config.application {
            let random = Random::stream_of(seed, "coordination", application.id.into());
            applications[usize::from(application.id)] =
                Some(Box::new(Application::new(application.clone(), config, first, random)));
        }
        Ok(Point { applications, peer_key: config.peer_key, counters: Counters::default() })
    }

    /// Takes a packet that passes at `now`, rewrites its header and returns the verdict. `now` never decreases.
    #[inline]
    pub fn handle(&mut self, packet: Packet<'_>, now: Time) -> Verdict {
        let verdict = match packet.side {
            Side::Local => self.outbound(packet, now),
            Side::Path => self.inbound(packet, now),
        };
        let verdict = verdict.unwrap_or_else(Verdict::Refuse);
        match verdict {
            Verdict::Pass => self.counters.passed += 1,
            Verdict::Return => self.counters.returned += 1,
            Verdict::Absorb => self.counters.absorbed += 1,
            Verdict::Refuse(refusal) => self.counters.refused[refusal as usize] += 1,
            // Counted in `outbound` and `inbound`.
            Verdict::Forward => {}
        }
        verdict
    }

    /// When [`Point::on_timer`] is due next; `None` while every application is silent.
    pub fn next_timer(&self) -> Option<Time> {
        let next = self.applications.iter().flatten().map(|application| application.next_tick()).min();
        next.filter(|next| *next != Time::NEVER)
    }

    /// Samples the rates that are due and forgets state whose lifetime has ended.
    pub fn on_timer(&mut self, now: Time) {
        for application in self.applications.iter_mut().flatten() {
            if application.next_tick() <= now {
                application.tick(now);
            }
        }
    }

    /// The application with this id; `None` if it is not configured.
    pub fn application(&mut self, id: u8) -> Option<&mut Application> {
        self.applications.get_mut(usize::from(id))?.as_deref_mut()
    }

    /// All applications with their ids.
    pub fn applications(&self) -> impl Iterator<Item = (u8, &Application)> {
        (0u8..).zip(&self.applications).filter_map(|(id, application)| Some((id, application.as_deref()?)))
    }

    /// Numbers of packets by verdict and direction.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Reads the header and finds its application; `None` if the packet belongs to none. `tuple` is seen from this site.
    #[inline]
    fn classify(&mut self, payload: &[u8], tuple: &FiveTuple) -> Result<Option<Prefix>, Refusal> {
        let prefix = Prefix::read(payload);
        if let Ok(prefix) = prefix
            && let Some(application) = &self.applications[usize::from(prefix.application)]
            // The owner of a flow was checked when it became the owner.
            && (application.owner(prefix.flow) == Some(tuple) || application.permits(tuple))
        {
            return Ok(Some(prefix));
        }
        if !self.applications.iter().flatten().any(|application| application.permits(tuple)) {
            return Ok(None);
        }
        Err(match prefix {
            Ok(_) => Refusal::Foreign,
            Err(HeaderError::Short | HeaderError::Version(_)) => Refusal::NoHeader,
        })
    }

    fn outbound(&mut self, packet: Packet<'_>, now: Time) -> Result<Verdict, Refusal> {
        let Packet { tuple, length, payload, checksum, .. } = packet;
        let Some(prefix) = self.classify(payload, &tuple)? else { return Ok(Verdict::Pass) };
        let Prefix { version, flow, flags, .. } = prefix;
        let peer_key = self.peer_key;
        let application = self.owned(prefix.application)?;
        if flags.has(Flags::DATAPATH) {
            return Err(Refusal::Direction);
        }
        let key = application.key().copied();
        checked(version, key, peer_key, Leg::Out, payload)?;
        if !application.has_flow(flow) {
            return Err(Refusal::FlowId);
        }
        if application.owner(flow).is_some_and(|owner| *owner != tuple) {
            return Err(Refusal::Owner);
        }
        if key.is_some() && !application.admit(flow, header::sequence(payload)) {
            return Err(Refusal::Replay);
        }
        let (stays, returns) = (flags.has(Flags::LSCOPE), flags.has(Flags::REFLECT));
        if returns && !stays && !application.may_reflect(now) {
            return Err(Refusal::Reflections);
        }
        if application.next_tick() <= now {
            application.tick(now);
        }
        application.operate(flow, &tuple, header::words(version, payload), now);
        if stays {
            return Ok(Verdict::Absorb);
        }
        let old = head(payload, version);
        let verdict = if returns {
            header::set_words(version, payload, application.reports(flow));
            seal::seal(key.as_ref(), Leg::In, version, payload);
            Verdict::Return
        } else {
            Prefix { flags: flags.with(Flags::DATAPATH), ..prefix }.write(payload);
            application.leave(flow, length, now).write(version, payload);
            seal::seal(peer_key.as_ref(), Leg::Path, version, payload);
            self.counters.outbound += 1;
            Verdict::Forward
        };
        repair(checksum, &old, payload, version);
        Ok(verdict)
    }

    fn inbound(&mut self, packet: Packet<'_>, now: Time) -> Result<Verdict, Refusal> {
        let Packet { tuple, length, payload, checksum, .. } = packet;
        let local = tuple.reversed();
        let Some(prefix) = self.classify(payload, &local)? else { return Ok(Verdict::Pass) };
        let Prefix { version, flow, flags, .. } = prefix;
        let peer_key = self.peer_key;
        let application = self.owned(prefix.application)?;
        if !flags.has(Flags::DATAPATH) {
            return Err(Refusal::Direction);
        }
        let key = application.key().copied();
        checked(version, peer_key, key, Leg::Path, payload)?;
        if !application.has_flow(flow) {
            return Err(Refusal::FlowId);
        }
        if peer_key.is_some() && !seal::is_new(&mut application.window, payload) {
            return Err(Refusal::Replay);
        }
        if application.next_tick() <= now {
            application.tick(now);
        }
        let probe = Probe::read(version, payload);
        application.arrive(&probe, version, length, now);
        // Only the owner of the flow receives its reports; any other five-tuple receives zeros.
        let reports = match application.owner(flow) {
            Some(owner) if *owner == local => application.reports(flow),
            _ => [0; header::WORDS],
        };
        let old = head(payload, version);
        let flags = flags.without(Flags::DATAPATH.with(Flags::LSCOPE).with(Flags::REFLECT));
        Prefix { flags, ..prefix }.write(payload);
        header::set_words(version, payload, reports);
        seal::seal(key.as_ref(), Leg::In, version, payload);
        repair(checksum, &old, payload, version);
        self.counters.inbound += 1;
        Ok(Verdict::Forward)
    }

    /// The application that [`Point::classify`] has found.
    fn owned(&mut self, id: u8) -> Result<&mut Application, Refusal> {
        self.application(id).ok_or(Refusal::Foreign)
    }
}

/// Checks that the header is sealed if this leg has a key. If either leg has a key, version 1 is refused: a header has one
/// length on all legs, and nobody may downgrade a sealed application to version 1.
fn checked(
    version: Version,
    key: Option<Key>,
    other_leg: Option<Key>,
    leg: Leg,
    payload: &[u8],
) -> Result<(), Refusal> {
    match (version, key) {
        (Version::One, None) if other_leg.is_none() => Ok(()),
        (Version::One, _) => Err(Refusal::Unsealed),
        (Version::Two, None) => Ok(()),
        (Version::Two, Some(key)) => key.verify(leg, payload).then_some(()).ok_or(Refusal::Tag),
    }
}

fn head(payload: &[u8], version: Version) -> [u8; header::LONGEST] {
    let mut head = [0; header::LONGEST];
    head[..version.length()].copy_from_slice(&payload[..version.length()]);
    head
}

fn repair(checksum: Option<&mut u16>, old: &[u8], payload: &[u8], version: Version) {
    if let Some(checksum) = checksum {
        let length = version.length();
        *checksum = checksum::repaired(*checksum, &old[..length], &payload[..length]);
    }
}
