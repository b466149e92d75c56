//! The throughput of current TCP. The equation of RFC 5348 models TCP Reno, which waits for a timeout if its window is too small for
//! three duplicate acknowledgements. With SACK, RACK and PRR a flow recovers in one or two round trips with any window (RFC 8985,
//! RFC 6937). So the equation is too low from a loss event rate of about 6 % on, where windows are four packets or less.

use weir_base::{Span, math};

/// The smallest window after a loss (RFC 5681, equation 4), in packets.
const LEAST_WINDOW: f64 = 2.0;
/// Part of a round trip for which RACK waits for reordered packets if fewer than three later ones have arrived (RFC 8985, section 6.2).
const REORDERING: f64 = 0.25;
const LATER: f64 = 3.0;
/// The least that Linux adds to the smoothed round trip for a retransmission timeout (`TCP_RTO_MIN`), in seconds.
const LEAST_TIMEOUT: f64 = 0.2;

/// Throughput in bytes per second of a TCP with SACK, RACK and NewReno's window, with packets of `size` bytes and a loss event rate
/// `p` in (0, 1].
///
/// A cycle has `1 / p` packets. The window grows by a packet a round trip from `W / 2`, at least two packets, to `W`. Then the flow
/// recovers:
/// - Recovery takes one round trip, another for each lost retransmission, and a quarter of one for a loss that fewer than three packets
///   follow, which are `3 / W` of all (J. Padhye et al., "Modeling TCP Throughput", 1998, section 2.2: those for which Reno waits).
/// - A timeout occurs when a recovery loses both packets of the smallest window. It doubles as in that paper's equation 27.
pub fn recent_throughput(size: f64, rtt: Span, p: f64) -> f64 {
    let (rtt, packets, arrives) = (rtt.as_secs_f64(), 1.0 / p, 1.0 - p);
    let short = (LATER * math::sqrt(3.0 * p / 8.0)).min(1.0);
    let recovery = 1.0 / arrives + REORDERING * short;
    // 3 W^2 / 8 + recovery W / 2 = packets.
    let halved = 1.0 / 3.0 * (math::sqrt(recovery * recovery + 6.0 * packets) - recovery);
    let (least, most) = if halved >= LEAST_WINDOW {
        (halved, 2.0 * halved)
    } else {
        // (W^2 - 4) / 2 + 2 recovery = packets.
        let square = 2.0 * packets + LEAST_WINDOW * LEAST_WINDOW - 2.0 * LEAST_WINDOW * recovery;
        (LEAST_WINDOW, math::sqrt(square.max(LEAST_WINDOW * LEAST_WINDOW)))
    };
    let backoff =
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].iter().rev().fold(0.0, |sum, double| (sum + double) * p) + 1.0;
    let timeouts = (recovery * p * p).min(1.0) * (rtt + LEAST_TIMEOUT) * backoff / arrives;
    size * packets / (rtt * (most - least + recovery) + timeouts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_matches_separately_computed_values_of_the_cycle() {
        // Round trip in ms, p and bytes per second, with packets of 1,500 bytes: windows above and below four packets.
        for (rtt, p, expected) in [
            (50, 0.001, 1_132_113.0),
            (50, 0.01, 337_948.0),
            (50, 0.05, 134_589.0),
            (20, 0.1, 206_837.0),
            (150, 0.16, 22_226.0),
            (67, 0.3, 23_664.0),
            (50, 0.9, 17.0),
        ] {
            let rate = recent_throughput(1500.0, Span::from_millis(rtt), p);
            assert!((rate - expected).abs() <= 1.0, "{rtt} {p}: {rate}");
        }
    }

    #[test]
    fn the_rate_decreases_with_the_loss_event_rate_to_zero() {
        let rate = |p| recent_throughput(1500.0, Span::from_millis(50), p);
        assert!((1..1000).all(|n| rate(f64::from(n + 1) / 1000.0) < rate(f64::from(n) / 1000.0)));
        assert_eq!(rate(1.0), 0.0);
    }
}
