//! Random connections with all events of a sender: acknowledgements with and without RTT samples, marks, losses, timeouts,
//! reductions that are undone, idle times.

use super::forms::{Forms, Seen, reducing};
use weir_base::Bytes;
use weir_control::{Config, Phase, Signal};

const MSS: Bytes = Bytes::new(1000);
const EVENTS: usize = 12_000;

/// The properties of a random connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Properties {
    /// The peer's clock is this far ahead of ours, in milliseconds.
    apart: u32,
    /// Sequence numbers per segment.
    step: u64,
    /// Largest change of the queue between two acknowledgements in milliseconds; below, the other variation of the RTT in
    /// microseconds.
    queue_step: u64,
    noise: u64,
}

/// Two connections whose clocks and sequence numbers wrap and whose RTTs jump, and one realistic connection.
pub(crate) const CONNECTIONS: [Properties; 3] = [
    Properties { apart: u32::MAX - 60_000, step: 300_000, queue_step: 10, noise: 5_000 },
    Properties { apart: u32::MAX - 60_000, step: 300_000, queue_step: 3, noise: 1_000 },
    Properties { apart: 5_000, step: MSS.get(), queue_step: 1, noise: 50 },
];

/// A random connection.
struct Life {
    properties: Properties,
    forms: Forms,
    srtt: Option<u64>,
    /// Queue in milliseconds: a random walk.
    queue: u64,
    /// Whether an acknowledgement has come since the reduction began.
    settled: bool,
    /// Whether acknowledgements come close together, and whether segments are lost.
    dense: bool,
    losing: bool,
}

/// A connection of 12,000 events.
pub(crate) fn lived(config: &Config, seed: u64, properties: Properties) -> Forms {
    let forms = Forms::new(config, seed, MSS);
    let mut life =
        Life { properties, forms, srtt: None, queue: 0, settled: false, dense: false, losing: false };
    (0..EVENTS).for_each(|_| life.step());
    life.forms
}

impl Life {
    fn step(&mut self) {
        let forms = &mut self.forms;
        forms.now += 1 + forms.random.below(if self.dense { 3_000 } else { 40_000 });
        self.dense ^= forms.random.chance(0.003);
        self.losing ^= forms.random.chance(0.002);
        if forms.random.chance(0.002) {
            forms.now += forms.random.below(30_000_000);
        }
        // Whether all data sent has been acknowledged.
        let idle = forms.next == forms.acknowledged;
        match forms.random.below(600) {
            0..=2 if forms.calm() => self.reduce(Signal::Loss),
            3..=6 if forms.calm() => self.reduce(Signal::Ecn),
            7 => self.time_out(),
            8..=40 if forms.undoable && matches!(forms.phase, Phase::Recovery | Phase::Loss) => {
                forms.undo();
                self.acknowledge(Some(Phase::Open));
            }
            41..=42 if forms.phase == Phase::Open && idle => {
                let (idle, rto) = (forms.random.below(3_000_000), 200_000 + forms.random.below(300_000));
                forms.restart_after_idleness(idle, rto);
            }
            43..=46 if idle => forms.transmit(),
            47 if forms.phase == Phase::Open => {
                let used = forms.random.below(60) as u32;
                forms.leave_unused(used);
            }
            _ => self.acknowledge(None),
        }
    }

    fn reduce(&mut self, signal: Signal) {
        self.forms.reduce(signal);
        self.settled = false;
    }

    fn time_out(&mut self) {
        let forms = &mut self.forms;
        let reduce = forms.calm() || (forms.own_until.is_none() && forms.random.chance(0.3));
        let in_flight = forms.random.below(20);
        forms.time_out(in_flight, reduce);
    }

    /// The sender's phase after the next acknowledgement.
    fn next_phase(&mut self, acknowledged: u64) -> Phase {
        let forms = &mut self.forms;
        if let Some(until) = forms.own_until {
            return if acknowledged > until { Phase::Open } else { Phase::Cwr };
        }
        match forms.phase {
            Phase::Open if forms.random.chance(0.03) => Phase::Disorder,
            Phase::Disorder if forms.random.chance(0.3) => Phase::Open,
            Phase::Cwr if self.settled && forms.random.chance(0.03) => {
                forms.undoable = false;
                Phase::Recovery
            }
            Phase::Cwr | Phase::Recovery | Phase::Loss if forms.random.chance(0.07) => Phase::Open,
            phase => phase,
        }
    }

    fn acknowledge(&mut self, becomes: Option<Phase>) {
        let (segments, acknowledged, next) = self.deliver();
        let phase = becomes.unwrap_or_else(|| self.next_phase(acknowledged));
        let own = self.forms.own_until.is_some() && phase == Phase::Cwr;
        let (random, now) = (&mut self.forms.random, self.forms.now);
        let acked_segments = if random.chance(0.9) { segments } else { random.below(6) as u32 };
        let ce_packets = if random.chance(0.1) { random.below(u64::from(segments) + 1) as u32 } else { 0 };
        let Properties { apart, queue_step, noise, .. } = self.properties;
        self.queue = (self.queue + random.below(2 * queue_step + 1)).saturating_sub(queue_step).min(250);
        let rtt = 20_000 + 1_000 * self.queue + random.below(noise);
        let sampled = random.chance(0.9);
        if sampled {
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (7 * srtt + rtt) / 8));
        }
        let grows = segments > 0 && (own || (!reducing(phase) && random.chance(0.97)));
        let cwnd_limited = random.chance(0.85);
        let in_flight = u64::from(segments) + random.below(100);
        let sacked_out = if random.chance(0.1) { random.below(4) as u32 } else { 0 };
        let predicted = sacked_out == 0 && random.chance(0.7);
        let echoed_ticks = ((now - rtt.min(now)) / 1_000) as u32;
        let peer_ticks = apart.wrapping_add(echoed_ticks).wrapping_add(10 + self.queue as u32);
        let ticks = random.chance(0.95).then_some((peer_ticks, echoed_ticks));
        self.settled = true;
        let lost_segments = if self.losing && random.chance(0.05) { random.below(4) as u32 } else { 0 };
        self.forms.acknowledge(&Seen {
            segments,
            acked_segments,
            rtt: sampled.then_some(rtt),
            srtt: self.srtt,
            ce_packets,
            acknowledged,
            next,
            ticks,
            in_flight,
            cwnd_limited,
            grows,
            phase,
            sacked_out,
            predicted,
            lost_segments,
        });
    }

    /// Acknowledges segments and sends others: between none and about sixty are in flight. Returns how many were acknowledged,
    /// and the offsets acknowledged and next.
    fn deliver(&mut self) -> (u32, u64, u64) {
        let (forms, step) = (&mut self.forms, self.properties.step);
        let out = (forms.next - forms.acknowledged) / step;
        let segments = match forms.random.below(1_000) {
            0..50 => 0,
            50..55 => out,
            _ => 1 + forms.random.below(3),
        };
        let sent = forms.random.below(if out > 60 { 3 } else { 5 });
        let acknowledged = forms.acknowledged + segments * step;
        (segments as u32, acknowledged, forms.next.max(acknowledged) + sent * step)
    }
}
