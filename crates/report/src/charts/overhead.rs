//! What an overlay's nodes send beyond payload, by parts, over time.

use super::{Chart, Ink, Line};
use crate::overlay::{PARTS, PAYLOAD, rates};
use weir_record::{SeriesSet, added};

/// The plot of what nodes send beyond payload, by parts; without lines if the run has no overlay.
pub(super) fn overhead(set: &SeriesSet<'_>) -> Chart {
    let grown = set.grown(|name| name == PAYLOAD || PARTS.iter().any(|(part, ..)| *part == name));
    let line = |(place, (state, name)): (usize, (&str, &str))| {
        let of = grown.iter().filter(|(_, known, _)| *known == state);
        let values = of.map(|(.., values)| rates(set, values)).reduce(added)?;
        let is_there = values.iter().flatten().any(|value| *value > 0.0);
        let hidden = state == PAYLOAD;
        let ink = if hidden { Ink::Class(0) } else { Ink::Plain(place) };
        let (thin, bound) = (false, false);
        is_there.then(|| Line { name: name.into(), ink, thin, hidden, bound, values })
    };
    let parts = PARTS.iter().map(|(state, name, _)| (*state, *name));
    // A run without an overlay may have stations with counters of their own, but none of headers.
    let is_overlay = grown.iter().any(|(_, name, _)| *name == PARTS[0].0);
    let all = parts.chain([(PAYLOAD, "payload")]).enumerate().filter(|_| is_overlay);
    Chart {
        key: "overlay-overhead".into(),
        title: "Overhead by parts".into(),
        unit: "Mbit/s".into(),
        note: Some("What all nodes send to each other beyond payload: IP bytes at each link, parts on top of each other. A packet counts at each link that it passes.".into()),
        lines: all.filter_map(line).collect(),
        stacked: true,
        ..Chart::default()
    }
}
