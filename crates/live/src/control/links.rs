//! The links of a run as they are now: as the lab has them, with the changes of its schedule and those that were asked for.

use super::{Request, refusal};
use serde_json::{Map, Value, json};
use std::sync::mpsc::Sender;
use weir_base::{Span, Time};
use weir_fabric::{BitErrors, Change, Link, Loss, Times};
use weir_linux::clock::Clock;
use weir_plan::{Run, suggest};

/// The links of a run, and the way to change them.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    title: &'a str,
    clock: Clock,
    /// The instrumented links, by their numbers in the network. The changes that were asked for are in their schedules.
    links: Vec<(usize, Link)>,
    changes: Sender<(usize, Change)>,
    /// What was changed, in words.
    made: Vec<String>,
}

impl<'a> Links<'a> {
    /// The links of a run that is called `title`. Changes go to `changes`.
    pub(crate) fn new(
        run: &Run,
        title: &'a str,
        clock: Clock,
        changes: Sender<(usize, Change)>,
    ) -> Links<'a> {
        let links = run.network.links.iter().cloned().enumerate();
        Links {
            title,
            clock,
            links: links.filter(|(_, link)| link.instrumented).collect(),
            changes,
            made: vec![],
        }
    }

    /// Does what is asked, and returns the answer.
    pub(super) fn obey(&mut self, request: &Request) -> Value {
        let now = self.clock.now();
        match request {
            Request::Show => json!({
                "title": self.title,
                "up_s": now.as_secs_f64(),
                "links": self.links.iter().map(|(_, link)| settings(&present(link, now))).collect::<Vec<_>>(),
                "changes": self.made,
            }),
            Request::Set { link, change } => self.set(link, change, now),
        }
    }

    fn set(&mut self, name: &str, line: &str, now: Time) -> Value {
        let names: Vec<String> = self.links.iter().map(|(_, link)| link.name.clone()).collect();
        let Some((number, link)) = self.links.iter_mut().find(|(_, link)| link.name == name) else {
            let help = suggest(name, names.iter().map(String::as_str));
            return refusal(&format!("there is no link `{name}`"), &help);
        };
        let change = match weir_plan::change(line, &present(link, now), now) {
            Ok(change) => change,
            Err(wrong) => return json!({ "error": wrong.to_string() }),
        };
        if self.changes.send((*number, change.clone())).is_err() {
            return refusal("the run is over", "`weir link list` shows those that are not");
        }
        let later = link.schedule.partition_point(|other| other.at <= change.at);
        link.schedule.insert(later, change);
        let made = format!("{:.3} s: {name} {}", now.as_secs_f64(), line.trim());
        self.made.push(made.clone());
        json!({ "changed": made, "link": settings(&present(link, now)) })
    }
}

/// A link with the changes of its schedule up to a time.
fn present(link: &Link, now: Time) -> Link {
    let mut present = link.clone();
    let later = link.schedule.partition_point(|change| Time::ZERO + change.at <= now);
    for change in link.schedule[..later].iter().cloned() {
        if change.rate.is_some() {
            (present.rate, present.trace) = (change.rate, change.trace);
        }
        present.delay = change.delay.unwrap_or(present.delay);
        present.loss = change.loss.unwrap_or(present.loss);
        present.largest = change.largest.or(present.largest);
        present.jitter = change.jitter.or(present.jitter);
        present.duplicate = change.duplicate.unwrap_or(present.duplicate);
        present.corrupt = change.corrupt.unwrap_or(present.corrupt);
        present.queue = change.queue.unwrap_or(present.queue);
    }
    present
}

