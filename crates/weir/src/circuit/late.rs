//! How late this host wakes who waits for a timer. The kernel's shapers are woken by timers and soft interrupts; beside other work these come
//! late by milliseconds, and what a bucket cannot hold of the tokens of such a time is lost to the circuit.

use std::time::{Duration, Instant};
use weir_base::Span;
use weir_live::claim_processor;

/// How often a timer is waited for, and for how long each time.
const TIMES: usize = 400;
const APART: Duration = Duration::from_millis(1);
/// More is not planned for: a bucket leaves at the card's rate, and switches would have to hold it.
const MOST: Span = Span::from_millis(10);

/// What was given, or what is measured in half a second, with the scheduling that a transfer's connections have: the latest of all waits, since a second of a transfer has hundreds of them and may lose
/// 10 ms in all.
pub(crate) fn of(given: Option<Span>) -> Span {
    let measure = || {
        claim_processor();
        let wait = || {
            let began = Instant::now();
            std::thread::sleep(APART);
            began.elapsed().saturating_sub(APART)
        };
        let latest = (0..TIMES).map(|_| wait()).max().unwrap_or_default();
        Span::from_nanos(u64::try_from(latest.as_nanos()).unwrap_or(u64::MAX)).min(MOST)
    };
    given.unwrap_or_else(|| std::thread::spawn(measure).join().unwrap_or(MOST))
}
