//! The bounds of a run. Each is far above what any run needs that goes on; a run beyond one of them ends with an error that names what
//! was busy, instead of never ending or filling the machine's memory.
//!
//! The event loop checks them where it looks whether it is cancelled, and nothing here is called for a packet.

use super::World;
use crate::flow::TIMERS;
use weir_base::Time;
use weir_engine::EngineError;
use weir_fabric::Culprit;
use weir_workload::End;

/// Most packets that an end sends in one turn: over a gigabyte at one instant.
pub(super) const MOST_IN_ONE_TURN: u32 = 1 << 20;
/// Most looks at one instant: 16.8 million events.
const MOST_LOOKS_AT_ONE_INSTANT: u32 = 1 << 10;
/// Most packets that queues, links and stations hold together: some two gigabytes.
const MOST_PACKETS: u64 = 1 << 23;
/// They are counted each time that this many packets were made.
const PACKETS_BETWEEN_COUNTS: u64 = 1 << 20;

/// What the last look has seen.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    at: Time,
    looks_at_it: u32,
    /// Packets that were made until they were last counted.
    made: u64,
}

impl Bounds {
    /// The run is at this time. Returns whether it has stayed there for too many events.
    fn is_stuck(&mut self, now: Time) -> bool {
        if now > self.at {
            (self.at, self.looks_at_it) = (now, 0);
        }
        self.looks_at_it += 1;
        self.looks_at_it >= MOST_LOOKS_AT_ONE_INSTANT
    }

    /// So many packets were made. Returns whether those that are held are to be counted.
    fn is_to_count(&mut self, made: u64) -> bool {
        let counts = made >= self.made + PACKETS_BETWEEN_COUNTS;
        if counts {
            self.made = made;
        }
        counts
    }
}

impl World<'_> {
    /// Ends the run with an error if it is beyond a bound.
    pub(super) fn check_bounds(&mut self) -> Result<(), EngineError> {
        if let Some(endless) = self.endless.take() {
            return Err(EngineError::Endless(endless));
        }
        if let Some((culprit, at)) = self.fabric.endless() {
            return Err(EngineError::Endless(self.reason(culprit, at)));
        }
        let now = self.timers.passed().max(self.fabric.passed());
        if self.bounds.is_stuck(now) {
            return Err(EngineError::Endless(self.stuck(now)));
        }
        if self.bounds.is_to_count(self.pool.made()) {
            let totals = self.fabric.totals();
            let packets = totals.in_flight + totals.held;
            if packets > MOST_PACKETS {
                return Err(EngineError::Endless(self.full(packets, now)));
            }
        }
        Ok(())
    }

    /// An end has sent as many packets in one turn as none sends that ends.
    #[cold]
    pub(super) fn sends_without_end(&mut self, number: usize, end: End, now: Time) {
        let (flow, end) = (self.name(number), side(end));
        self.endless.get_or_insert_with(|| {
            format!("{flow}: its {end} has sent {MOST_IN_ONE_TURN} packets at {}, and has more", clock(now))
        });
        // The loop looks at once.
        self.before_look = 1;
    }

    /// A flow with its transport.
    fn name(&self, number: usize) -> String {
        let flow = &self.run.flows[number];
        let transport =
            self.run.groups[flow.group].transport.as_ref().map_or("none", |transport| transport.name());
        format!("flow {} (transport {transport})", flow.name)
    }

    fn reason(&self, culprit: Culprit, at: Time) -> String {
        let (what, name) = match culprit {
            Culprit::Link(link) => ("link", &self.run.network.links[link].name),
            Culprit::Station(station) => ("station", &self.run.stations[station].name),
        };
        format!("{what} {name} has had millions of events at {}, and has more", clock(at))
    }

    fn stuck(&self, now: Time) -> String {
        let due = self.timers.peek().filter(|(at, _)| *at <= now).map(|(_, source)| source / TIMERS);
        let who = match due.filter(|number| *number < self.flows.len()) {
            Some(number) => format!("{} is due again and again", self.name(number)),
            None => "hosts answer each other in no time".into(),
        };
        format!("millions of events are at {}, and time does not go on: {who}", clock(now))
    }

    fn full(&self, packets: u64, now: Time) -> String {
        let link =
            self.fabric.fullest_link().map(|(link, inside)| (&self.run.network.links[link].name, inside));
        let most = link.map_or(String::new(), |(name, inside)| format!(", {inside} of them at link {name}"));
        format!("{packets} packets are under way at {}{most}: a run may have {MOST_PACKETS}", clock(now))
    }
}

fn side(end: End) -> &'static str {
    match end {
        End::Sender => "sender",
        End::Receiver => "receiver",
    }
}

/// A time as text.
fn clock(at: Time) -> String {
    format!("{:.6} s", at.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_stuck_after_sixteen_million_events_at_one_instant() {
        let (mut bounds, at) = (Bounds::default(), Time::from_nanos(7));
        assert!((1..MOST_LOOKS_AT_ONE_INSTANT).all(|_| !bounds.is_stuck(at)));
        assert!(!bounds.is_stuck(Time::from_nanos(8)), "time goes on");
        assert!((2..MOST_LOOKS_AT_ONE_INSTANT).all(|_| !bounds.is_stuck(Time::from_nanos(8))));
        assert!(bounds.is_stuck(Time::from_nanos(8)));
    }

    #[test]
    fn packets_are_counted_each_time_that_a_million_was_made() {
        let mut bounds = Bounds::default();
        let counted: Vec<bool> =
            [0, 1 << 20, (1 << 20) + 1, 1 << 21].map(|made| bounds.is_to_count(made)).into();
        assert_eq!(counted, [false, true, false, true]);
    }
}
