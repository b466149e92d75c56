//! `weir reproduce`: published against measured, one row a claim, as a page and as a table for the terminal.

mod document;
mod figure;

pub use document::write_document;

use crate::fit::{cut, wrapped};
use crate::folder::Folder;
use crate::html::{Cell, Page, Table, escape, figures, link};
use crate::number::{number, rough_with};
use crate::{ReportError, growing};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use weir_base::terminal::printable_line;
use weir_engine::{ClaimVerdict, Judged, Standing};
use weir_plan::{Claim, Expected, Over, Relation, Repeats, Statistic, Tolerance};
use weir_record::metric;

/// A lab of a study and what its claims came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduced {
    /// The study: the name of its folder.
    pub study: String,
    /// The lab's name.
    pub lab: String,
    /// What it shows.
    pub title: Option<String>,
    /// Its result folder, from the page.
    pub folder: String,
    /// Its claims on each engine, in the order of the lab.
    pub claims: Vec<Judged>,
}

/// How many rows hold, fail and differ for a reason. A row is a claim, or all claims of a study that name the same row, on
/// one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Score {
    /// Rows that hold.
    pub holds: usize,
    /// Rows that fail.
    pub fails: usize,
    /// Rows that differ for reasons that their claims give.
    pub differs: usize,
    /// All numbers and orders that were judged.
    pub numbers: usize,
    /// Of those, how many hold.
    pub numbers_hold: usize,
}

impl Score {
    /// Of some labs together.
    pub fn of(labs: &[Reproduced]) -> Score {
        let mut alone: Vec<ClaimVerdict> = vec![];
        let mut named: BTreeMap<(&str, &str, &str), Vec<ClaimVerdict>> = BTreeMap::new();
        for (lab, judged) in labs.iter().flat_map(|lab| lab.claims.iter().map(move |judged| (lab, judged))) {
            match &judged.claim.row {
                Some(row) => named.entry((&lab.study, &judged.engine, row)).or_default().push(judged.verdict),
                None => alone.push(judged.verdict),
            }
        }
        let each = || alone.iter().chain(named.values().flatten());
        let numbers = each().count();
        let numbers_hold = each().filter(|verdict| **verdict == ClaimVerdict::Holds).count();
        alone.extend(named.into_values().map(ClaimVerdict::all));
        let of = |verdict| alone.iter().filter(|other| **other == verdict).count();
        Score {
            holds: of(ClaimVerdict::Holds),
            fails: of(ClaimVerdict::Fails),
            differs: of(ClaimVerdict::Differs),
            numbers,
            numbers_hold,
        }
    }

    /// In a sentence.
    pub fn sentence(self) -> String {
        let all = self.holds + self.fails + self.differs;
        let mut text = match (self.holds, all) {
            (_, 0) => return "No claim was judged.".into(),
            (holds, all) if holds == all => format!("All {all} claims hold"),
            (holds, all) => format!("{holds} of {all} claims hold"),
        };
        if self.fails > 0 {
            let _ = write!(text, ", {} fail{}", self.fails, if self.fails == 1 { "s" } else { "" });
        }
        if self.differs > 0 {
            let _ = write!(
                text,
                "; {} differ{} for a known reason",
                self.differs,
                if self.differs == 1 { "s" } else { "" }
            );
        }
        text.push('.');
        if self.numbers > all {
            let _ = write!(
                text,
                " Judged one by one, {} of their {} numbers and orders hold.",
                self.numbers_hold, self.numbers
            );
        }
        text
    }
}

/// A claim in words and digits.
struct Said {
    what: String,
    published: String,
    measured: String,
    cell: String,
    /// How cells stand along a level, where an order is claimed.
    standing: String,
}

impl Said {
    fn of(judged: &Judged) -> Said {
        let claim = &judged.claim;
        let farthest: Vec<&str> = judged.cell.iter().map(|param| param.value.as_str()).collect();
        let cell = match (judged.cells, claim.over, &judged.standing) {
            (0, ..) => claim.cells.values().map(|labels| labels.join(", ")).collect::<Vec<_>>().join(" · "),
            (1, ..) => farthest.join(" · "),
            (many, Over::Mean, _) => format!("mean of {many} cells"),
            (_, _, Some(_)) => farthest.join(" · "),
            (many, ..) => format!("farthest of {many} cells: {}", farthest.join(" · ")),
        };
        let measured = match &judged.standing {
            Some(Standing { pairs, wrong, .. }) => format!("{} of {pairs} pairs", pairs - wrong.len()),
            None => judged.measured.map_or_else(|| "–".into(), number),
        };
        let standing = judged.standing.as_ref().map(standing_text).unwrap_or_default();
        Said { what: what(claim), published: expected_text(&claim.expected), measured, cell, standing }
    }
}

