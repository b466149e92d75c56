//! `[run.windows]`: named parts of a run that have metrics and claims of their own.

use crate::diagnostic::suggest;
use crate::reader::Reader;
use crate::run::Window;
use crate::timing::Timing;
use weir_base::Span;

/// The windows of a cell, in the order in which they begin, with their times from the start of the run.
///
/// `starts` has each traffic group with its earliest start.
pub(crate) fn windows(reader: &mut Reader<'_>, timing: &Timing, starts: &[(&str, Span)]) -> Vec<Window> {
    let mut windows = Vec::new();
    for (name, written) in &timing.windows {
        let path = ["run", "windows", name.as_str()];
        reader.name("window", &path);
        let start = match &written.of {
            None => Span::ZERO,
            Some(of) => match starts.iter().find(|(group, _)| group == of) {
                Some((_, start)) => *start,
                None => {
                    let help = suggest(of, starts.iter().map(|(group, _)| *group));
                    let path = ["run", "windows", name.as_str(), "of"];
                    reader.wrong(&path, format!("there is no traffic group `{of}`"), help);
                    continue;
                }
            },
        };
        let tolerance = written.tolerance.map_or(weir_record::SETTLING_TOLERANCE, |share| share.0);
        if tolerance == 0.0 {
            let path = ["run", "windows", name.as_str(), "tolerance"];
            reader.wrong(
                &path,
                "no value can settle within a tolerance of zero",
                "write for example \"10 %\"",
            );
        }
        let window =
            Window { name: name.clone(), from: start + written.from, to: start + written.to, tolerance };
        if let Some((message, help)) = fault(&window, timing) {
            reader.wrong(&path, message, help);
        }
        windows.push(window);
    }
    windows.sort_by_key(|window| (window.from, window.to));
    windows
}

/// A problem with the times of a window, and a suggestion; `None` if they are sound.
fn fault(Window { name, from, to, .. }: &Window, timing: &Timing) -> Option<(String, String)> {
    let (duration, sample) = (timing.duration, timing.sample);
    if from >= to {
        let message = format!("the window `{name}` is empty: it is from {from} to {to} of the run");
        return Some((message, "write the earlier time first".into()));
    }
    if *to > duration {
        let message = format!("the window `{name}` ends at {to}, after the run, which lasts {duration}");
        return Some((message, format!("end it by {duration}, or lengthen the run")));
    }
    let period = sample.as_nanos().max(1);
    let (first, last) = (from.as_nanos().div_ceil(period), to.as_nanos() / period);
    (first >= last).then(|| {
        let message =
            format!("no sample period of {sample} lies wholly within the window `{name}`, {from} to {to}");
        (message, "lengthen the window, or shorten run.sample".into())
    })
}
