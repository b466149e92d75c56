//! The lab of a wrapped program (`weir wrap`): the network between the program and the far end, and one group whose traffic is
//! the program's. The program stands where the group's data goes, so that `down` is the direction towards it.

use crate::diagnostic::{Diagnostics, Fault, Origin};
use crate::lab::{Form, Lab};
use crate::one_line;
use crate::reading::Reading;
use crate::tree::{Entry, Item, Node, Table, parse, quoted};
use std::path::Path;

/// The network between a wrapped program and the far end.
#[derive(Debug, Clone, Copy)]
pub enum Behind<'a> {
    /// Links in a row, each in one line; the first is nearest the program. One link has the directions `down` and `up`; of several the
    /// first has the directions `link1` and `link1-up`, and so on.
    Links(&'a [String]),
    /// A lab's network, between the hosts of its first traffic group.
    Lab(&'a Path),
}

/// The name of the program's traffic group.
pub const WRAPPED: &str = "program";

/// Keys of a traffic group that say where it is.
const PLACE: [&str; 7] = ["from", "to", "via", "back", "rtt", "hop", "direction"];

impl Lab {
    /// The lab of a program (as it was typed) behind a network, with settings from the command line (`PATH=VALUE`).
    ///
    /// # Errors
    /// Everything found wrong, each with its place and a suggestion.
    pub fn wrapped(behind: Behind<'_>, program: &str, settings: &[String]) -> Result<Lab, Diagnostics> {
        let mut reading = Reading::default();
        let root = match behind {
            Behind::Links(lines) => of_links(&mut reading, lines)?,
            Behind::Lab(path) => of_lab(&mut reading, path, settings)?,
        };
        let root = with_program(&mut reading, root, program)?;
        let (name, settings) = match behind {
            Behind::Links(_) => (Path::new("wrap"), settings),
            Behind::Lab(path) => (path, &[][..]),
        };
        Lab::build(reading, root, name, settings, Form::default())
    }
}

/// Links in a row.
fn of_links(reading: &mut Reading, lines: &[String]) -> Result<Table, Diagnostics> {
    let mut links = vec![];
    for line in lines {
        let file = reading.line("--link", line);
        let table = one_line::parse(line, file).map_err(|faults| reading.fail(faults))?;
        let origin = Origin::new(file, 0..line.len());
        links.push(Entry { named: origin, value: Node { item: Item::Table(table), origin } });
    }
    let text = "format = 1\n";
    let file = reading.line("wrap", text);
    let mut root = parse(text, file).map_err(|faults| reading.fail(faults))?;
    let entry = |table: Table| {
        let origin = Origin::new(file, 0..text.len());
        Entry { named: origin, value: Node { item: Item::Table(table), origin } }
    };
    if let [only] = &links[..] {
        root.0.insert("dumbbell".into(), only.clone());
        return Ok(root);
    }
    // Data goes from left to right, so the link nearest the program is the last of the chain.
    let numbered = links.into_iter().enumerate().rev();
    let members = numbered.map(|(before, link)| (format!("link{}", before + 1), link));
    let members = entry(Table(members.collect()));
    root.0.insert("chain".into(), entry(Table(std::iter::once(("links".into(), members)).collect())));
    Ok(root)
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

/// The lab with the program in the place of its traffic, and without what only simulated or measured hosts need.
fn with_program(reading: &mut Reading, mut root: Table, program: &str) -> Result<Table, Diagnostics> {
    let first = root.get("traffic").and_then(Node::as_table).and_then(|groups| groups.0.values().next());
    let place: Vec<(String, Entry)> = first
        .and_then(|group| group.value.as_table())
        .into_iter()
        .flat_map(|group| &group.0)
        .filter(|(key, _)| PLACE.contains(&key.as_str()))
        .map(|(key, entry)| (key.clone(), entry.clone()))
        .collect();
    // Real hosts have delays of their own.
    let text = format!(
        "[run]\nsample = \"100 ms\"\nhost_jitter = \"0 s\"\nstart_jitter = \"0 s\"\nwarmup = \"0 s\"\nrepeats = 1\n\
         [traffic.{WRAPPED}]\nworkload = {{ kind = \"command\", host = \"receiver\", may_fail = true, run = {} }}\n",
        quoted(program)
    );
    let file = reading.line("wrap", &text);
    let mut own = parse(&text, file).map_err(|faults| reading.fail(faults))?;
    let groups = own.0.get_mut("traffic").map(|entry| &mut entry.value.item);
    if let Some(Item::Table(groups)) = groups
        && let Some(Item::Table(group)) = groups.0.get_mut(WRAPPED).map(|entry| &mut entry.value.item)
    {
        group.0.extend(place);
    }
    if let Some(Item::Table(run)) = root.0.get_mut("run").map(|entry| &mut entry.value.item) {
        run.remove("windows");
    }
    root.remove("traffic");
    root.overlay(own);
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{Rate, Span};

    fn behind(lines: &[&str]) -> Result<Lab, Diagnostics> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        Lab::wrapped(Behind::Links(&lines), "curl far", &[])
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
        let lab = Lab::wrapped(Behind::Lab(&path), "sh", &["graph.links.x.queue=pie".into()]).unwrap();
        let run = lab.runs().remove(0);
        assert_eq!((run.groups.len(), run.pair(0).rtt), (1, Span::from_millis(6)));
        assert_eq!(run.network.links[0].schedule.len(), 1);
    }
}
