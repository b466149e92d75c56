//! The throughput equation (RFC 5348, section 3.1), and its inverse for the first loss interval (section 6.3.1).

use weir_base::{Span, math};

/// A sender sends at least a packet in this many seconds (RFC 5348, section 4.3, `t_mbi`).
pub const LONGEST_GAP: f64 = 64.0;

/// Bytes of the initial window for packets of `size` bytes: two to four packets (RFC 5348, section 4.2).
pub fn initial_window(size: f64) -> f64 {
    4380.0f64.clamp(2.0 * size, 4.0 * size)
}

/// Throughput in bytes per second of a TCP with packets of `size` bytes, a loss event rate `p` in (0, 1], `b` packets per
/// acknowledgement and a retransmission timeout of `timeout_rtts` round trips.
pub fn throughput(size: f64, rtt: Span, p: f64, b: f64, timeout_rtts: f64) -> f64 {
    let root = math::sqrt(p);
    let congestion = math::sqrt(2.0 * b / 3.0) * root;
    let timeouts = timeout_rtts * 3.0 * math::sqrt(3.0 * b / 8.0) * root * p * (1.0 + 32.0 * p * p);
    size / (rtt.as_secs_f64() * (congestion + timeouts))
}

/// The loss event rate at which `throughput` is `rate`, with a relative error of at most a thousandth; between 10^-8 and 1.
pub fn loss_event_rate_of(rate: f64, throughput: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1e-8f64, 1.0f64);
    // The rate falls with p: the geometric mean halves the exponent's range.
    while high / low > 1.001 {
        let middle = math::sqrt(low * high);
        if throughput(middle) > rate { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equation_matches_values_computed_by_hand() {
        // Packet size, round trip in ms, p and bytes per second.
        for (size, rtt, p, expected) in [
            (1460.0, 50, 0.005, 483_963.0),
            (1460.0, 50, 0.01, 328_010.0),
            (1460.0, 50, 0.02, 213_887.0),
            (1460.0, 50, 0.03, 161_590.0),
            (1460.0, 50, 0.04, 129_722.0),
            (1460.0, 4, 0.01, 4_100_127.0),
            (1460.0, 120, 0.01, 136_671.0),
            (1000.0, 108, 0.01, 104_011.0),
            (1000.0, 108, 0.02, 67_823.0),
            (1460.0, 40, 0.05, 134_535.0),
        ] {
            let rate = throughput(size, Span::from_millis(rtt), p, 1.0, 4.0);
            assert!((rate - expected).abs() <= 1.0, "{size} {rtt} {p}: {rate}");
        }
    }

    #[test]
    fn the_inverse_finds_the_loss_event_rate_of_a_rate() {
        let equation = |p| throughput(1460.0, Span::from_millis(50), p, 1.0, 4.0);
        for p in [1e-6, 0.01, 0.3] {
            assert!((loss_event_rate_of(equation(p), equation) / p - 1.0).abs() < 0.002);
        }
        assert_eq!(loss_event_rate_of(0.0, equation), 1.0);
    }

    #[test]
    fn an_initial_window_is_4380_bytes_within_two_and_four_packets() {
        assert_eq!([1500.0, 3000.0, 500.0].map(initial_window), [4380.0, 6000.0, 2000.0]);
    }
}
