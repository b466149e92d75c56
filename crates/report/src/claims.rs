//! `weir reproduce`: published against measured, one row a claim, as a page and as a table for the terminal.

use crate::folder::Folder;
use crate::html::{Cell, Page, Table, escape, figures, link};
use crate::number::{number, rough_with};
use crate::table::{cut, wrapped};
use crate::{ReportError, growing};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use weir_engine::{ClaimVerdict, Judged};
use weir_plan::{Statistic, Tolerance};
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

/// How many claims hold, miss and differ for a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Score {
    /// Claims that hold.
    pub holds: usize,
    /// Claims that miss.
    pub misses: usize,
    /// Claims that differ for a reason that they give.
    pub differs: usize,
}

impl Score {
    /// Of some labs together.
    pub fn of(labs: &[Reproduced]) -> Score {
        let of = |verdict| {
            labs.iter().flat_map(|lab| &lab.claims).filter(|claim| claim.verdict == verdict).count()
        };
        Score {
            holds: of(ClaimVerdict::Holds),
            misses: of(ClaimVerdict::Misses),
            differs: of(ClaimVerdict::Differs),
        }
    }

    /// In a sentence.
    pub fn sentence(self) -> String {
        let all = self.holds + self.misses + self.differs;
        let mut text = match (self.holds, all) {
            (_, 0) => return "No claim was judged.".into(),
            (holds, all) if holds == all => format!("All {all} claims hold"),
            (holds, all) => format!("{holds} of {all} claims hold"),
        };
        if self.misses > 0 {
            let _ = write!(text, ", {} miss{}", self.misses, if self.misses == 1 { "es" } else { "" });
        }
        if self.differs > 0 {
            let _ = write!(
                text,
                "; {} differ{} for a known reason",
                self.differs,
                if self.differs == 1 { "s" } else { "" }
            );
        }
        text + "."
    }
}

/// A claim in words and digits.
struct Said {
    what: String,
    published: String,
    measured: String,
    cell: String,
}

impl Said {
    fn of(judged: &Judged) -> Said {
        let claim = &judged.claim;
        let unit = metric(&claim.metric).map_or("", |metric| metric.unit);
        let title = metric(&claim.metric).map_or(claim.metric.as_str(), |metric| metric.title);
        let mut what = title.to_owned();
        if claim.statistic != Statistic::Mean {
            let _ = write!(what, ", {}", statistic_name(claim.statistic));
        }
        if let Some(of) = &claim.of {
            let _ = write!(what, " of {of}");
        }
        if !unit.is_empty() {
            let _ = write!(what, ", {unit}");
        }
        let within = match claim.tolerance {
            Tolerance::Absolute(tolerance) => short(tolerance),
            Tolerance::Share(share) => rough_with(100.0 * share, "%"),
        };
        let named: Vec<&str> = claim.cells.values().map(String::as_str).collect();
        let farthest: Vec<&str> = judged.cell.iter().map(|param| param.value.as_str()).collect();
        let cell = match judged.cells {
            0 => named.join(" · "),
            1 => farthest.join(" · "),
            many => format!("farthest of {many} cells: {}", farthest.join(" · ")),
        };
        Said {
            what,
            published: format!("{} ± {within}", short(claim.value)),
            measured: judged.measured.map_or_else(|| "–".into(), number),
            cell,
        }
    }
}

fn statistic_name(statistic: Statistic) -> &'static str {
    ["mean", "p1", "p25", "p50", "p75", "p99"][statistic as usize]
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
            lab.title.as_ref().map_or(String::new(), |t| format!(": {t}"))
        );
        let rows: Vec<(Said, &Judged)> = lab.claims.iter().map(|judged| (Said::of(judged), judged)).collect();
        let widest = |of: fn(&Said) -> &str, least: usize| {
            rows.iter().map(|(said, _)| of(said).chars().count()).max().unwrap_or(0).max(least)
        };
        let (published, measured) = (widest(|said| &said.published, 9), widest(|said| &said.measured, 8));
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
                said.published,
                said.measured,
                judged.engine,
                judged.verdict.name()
            );
            if !said.cell.is_empty() {
                let _ = writeln!(text, "    {}", cut(&said.cell, width.saturating_sub(4)));
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
        ("Miss", Some(score.misses.to_string()), "outside it, or not measured".into()),
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
    let head = ["claim", "cell", "verdict", "published", "measured", "engine", "repeats", "source"];
    let mut table = Table::new("Claims", &head);
    for judged in &lab.claims {
        let said = Said::of(judged);
        let class = match judged.verdict {
            ClaimVerdict::Holds => "agree",
            ClaimVerdict::Misses => "differ",
            ClaimVerdict::Differs => "cannot-tell",
        };
        let wrapped = |text: &str| Cell::html(format!("<span class=\"wrap\">{}</span>", escape(text)));
        let reason = judged.claim.differs.as_ref().filter(|_| judged.verdict == ClaimVerdict::Differs);
        let source = match reason {
            Some(reason) => format!("{} Differs: {reason}", judged.claim.source),
            None => judged.claim.source.clone(),
        };
        table.row(vec![
            wrapped(&said.what),
            wrapped(&said.cell),
            Cell::html(format!("<span class=\"verdict {class}\">{}</span>", judged.verdict.name())),
            Cell::figure(escape(&said.published)),
            Cell::figure(escape(&said.measured)),
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
    use weir_plan::Claim;
    use weir_record::ParamInfo;

    fn lab() -> Reproduced {
        let claim = |verdict, measured, differs: Option<&str>| Judged {
            claim: Claim {
                metric: "queue_delay_ms".into(),
                of: Some("down".into()),
                statistic: Statistic::P99,
                cells: Default::default(),
                value: 15.0,
                tolerance: Tolerance::Share(0.2),
                source: "RFC 8033, section 4.2".into(),
                differs: differs.map(String::from),
            },
            engine: "sim".into(),
            measured,
            cell: vec![ParamInfo { level: "queue".into(), value: "<PIE>".into() }],
            cells: 2,
            repeats: 3,
            verdict,
        };
        let claims = vec![
            claim(ClaimVerdict::Holds, Some(14.04), None),
            claim(ClaimVerdict::Misses, None, None),
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
        assert!(text.ends_with("1 of 3 claims hold, 1 misses; 1 differs for a known reason.\n"), "{text}");
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
