//! The pages: index, comparison, one for each run, one for each pair of runs on both engines. They hold the numbers as plain
//! HTML; the scripts in `assets/` add the tree's table and the plots.

mod run;

use crate::html::{Cell, Page, Table, escape, link, notices, swatch};
use crate::lab::{Judged, Lab, PIECE, Run};
use crate::naming::{engine_name, spelled};
use crate::scatter;
use crate::script::push_json;
use crate::sentence;
use crate::tables::{
    ENGINES, agreement_table, how_it_was_run, how_the_lab_was_run, is_of, left_out, links_table,
    stations_table,
};
use crate::tiles::tiles;
use crate::trajectories::Trajectories;
use crate::verdict::{by_cell, signed};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write;
use weir_record::compare::Comparison;

/// Largest number of runs that the index lists for readers without scripts.
const PLAIN_RUNS: usize = 500;

/// The pages of a lab, with the data that they share.
pub(crate) struct Pages<'a> {
    pub lab: &'a Lab,
    /// The colour of each traffic group, by name.
    pub colours: HashMap<&'a str, usize>,
    /// Index of each run in [`Lab::runs`], by id and engine.
    places: HashMap<(&'a str, &'a str), usize>,
    engines: Vec<&'a str>,
    /// Whether any cell was run more than once.
    repeats: bool,
}

/// The contents of a run's page, without the frame that all pages share.
#[derive(Serialize)]
pub(crate) struct Leaf {
    #[serde(rename = "t")]
    title: String,
    #[serde(rename = "e")]
    eyebrow: String,
    #[serde(rename = "s")]
    sentence: String,
    #[serde(rename = "b")]
    body: String,
}

/// Path of a run's page or series, from the result folder; `ending` is the extension.
pub(crate) fn run_file(run: &Run, ending: &str) -> String {
    format!("report/{}/{}.{ending}", run.engine(), run.id)
}

/// Path of the page that shows both engines' runs, from the result folder.
pub(crate) fn both_file(id: &str) -> String {
    format!("report/both/{id}.html")
}

impl<'a> Pages<'a> {
    pub(crate) fn new(lab: &'a Lab) -> Pages<'a> {
        let names = lab.group_names();
        Pages {
            lab,
            colours: names.iter().enumerate().map(|(colour, name)| (*name, colour)).collect(),
            places: lab
                .runs
                .iter()
                .enumerate()
                .map(|(i, run)| ((run.id.as_str(), run.engine()), i))
                .collect(),
            engines: lab.engines(),
            repeats: lab.runs.iter().any(|run| run.summary.repeat > 1),
        }
    }

    /// The run of the same cell and repeat on the other engine, if there is one.
    pub(crate) fn twin(&self, run: &Run) -> Option<&'a Run> {
        let other = self.engines.iter().find(|engine| **engine != run.engine())?;
        self.places.get(&(run.id.as_str(), *other)).map(|&place| &self.lab.runs[place])
    }

    /// The link to a run's page from another run's.
    fn to_run(&self, run: &Run) -> String {
        self.to(run, run.engine())
    }

    /// The link from another run's page to a run's page of this kind (an engine, or `both`).
    fn to(&self, run: &Run, kind: &str) -> String {
        let (kind, id) = (link(kind), link(&run.id));
        match self.lab.is_large() {
            true => format!("run.html#{}/{kind}/{id}", run.number / PIECE),
            false => format!("../{kind}/{id}.html"),
        }
    }

    fn home(&self, root: &str) -> (String, String) {
        (self.lab.name.clone(), format!("{root}index.html"))
    }

    fn legend(&self) -> String {
        let mut names = self.lab.group_names();
        names.truncate(24);
        let swatches: String = names.iter().enumerate().map(|(colour, name)| swatch(colour, name)).collect();
        format!("<p class=\"legend\"><span class=\"quiet\">Traffic groups</span>{swatches}</p>\n")
    }

