//! The rates at which groups were admitted to an overlay over time, beside the optimum of utilities.

use super::{Chart, Ink, Line, Source, chart, line};
use weir_base::Span;
use weir_record::metrics::admission::ADMITTED_RATE;
use weir_record::metrics::rate::GOODPUT;
use weir_record::{GroupInfo, Subject, Values};

impl Source<'_> {
    /// The rate at which each group is admitted, or its goodput if it is never refused, beside its optimum. Without lines if no flow may
    /// be refused and no optimum is known.
    pub(super) fn admitted(&self) -> Chart {
        let mut lines = vec![];
        for (index, group) in self.info.groups.iter().enumerate() {
            let (of, ink) = (Subject::Group(index as u32), Ink::Group(index));
            let optimum = line(self.optimum(group), &format!("{}, optimum", group.name), ink);
            let admitted = self.line(&ADMITTED_RATE, of, &format!("{}, admitted", group.name), ink);
            let goodput = || self.line(&GOODPUT, of, &format!("{}, goodput", group.name), ink);
            lines.push(admitted.or_else(|| optimum.as_ref().and_then(|_| goodput())));
            lines.push(optimum.map(Line::thin).map(Line::bound));
        }
        let note = "Of flows that may be refused, the rate of payload at which they are admitted, read once a sample period; of others, their goodput. Dotted: the goodput where the sum of utilities is largest.".into();
        Chart { note: Some(note), ..chart("overlay-admitted", "Admitted and optimal rate", "Mbit/s", lines) }
    }

    /// The optimum of a group at each point of the grid; empty if it is not known.
    fn optimum(&self, group: &GroupInfo) -> Values {
        if group.optimum.is_empty() {
            return Values::default();
        }
        let period = self.set.period();
        let at = |point: usize| {
            // The middle of the point's period.
            let middle = Span::from_secs_f64(period.as_secs_f64() * (point as f64 + 0.5));
            let step = group.optimum.iter().take_while(|(begin, _)| *begin <= middle).last();
            step.map(|(_, rate)| rate.mbit_per_sec())
        };
        (0..self.set.count()).map(at).collect()
    }
}