/// What a claim is about.
fn what(claim: &Claim) -> String {
    let unit = metric(&claim.metric).map_or("", |metric| metric.unit);
    let title = metric(&claim.metric).map_or(claim.metric.as_str(), |metric| metric.title);
    let mut what = title.to_owned();
    if claim.statistic != Statistic::Mean {
        let _ = write!(what, ", {}", statistic_name(claim.statistic));
    }
    if !claim.of.is_empty() {
        let _ = write!(what, " of {}", claim.of.join(" to "));
    }
    if let Some(class) = claim.class {
        let _ = write!(what, " of {}", crate::tables::class_name(class.name()));
    }
    if let Some(window) = &claim.window {
        let _ = write!(what, " in {window}");
    }
    let unit = match (claim.repeats, claim.against.as_ref().map(|against| against.relation)) {
        (_, Some(Relation::Change)) => "%",
        (_, Some(Relation::Ratio)) => "",
        (Repeats::Variation, _) => "%",
        _ => unit,
    };
    if let Some(against) = &claim.against {
        let relation = ["change against", "over that of", "less that of"][against.relation as usize];
        let class = against.class.map(|class| crate::tables::class_name(class.name()));
        let names = against.of.iter().chain(against.cells.values()).chain(&against.window);
        let whose: Vec<&str> = names.map(String::as_str).chain(class).collect();
        let _ = write!(what, ", {relation} {}", whose.join(" · "));
    }
    if let Some(along) = &claim.along {
        let (side, bound) = along.above.map_or(("below", along.below), |above| ("above", Some(above)));
        let level = along.level.rsplit('.').next().unwrap_or_default();
        let bound = format!("{} {unit}", short(bound.unwrap_or_default()));
        return format!("first {level} with {what} {side} {}", bound.trim_end());
    }
    match claim.repeats {
        Repeats::Mean => {}
        Repeats::Median => what += ", median",
        Repeats::Deviation => what += ", deviation over repeats",
        Repeats::Variation => what += ", variation over repeats",
    }
    if !unit.is_empty() {
        let _ = write!(what, ", {unit}");
    }
    what
}

/// What is expected.
fn expected_text(expected: &Expected) -> String {
    match expected {
        Expected::Near { value, tolerance } => {
            let within = match tolerance {
                Tolerance::Absolute(tolerance) => short(*tolerance),
                Tolerance::Share(share) => rough_with(100.0 * share, "%"),
            };
            format!("{} ± {within}", short(*value))
        }
        Expected::Within { at_least: Some(least), at_most: Some(most) } => {
            format!("{} to {}", short(*least), short(*most))
        }
        Expected::Within { at_least: Some(least), .. } => format!("≥ {}", short(*least)),
        Expected::Within { at_most, .. } => format!("≤ {}", at_most.map_or_else(|| "–".into(), short)),
        Expected::Order { order, .. } => order.to_string(),
    }
}

/// How cells stand, in the order that was claimed, and which pairs stand otherwise.
fn standing_text(standing: &Standing) -> String {
    let value = |value: &Option<f64>| value.map_or_else(|| "–".into(), number);
    let values: Vec<String> =
        standing.values.iter().map(|(label, measured)| format!("{label} {}", value(measured))).collect();
    let wrong: Vec<String> = standing.wrong.iter().map(|(less, more)| format!("{less} ≥ {more}")).collect();
    let but = if wrong.is_empty() { String::new() } else { format!("; but {}", wrong.join(", ")) };
    values.join(", ") + &but
}

fn statistic_name(statistic: Statistic) -> &'static str {
    ["mean", "p1", "p25", "p50", "p75", "p99"][statistic as usize]
}

/// Widest column of figures in the terminal; an order that is longer is told below its row.
const WIDEST: usize = 16;

/// A claim with the row that it is a part of.
fn named(judged: &Judged, what: &str) -> String {
    judged.claim.row.as_ref().map_or_else(|| what.into(), |row| format!("{row} {what}"))
}