    /// `index.html`.
    pub(crate) fn index(&self) -> String {
        let lab = self.lab;
        let mut body = String::new();
        if !lab.network.is_empty() {
            body +=
                &format!("<section id=\"network\" aria-label=\"The network\">{}</section>\n", lab.network);
        }
        body += &self.legend();
        if lab.growing {
            let (done, all) = (lab.runs.len(), lab.size());
            let _ = writeln!(
                body,
                "<p class=\"notice\" role=\"status\">Not complete: {done} of {all} runs are done. This page is updated while the lab \
                 runs: reload it to see new results. The pages of the runs are written at the end.</p>"
            );
        } else if lab.runs.len() < lab.size() {
            let (there, all) = (lab.runs.len(), lab.size());
            let _ = writeln!(
                body,
                "<p class=\"notice\" role=\"status\">Not complete: {there} of {all} runs are there. The same command runs the missing \
                 ones.</p>"
            );
        }
        let cells = distinct_cells(lab);
        let many = lab.runs.len() > 1 && !lab.growing;
        let plural =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        body += "<section id=\"pictures\" aria-label=\"Over time\"></section>\n";
        let _ = writeln!(
            body,
            "<section aria-labelledby=\"runs\"><div class=\"bar\"><h2 id=\"runs\">{}, {}</h2>{}\
             <label class=\"find\">Find <input type=\"search\" id=\"find\" autocomplete=\"off\" placeholder=\"cubic, pie, \
             invalid\"></label></div><p class=\"quiet hint\">Means over a cell’s repeats with their 95 % intervals.</p><div id=\"tree\"></div>",
            plural(cells, "cell"),
            plural(lab.runs.len(), "run"),
            if many { "<a class=\"action\" href=\"report/compare.html\">Compare the cells</a>" } else { "" },
        );
        body += "<noscript><ul>";
        for run in lab.runs.iter().take(PLAIN_RUNS) {
            let name = escape(&self.name_of(run));
            // The pages of large labs need scripts.
            let name = match lab.growing || lab.is_large() {
                true => name,
                false => format!("<a href=\"{}\">{name}</a>", link(&run_file(run, "html"))),
            };
            let _ = write!(body, "<li>{name} {}</li>", escape(&sentence::run(run)));
        }
        body += "</ul></noscript></section>\n";
        body += &how_the_lab_was_run(lab);
        Page {
            title: format!("{} · weir", lab.name),
            root: "",
            crumbs: vec![],
            eyebrow: format!(
                "{} <span class=\"quiet\">{}</span>",
                escape(&lab.name),
                escape(lab.title.as_deref().unwrap_or("lab"))
            ),
            sentence: sentence::lab(lab),
            body,
            scripts: ["uplot.js", "weir.js", "save.js", "pictures.js", "index.js"]
                .map(|file| format!("report/assets/{file}"))
                .into_iter()
                .chain(["report/lab.js".into()])
                .collect(),
        }
        .render()
    }

    /// The comparison of cells, with verdicts below: `report/compare.html`, or an `index.html` if `root` is empty.
    /// Single flows held beside each other stand between the two.
    pub(crate) fn comparison(
        &self,
        root: &'static str,
        judged: Option<Judged<'_>>,
        trajectories: Option<&Trajectories>,
    ) -> String {
        let lab = self.lab;
        let mut body: String = lab.scatters.iter().map(scatter::section).collect();
        body += &self.legend();
        let base = if root.is_empty() { "report/" } else { "" };
        let _ = writeln!(
            body,
            "<section id=\"compare\" data-base=\"{base}\" aria-label=\"Comparison of cells\"></section>"
        );
        body += &trajectories.map(|all| all.section(base)).unwrap_or_default();
        if let Some((compared, names)) = judged {
            let said = escape(&sentence::agreement(&compared.rows, names));
            let _ = writeln!(body, "<section id=\"agreement\"><h2>{said}</h2>");
            body += &agreement_table(by_cell(compared).into_iter(), true, names);
            body += &left_out(compared);
            body += "</section>\n";
        }
        Page {
            title: format!("Comparison · {} · weir", lab.name),
            root,
            crumbs: if root.is_empty() { vec![] } else { vec![self.home(root)] },
            eyebrow: format!("Comparison <span class=\"quiet\">{}</span>", escape(&lab.name)),
            sentence: sentence::comparison(lab),
            body,
            scripts: comparison_scripts(),
        }
        .render()
    }

