//! A change of a link while it works (`weir link set`), checked as an entry of the link's schedule is.

use crate::bottleneck;
use crate::diagnostic::{Diagnostics, Fault, Origin, Sources};
use crate::drawing::change_of;
use crate::limits;
use crate::one_line;
use crate::read::read;
use crate::reader::Reader;
use crate::traces::Traces;
use crate::tree::{Entry, Item, Node, Table};
use weir_base::Time;
use weir_fabric::{Change, Link};

/// The longest line that is read, in bytes: every key of a change fits in many times over.
const LONGEST: usize = 4096;

/// Reads a change in one line, `rate=5mbit loss=1%`, that is to take effect at `at`. `link` is the link as it is now.
///
/// # Errors
/// Everything found wrong, each with its place and a suggestion. A recording cannot begin in this way, since the process that has the link
/// reads no files for others.
pub fn change(line: &str, link: &Link, at: Time) -> Result<Change, Diagnostics> {
    let mut sources = Sources::default();
    if line.len() > LONGEST {
        let file = sources.add("change", line.chars().take(80).collect());
        let help = format!("write at most {LONGEST} bytes");
        return Err(sources.diagnose(vec![Fault::new(
            Origin::new(file, 0..0),
            "the change is too long",
            help,
        )]));
    }
    let file = sources.add("change", line.into());
    checked(line, file, link, at).map_err(|faults| sources.diagnose(faults))
}

fn checked(line: &str, file: usize, link: &Link, at: Time) -> Result<Change, Vec<Fault>> {
    let home = Origin::new(file, 0..line.len());
    let mut words = one_line::parse(line, file)?;
    if let Some(entry) = words.entry("at") {
        return Err(vec![Fault::new(
            entry.named,
            "there is no key `at` here",
            "a change takes effect at once",
        )]);
    }
    if let Some(trace) = words.get("rate").and_then(Node::as_table).and_then(|rate| rate.entry("trace")) {
        let help = "begin the recording by the `schedule` of a lab";
        return Err(vec![Fault::new(trace.named, "a recording cannot begin by a change", help)]);
    }
    let now = Node { item: Item::String(format!("{} ns", at.as_nanos())), origin: home };
    words.0.insert("at".into(), Entry { named: home, value: now });
    let node = Node { item: Item::Table(words), origin: home };
    let written: bottleneck::Change = read(&node).map_err(|fault| vec![fault.at(home)])?;
    let traces = Traces::default();
    let entry = Entry { named: home, value: node };
    let root = Table(std::iter::once((CHANGE.to_owned(), entry)).collect());
    let mut reader =
        Reader { root: &root, faults: vec![], schema: false, home, traces: &traces, describe: |_| None };
    let change = change_of(&reader, written);
    let changed = Link { schedule: vec![change.clone()], ..link.clone() };
    limits::schedule(&mut reader, &[CHANGE], &changed);
    if reader.faults.is_empty() { Ok(change) } else { Err(reader.faults) }
}

/// The section that messages point to.
const CHANGE: &str = "change";

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Rate, Span};

    fn told(line: &str) -> Vec<(String, String)> {
        let link = Link::plain("down", 0, 1);
        let faults = change(line, &link, Time::ZERO).unwrap_err();
        let of = |problem: &crate::Problem| {
            (problem.message().to_owned(), problem.suggestion().unwrap_or_default().to_owned())
        };
        faults.problems().iter().map(of).collect()
    }

    #[test]
    fn a_change_has_the_keys_of_a_schedule_and_its_own_time() {
        let link = Link::plain("down", 0, 1);
        let at = Time::ZERO + Span::from_secs(3);
        let change = change("rate=5mbit delay=10ms loss=1%", &link, at).unwrap();
        assert_eq!(change.at, Span::from_secs(3));
        assert_eq!(change.rate, Some(Rate::from_mbit_per_sec(5)));
        assert_eq!(change.delay, Some(Span::from_millis(10)));
        assert_eq!(change.loss.map(|loss| loss.mean()), Some(0.01));
    }

    #[test]
    fn what_a_schedule_refuses_a_change_refuses() {
        assert_eq!(told("rate=0mbit")[0].0, "a link at 0 bit/s sends nothing");
        assert_eq!(told("delay=2h")[0].0, "a delay of 2 h is too long");
        assert_eq!(told("")[0].0, "nothing changes at 0 s");
        assert!(told("rtae=5mbit")[0].1.contains("did you mean `rate`?"), "{:?}", told("rtae=5mbit"));
        assert_eq!(told("rate=5mbiz")[0].0, "\"mbiz\" is not a unit of rate");
        assert_eq!(told("at=3s")[0].1, "a change takes effect at once");
        assert_eq!(told("rate={trace=\"x\"}")[0].0, "a recording cannot begin by a change");
        assert!(told("queue=pie:target=5ms")[0].0.contains("cannot"), "{:?}", told("queue=pie:target=5ms"));
        assert_eq!(told(&"x".repeat(5000))[0].0, "the change is too long");
    }
}
