//! The table of a reproduction for the terminal.

use crate::judge::{ClaimVerdict, Judged};
use crate::score::{Reproduced, Score};
use crate::words::{Said, named};
use std::fmt::Write;
use weir_base::terminal::printable_line;
use weir_report::fit::{cut, wrapped};

/// Widest column of figures in the terminal; a longer order is printed below its row.
const WIDEST: usize = 16;

/// The table of a reproduction, cut to the terminal's width in columns if possible.
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
        let fixed = 2 + 6 + published + 2 + measured + 2 + 12;
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
