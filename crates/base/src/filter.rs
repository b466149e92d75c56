//! Filters over time: an exponentially weighted mean, and the largest or smallest value of a sliding window.

use crate::{Span, Time};

/// Exponentially weighted moving average: `mean += weight * (sample - mean)`; the first sample is the initial mean.
#[derive(Debug, Clone, Copy)]
pub struct Ewma {
    weight: f64,
    mean: Option<f64>,
}

impl Ewma {
    /// A mean in which each new sample has this weight, in `(0, 1]`.
    pub fn new(weight: f64) -> Ewma {
        Ewma { weight, mean: None }
    }
    /// Takes a sample and returns the new mean.
    pub fn update(&mut self, sample: f64) -> f64 {
        let mean = self.mean.map_or(sample, |mean| mean + self.weight * (sample - mean));
        self.mean = Some(mean);
        mean
    }
    /// The mean so far; `None` before the first sample.
    pub fn value(&self) -> Option<f64> {
        self.mean
    }
}

#[derive(Debug, Clone, Copy)]
struct Best<T> {
    at: Time,
    value: T,
}

/// The three best values of a sliding window (Kathleen Nichols' algorithm, as in Linux `lib/win_minmax.c`):
/// constant space and time, exact enough for a minimum RTT or a maximum bandwidth.
#[derive(Debug, Clone)]
struct Windowed<T> {
    best: Option<[Best<T>; 3]>,
}

impl<T: Copy> Windowed<T> {
    #[inline(always)]
    fn update(&mut self, window: Span, at: Time, value: T, better: impl Fn(T, T) -> bool) -> T {
        // In nearly all cases the value is worse than all three, and the best is from the last quarter of the window.
        if let Some([best, _, third]) = &self.best
            && !better(value, third.value)
            && at.since(best.at) <= window / 4
        {
            return best.value;
        }
        self.replace(window, at, value, better)
    }

    /// Takes a value that may replace one of the best.
    #[inline(never)]
    fn replace(&mut self, window: Span, at: Time, value: T, better: impl Fn(T, T) -> bool) -> T {
        let new = Best { at, value };
        let Some(best) = &mut self.best else {
            self.best = Some([new; 3]);
            return value;
        };
        if better(value, best[0].value) || at.since(best[2].at) > window {
            *best = [new; 3];
            return value;
        }
        if better(value, best[1].value) {
            best[1] = new;
            best[2] = new;
        } else if better(value, best[2].value) {
            best[2] = new;
        }
        let age = at.since(best[0].at);
        if age > window {
            // The best value is too old; the second one may be too.
            best[0] = best[1];
            best[1] = best[2];
            best[2] = new;
            if at.since(best[0].at) > window {
                best[0] = best[1];
                best[1] = best[2];
            }
        } else if best[1].at == best[0].at && age > window / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].at == best[1].at && age > window / 2 {
            best[2] = new;
        }
        best[0].value
    }
}

macro_rules! windowed {
    ($(#[$doc:meta])* $name:ident, $better:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name<T>(Windowed<T>);

        impl<T: Copy + PartialOrd> $name<T> {
            /// A filter without values.
            pub fn new() -> Self {
                Self(Windowed { best: None })
            }
            /// Takes a value of the time `at`, drops values older than `window` and returns the best of the rest.
            pub fn update(&mut self, window: Span, at: Time, value: T) -> T {
                self.0.update(window, at, value, $better)
            }
            /// The best value at the last update; `None` before the first.
            pub fn value(&self) -> Option<T> {
                self.0.best.as_ref().map(|best| best[0].value)
            }
        }

        impl<T: Copy + PartialOrd> Default for $name<T> {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

windowed!(
    /// The largest value of a sliding window of time.
    WindowedMax, |new, old| new >= old
);
windowed!(
    /// The smallest value of a sliding window of time.
    WindowedMin, |new, old| new <= old
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_starts_at_its_first_sample() {
        let mut mean = Ewma::new(0.125);
        assert_eq!(mean.update(8.0), 8.0);
        assert_eq!(mean.update(16.0), 9.0);
    }

    #[test]
    fn a_minimum_is_forgotten_when_its_window_has_passed() {
        let mut least = WindowedMin::new();
        let window = Span::from_secs(10);
        let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
        assert_eq!(least.update(window, at(0), 50), 50);
        assert_eq!(least.update(window, at(4), 70), 50);
        assert_eq!(least.update(window, at(8), 80), 50);
        assert_eq!(least.update(window, at(11), 90), 70);
    }
}
