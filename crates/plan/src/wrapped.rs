//! The lab of a wrapped program (`weir wrap`): the network between the program and the far end, and one group whose traffic is
//! the program's. The program stands where the group's data goes, so that `down` is the direction towards it. Where packets to a prefix of
//! addresses take links of their own, these are between two further hosts, and a further group is what the program sends and receives there.

mod links;

use crate::diagnostic::{Diagnostics, Fault};
use crate::lab::{Form, Lab};
use crate::reading::Reading;
use crate::tree::{Entry, Item, Node, Table, parse, quoted};
use std::path::Path;
use weir_base::Prefix;

/// The network between a wrapped program and the far end.
#[derive(Debug, Clone, Copy)]
pub enum Behind<'a> {
    /// Links in a row, each in one line; the first is nearest the program. One link has the directions `down` and `up`; of several the
    /// first has the directions `link1` and `link1-up`, and so on. Links with `to=PREFIX` stand in a row of their own for each prefix.
    Links(&'a [String]),
    /// A lab's network, between the hosts of its first traffic group.
    Lab(&'a Path),
}

/// The name of the program's traffic group.
pub const WRAPPED: &str = "program";

/// The lab of a wrapped program.
#[derive(Debug, Clone)]
pub struct Wrapping {
    /// The lab, with a single run. Its first group is the program's.
    pub lab: Lab,
    /// The prefixes whose packets have links of their own, one for each further group, in the order of the groups. No two are equal.
    pub prefixes: Vec<Prefix>,
}

/// Keys of a traffic group that say where it is.
const PLACE: [&str; 7] = ["from", "to", "via", "back", "rtt", "hop", "direction"];

impl Lab {
    /// The lab of a program (as it was typed) behind a network, with settings from the command line (`PATH=VALUE`).
    ///
    /// # Errors
    /// Everything found wrong, each with its place and a suggestion.
    pub fn wrapped(behind: Behind<'_>, program: &str, settings: &[String]) -> Result<Wrapping, Diagnostics> {
        let mut reading = Reading::default();
        let (root, prefixes) = match behind {
            Behind::Links(lines) => links::network(&mut reading, lines)?,
            Behind::Lab(path) => (of_lab(&mut reading, path, settings)?, vec![]),
        };
        let root = with_program(&mut reading, root, program, prefixes.len())?;
        let (name, settings) = match behind {
            Behind::Links(_) => (Path::new("wrap"), settings),
            Behind::Lab(path) => (path, &[][..]),
        };
        let lab = Lab::build(reading, root, name, settings, Form::default())?;
        Ok(Wrapping { lab, prefixes })
    }
}

/// A lab without its tree and its claims.
fn of_lab(reading: &mut Reading, path: &Path, settings: &[String]) -> Result<Table, Diagnostics> {
    let mut root = reading.file(path, None)?;
    for form in ["full", "live"] {
        reading.form(&mut root, form, false)?;
    }
    for setting in settings {
        reading.setting(&mut root, setting)?;
    }
    if let Some(entry) =
        root.entry("vary").filter(|entry| entry.value.as_table().is_none_or(|vary| !vary.0.is_empty()))
    {
        let help = "choose one: --set PATH=VALUE takes the level of that path out of the tree";
        return Err(reading.fail(vec![Fault::new(
            entry.named,
            "a program is behind one network, and this lab varies",
            help,
        )]));
    }
    for section in ["vary", "only", "expect", "plot", "nic"] {
        root.remove(section);
    }
    Ok(root)
}

/// The lab with the program in the place of its traffic, and without what only simulated or measured hosts need. The program's are the
/// first group and as many further ones as are asked for.
fn with_program(
    reading: &mut Reading,
    mut root: Table,
    program: &str,
    further: usize,
) -> Result<Table, Diagnostics> {
    let groups = root.get("traffic").and_then(Node::as_table);
    let mut places: Vec<(String, Table)> = groups
        .into_iter()
        .flat_map(|groups| &groups.0)
        .filter_map(|(name, group)| Some((name.clone(), place(group.value.as_table()?))))
        .take(1 + further)
        .collect();
    match places.first_mut() {
        Some((name, _)) => *name = WRAPPED.into(),
        None => places.push((WRAPPED.into(), Table::default())),
    }
    // Real hosts have delays of their own.
    let mut text = "[run]\nsample = \"100 ms\"\nhost_jitter = \"0 s\"\nstart_jitter = \"0 s\"\nwarmup = \"0 s\"\nrepeats = 1\n"
        .to_owned();
    for (name, _) in &places {
        // The program runs once, whatever the number of its groups.
        let run = if name == WRAPPED { program } else { ":" };
        text += &format!(
            "[traffic.{name}]\nworkload = {{ kind = \"command\", host = \"receiver\", may_fail = true, run = {} }}\n",
            quoted(run)
        );
    }
    let file = reading.line("wrap", &text);
    let mut own = parse(&text, file).map_err(|faults| reading.fail(faults))?;
    if let Some(Item::Table(groups)) = own.0.get_mut("traffic").map(|entry| &mut entry.value.item) {
        for (name, place) in places {
            if let Some(Item::Table(group)) = groups.0.get_mut(&name).map(|entry| &mut entry.value.item) {
                group.0.extend(place.0);
            }
        }
    }
    if let Some(Item::Table(run)) = root.0.get_mut("run").map(|entry| &mut entry.value.item) {
        run.remove("windows");
    }
    root.remove("traffic");
    root.overlay(own);
    Ok(root)
}

/// What of a traffic group says where it is.
fn place(group: &Table) -> Table {
    let keys = group.0.iter().filter(|(key, _)| PLACE.contains(&key.as_str()));
    Table(keys.map(|(key, entry): (&String, &Entry)| (key.clone(), entry.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Rate, Span};

    fn wrapped(lines: &[&str]) -> Result<Wrapping, Diagnostics> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        Lab::wrapped(Behind::Links(&lines), "curl far", &[])
    }

    fn behind(lines: &[&str]) -> Result<Lab, Diagnostics> {
        wrapped(lines).map(|wrapping| wrapping.lab)
    }

    /// Each instrumented link: its name, rate and delay.
    fn links(lab: &Lab) -> Vec<(String, Rate, Span)> {
        let run = lab.runs().remove(0);
        let of = |link: weir_fabric::Link| (link.name, link.rate.unwrap_or_default(), link.delay);
        run.network.links.into_iter().filter(|link| link.instrumented).map(of).collect()
    }

    #[test]
    fn one_link_is_a_dumbbell_with_its_keys() {
        let lab = behind(&["rate=50mbit/10mbit rtt=40ms queue=pie"]).unwrap();
        let ms = Span::from_millis;
        let rate = Rate::from_mbit_per_sec;
        assert_eq!(links(&lab), [("down".into(), rate(50), ms(20)), ("up".into(), rate(10), ms(20))]);
        let run = lab.runs().remove(0);
        let pair = run.pair(0);
        assert_eq!((pair.rtt, run.groups[0].name.as_str()), (ms(40), WRAPPED));
        assert!(run.network.nodes[pair.to].name.ends_with("receiver"), "data goes down to the program");
        assert!(run.network.nodes.iter().all(|node| node.jitter.is_zero()));
    }

    #[test]
    fn of_links_in_a_row_the_first_is_nearest_the_program() {
        let lab = behind(&["rate=1mbit delay=1ms", "rate=2mbit delay=2ms", "rate=3mbit delay=3ms"]).unwrap();
        let names: Vec<String> = links(&lab).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["link3", "link3-up", "link2", "link2-up", "link1", "link1-up"]);
        let run = lab.runs().remove(0);
        let last = run.network.links.iter().find(|link| link.to == run.pair(0).to).unwrap();
        let nearest = run.network.links.iter().find(|link| link.name == "link1").unwrap();
        assert_eq!((last.from, run.pair(0).rtt), (nearest.to, Span::from_millis(12)));
    }

    #[test]
    fn links_to_a_prefix_are_a_way_of_their_own() {
        let lines = [
            "rate=50mbit rtt=10ms",
            "to=198.51.100.0/24 rate=8mbit/2mbit delay=30ms",
            "to=2001:db8::/32 rate=1mbit delay=4ms",
            "to=198.51.100.0/24 rate=9mbit delay=1ms",
        ];
        let Wrapping { lab, prefixes } = wrapped(&lines).unwrap();
        assert_eq!(
            prefixes,
            ["198.51.100.0/24", "2001:db8::/32"].map(|text| text.parse::<Prefix>().unwrap())
        );
        let run = lab.runs().remove(0);
        let names: Vec<&str> = run.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, [WRAPPED, "to-link2", "to-link3"]);
        let rtts: Vec<Span> = run.groups.iter().map(|group| group.pairs[0].rtt).collect();
        assert_eq!(rtts, [10, 62, 8].map(Span::from_millis));
        let rates: Vec<(String, Rate)> =
            links(&lab).into_iter().map(|(name, rate, _)| (name, rate)).collect();
        let mbit = |name: &str, rate| (name.to_owned(), Rate::from_mbit_per_sec(rate));
        for link in
            [mbit("link1", 50), mbit("link2", 8), mbit("link2-up", 2), mbit("link3-up", 1), mbit("link4", 9)]
        {
            assert!(rates.contains(&link), "{link:?} of {rates:?}");
        }
        // Towards the program the link nearest it is the last one.
        let of = |name: &str| run.network.links.iter().find(|link| link.name == name).unwrap();
        assert_eq!((of("link4").to, of("link2-up").to), (of("link2").from, of("link4").to));
        let again = Lab::from_str(lab.source(), "wrap.toml", ".".as_ref(), &[]).unwrap();
        assert_eq!(lab.runs(), again.runs());
    }

    #[test]
    fn a_prefix_that_cannot_be_a_way_is_shown_with_what_to_write() {
        let problem = |lines: &[&str]| {
            let found = wrapped(lines).unwrap_err();
            let problem = &found.problems()[0];
            let column = problem.location().map(|(_, _, column)| column);
            (column, format!("{} {}", problem.message(), problem.suggestion().unwrap_or_default()))
        };
        let beside = |to: &str| problem(&["rate=9mbit rtt=1ms", &format!("rate=1mbit to={to} rtt=1ms")]);
        let (at, told) = beside("198.51.100.7/24");
        assert!(at == Some(15) && told.contains("`198.51.100.0/24` was probably meant"), "{at:?} {told}");
        assert!(beside("example.org").1.contains("is not an address"));
        assert!(beside("127.0.0.0/8").1.contains("no packet to 127.0.0.0/8 leaves"));
        assert!(beside("ff02::/16").1.contains("no packet to ff02::/16 leaves"));
        assert!(problem(&["rate=1mbit rtt=1ms from=a"]).1.contains("no key `from`"));
        let (at, told) = problem(&["to=198.51.100.0/24 rate=1mbit rtt=1ms"]);
        assert!(at == Some(4) && told.contains("--link 'rate=20mbit rtt=40ms'"), "{at:?} {told}");
    }

    #[test]
    fn a_lab_written_out_reads_back_to_the_same_run() {
        let lab = behind(&["rate=5mbit rtt=40ms loss=1% queue=tail-drop:limit=100p"]).unwrap();
        let again = Lab::from_str(lab.source(), "wrap.toml", ".".as_ref(), &[]).unwrap();
        assert_eq!(lab.runs(), again.runs());
    }

    #[test]
    fn mistakes_are_shown_at_their_word_with_the_nearest_name() {
        let problem = |line: &str| {
            let found = behind(&[line]).unwrap_err();
            let problem = &found.problems()[0];
            (
                problem.location().map(|(_, _, column)| column),
                problem.suggestion().unwrap_or_default().to_owned(),
            )
        };
        assert_eq!(problem("rate=5mbit rtt=40ms quue=pie"), (Some(21), "did you mean `queue`?".into()));
        assert_eq!(problem("rate=5mbit rtt=40ms queue=pei"), (Some(27), "did you mean \"pie\"?".into()));
        assert_eq!(problem("rate=5mbps rtt=40ms").0, Some(6));
        assert_eq!(problem("rate=5mbit rtt=40").0, Some(16));
        let (at, help) = problem("rate=5mbit");
        assert!(at == Some(1) && help.contains("rtt = "), "{at:?} {help}");
        assert_eq!(problem("").0, Some(1));
    }

    #[test]
    fn a_lab_gives_its_network_and_the_place_of_its_first_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.toml");
        let text = "format = 1\n[graph]\nrouters = ['a', 'b', 'c']\n[graph.links]\n\
                    x = { from = 'a', to = 'b', rate = '9 Mbit/s', delay = '3 ms', schedule = [{ at = '2 s', rate = '1 Mbit/s' }] }\n\
                    y = { from = 'b', to = 'c', rate = '8 Mbit/s', delay = '4 ms' }\n\
                    [traffic.one]\nfrom = 'a'\nto = 'b'\n[traffic.two]\nfrom = 'a'\nto = 'c'\n\
                    [vary]\n'graph.links.x.queue' = ['pie', 'codel']\n[[expect]]\nid = 'x'\n";
        std::fs::write(&path, text).unwrap();
        let refused = Lab::wrapped(Behind::Lab(&path), "sh", &[]).unwrap_err();
        assert_eq!(refused.problems()[0].message(), "a program is behind one network, and this lab varies");
        let lab = Lab::wrapped(Behind::Lab(&path), "sh", &["graph.links.x.queue=pie".into()]).unwrap().lab;
        let run = lab.runs().remove(0);
        assert_eq!((run.groups.len(), run.pair(0).rtt), (1, Span::from_millis(6)));
        assert_eq!(run.network.links[0].schedule.len(), 1);
    }
}