/// A number as it was written in the claim.
fn short(value: f64) -> String {
    format!("{value}")
}

/// The table of a reproduction for the terminal, as wide as it where that is possible.
pub fn claims_table(labs: &[Reproduced], width: usize) -> String {
    let mut text = String::new();
    for lab in labs {
        let _ = writeln!(
            text,
            "{}/{}{}",
            lab.study,
            lab.lab,
            lab.title.as_ref().map_or(String::new(), |title| format!(": {}", printable_line(title)))
        );
        let rows: Vec<(Said, &Judged)> = lab.claims.iter().map(|judged| (Said::of(judged), judged)).collect();
        let rows: Vec<(Said, &Judged)> = rows
            .into_iter()
            .map(|(said, judged)| (Said { what: named(judged, &said.what), ..said }, judged))
            .collect();
        let widest = |of: fn(&Said) -> &str, least: usize| {
            rows.iter().map(|(said, _)| of(said).chars().count()).max().unwrap_or(0).max(least)
        };
        let (published, measured) = (widest(|said| &said.published, 9), widest(|said| &said.measured, 8));
        let (published, measured) = (published.min(WIDEST), measured.min(WIDEST));
        let fixed = 2 + 6 + published + 2 + measured + 2 + 8;
        let what = widest(|said| &said.what, 5).min(width.saturating_sub(fixed).max(16));
        let _ = writeln!(
            text,
            "  {:what$}  {:>published$}  {:>measured$}  {:6}verdict",
            "claim", "published", "measured", ""
        );
        for (said, judged) in &rows {
            let _ = writeln!(
                text,
                "  {:what$}  {:>published$}  {:>measured$}  {:6}{}",
                cut(&said.what, what),
                cut(&said.published, published),
                cut(&said.measured, measured),
                judged.engine,
                judged.verdict.name()
            );
            if !said.cell.is_empty() {
                let _ = writeln!(text, "    {}", cut(&said.cell, width.saturating_sub(4)));
            }
            if judged.standing.is_some() {
                let _ = writeln!(text, "    {}\n    {}", said.published, said.standing);
            }
            if let (ClaimVerdict::Differs, Some(reason)) = (judged.verdict, &judged.claim.differs) {
                text += &wrapped(&format!("    {reason}"), width);
            }
        }
        text.push('\n');
    }
    text + &Score::of(labs).sentence() + "\n"
}

/// Writes the page of a reproduction: `index.html` in a folder that the labs' result folders are below.
///
/// # Errors
/// A file that cannot be written.
pub fn write_claims(folder: &Path, labs: &[Reproduced]) -> Result<(), ReportError> {
    let out = Folder::new(folder);
    growing::write_assets(&out)?;
    let score = Score::of(labs);
    let mut body = figures(&[
        ("Hold", Some(score.holds.to_string()), "within their tolerance".into()),
        ("Fail", Some(score.fails.to_string()), "outside it, or not measured".into()),
        ("Differ", Some(score.differs.to_string()), "for a reason that is given".into()),
    ]);
    for lab in labs {
        let title = lab.title.as_ref().map_or(String::new(), |title| format!(": {}", escape(title)));
        let _ = writeln!(
            body,
            "<section><h2><a href=\"{}/index.html\">{}/{}</a>{title}</h2>\n{}</section>",
            escape(&link(&lab.folder)),
            escape(&lab.study),
            escape(&lab.lab),
            claims_of(lab)
        );
    }
    let mut studies: Vec<&str> = labs.iter().map(|lab| lab.study.as_str()).collect();
    studies.dedup();
    let page = Page {
        title: format!("Reproduction of {} · weir", studies.join(", ")),
        root: "",
        crumbs: vec![],
        eyebrow: format!("Published against measured: {}", escape(&studies.join(", "))),
        sentence: score.sentence(),
        body,
        scripts: vec!["report/assets/weir.js".into()],
    };
    out.write("index.html", page.render().as_bytes())
}

