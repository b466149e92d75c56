//! Links that do given things to given packets: a script drops packets by their number, or holds them back until a number of later ones
//! has passed. Other links have no [`Script`] and pay one check for it.

use super::{Around, Link};
use crate::config;
use crate::wire::Wire;
use std::collections::VecDeque;
use weir_base::Time;

#[derive(Debug)]
pub(super) struct Script<P> {
    /// Packets that have arrived.
    arrivals: u64,
    /// The numbers of packets that are dropped, ascending; the first packet is number 1.
    drop: VecDeque<u64>,
    /// The numbers of packets that are held back, each with the number of packets that must pass it.
    hold: VecDeque<(u64, u64)>,
    /// Packets held back, each with the number of packets that have yet to pass it.
    held: Vec<(u64, P)>,
}

impl<P> Script<P> {
    /// The script of this link; `None` if it has none.
    pub(super) fn new(config: &config::Link) -> Option<Box<Script<P>>> {
        let (drop, hold) = (&config.drop, &config.reorder);
        let script = Script {
            arrivals: 0,
            drop: drop.iter().copied().collect(),
            hold: hold.iter().map(|hold| (hold.packet, hold.by)).collect(),
            held: Vec::new(),
        };
        (!drop.is_empty() || !hold.is_empty()).then(|| Box::new(script))
    }

    /// Number of packets held back.
    pub(super) fn held(&self) -> u64 {
        self.held.len() as u64
    }

    /// Whether the packet that arrives is to be dropped.
    fn drops(&mut self) -> bool {
        let drops = self.drop.front() == Some(&self.arrivals);
        if drops {
            self.drop.pop_front();
        }
        drops
    }

    /// How many packets must pass the one that arrives; `None` if it is not held back.
    fn holds(&mut self) -> Option<u64> {
        let (_, by) = self.hold.front().copied().filter(|(number, _)| *number == self.arrivals)?;
        self.hold.pop_front();
        Some(by)
    }

    /// Another packet has passed those held back.
    fn passed(&mut self) {
        self.held.iter_mut().for_each(|(left, _)| *left -= 1);
    }

    /// Takes out a packet that enough others have passed, if there is one.
    fn release(&mut self) -> Option<P> {
        let due = self.held.iter().position(|(left, _)| *left == 0)?;
        Some(self.held.remove(due).1)
    }
}

impl<P: Wire> Link<P> {
    /// As [`Link::arrive`], for a link with a script.
    #[cold]
    pub(super) fn arrive_scripted(
        &mut self,
        mut packet: P,
        now: Time,
        around: &mut Around<P>,
    ) -> Option<Time> {
        let script = self.script.as_mut()?;
        script.arrivals += 1;
        packet.arrive(now);
        if script.drops() {
            self.lose(packet, now, around);
            return None;
        }
        if let Some(by) = script.holds() {
            script.held.push((by, packet));
            return None;
        }
        let mut wake = self.pass_script(packet, now, around);
        self.script.as_mut()?.passed();
        while let Some(mut packet) = self.script.as_mut()?.release() {
            packet.arrive(now);
            wake = wake.or(self.pass_script(packet, now, around));
        }
        wake
    }

    /// A packet goes on that was neither dropped nor held back.
    fn pass_script(&mut self, packet: P, now: Time, around: &mut Around<P>) -> Option<Time> {
        if self.rate.is_some() {
            return self.take_in(packet, now, around);
        }
        self.stats.counters.forwarded += u64::from(self.impairments.is_none());
        self.send_off(packet, now, now, around);
        None
    }
}
