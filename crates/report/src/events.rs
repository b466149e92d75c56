//! Changes within a run, which plots mark: the links' schedules and outages, and groups that start late or stop early.

use crate::charts::Event;
use weir_base::Span;
use weir_plan::{Change, Link, Run};

/// Largest number of events that are marked; more would hide the plot.
const MOST: usize = 40;
/// Groups that start before this start with the run: it is twice the usual jitter of starts.
const AT_ONCE: Span = Span::from_millis(200);

/// The events of a run, sorted by time; empty if there are more than [`MOST`].
pub(crate) fn events(run: &Run) -> Vec<Event> {
    let mut events: Vec<Event> = run.instrumented_links().flat_map(|(_, link)| of_link(link)).collect();
    for (group, about) in
        run.groups.iter().enumerate().filter(|(_, group)| !group.workload.has_random_arrivals())
    {
        let flows = || run.flows.iter().filter(|flow| flow.group == group);
        if let Some(start) = flows().map(|flow| flow.start).min().filter(|start| *start > AT_ONCE) {
            events.push(event(start, format!("{} starts", about.name)));
        }
        let stops: Option<Vec<Span>> = flows().map(|flow| flow.stop).collect();
        if let Some(stop) =
            stops.and_then(|stops| stops.into_iter().max()).filter(|stop| *stop < run.duration)
        {
            events.push(event(stop, format!("{} stops", about.name)));
        }
    }
    events.retain(|event| event.at_s < run.duration.as_secs_f64());
    events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    if events.len() > MOST { vec![] } else { events }
}

fn event(at: Span, what: String) -> Event {
    Event { at_s: at.as_secs_f64(), what }
}

fn of_link(link: &Link) -> Vec<Event> {
    let change = |change: &Change| event(change.at, format!("link {}: {}", link.name, words(change)));
    let outage = |outage: &weir_plan::Outage| {
        let begin = event(outage.at, format!("link {}: outage", link.name));
        [begin, event(outage.at + outage.length, format!("link {}: outage ends", link.name))]
    };
    link.schedule.iter().map(change).chain(link.outages.iter().flat_map(outage)).collect()
}

/// The settings that a change makes, in words.
fn words(change: &Change) -> String {
    let mut words: Vec<String> = Vec::new();
    match (&change.trace, change.rate) {
        (Some(trace), _) => words.push(format!("trace {}", trace.file)),
        (None, Some(rate)) => words.push(rate.to_string()),
        (None, None) => {}
    }
    words.extend(change.delay.map(|delay| format!("delay {delay}")));
    let others = [
        (change.loss.is_some(), "loss"),
        (change.jitter.is_some(), "jitter"),
        (change.duplicate.is_some(), "duplication"),
        (change.corrupt.is_some(), "corruption"),
        (change.queue.is_some(), "queue parameters"),
    ];
    words.extend(others.into_iter().filter(|(set, _)| *set).map(|(_, what)| format!("other {what}")));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_outages_late_starts_and_early_stops_are_events() {
        let lab = "format = 1\n[run]\nduration = \"20 s\"\nstart_jitter = \"0 s\"\n[dumbbell]\nrate = \"5 Mbit/s\"\n\
                   rtt = \"40 ms\"\nschedule = [{ at = \"10 s\", rate = \"1 Mbit/s\", delay = \"30 ms\" }]\n\
                   outage = [{ at = \"12 s\", for = \"2 s\" }]\n[traffic.first]\nstop = \"18 s\"\n[traffic.second]\n\
                   start = \"5 s\"\n";
        let lab = weir_plan::Lab::from_str(lab, "lab.toml", std::path::Path::new("."), &[]).unwrap();
        let events: Vec<(f64, String)> =
            events(&lab.runs()[0]).into_iter().map(|event| (event.at_s, event.what)).collect();
        let expected = [
            (5.0, "second starts"),
            (10.0, "link down: 1 Mbit/s, delay 30 ms"),
            (12.0, "link down: outage"),
            (14.0, "link down: outage ends"),
            (18.0, "first stops"),
        ];
        assert_eq!(events, expected.map(|(at, what)| (at, what.to_string())));
    }
}