/// A link's settings in words, those that it has.
fn settings(link: &Link) -> Value {
    let mut all = Map::new();
    let mut put = |key: &str, value: String| drop(all.insert(key.into(), value.into()));
    put("name", link.name.clone());
    match (&link.trace, link.rate) {
        (Some(trace), _) => put("rate", format!("trace {}", trace.file)),
        (None, Some(rate)) => put("rate", rate.to_string()),
        (None, None) => {}
    }
    put("delay", link.delay.to_string());
    put("queue", link.queue.name().into());
    if !link.loss.is_none() {
        let loss = match link.loss {
            Loss::Independent(share) => percent(share),
            Loss::Bursts(_) => format!("{} in bursts", percent(link.loss.mean())),
            Loss::Errors(BitErrors { ber, times: None }) => format!("bit errors, {ber:e}"),
            Loss::Errors(BitErrors { ber, times: Some(Times { good, bad }) }) => {
                format!("bit errors, {ber:e} for {bad}, none for {good}")
            }
        };
        put("loss", loss);
    }
    if let Some(jitter) = link.jitter.as_ref().filter(|jitter| !jitter.is_none()) {
        let of =
            |what: &str, span: Option<Span>| span.map_or(String::new(), |span| format!(", {what} {span}"));
        let kind = format!("{:?}", jitter.distribution).to_lowercase();
        put("jitter", kind + &of("mean", jitter.mean) + &of("up to", jitter.up_to));
    }
    if let Some(largest) = link.largest {
        put("largest", largest.to_string());
    }
    for (key, probability) in [("duplicate", link.duplicate), ("corrupt", link.corrupt)] {
        if probability > 0.0 {
            put(key, percent(probability));
        }
    }
    all.into()
}

fn percent(share: f64) -> String {
    // Six digits hide what binary fractions add to a decimal one.
    let percent = (share * 1e8).round() / 1e6;
    format!("{percent} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use weir_base::Rate;
    use weir_plan::Lab;

    fn run() -> Run {
        let text = "format = 1\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '40 ms'\n\
                    schedule = [{ at = '1 h', rate = '1 Mbit/s' }]\n[run]\nduration = '2 h'\n[traffic.a]\n";
        Lab::from_str(text, "lab.toml", ".".as_ref(), &[]).unwrap().runs().remove(0)
    }

    fn set(links: &mut Links<'_>, link: &str, change: &str) -> Value {
        links.obey(&Request::Set { link: link.into(), change: change.into() })
    }

    #[test]
    fn a_change_is_checked_passed_on_and_shown() {
        let run = run();
        let (changes, made) = channel();
        let mut links = Links::new(&run, "a lab", Clock::starting_in(Span::ZERO), changes);
        let answer = set(&mut links, "down", "rate=5mbit loss=1%");
        assert_eq!(answer["link"]["rate"], "5 Mbit/s", "{answer}");
        let (number, change) = made.try_recv().unwrap();
        assert_eq!(
            (run.network.links[number].name.as_str(), change.rate),
            ("down", Some(Rate::from_mbit_per_sec(5)))
        );
        let shown = links.obey(&Request::Show);
        let of = |name: &str| {
            shown["links"].as_array().unwrap().iter().find(|link| link["name"] == name).unwrap().clone()
        };
        assert_eq!(
            of("down"),
            json!({ "name": "down", "rate": "5 Mbit/s", "delay": "20 ms", "queue": "tail-drop", "loss": "1 %" })
        );
        assert_eq!(of("up")["rate"], "10 Mbit/s");
        assert!(shown["changes"][0].as_str().unwrap().ends_with("s: down rate=5mbit loss=1%"), "{shown}");
    }

    #[test]
    fn what_is_wrong_changes_nothing_and_has_a_suggestion() {
        let run = run();
        let (changes, made) = channel();
        let mut links = Links::new(&run, "a lab", Clock::starting_in(Span::ZERO), changes);
        assert_eq!(set(&mut links, "dwon", "rate=5mbit")["help"], "did you mean `down`?");
        assert!(
            set(&mut links, "down", "rtae=5mbit")["error"].as_str().unwrap().contains("did you mean `rate`?")
        );
        assert!(made.try_recv().is_err());
    }
}
