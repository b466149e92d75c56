//! Round values along an axis.

/// Values that are 1, 2 or 5 times a power of ten apart, about as many as wanted.
pub(crate) fn linear(from: f64, to: f64, wanted: f64) -> Vec<f64> {
    let rough = (to - from) / wanted;
    if !rough.is_finite() || rough <= 0.0 {
        return vec![from];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (from / step).ceil() as i64;
    (first..).map(|n| n as f64 * step).take_while(|tick| *tick <= to).collect()
}

/// Values of 1, 2 and 5 times the powers of ten, or the powers alone if there are more than wanted. Both ends are above zero.
pub(crate) fn logarithmic(from: f64, to: f64, wanted: usize) -> Vec<f64> {
    let powers = (from.log10().floor() as i32)..=(to.log10().ceil() as i32);
    let within = |tick: &f64| (from..=to).contains(tick);
    let all = |times: &[f64]| -> Vec<f64> {
        powers
            .clone()
            .flat_map(|power| times.iter().map(move |time| time * 10f64.powi(power)))
            .filter(within)
            .collect()
    };
    let ticks = all(&[1.0, 2.0, 5.0]);
    if ticks.len() > wanted { all(&[1.0]) } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(linear(0.3, 10.1, 5.0), [2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(linear(3.0, 3.0, 5.0), [3.0]);
        assert_eq!(logarithmic(3.0, 60.0, 9), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!(logarithmic(0.5, 20_000.0, 9), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    }
}
