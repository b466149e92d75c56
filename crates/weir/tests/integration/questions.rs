//! Questions with known answers. Each names a lab in `questions/`, and the number or the sentence that the terminal, the
//! index, the comparison or a run's page must show. The bounds follow from the lab by hand; a number must also equal the one
//! that `summary.json` has for this very link, class or group. In addition every number of every index is compared with the
//! summary: none may belong to another link or class.
//!
//! Pages are read in headless Chromium; without one the test says that it skips (`WEIR_REQUIRE_CHROMIUM=1` makes that a
//! failure).

mod list;

use list::{CHOOSE, QUESTIONS};

use crate::browser;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use Answer::{Chosen, Compare, Headline, Index, More, NotOnRun, Number, Read, Run, Says, Terminal};

/// The owner of a number: a link, a class of its packets, or a group.
#[derive(Clone, Copy)]
enum Of {
    Link(&'static str),
    Class(&'static str, &'static str),
    Group(&'static str),
}

enum Answer {
    /// On the index, in the row of the cell whose name has this text, a number of this kind, between these bounds.
    Number(&'static str, Of, &'static str, [f64; 2]),
    /// The first group's number on the index is the larger one, in the cell whose name has this text.
    More(&'static str, &'static str, [&'static str; 2]),
    /// The headline of the index has all these texts.
    Headline(&'static [&'static str]),
    /// The index has this text anywhere.
    Index(&'static str),
    /// The terminal's table has this text.
    Terminal(&'static str),
    /// What the terminal prints has all these texts.
    Says(&'static [&'static str]),
    /// The comparison, with this after the `#`, has this headline and names these numbers of the summary in it.
    Compare(&'static str, &'static str, Of, &'static str),
    /// The page of the first run has this text.
    Run(&'static str),
    /// The page of the first run has all these texts after this script has chosen something on it.
    Chosen(&'static str, &'static [&'static str]),
    /// A number on the page of the first run, which this script reads, is between these bounds. If a metric of the run is named, the
    /// summary's value of it is the same.
    Read(&'static str, Option<&'static str>, [f64; 2]),
    /// The page of the first run does not have this text.
    NotOnRun(&'static str),
}

fn weir(args: &[&str], folder: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output =
        command.args(args).current_dir(folder).env("COLUMNS", "200").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The content of a page: the JSON that `script` leaves in `found`. `part` stands after the `#`.
pub(crate) fn read(browser: &Path, page: &Path, part: &str, script: &str) -> Value {
    let html = std::fs::read_to_string(page).unwrap();
    let copy = page.with_file_name("asked.html");
    let script = format!(
        "<pre id=\"found\"></pre><script>addEventListener('load', () => setTimeout(() => {{ {script}\n\
         document.getElementById('found').textContent = encodeURIComponent(JSON.stringify(found)); }}, 400))</script></body>"
    );
    std::fs::write(&copy, html.replacen("</body>", &script, 1)).unwrap();
    let text = decoded(&browser::found(browser, &copy, &format!("#{part}"), "1280,1000", 4000));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", page.display()))
}

/// Undoes `encodeURIComponent`.
pub(crate) fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'%', [a, b, after @ ..]) => {
                let digits = String::from_utf8(vec![*a, *b]).unwrap();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap());
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

const INDEX: &str = "const found = { h1: document.querySelector('h1').textContent, text: document.body.innerText, \
    cells: [...document.querySelectorAll('#tree .cell')].map((cell) => ({ name: cell.querySelector('.name').textContent, \
    facts: [...cell.querySelectorAll('.fact')].map((fact) => ({ link: fact.dataset.link ?? null, class: fact.dataset.class \
    ?? null, group: fact.dataset.group ?? null, values: Object.fromEntries([...fact.querySelectorAll('.value')].map((value) \
    => [value.dataset.metric, value.querySelector('b').firstChild.textContent])) })) })) };";
pub(crate) const WORDS: &str =
    "const found = { h1: document.querySelector('h1').textContent, text: document.body.innerText };";

/// A lab that was run, and the content of its pages.
struct Asked {
    browser: PathBuf,
    folder: PathBuf,
    terminal: String,
    index: Value,
    summary: Value,
    /// What scripts have found on the page of the first run.
    first_run: RefCell<BTreeMap<String, Value>>,
}

impl Asked {
    fn new(lab: &str, scratch: &Path, browser: PathBuf) -> Asked {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/questions/{lab}.toml"));
        let folder = scratch.join(lab);
        let terminal = weir(&["run", file.to_str().unwrap(), "--out", folder.to_str().unwrap()], scratch);
        let index = read(&browser, &folder.join("index.html"), "", INDEX);
        let summary = serde_json::from_slice(&std::fs::read(folder.join("summary.json")).unwrap()).unwrap();
        Asked { browser, folder, terminal, index, summary, first_run: RefCell::default() }
    }

    /// What a script finds on the page of the first run.
    fn on_first_run(&self, script: &str) -> Value {
        if let Some(found) = self.first_run.borrow().get(script) {
            return found.clone();
        }
        let id = self.summary["runs"][0]["id"].as_str().unwrap();
        let page = self.folder.join(format!("report/sim/{}.html", id.trim_start_matches("sim-")));
        let found = read(&self.browser, &page, "", script);
        self.first_run.borrow_mut().insert(script.to_owned(), found.clone());
        found
    }

    fn cells(&self) -> &[Value] {
        self.index["cells"].as_array().unwrap()
    }

    /// The runs of the cell in this place of the index.
    fn runs(&self, cell: usize) -> Vec<&Value> {
        let runs = self.summary["runs"].as_array().unwrap();
        let mut cells: Vec<Vec<&Value>> = vec![];
        for run in runs {
            match cells.last_mut() {
                Some(cell) if cell[0]["params"] == run["params"] => cell.push(run),
                _ => cells.push(vec![run]),
            }
        }
        cells[cell].clone()
    }

    /// The mean over the repeats of the summary's value for a number of the index; `None` if the summary has none.
    fn known(&self, cell: usize, of: Of, metric: &str) -> Option<f64> {
        let (name, part) = match metric {
            "delay" => ("queue_delay_ms", "mean"),
            "p99" => ("queue_delay_ms", "p99"),
            "used" => ("utilisation_percent", ""),
            "marked" => ("mark_probability_percent", ""),
            "goodput" => ("goodput_mbps", ""),
            "rtt" => ("rtt_ms", "mean"),
            "retrans" => ("retransmission_percent", ""),
            "completion" => ("completion_time_s", "p50"),
            "completion-p99" => ("completion_time_s", "p99"),
            "on-time" => ("frames_on_time_percent", ""),
            "frames-lost" => ("frames_lost_percent", ""),
            "harm" => ("harm_goodput_percent", ""),
            _ => return None,
        };
        let one = |run: &Value| {
            let named = |list: &Value, key: &str, name: &str| {
                list.as_array().unwrap().iter().find(|one| one[key] == name).cloned().unwrap_or_default()
            };
            let metrics = match of {
                Of::Link(link) => named(&run["queues"], "link", link),
                Of::Class(link, class) => {
                    named(&named(&run["queues"], "link", link)["classes"], "class", class)
                }
                Of::Group(group) => named(&run["groups"], "name", group),
            };
            let value = if part.is_empty() { &metrics[name] } else { &metrics[name][part] };
            value.as_f64()
        };
        let values: Vec<f64> = self.runs(cell).into_iter().filter_map(one).collect();
        assert!(!values.is_empty(), "the summary has no {name} of it");
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The place of the cell whose name has a text, and the number that it shows.
    fn shown(&self, cell: &str, of: Of, metric: &str) -> (usize, f64) {
        let place = self.cells().iter().position(|one| one["name"].as_str().unwrap().contains(cell));
        let place = place.unwrap_or_else(|| panic!("no cell is called {cell}: {}", self.index));
        let facts = self.cells()[place]["facts"].as_array().unwrap();
        let fact = facts.iter().find(|fact| match of {
            Of::Link(link) => fact["link"] == link && fact["class"].is_null(),
            Of::Class(link, class) => fact["link"] == link && fact["class"] == class,
            Of::Group(group) => fact["group"] == group,
        });
        let text = &fact.unwrap_or_else(|| panic!("nothing is told of it: {facts:?}"))["values"][metric];
        let number = text.as_str().and_then(|text| text.parse().ok());
        (place, number.unwrap_or_else(|| panic!("{metric} is not told of it: {facts:?}")))
    }
}

/// Whether a number that a page shows, with three digits, is this one.
fn same(shown: f64, known: f64) -> bool {
    (shown - known).abs() <= 0.006 * known.abs().max(1e-3)
}

fn check(asked: &Asked, answer: &Answer) -> Result<(), String> {
    let text = asked.index["text"].as_str().unwrap().replace('\u{a0}', " ");
    let text_after = |script: &str| {
        let found = asked.on_first_run(&format!("{script}{WORDS}"));
        found["text"].as_str().unwrap().replace('\u{a0}', " ")
    };
    let first_run = || text_after("");
    let holds = |holds: bool, why: String| if holds { Ok(()) } else { Err(why) };
    match answer {
        Number(cell, of, metric, [least, most]) => {
            let (place, shown) = asked.shown(cell, *of, metric);
            let known = asked.known(place, *of, metric).unwrap();
            holds(same(shown, known), format!("the index shows {shown}, the summary has {known}"))?;
            holds((*least..=*most).contains(&shown), format!("{shown} is not from {least} to {most}"))
        }
        More(cell, metric, [more, less]) => {
            let [more, less] = [more, less].map(|group| asked.shown(cell, Of::Group(group), metric).1);
            holds(more > less, format!("{more} is not above {less}"))
        }
        Headline(texts) => {
            let h1 = asked.index["h1"].as_str().unwrap().replace('\u{a0}', " ");
            holds(texts.iter().all(|text| h1.contains(text)), h1)
        }
        Index(part) => holds(text.contains(part), text.clone()),
        Terminal(name) => {
            let head = asked.terminal.lines().next().unwrap_or_default();
            holds(head.split_whitespace().any(|word| word == *name), asked.terminal.clone())
        }
        Says(texts) => {
            let said = asked.terminal.replace(['\u{a0}', '\n'], " ");
            holds(texts.iter().all(|text| said.contains(text)), asked.terminal.clone())
        }
        Compare(part, words, of, metric) => {
            let found = read(&asked.browser, &asked.folder.join("report/compare.html"), part, WORDS);
            let h1 = found["h1"].as_str().unwrap().replace('\u{a0}', " ");
            holds(h1.contains(words), h1.clone())?;
            let numbers: Vec<f64> = h1
                .split_whitespace()
                .filter_map(|word| word.trim_end_matches(['.', ';', ',']).parse().ok())
                .collect();
            for cell in 0..asked.cells().len() {
                let known = asked.known(cell, *of, metric).unwrap();
                holds(numbers.iter().any(|shown| same(*shown, known)), format!("no {known} in: {h1}"))?;
            }
            Ok(())
        }
        Run(part) => {
            let text = first_run();
            holds(text.contains(part), text)
        }
        Chosen(script, parts) => {
            let text = text_after(&format!("{CHOOSE}{script}"));
            let missing: Vec<_> = parts.iter().filter(|part| !text.contains(**part)).collect();
            holds(missing.is_empty(), format!("not {missing:?} in {text}"))
        }
        Read(script, metric, [least, most]) => {
            let found = asked.on_first_run(&format!("{CHOOSE} let found; {script};"));
            let shown = found.as_f64().ok_or_else(|| format!("the page shows {found}"))?;
            if let Some(known) = metric.map(|metric| asked.summary["runs"][0]["metrics"][metric].as_f64()) {
                holds(known.is_some_and(|known| same(shown, known)), format!("{shown} is not {known:?}"))?;
            }
            holds((*least..=*most).contains(&shown), format!("{shown} is not from {least} to {most}"))
        }
        NotOnRun(part) => {
            let text = first_run();
            holds(!text.contains(part), text)
        }
    }
}

/// The numbers of the index that the summary has too, but that are not those of their own link, class or group; none if all is
/// right.
fn no_number_is_anothers(asked: &Asked) -> Vec<String> {
    let mut wrong = vec![];
    let mut seen = 0;
    for (place, cell) in asked.cells().iter().enumerate() {
        for fact in cell["facts"].as_array().unwrap() {
            let text = |key: &str| fact[key].as_str().map(|text| &*text.to_owned().leak());
            let of = match (text("link"), text("class"), text("group")) {
                (Some(link), Some(class), _) => Of::Class(link, class),
                (Some(link), None, _) => Of::Link(link),
                (None, _, Some(group)) => Of::Group(group),
                _ => continue,
            };
            for (metric, shown) in fact["values"].as_object().unwrap() {
                let Some(known) = asked.known(place, of, metric) else { continue };
                let shown: f64 = shown.as_str().unwrap().parse().unwrap();
                seen += 1;
                if !same(shown, known) {
                    wrong.push(format!("{} {fact}: {metric} is {known}", cell["name"]));
                }
            }
        }
    }
    assert!(seen >= 4, "the index shows numbers");
    wrong
}

/// A test for each lab: its questions are answered where they are asked.
macro_rules! labs {
    ($($test:ident $lab:literal)+) => {
        const LABS: &[&str] = &[$($lab),+];
        $(
            #[test]
            fn $test() {
                answers($lab);
            }
        )+
    };
}

labs! {
    thin_line "thin-line"
    bbr_beside_cubic "bbr-beside-cubic"
    handover "handover"
    l4s "l4s"
    cameras "cameras"
    call "call"
    call_queues "call-queues"
    bbr_flows "bbr-flows"
    cellular_controllers "cellular-controllers"
    lossy "lossy"
    circuit "circuit"
    streams "streams"
    overlay "overlay"
    refused "refused"
}

fn answers(lab: &str) {
    let Some(browser) = browser::browser() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let asked = Asked::new(lab, scratch.path(), browser);
    let mut failures = no_number_is_anothers(&asked);
    for (_, asks, answer) in QUESTIONS.iter().filter(|(of, ..)| *of == lab) {
        failures.extend(check(&asked, answer).err().map(|why| format!("{asks}: {why}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_question_is_asked_of_a_lab_with_a_test() {
    let of: BTreeSet<&str> = QUESTIONS.iter().map(|(lab, ..)| *lab).collect();
    assert_eq!(of, LABS.iter().copied().collect());
}

#[test]
fn the_way_to_add_a_controller_names_only_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let section = text.split("## A worked controller").nth(1).unwrap().split("\n## ").next().unwrap();
    let quoted = section.split('`').skip(1).step_by(2);
    let files: Vec<&str> = quoted.filter(|part| part.starts_with("crates/") && !part.contains(' ')).collect();
    assert!(files.len() >= 5, "{files:?}");
    // The controller of the example is not there.
    for file in files.into_iter().filter(|file| !file.ends_with("gentle.rs")) {
        assert!(root.join(file).exists(), "{file}");
    }
    for hook in ["on_ack", "ssthresh", "pacing_rate", "exempt.rs", "--on live", "bpf/SHORT.c"] {
        assert!(section.contains(hook), "{hook}");
    }
}
