//! How late this host wakes a thread that waits for a timer. Timers and soft interrupts wake the kernel's shapers; on a busy
//! host they are late by milliseconds, and the circuit loses the tokens of that time that its bucket cannot hold.

use std::time::{Duration, Instant};
use weir_base::Span;
use weir_linux::claim_processor;

/// Number of waits for a timer, and the length of each.
const TIMES: usize = 400;
const APART: Duration = Duration::from_millis(1);
/// The largest lateness that is planned for: a bucket leaves at the card's rate, and switches would have to hold it.
const MOST: Span = Span::from_millis(10);

/// The given lateness, or one measured in half a second with the scheduling of a transfer's connections. It is the maximum of
/// all waits, since a second of a transfer has hundreds of them and may lose 10 ms in all.
pub fn late(given: Option<Span>) -> Span {
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