    /// A run's page: `report/<engine>/<id>.html`, or in a piece.
    pub(crate) fn run(&self, place: usize) -> Leaf {
        let run = &self.lab.runs[place];
        let mut body = notices(&run.summary.invalid, &run.warnings);
        body += &tiles(run);
        body += "<section><h2>Numbers</h2>\n";
        body += &self.groups_table(run);
        body += &self.shares_table(run);
        let named = |group: &str| Cell::html(swatch(self.colour(group), group));
        body += &crate::waits::table(run, named);
        body += &crate::overlay::tables(run, named);
        body += &links_table(run);
        body += &crate::windows::tables(run, |name| swatch(self.colour(name), name));
        body += &stations_table(run);
        body += "</section>\n<section id=\"plots\" data-runs=\"";
        body += &escape(&format!("{}/{}", run.engine(), run.id));
        body += "\" aria-label=\"Plots over time\"></section>\n<section id=\"flows\" aria-label=\"Flows\">";
        body += &self.flows_table(run);
        body += "</section>\n";
        body += &how_it_was_run(self.lab, run);
        body += &self.neighbours(place);
        Leaf {
            title: format!("{} · {} · weir", self.name_of(run), self.lab.name),
            eyebrow: format!(
                "{} <span class=\"engine {1}\">{2}</span>",
                self.eyebrow(run),
                escape(run.engine()),
                escape(engine_name(run.engine()))
            ),
            sentence: sentence::run(run),
            body,
        }
    }

    /// The page that shows both engines' runs: `report/both/<id>.html`, or in a piece.
    pub(crate) fn both(&self, first: &Run, second: &Run) -> Leaf {
        let lab = self.lab;
        let mut body = String::new();
        for run in [first, second] {
            body += &notices(&run.summary.invalid, &run.warnings).replace(
                "This run is invalid",
                &format!("The run on {} is invalid", escape(engine_name(run.engine()))),
            );
        }
        let rows: Vec<&Comparison> = match &lab.agreement {
            Some(compared) => compared.rows.iter().filter(|row| is_of(row, first)).collect(),
            None => Vec::new(),
        };
        let said = if rows.is_empty() {
            "Side by side".into()
        } else {
            sentence::agreement(rows.iter().copied(), ENGINES)
        };
        let _ = writeln!(body, "<section><h2>{}</h2>", escape(&said));
        body += &agreement_table(rows.into_iter(), false, ENGINES);
        body += &self.side_by_side(first, second);
        let _ = writeln!(
            body,
            "</section>\n<section id=\"plots\" data-runs=\"{}\" data-labels=\"{}\" \
             aria-label=\"Plots over time, both engines\"></section>\n<section id=\"flows\" aria-label=\"Flows\"></section>",
            escape(&format!("{}/{} {}/{}", first.engine(), first.id, second.engine(), second.id)),
            escape(&format!("{},{}", engine_name(first.engine()), engine_name(second.engine()))),
        );
        let pages: String = [first, second]
            .iter()
            .map(|run| {
                let name = escape(engine_name(run.engine()));
                format!("<a href=\"{}\">Only {name}</a>", self.to_run(run))
            })
            .collect();
        let _ = writeln!(body, "<nav class=\"neighbours\" aria-label=\"Single runs\">{pages}</nav>");
        Leaf {
            title: format!("Both engines · {} · {} · weir", self.name_of(first), lab.name),
            eyebrow: format!(
                "{} <span class=\"engine sim\">{}</span><span class=\"engine live\">{}</span>",
                self.eyebrow(first),
                escape(engine_name(first.engine())),
                escape(engine_name(second.engine()))
            ),
            sentence: sentence::both(first, second),
            body,
        }
    }

    /// A page as a file of its own; `runs` are the runs whose series it shows.
    pub(crate) fn framed(&self, leaf: Leaf, runs: &[&Run]) -> String {
        Page {
            title: leaf.title,
            root: "../../",
            crumbs: vec![self.home("../../"), ("Comparison".into(), "../compare.html".into())],
            eyebrow: leaf.eyebrow,
            sentence: leaf.sentence,
            body: leaf.body,
            scripts: run_scripts(runs),
        }
        .render()
    }

