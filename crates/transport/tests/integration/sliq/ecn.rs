//! ECN marks: controllers that request marks receive them, and senders over a path that clears codepoints work without them.

use super::SLIQ;
use super::pair::{Pair, Path, path, secs};
use weir_base::{Ecn, Rate};
use weir_endpoint::{Endpoint, Stream};

/// Runs a stream with endless data for ten seconds over 20 Mbit/s and 20 ms with a queue of 200 kB. Returns the pair, and the
/// codepoints of the packets on the way to the receiver.
fn stream(cc: &str, mark: Option<u64>, bleach: bool) -> (Pair, Vec<Ecn>) {
    let rate = Some((Rate::from_mbit_per_sec(20), 200_000));
    let mut pair = Pair::new(SLIQ, cc, false, Path { rate, mark, bleach, ..path(0.0, 10) }, 1);
    pair.ends[0].open(pair.now);
    pair.ends[0].keep_full(Stream(0), true);
    pair.run(secs(10), |_| false);
    let seen = pair.pipe.values().filter(|sent| sent.to == 1).map(|sent| sent.ecn).collect();
    (pair, seen)
}

#[test]
fn marks_keep_the_queue_short_and_nothing_is_lost() {
    for cc in ["dctcp", "prague"] {
        let (pair, _) = stream(cc, Some(20_000), false);
        let sample = pair.ends[0].sample().unwrap();
        // 20 kB take 8 ms at 20 Mbit/s.
        assert!(sample.srtt.unwrap().as_millis_f64() < 36.0, "{cc}: {:?}", sample.srtt);
        assert_eq!(sample.retransmitted, 0, "{cc}");
        assert!(pair.bytes() > 20_000_000, "{cc}: {}", pair.bytes());
    }
}

#[test]
fn only_packets_of_a_controller_that_uses_marks_carry_an_ecn_codepoint() {
    for (cc, marks) in [("cubic", false), ("copa", false), ("dctcp", true)] {
        let (_, seen) = stream(cc, None, false);
        assert!(!seen.is_empty() && seen.iter().all(|ecn| (*ecn != Ecn::NotEct) == marks), "{cc}: {seen:?}");
    }
}

#[test]
fn no_codepoints_are_sent_over_a_path_that_clears_them() {
    let (mut pair, _) = stream("dctcp", Some(20_000), true);
    pair.path.bleach = false;
    pair.run(secs(11), |_| false);
    assert!(pair.pipe.values().all(|sent| sent.ecn == Ecn::NotEct));
}