fn claims_of(lab: &Reproduced) -> String {
    if lab.claims.is_empty() {
        return "<p class=\"quiet\">This lab claims nothing.</p>\n".into();
    }
    let head = ["row", "claim", "cell", "verdict", "published", "measured", "engine", "repeats", "source"];
    let mut table = Table::new("Claims", &head);
    for judged in &lab.claims {
        let said = Said::of(judged);
        let class = match judged.verdict {
            ClaimVerdict::Holds => "agree",
            ClaimVerdict::Fails => "differ",
            ClaimVerdict::Differs => "cannot-tell",
        };
        let wrapped = |text: &str| Cell::html(format!("<span class=\"wrap\">{}</span>", escape(text)));
        let figure = |text: &str| match judged.standing {
            Some(_) => wrapped(text),
            None => Cell::figure(escape(text)),
        };
        let reason = judged.claim.differs.as_ref().filter(|_| judged.verdict == ClaimVerdict::Differs);
        let source = match reason {
            Some(reason) => format!("{} Differs: {reason}", judged.claim.source),
            None => judged.claim.source.clone(),
        };
        table.row(vec![
            Cell::text(judged.claim.row.as_deref().unwrap_or("")),
            wrapped(&said.what),
            wrapped(&said.cell),
            Cell::html(format!("<span class=\"verdict {class}\">{}</span>", judged.verdict.name())),
            figure(&said.published),
            match said.standing.as_str() {
                "" => Cell::figure(escape(&said.measured)),
                standing => wrapped(&format!("{}: {standing}", said.measured)),
            },
            Cell::text(&judged.engine),
            Cell::count(Some(judged.repeats as u64)),
            wrapped(&source),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::ParamInfo;

    fn lab() -> Reproduced {
        let claim = |verdict, measured, differs: Option<&str>| Judged {
            claim: Claim {
                row: None,
                metric: "queue_delay_ms".into(),
                of: vec!["down".into()],
                class: None,
                window: None,
                statistic: Statistic::P99,
                cells: Default::default(),
                repeats: Repeats::Mean,
                against: None,
                along: None,
                over: Over::Each,
                expected: Expected::Near { value: 15.0, tolerance: Tolerance::Share(0.2) },
                source: "RFC 8033, section 4.2".into(),
                differs: differs.map(String::from),
            },
            engine: "sim".into(),
            measured,
            interval: None,
            points: vec![],
            standing: None,
            cell: vec![ParamInfo { level: "queue".into(), value: "<PIE>".into() }],
            cells: 2,
            repeats: 3,
            verdict,
        };
        let claims = vec![
            claim(ClaimVerdict::Holds, Some(14.04), None),
            claim(ClaimVerdict::Fails, None, None),
            claim(ClaimVerdict::Differs, Some(30.0), Some("another clock, see docs/clock.md")),
        ];
        let (study, lab, folder) = ("textbook".into(), "pie".into(), "textbook/pie".into());
        Reproduced { study, lab, title: Some("PIE".into()), folder, claims }
    }

    #[test]
    fn the_terminal_says_what_was_published_and_what_was_measured() {
        let text = claims_table(&[lab()], 100).replace('\u{a0}', " ");
        let expected = "textbook/pie: PIE\n  \
            claim                       published  measured        verdict\n  \
            Queue delay, p99 of down, ms  15 ± 20 %      14.0  sim   holds\n";
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&text).starts_with(&squeezed(expected)), "{text}");
        assert!(text.contains("farthest of 2 cells: <PIE>") && text.contains("see docs/clock.md"), "{text}");
        assert!(text.ends_with("1 of 3 claims hold, 1 fails; 1 differs for a known reason.\n"), "{text}");
    }

    #[test]
    fn claims_of_a_row_hold_together_or_not_at_all() {
        let rows = |rows: [Option<&str>; 3]| {
            let mut lab = lab();
            for (judged, row) in lab.claims.iter_mut().zip(rows) {
                judged.claim.row = row.map(String::from);
            }
            // A row goes over several labs.
            let other = Reproduced { claims: lab.claims.split_off(2), ..lab.clone() };
            let score = Score::of(&[lab, other]);
            assert_eq!((score.numbers_hold, score.numbers), (1, 3));
            let grouped = score.holds + score.fails + score.differs < 3;
            let told =
                score.sentence().ends_with(". Judged one by one, 1 of their 3 numbers and orders hold.");
            assert_eq!(told, grouped);
            [score.holds, score.fails, score.differs]
        };
        assert_eq!(rows([None, None, None]), [1, 1, 1]);
        assert_eq!(rows([Some("H1"), Some("H1"), None]), [0, 1, 1]);
        assert_eq!(rows([Some("H1"), Some("H2"), Some("H1")]), [0, 1, 1]);
        assert_eq!(rows([Some("H1"), Some("H1"), Some("H1")]), [0, 1, 0]);
    }

    #[test]
    fn a_study_has_a_document_with_a_row_for_each_claim_and_a_picture_where_cells_vary() {
        let mut lab = lab();
        lab.claims[2].claim.row = Some("H10".into());
        lab.claims[0].claim.row = Some("H9".into());
        lab.claims[0].points = [("5 Mbit/s", 14.0), ("10 Mbit/s", 15.0), ("20 Mbit/s", 30.0)]
            .map(|(rate, value)| weir_engine::Point {
                cell: vec![ParamInfo { level: "rate".into(), value: rate.into() }],
                value: Some(value),
            })
            .to_vec();
        let folder = tempfile::tempdir().unwrap();
        let about = "# The textbook\n\nSome pages.\n\n## What was learnt\n\nA lot.\n";
        write_document(folder.path(), "textbook", Some(about), &[lab]).unwrap();
        let page = std::fs::read_to_string(folder.path().join("textbook.md")).unwrap();
        assert!(
            page.starts_with("# The textbook\n\nSome pages.\n\n## What holds\n\n1 of 3 claims hold"),
            "{page}"
        );
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text} in {page}"));
        assert!(at("| H9 | ") < at("| H10 | ") && at("| H10 | ") < at("|  | Queue delay"), "{page}");
        assert!(
            at("## What differs") < at("\n\n## What was learnt\n\nA lot.\n\n## The claims as pictures"),
            "{page}"
        );
        assert!(page.contains("- **H10**: another clock, see docs/clock.md"));
        assert_eq!(page.matches(".svg)").count(), 1, "one claim has cells that vary");
        let picture = std::fs::read_to_string(folder.path().join("textbook/pie-1.svg")).unwrap();
        assert_eq!(picture.matches("<circle").count(), 3);
        // 15 ± 20 % of a plot from 0 to 30 that is 218 high: 43.6.
        assert!(picture.contains("height=\"43.6\" fill=\"#e8e8e8\""), "{picture}");
    }

    #[test]
    fn the_document_of_two_engines_tells_them_apart() {
        let mut lab = lab();
        lab.claims.truncate(1);
        let live = Judged { engine: "live".into(), verdict: ClaimVerdict::Fails, ..lab.claims[0].clone() };
        lab.claims.push(live);
        let folder = tempfile::tempdir().unwrap();
        write_document(folder.path(), "textbook-live", None, &[lab]).unwrap();
        let page = std::fs::read_to_string(folder.path().join("textbook-live.md")).unwrap();
        let sim = "- `sim`: All 1 claims hold.\n- `live`: 0 of 1 claims hold, 1 fails.\n";
        assert!(page.contains(sim), "{page}");
        assert!(page.contains("| study | on | measured |"), "{page}");
        assert_eq!((page.matches("| sim |").count(), page.matches("| live |").count()), (1, 1), "{page}");
    }

    #[test]
    fn an_order_is_told_with_what_was_measured_and_what_stands_otherwise() {
        let mut lab = lab();
        let judged = &mut lab.claims[1];
        let places = [["a", "b"].map(String::from).to_vec(), vec!["c".into()]].to_vec();
        let order = weir_plan::Order { places, falling: false };
        judged.claim.expected = Expected::Order { by: "queue".into(), order };
        let values = [("a", 1.5), ("b", 4.0), ("c", 3.0)];
        judged.standing = Some(Standing {
            values: values.map(|(label, value)| (label.into(), Some(value))).to_vec(),
            pairs: 2,
            wrong: vec![("b".into(), "c".into())],
        });
        let text = claims_table(&[lab], 120);
        assert!(text.contains("a ~ b < c"), "{text}");
        assert!(text.contains("a 1.50, b 4.00, c 3.00; but b ≥ c"), "{text}");
    }

    #[test]
    fn the_page_has_a_row_for_each_claim_and_escapes_what_labs_say() {
        let folder = tempfile::tempdir().unwrap();
        write_claims(folder.path(), &[lab()]).unwrap();
        let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
        assert_eq!(page.matches("class=\"verdict").count(), 3);
        assert!(page.contains("&lt;PIE&gt;") && !page.contains("<PIE>"));
        assert!(page.contains("href=\"textbook/pie/index.html\""));
        assert!(folder.path().join("report/assets/weir.css").is_file());
    }
}