    /// `report/run.html`: the frame that shows any run of a large lab; the address names the run after the `#`.
    pub(crate) fn any_run(&self) -> String {
        Page {
            title: format!("Run · {} · weir", self.lab.name),
            root: "../",
            crumbs: vec![self.home("../"), ("Comparison".into(), "compare.html".into())],
            eyebrow: String::new(),
            sentence: "Which run?".into(),
            body: "<p id=\"run\" class=\"quiet\">The index lists all runs; this page shows the one that its address names.</p>\n"
                .into(),
            scripts: ["uplot.js", "weir.js", "save.js", "plot.js", "flows.js", "topology.js", "run.js", "piece.js"]
                .map(|file| format!("report/assets/{file}"))
                .into(),
        }
        .render()
    }

    fn colour(&self, group: &str) -> usize {
        self.colours.get(group).copied().unwrap_or(0)
    }

    /// Links to the runs before and after, and to the run on the other engine.
    fn neighbours(&self, place: usize) -> String {
        let run = &self.lab.runs[place];
        let same = |other: &&Run| other.engine() == run.engine();
        let before = self.lab.runs[..place].iter().rev().find(same);
        let after = self.lab.runs[place + 1..].iter().find(same);
        let to = |text: &str, other: Option<&Run>| {
            other.map_or(String::new(), |other| {
                format!("<a href=\"{}\">{text}: {}</a>", self.to_run(other), escape(&self.name_of(other)))
            })
        };
        let mut html = format!(
            "<nav class=\"neighbours\" aria-label=\"Other runs\">{}{}",
            to("Before", before),
            to("Next", after)
        );
        if let Some(twin) = self.twin(run) {
            let engine = escape(engine_name(twin.engine()));
            let _ = write!(html, "<a href=\"{}\">The same run on {engine}</a>", self.to_run(twin));
            let _ = write!(html, "<a href=\"{}\">Both engines over each other</a>", self.to(run, "both"));
        }
        html + "</nav>\n"
    }

    /// A run's name: its choices, and its repeat if there are several.
    fn name_of(&self, run: &Run) -> String {
        let mut parts: Vec<String> = run.params.clone();
        if self.repeats {
            parts.push(format!("repeat {}", run.summary.repeat));
        }
        if parts.is_empty() { run.id.clone() } else { parts.join(" · ") }
    }

    /// A run's choices on each level, and its repeat if there are several, as HTML.
    fn eyebrow(&self, run: &Run) -> String {
        let mut html = String::new();
        for (level, value) in self.lab.levels.iter().zip(&run.params) {
            let _ = write!(
                html,
                "<span class=\"chip\"><span class=\"quiet\">{}</span> {}</span>",
                escape(level),
                escape(value)
            );
        }
        if self.repeats {
            let _ = write!(
                html,
                "<span class=\"chip\"><span class=\"quiet\">repeat</span> {}</span>",
                run.summary.repeat
            );
        }
        html
    }
}

impl Leaf {
    /// Appends the page as a script of a piece; `name` is the run's engine (or `both`) and id.
    pub(crate) fn push_script(&self, name: &str, script: &mut Vec<u8>) {
        script.extend(b"weir.page(");
        push_json(name, script);
        script.push(b',');
        push_json(self, script);
        script.extend(b");\n");
    }
}

fn distinct_cells(lab: &Lab) -> usize {
    lab.runs.iter().map(|run| &run.params).collect::<std::collections::HashSet<_>>().len()
}

fn comparison_scripts() -> Vec<String> {
    let own = [
        "uplot.js",
        "weir.js",
        "save.js",
        "plot.js",
        "views.js",
        "overlay.js",
        "tree.js",
        "compare.js",
        "trajectories.js",
    ];
    let mut scripts: Vec<String> = own.map(|file| format!("report/assets/{file}")).into();
    scripts.push("report/lab.js".into());
    scripts
}

fn run_scripts(runs: &[&Run]) -> Vec<String> {
    let own =
        ["uplot.js", "weir.js", "save.js", "plot.js", "flows.js", "topology.js", "admission.js", "run.js"];
    let mut scripts: Vec<String> = own.map(|file| format!("report/assets/{file}")).into();
    scripts.extend(runs.iter().map(|run| run_file(run, "js")));
    scripts
}
