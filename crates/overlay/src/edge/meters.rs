//! Flows that wait for credit. Those of one bin and one rate equation have the same rate at all times, so one meter counts what each of them
//! is given. A flow that waits is given its next packet at a reading of the meter that stays the same however the price moves: they open in
//! the order of these readings, and only the first of them sets the time at which the meter is looked at.
//!
//! The rate follows the price as it was read last: when a flow of the meter has sent, and each [`REFRESH`] while any waits. After a fall of the
//! price a flow opens at most that time later than if the price had been read at once. After a rise it has been given at most what the rate
//! before gives in that time too much. What a look costs does not depend on how many flows wait, and there are at most as many meters as flows.

use super::agenda::Agenda;
use crate::admission::Credit;
use crate::utility::log;
use weir_base::{Rate, Span, Time};

/// The price of flows that wait is read this often (digest X 1.5).
const REFRESH: Span = Span::from_millis(1);
/// The same while none of their receivers can be reached.
pub(super) const UNREACHABLE: Span = Span::from_millis(10);

/// A flow's place at a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    meter: usize,
    number: usize,
}

/// What the flows of one bin and one equation are given.
#[derive(Debug)]
struct Meter {
    bin: usize,
    equation: log::Config,
    /// The present rate of each flow, and what each was given until this time, at which the price was read.
    rate: Rate,
    reading: Credit,
    at: Time,
    /// The price is read again after this time.
    pause: Span,
    /// The flows by their seats, and seats without a flow.
    flows: Vec<usize>,
    free: Vec<usize>,
    /// The reading at which each may send; [`Credit::MAX`] of one that does not wait.
    waiting: Agenda<Credit>,
}

impl Meter {
    fn new(bin: usize, equation: log::Config) -> Meter {
        Meter {
            bin,
            equation,
            rate: Rate::from_bits_per_sec(0),
            reading: Credit::ZERO,
            at: Time::ZERO,
            pause: REFRESH,
            flows: Vec::new(),
            free: Vec::new(),
            waiting: Agenda::new(Credit::MAX),
        }
    }

    fn is_used(&self) -> bool {
        self.flows.len() > self.free.len()
    }

    /// What each flow was given until now.
    fn reading(&self, now: Time) -> Credit {
        self.reading.plus(Credit::given(self.rate, now.since(self.at)))
    }

    /// The price has been read: it makes this rate, or is not known.
    fn set(&mut self, rate: Option<Rate>, now: Time) {
        (self.reading, self.at) = (self.reading(now), now);
        self.rate = rate.unwrap_or_default();
        self.pause = if rate.is_some() { REFRESH } else { UNREACHABLE };
    }

    /// When it is looked at; [`Time::NEVER`] while no flow waits.
    fn due(&self) -> Time {
        let first = self.waiting.soonest();
        if first == Credit::MAX {
            return Time::NEVER;
        }
        let refresh = self.at + self.pause;
        if self.rate.bits_per_sec() == 0 {
            return refresh;
        }
        refresh.min(first.minus(self.reading).due(self.rate, self.at))
    }
}

/// All meters. The place of one without flows is used again.
#[derive(Debug)]
pub(super) struct Meters {
    meters: Vec<Meter>,
    due: Agenda<Time>,
}

impl Meters {
    pub(super) fn new() -> Meters {
        Meters { meters: Vec::new(), due: Agenda::new(Time::NEVER) }
    }

    /// When a meter is looked at.
    pub(super) fn next_time(&self) -> Time {
        self.due.soonest()
    }

    /// Gives a flow a seat at the meter of its bin and equation.
    pub(super) fn join(&mut self, bin: usize, equation: &log::Config, flow: usize) -> Seat {
        let is_it = |meter: &Meter| meter.is_used() && meter.bin == bin && meter.equation == *equation;
        let unused = |meters: &[Meter]| meters.iter().position(|meter| !meter.is_used());
        let at = self.meters.iter().position(is_it).unwrap_or_else(|| {
            let new = Meter::new(bin, *equation);
            match unused(&self.meters) {
                Some(at) => {
                    self.meters[at] = new;
                    at
                }
                None => {
                    self.meters.push(new);
                    self.meters.len() - 1
                }
            }
        });
        let meter = &mut self.meters[at];
        let number = match meter.free.pop() {
            Some(number) => {
                meter.flows[number] = flow;
                number
            }
            None => {
                meter.flows.push(flow);
                meter.flows.len() - 1
            }
        };
        Seat { meter: at, number }
    }

    /// A flow gives up its seat.
    pub(super) fn leave(&mut self, seat: Seat) {
        let meter = &mut self.meters[seat.meter];
        meter.waiting.take(seat.number);
        meter.free.push(seat.number);
        self.settle(seat.meter);
    }

