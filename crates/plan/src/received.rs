//! Checks a run that was read back from a result folder rather than made from a lab. Its names become names of files and hosts,
//! and later code trusts its indices, so both are checked as those of a lab are.

use crate::limits::{LONGEST_RUN, MOST_PERIODS, SHORTEST_SAMPLE};
use crate::run::Run;
use weir_base::Span;
use weir_fabric::Node;

/// Longest name of a run: the name of a folder, with the engine before it (NAME_MAX is 255).
const LONGEST_ID: usize = 200;
/// Longest name of anything else: the longest that a lab may give, with what is appended to it.
const LONGEST_NAME: usize = 80;

impl Run {
    /// Checks a run that was not made from a lab by this program.
    ///
    /// # Errors
    /// What is wrong with it, worded to follow `the run`.
    pub fn check(&self) -> Result<(), String> {
        let named = |what: &str, name: &str, longest: usize| match is_plain(name, longest) {
            true => Ok(()),
            false => Err(format!("names a {what} {name:?}, which cannot be the name of one")),
        };
        named("run", &self.id, LONGEST_ID)?;
        let names = |node: &'_ Node| {
            node.alike.iter().chain([&node.name]).try_for_each(|name| named("node", name, LONGEST_NAME))
        };
        self.network.nodes.iter().try_for_each(names)?;
        self.network.links.iter().try_for_each(|link| named("link", &link.name, LONGEST_NAME))?;
        self.stations.iter().try_for_each(|station| named("station", &station.name, LONGEST_NAME))?;
        self.groups.iter().try_for_each(|group| named("group", &group.name, LONGEST_NAME))?;
        self.flows.iter().try_for_each(|flow| named("flow", &flow.name, LONGEST_NAME))?;
        self.check_times()?;
        self.check_indices()
    }

    fn check_times(&self) -> Result<(), String> {
        let Run { duration, sample, warmup, .. } = *self;
        if duration.is_zero() || duration > LONGEST_RUN {
            return Err(format!("lasts {duration}"));
        }
        let periods = duration.as_nanos() / sample.as_nanos().max(1);
        if sample < SHORTEST_SAMPLE || periods > MOST_PERIODS {
            return Err(format!("has sample periods of {sample} in {duration}"));
        }
        if warmup >= duration {
            return Err(format!("has a warm-up of {warmup} in {duration}"));
        }
        let late = |at: &Span| *at > LONGEST_RUN;
        let starts = self.flows.iter().map(|flow| flow.start);
        let rtts = self.groups.iter().flat_map(|group| group.pairs.iter().map(|pair| pair.rtt));
        let delays = self.network.links.iter().map(|link| link.delay);
        match starts.chain(rtts).chain(delays).find(late) {
            Some(time) => Err(format!("has a time of {time}, which is too long")),
            None => Ok(()),
        }
    }

    fn check_indices(&self) -> Result<(), String> {
        let (nodes, links, groups) = (self.network.nodes.len(), self.network.links.len(), self.groups.len());
        let within = |what: &str, index: usize, count: usize| match index < count {
            true => Ok(()),
            false => Err(format!("names {what} {index}, but has only {count}")),
        };
        for link in &self.network.links {
            within("node", link.from, nodes)?;
            within("node", link.to, nodes)?;
            if link.rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
                return Err(format!("has a link {} without a rate", link.name));
            }
        }
        for station in &self.stations {
            within("node", station.at, nodes)?;
            station.links.iter().try_for_each(|link| within("link", *link, links))?;
        }
        for pair in self.groups.iter().flat_map(|group| &group.pairs) {
            within("node", pair.from, nodes)?;
            within("node", pair.to, nodes)?;
        }
        for weir_fabric::Route { to, links: way } in &self.network.routes {
            within("node", *to, nodes)?;
            way.iter().try_for_each(|link| within("link", *link, links))?;
        }
        self.flows.iter().try_for_each(|flow| {
            within("group", flow.group, groups)?;
            within("pair", flow.pair, self.groups[flow.group].pairs.len())?;
            flow.copy_of.map_or(Ok(()), |other| within("flow", other, self.flows.len()))
        })
    }
}

/// Whether a name is fit for a file: letters, digits, `-`, `_` and points, with no point at the beginning.
fn is_plain(name: &str, longest: usize) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=longest).contains(&name.len()) && !name.starts_with('.') && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use crate::{Lab, Run};
    use std::path::Path;
    use weir_base::Span;

    fn run() -> Run {
        let text = "format = 1\n[stations.box]\nat = 'left'\nkind = 'policer'\nrate = '5 Mbit/s'\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n[traffic.a]\nflows = 2\n\
                    [vary]\n'dumbbell.queue' = ['pie', { kind = 'tail-drop', limit = '1.5 bdp' }]\n";
        Lab::from_str(text, "lab.toml", Path::new("."), &[]).unwrap().runs().pop().unwrap()
    }

    #[test]
    fn every_run_of_a_lab_is_sound() {
        assert_eq!(run().check(), Ok(()));
        assert!(run().id.contains('.'), "a label with a point: {}", run().id);
    }

    #[test]
    fn names_that_are_unfit_for_files_are_refused() {
        for bad in ["", "..", "../../../ESC", "a/b", ".hidden", "<b>", "a b", "\u{1b}[31m"] {
            let changes: [fn(&mut Run, &str); 6] = [
                |run, name| run.id = name.into(),
                |run, name| run.network.nodes[0].name = name.into(),
                |run, name| run.network.links[0].name = name.into(),
                |run, name| run.stations[0].name = name.into(),
                |run, name| run.groups[0].name = name.into(),
                |run, name| run.flows[1].name = name.into(),
            ];
            for change in changes {
                let mut run = run();
                change(&mut run, bad);
                let told = run.check().unwrap_err();
                assert!(told.contains(&format!("{bad:?}")), "{told}");
            }
        }
    }

    #[test]
    fn impossible_indices_and_times_are_refused() {
        let changes: [fn(&mut Run); 11] = [
            |run| run.flows[0].group = 1,
            |run| run.groups[0].pairs[0].from = 1000,
            |run| run.flows[0].pair = 1,
            |run| run.network.links[0].to = usize::MAX,
            |run| run.stations[0].at = 1000,
            |run| run.stations[0].links = vec![1000],
            |run| run.duration = Span::ZERO,
            |run| run.sample = Span::ZERO,
            |run| run.sample = Span::from_nanos(1),
            |run| run.warmup = run.duration,
            |run| run.duration = Span::MAX,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut run = run();
            change(&mut run);
            assert!(run.check().is_err(), "change {number}");
        }
    }
}
