//! Whatever the ring buffer holds, pairing its events gives a report in which every packet that left is counted, and no more wait than came.

use weir_base::{Span, Time};
use weir_observe::{KernelCounts, Sighting, WatchSettings, Watched, What};

/// Takes bytes as events, one after the other.
pub(crate) fn check(data: &[u8]) {
    let mut watched = Watched::new(WatchSettings { start: Time::ZERO, period: Span::from_millis(100) });
    let (mut came, mut left) = (0, 0);
    for sighting in data.chunks(Sighting::LENGTH).filter_map(Sighting::read) {
        let segments = u64::from(sighting.segments);
        match sighting.what {
            What::Enqueued => came += segments,
            What::Dequeued | What::Passed => left += segments,
            What::Dropped { .. } => {}
        }
        watched.see(&sighting);
        assert!(watched.waiting() <= came);
    }
    let report = watched.report(Time::ZERO, &KernelCounts::default(), 0, &|number| number.to_string());
    assert_eq!(report.packets, left);
    assert!(report.sojourn_ms.is_none_or(|times| times.count <= left));
    assert!(report.periods.iter().map(|period| period.packets).sum::<u64>() == left);
}
