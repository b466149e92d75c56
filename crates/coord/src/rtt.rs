//! Round trip time between two APs (section 4.1.1): every packet carries a timestamp, and echoes the last timestamp of the
//! other AP with the delay since its arrival. Packets are not paired: one timestamp may be echoed several times, with growing
//! delay, or not at all. The clocks of the two APs are never compared, so they need not agree.

use crate::header::{Echo, Probe};
use crate::{Series, Ticks};
use weir_base::{Span, Time};

/// Weight of a new sample in the smoothed round trip time (equation 2.3).
const WEIGHT: f64 = 0.1;

/// Largest error of a sample by rounding, in ticks: one at each AP.
const ROUNDING: u32 = 2;

/// One AP's half of the measurement.
#[derive(Debug, Clone)]
pub struct Rtt {
    /// The last timestamp from the other AP, and when it arrived.
    heard: Option<(Ticks, Time)>,
    samples: Series,
}

impl Default for Rtt {
    fn default() -> Rtt {
        Rtt { heard: None, samples: Series::new(WEIGHT) }
    }
}

impl Rtt {
    /// Takes a probe that arrived and returns its sample of the round trip time, at least one tick. `None` if the probe
    /// echoes nothing or the sample is 128 s or more.
    #[inline]
    pub fn arrived(&mut self, probe: &Probe, now: Time) -> Option<Span> {
        self.heard = Some((probe.timestamp, now));
        let echo = probe.echo?;
        let sample = Ticks::at(now).minus(echo.timestamp).minus(echo.delay);
        // Rounding can make the shortest samples zero, or negative by one or two ticks.
        let rounded = sample.get() == 0 || Ticks::new(0).minus(sample).get() <= ROUNDING;
        let span = if rounded { Ticks::new(1).span()? } else { sample.span()? };
        self.samples.add(span.as_nanos() as f64 / 1e3);
        Some(span)
    }

    /// The timestamp of a packet that leaves now. Zero means "no timestamp" on the wire, so a clock of zero is sent as one.
    pub fn timestamp(now: Time) -> Ticks {
        Ticks::new(Ticks::at(now).get().max(1))
    }

    /// The echo of a packet that leaves now; `None` before the other AP's first packet, and from 128 s after its last one.
    #[inline]
    pub fn echo(&self, now: Time) -> Option<Echo> {
        let (timestamp, arrived) = self.heard?;
        Some(Echo { timestamp, delay: Ticks::of(now.since(arrived))? })
    }

    /// The smoothed round trip time; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Span> {
        Some(Span::from_secs_f64(self.samples.smoothed()? / 1e6))
    }

    /// All samples, in microseconds.
    pub fn samples(&self) -> &Series {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statistic;

    /// The first instant of a tick.
    fn tick(n: u64) -> Time {
        Time::from_nanos((n * 1_000_000_000).div_ceil(1 << 16))
    }

    fn probe(timestamp: u32, echo: u32, delay: u32) -> Probe {
        let echo = Some(Echo { timestamp: Ticks::new(echo), delay: Ticks::new(delay) });
        Probe { timestamp: Ticks::new(timestamp), echo, ..Probe::default() }
    }

    fn in_ticks(span: Option<Span>) -> u32 {
        Ticks::of(span.unwrap()).unwrap().get()
    }

    #[test]
    fn the_reference_trace_has_round_trips_of_190_210_190_and_180() {
        // Section 4.1.1, figures 4.2 and 4.3. AP 1 sends B, C (lost), D and F; AP 2 sends A and E.
        let (mut one, mut two) = (Rtt::default(), Rtt::default());
        // A arrives at AP 1 at 870; its sample is 870 - 620 - 40.
        assert_eq!(in_ticks(one.arrived(&probe(60, 620, 40), tick(870))), 210);
        // B leaves AP 1 at 900 and echoes A's timestamp.
        assert_eq!(Rtt::timestamp(tick(900)).get(), 900);
        assert_eq!(one.echo(tick(900)), probe(0, 60, 30).echo);
        assert_eq!(one.echo(tick(950)), probe(0, 60, 80).echo);
        assert_eq!(one.echo(tick(1020)), probe(0, 60, 150).echo);
        // B arrives at AP 2 at 280, D at 400; C is lost.
        assert_eq!(in_ticks(two.arrived(&probe(900, 60, 30), tick(280))), 190);
        assert_eq!(in_ticks(two.arrived(&probe(1020, 60, 150), tick(400))), 190);
        // E leaves AP 2 at 460 with D's timestamp and arrives at AP 1 at 1260.
        assert_eq!(two.echo(tick(460)), probe(0, 1020, 60).echo);
        assert_eq!(in_ticks(one.arrived(&probe(460, 1020, 60), tick(1260))), 180);
        // F leaves AP 1 at 1325.
        assert_eq!(one.echo(tick(1325)), probe(0, 460, 65).echo);
        // 210 and 180 ticks are 3204 and 2746 us, smoothed 3158.6.
        assert_eq!(one.samples().value(Statistic::Smoothed), 3159);
    }

    #[test]
    fn rtt_samples_are_correct_across_a_wrap_of_the_clock() {
        let mut rtt = Rtt::default();
        // Sent 100 ticks before the wrap, 50 ticks of delay at the other side, back 200 ticks after the wrap.
        let sample = rtt.arrived(&probe(5, (1 << 24) - 100, 50), tick((1 << 24) + 200));
        assert_eq!(in_ticks(sample), 250);
    }

    #[test]
    fn a_sample_that_rounding_made_negative_is_one_tick() {
        let mut rtt = Rtt::default();
        assert_eq!(in_ticks(rtt.arrived(&probe(5, 1000, 2), tick(1001))), 1);
        assert_eq!(rtt.arrived(&probe(5, 1000, 0), tick(1000 + (1 << 23))), None, "128 s");
    }

    #[test]
    fn nothing_is_echoed_before_the_peer_is_heard_or_two_minutes_after() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.echo(tick(10)), None);
        assert_eq!(rtt.arrived(&Probe::default(), tick(10)), None);
        assert!(rtt.echo(tick(20)).is_some());
        assert_eq!(rtt.echo(Time::from_nanos(129_000_000_000)), None);
        assert_eq!(Rtt::timestamp(Time::ZERO).get(), 1);
    }
}
