//! The page of a reproduction: published against measured, one row per claim.

use crate::figure::figure;
use crate::judge::ClaimVerdict;
use crate::score::{Reproduced, Score};
use crate::words::{Said, asked, named, what};
use std::fmt::Write;
use std::path::Path;
use weir_report::html::{Cell, Page, Table, escape, figures, link};
use weir_report::{Folder, ReportError};

/// Writes the page of a reproduction: `index.html` in the folder above the labs' result folders.
///
/// # Errors
/// A file that cannot be written.
pub fn write_claims(folder: &Path, labs: &[Reproduced]) -> Result<(), ReportError> {
    let out = Folder::new(folder);
    weir_report::write_assets(&out)?;
    let score = Score::of(labs);
    let mut body = figures(&[
        ("Hold", Some(score.holds.to_string()), "within their tolerance".into()),
        ("Fail", Some(score.fails.to_string()), "outside it".into()),
        ("Differ", Some(score.differs.to_string()), "for a stated reason".into()),
        ("Not measured", Some(score.not_measured.to_string()), "by any valid run".into()),
    ]);
    for lab in labs {
        let title = lab.title.as_ref().map_or(String::new(), |title| format!(": {}", escape(title)));
        let _ = writeln!(
            body,
            "<section><h2><a href=\"{}/index.html\">{}/{}</a>{title}</h2>\n{}{}</section>",
            escape(&link(&lab.folder)),
            escape(&lab.study),
            escape(&lab.lab),
            claims_of(lab),
            pictures_of(lab, &out)?
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

/// Writes the pictures of a lab's claims as files beside the page; returns the HTML that shows them.
fn pictures_of(lab: &Reproduced, out: &Folder) -> Result<String, ReportError> {
    let (mut pictures, mut count) = (String::new(), 0);
    for (n, judged) in lab.claims.iter().enumerate() {
        let title = format!("{} ({})", named(judged, &what(&judged.claim)), judged.engine);
        let Some(svg) = figure(judged, &title) else { continue };
        let file = format!("report/claims/{}-{}-{}.svg", lab.study, lab.lab, n + 1);
        out.write(&file, svg.as_bytes())?;
        count += 1;
        let (file, title) = (escape(&link(&file)), escape(&title));
        let _ = write!(
            pictures,
            "<figure class=\"card\"><img src=\"{file}\" alt=\"{title}\" loading=\"lazy\"><figcaption class=\"quiet\">{}\
             </figcaption></figure>",
            escape(&asked(&judged.claim))
        );
    }
    let plural = if count == 1 { "" } else { "s" };
    Ok(match count {
        0 => pictures,
        _ => format!("<details><summary>{count} claim{plural} as pictures</summary>{pictures}</details>\n"),
    })
}

fn claims_of(lab: &Reproduced) -> String {
    if lab.claims.is_empty() {
        return "<p class=\"quiet\">This lab makes no claims.</p>\n".into();
    }
    let head = ["row", "verdict", "claim", "cell", "published", "measured", "engine", "repeats", "source"];
    let mut table = Table::new("Claims", &head);
    for judged in &lab.claims {
        let said = Said::of(judged);
        let class = match judged.verdict {
            ClaimVerdict::Holds => "agree",
            ClaimVerdict::Fails => "differ",
            ClaimVerdict::Differs | ClaimVerdict::NotMeasured => "cannot-tell",
        };
        let wrapped = Cell::long;
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
            // Before the long texts, so that it is seen on a narrow screen.
            Cell::html(format!("<span class=\"verdict {class}\">{}</span>", judged.verdict.name())),
            wrapped(&said.what),
            wrapped(&said.cell),
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
