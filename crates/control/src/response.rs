//! The mean window of a loss-based controller at a given rate of loss: its response function. For controllers whose specification gives one.

use crate::Config;
use weir_base::{Span, math};

/// CUBIC's constant C in segments per second cubed and its multiplicative decrease (RFC 9438, sections 4.1.1 and 4.6).
const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// The mean window in segments of this controller, alone on a path with this RTT that loses this share of segments at random; `None` if the
/// controller does not take losses for congestion, or its source gives no such function.
pub fn window(controller: &Config, loss: f64, rtt: Span) -> Option<f64> {
    // M. Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, 1997, equation 3, a loss at a time.
    let reno = math::sqrt(1.5 / loss);
    match controller {
        Config::NewReno(_) => Some(reno),
        // RFC 9438, section 5; where that is less, its Reno-friendly region (section 4.3).
        Config::Cubic(_) => {
            let constant = math::sqrt(math::sqrt(C * (3.0 + BETA) / (4.0 * (1.0 - BETA))));
            let ratio = rtt.as_secs_f64() / loss;
            Some((constant * math::sqrt(ratio * math::sqrt(ratio))).max(reno))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_table_in_rfc_9438() {
        // Section 5.1, table 1, C = 0.4, RTT 0.1 s: the mean window of CUBIC and of Reno at each rate of loss.
        let rtt = Span::from_millis(100);
        let of = |name: &str, loss| window(&name.parse().unwrap(), loss, rtt).unwrap();
        for (loss, reno, cubic) in
            [(1e-2, 12.0, 12.0), (1e-3, 38.0, 38.0), (1e-5, 379.0, 1054.0), (1e-8, 12000.0, 187_000.0)]
        {
            assert!((of("newreno", loss) / reno - 1.0).abs() < 0.04, "{loss}");
            assert!((of("cubic", loss) / cubic - 1.0).abs() < 0.04, "{loss}: {}", of("cubic", loss));
        }
        assert_eq!(window(&"copa".parse().unwrap(), 0.02, rtt), None);
    }
}