    /// Whether a seat is at the meter of this equation.
    pub(super) fn is_of(&self, seat: Seat, equation: &log::Config) -> bool {
        self.meters[seat.meter].equation == *equation
    }

    /// The rate of the flows of a meter, if the one in this seat waits.
    pub(super) fn rate(&self, seat: Seat) -> Option<Rate> {
        let meter = &self.meters[seat.meter];
        (meter.waiting.time(seat.number) != Credit::MAX).then_some(meter.rate)
    }

    /// The price has been read for another reason: it makes this rate for all flows of the meter.
    pub(super) fn note(&mut self, seat: Seat, rate: Rate, now: Time) {
        self.meters[seat.meter].set(Some(rate), now);
        self.settle(seat.meter);
    }

    /// A flow waits, since it lacks so much for its next packet.
    pub(super) fn wait(&mut self, seat: Seat, lacks: Credit, now: Time) {
        let meter = &mut self.meters[seat.meter];
        let opens = meter.reading(now).plus(lacks);
        meter.waiting.set(seat.number, opens);
        self.settle(seat.meter);
    }

    /// A flow does not wait any more. Returns its present rate and what it lacks, if it did.
    pub(super) fn resume(&mut self, seat: Seat, now: Time) -> Option<(Rate, Credit)> {
        let rate = self.rate(seat)?;
        let meter = &mut self.meters[seat.meter];
        let lacks = meter.waiting.take(seat.number).minus(meter.reading(now));
        self.settle(seat.meter);
        Some((rate, lacks))
    }

    fn settle(&mut self, at: usize) {
        self.due.set(at, self.meters[at].due());
    }

    /// The first meter of this place or more that is to be looked at now, its bin and its equation.
    pub(super) fn due(&self, from: usize, now: Time) -> Option<(usize, usize, log::Config)> {
        let at = self.due.due(from, now)?;
        Some((at, self.meters[at].bin, self.meters[at].equation))
    }

