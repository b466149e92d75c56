//! The linear PI controller of PI2 and DualPI2: a base probability p' follows the delay's deviation from a target and the delay's
//! change (De Schepper et al., "PI2", CoNEXT 2016, section 4; RFC 9332, appendix A.1, `dualpi2_update`). The AQM squares p' for
//! classic traffic and multiplies it for scalable traffic.

use weir_base::{Random, Span, Time};

/// True with the probability `root`^2: both of two draws must be below `root`.
#[inline]
pub(crate) fn signals_squared(root: f64, random: &mut Random) -> bool {
    root > 0.0 && random.chance(root) && random.chance(root)
}

/// The controller.
#[derive(Debug, Clone)]
pub(crate) struct Pi {
    target: Span,
    tupdate: Span,
    /// Weights in 1/s, applied once an update.
    alpha: f64,
    beta: f64,
    /// Largest p'.
    most: f64,
    probability: f64,
    delay_before: Span,
    next_update: Time,
}

impl Pi {
    pub(crate) fn new(target: Span, tupdate: Span, alpha: f64, beta: f64, most: f64) -> Pi {
        Pi {
            target,
            tupdate,
            alpha,
            beta,
            most,
            probability: 0.0,
            delay_before: Span::ZERO,
            next_update: Time::ZERO + tupdate,
        }
    }

    /// The base probability p'.
    pub(crate) fn probability(&self) -> f64 {
        self.probability
    }

    /// The probability of classic signals, p_C = p'^2.
    pub(crate) fn squared(&self) -> f64 {
        self.probability * self.probability
    }

    /// True with probability p'^2.
    #[inline]
    pub(crate) fn signals_squared(&self, random: &mut Random) -> bool {
        signals_squared(self.probability, random)
    }

    /// Raises p' to at least this, within its largest value.
    pub(crate) fn raise(&mut self, probability: f64) {
        self.probability = self.probability.max(probability.min(self.most));
    }

    /// The target delay.
    pub(crate) fn target(&self) -> Span {
        self.target
    }

    pub(crate) fn next_update(&self) -> Time {
        self.next_update
    }

    /// The delay at the last update.
    pub(crate) fn delay(&self) -> Span {
        self.delay_before
    }

    /// Takes all steps that are due. `delay` returns the queue's delay at a step's time, since when the queue has not changed;
    /// `None` if it is empty.
    #[inline]
    pub(crate) fn update(&mut self, now: Time, delay: impl Fn(Time) -> Option<Span>) {
        if now >= self.next_update {
            self.catch_up(now, delay);
        }
    }

    fn catch_up(&mut self, now: Time, delay: impl Fn(Time) -> Option<Span>) {
        while now >= self.next_update {
            let seen = delay(self.next_update);
            self.step(seen.unwrap_or(Span::ZERO));
            self.next_update += self.tupdate;
            if seen.is_none() && self.probability == 0.0 && now >= self.next_update {
                // Nothing changes any more: skip the updates of the idle time.
                let ticks = now.since(self.next_update).as_nanos() / self.tupdate.as_nanos().max(1);
                self.next_update += self.tupdate * ticks;
            }
        }
    }

    /// `p' += alpha (delay - target) + beta (delay - delay before)`.
    fn step(&mut self, delay: Span) {
        let error = delay.as_secs_f64() - self.target.as_secs_f64();
        let change = delay.as_secs_f64() - self.delay_before.as_secs_f64();
        self.probability = (self.probability + self.alpha * error + self.beta * change).clamp(0.0, self.most);
        self.delay_before = delay;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    #[test]
    fn each_step_follows_the_formula_of_rfc_9332() {
        // RFC 9332: alpha 0.16, beta 3.2, target 15 ms. Delay 25 ms after none: 0.16 x 0.010 + 3.2 x 0.025 = 0.0816; then
        // 30 ms: + 0.16 x 0.015 + 3.2 x 0.005 = 0.1; then none: - 0.16 x 0.015 - 3.2 x 0.030 = 0.0016.
        let mut pi = Pi::new(ms(15), ms(16), 0.16, 3.2, 1.0);
        for (delay, expected) in [(25, 0.0816), (30, 0.1), (0, 0.0016), (0, 0.0)] {
            pi.step(ms(delay));
            assert!((pi.probability() - expected).abs() < 1e-12, "{} {expected}", pi.probability());
        }
    }

    #[test]
    fn classic_signals_have_the_square_of_the_probability() {
        // 100,000 draws with p' = 0.3: 9000 expected, standard deviation 90.
        let mut pi = Pi::new(ms(15), ms(16), 0.16, 3.2, 1.0);
        pi.probability = 0.3;
        let mut random = Random::stream(1, "pi");
        let count = (0..100_000).filter(|_| pi.signals_squared(&mut random)).count();
        assert!((8_700..9_300).contains(&count), "{count}");
        assert!((pi.squared() - 0.09).abs() < 1e-12);
    }

    #[test]
    fn the_probability_stays_within_its_bounds() {
        let mut pi = Pi::new(ms(15), ms(16), 0.16, 3.2, 0.5);
        pi.step(ms(10_000));
        assert_eq!(pi.probability(), 0.5);
        pi.step(Span::ZERO);
        assert_eq!(pi.probability(), 0.0);
    }

    #[test]
    fn an_hour_of_idleness_lowers_the_probability_to_zero_and_schedules_the_next_update_ahead() {
        let mut pi = Pi::new(ms(15), ms(16), 0.16, 3.2, 1.0);
        pi.step(ms(100));
        let hour = Time::ZERO + Span::from_secs(3600);
        pi.update(hour, |_| None);
        assert_eq!(pi.probability(), 0.0);
        assert!(pi.next_update() > hour && pi.next_update() <= hour + ms(16));
    }
}