    /// Looks at a meter whose price makes this rate, or is not known. `opens` is told each flow that may send from now on, with its rate and
    /// what it lacks, which is not above zero.
    pub(super) fn look(
        &mut self,
        at: usize,
        rate: Option<Rate>,
        now: Time,
        mut opens: impl FnMut(usize, Rate, Credit),
    ) {
        let meter = &mut self.meters[at];
        meter.set(rate, now);
        let mut first = 0;
        while let Some(number) = meter.waiting.due(first, meter.reading)
            && meter.rate.bits_per_sec() > 0
        {
            let lacks = meter.waiting.take(number).minus(meter.reading);
            opens(meter.flows[number], meter.rate, lacks);
            first = number + 1;
        }
        self.settle(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Bytes;

    /// K in bits squared per second, and a depth: a flow of priority 1 has 100 kbit/s, less 1 / a = 0.05 bit/s and rounded down.
    const K: f64 = 8e9;
    const DEPTH: Bytes = Bytes::new(10_000);
    const RATE: Rate = Rate::from_bits_per_sec(99_999);

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }
    /// LOG with a cap of 1 Mbit/s.
    fn log(priority: f64) -> log::Config {
        log::Config { priority, cap: Rate::from_mbit_per_sec(1), shape: 20.0 }
    }
    /// What a packet of 1,000 bytes takes.
    fn packet() -> Credit {
        Credit::given(Rate::from_bits_per_sec(8000), Span::from_secs(1))
    }

    /// Looks at what is due until a time, at a depth that may change. Returns the looks, and the flows with the times at which they opened; `then`
    /// is told of each.
    fn run(
        meters: &mut Meters,
        until: Time,
        depth: impl Fn(Time) -> Option<Bytes>,
        mut then: impl FnMut(&mut Meters, usize, Time),
    ) -> (usize, Vec<(usize, Time)>) {
        let (mut looks, mut opened) = (0, Vec::new());
        while meters.next_time() <= until {
            let (now, mut first) = (meters.next_time(), 0);
            while let Some((meter, _, equation)) = meters.due(first, now) {
                looks += 1;
                let before = opened.len();
                meters.look(meter, depth(now).map(|depth| equation.rate(K, depth)), now, |flow, _, lacks| {
                    assert!(lacks <= Credit::ZERO);
                    opened.push((flow, now));
                });
                opened[before..].iter().for_each(|(flow, now)| then(meters, *flow, *now));
                first = meter + 1;
            }
        }
        (looks, opened)
    }

    #[test]
    fn flows_of_one_equation_open_when_each_has_its_credit() {
        let mut meters = Meters::new();
        let seats = [0, 1].map(|flow| meters.join(0, &log(1.0), flow));
        assert_eq!((seats[0].meter, meters.next_time()), (seats[1].meter, Time::NEVER));
        meters.note(seats[0], RATE, at(0));
        meters.wait(seats[0], packet(), at(0));
        meters.wait(seats[1], packet(), at(20_000));
        assert_eq!(meters.rate(seats[1]), Some(RATE));
        // 8,000 bits at 99,999 bit/s are 80.0008 ms.
        let (_, opened) = run(&mut meters, at(200_000), |_| Some(DEPTH), |_, _, _| {});
        let late = opened.iter().zip([80_000, 100_000]).map(|((_, time), exact)| time.since(at(exact)));
        assert!(late.clone().all(|late| late.is_between(Span::from_nanos(800), Span::from_nanos(802))));
        assert_eq!(opened.iter().map(|(flow, _)| *flow).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((meters.next_time(), meters.rate(seats[0])), (Time::NEVER, None));
    }

    #[test]
    fn a_flow_that_is_taken_off_lacks_what_is_left() {
        let mut meters = Meters::new();
        let seat = meters.join(0, &log(1.0), 0);
        meters.note(seat, Rate::from_bits_per_sec(80_000), at(0));
        meters.wait(seat, packet(), at(0));
        let (rate, lacks) = meters.resume(seat, at(25_000)).unwrap();
        assert_eq!((rate.bits_per_sec(), lacks.due(rate, at(25_000))), (80_000, at(100_000)));
        assert_eq!((meters.resume(seat, at(25_000)), meters.next_time()), (None, Time::NEVER));
        // A meter without flows becomes that of another equation.
        meters.leave(seat);
        let other = meters.join(1, &log(2.0), 0);
        assert_eq!((other.meter, meters.is_of(other, &log(2.0))), (seat.meter, true));
    }

    #[test]
    fn after_a_fall_of_the_price_a_flow_opens_at_most_a_millisecond_late() {
        // The depth falls to 0 after 20 ms and something, so the rate is the cap: what is left of 8,000 bits comes at 1 Mbit/s.
        for fall in (20_000..22_000).step_by(50) {
            let mut meters = Meters::new();
            let seat = meters.join(0, &log(1.0), 0);
            meters.note(seat, RATE, at(0));
            meters.wait(seat, packet(), at(0));
            let depth = |now| Some(if now < at(fall) { DEPTH } else { Bytes::ZERO });
            let (_, opened) = run(&mut meters, at(50_000), depth, |_, _, _| {});
            // 100 bits a millisecond until the fall, 1,000 from there on.
            let exact = at(fall + (8000 - fall / 10));
            let late = opened[0].1.since(exact);
            assert!(
                late.is_between(Span::ZERO, Span::from_millis(1)) && opened[0].1 >= exact,
                "{fall}: {late}"
            );
        }
    }

    #[test]
    fn at_a_rate_of_zero_and_without_a_way_nothing_opens() {
        let mut meters = Meters::new();
        let seat = meters.join(0, &log(1.0), 0);
        meters.note(seat, RATE, at(0));
        meters.wait(seat, packet(), at(0));
        // From 5 to 45 ms no receiver can be reached; it is looked at each 10 ms. Then the price is too high for another 5 ms.
        let depth = |now| match now {
            now if now < at(5000) || now >= at(50_000) => Some(DEPTH),
            now if now < at(45_000) => None,
            _ => Some(Bytes::new(1 << 40)),
        };
        let (looks, opened) = run(&mut meters, at(200_000), depth, |_, _, _| {});
        // 5 + 4 + 5 looks until 50 ms, and 500 of 8,000 bits until then.
        assert!(opened[0].1 >= at(125_000) && opened[0].1 <= at(125_002), "{opened:?}");
        assert_eq!(looks, 5 + 4 + 5 + 75 + 1);
    }

    #[test]
    fn a_thousand_flows_cost_a_look_a_millisecond_for_each_equation() {
        let mut meters = Meters::new();
        let priority = |flow: usize| if flow.is_multiple_of(2) { 1.0 } else { 5.0 };
        let seats: Vec<Seat> = (0..1000).map(|flow| meters.join(0, &log(priority(flow)), flow)).collect();
        assert_eq!(meters.meters.len(), 2);
        for (flow, seat) in seats.iter().enumerate() {
            meters.note(*seat, log(priority(flow)).rate(K, DEPTH), at(0));
            meters.wait(*seat, packet(), at(0));
        }
        let again = |meters: &mut Meters, flow: usize, now| meters.wait(seats[flow], packet(), now);
        let (looks, opened) = run(&mut meters, at(1_000_001), |_| Some(DEPTH), again);
        // 12 packets of each flow at 100 kbit/s, 62 at 500 kbit/s. All flows of an equation open together here.
        assert_eq!(opened.len(), 500 * 12 + 500 * 62);
        assert!(looks <= 2 * 1000 + 12 + 62, "{looks}");
    }
}
