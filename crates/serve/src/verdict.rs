//! What is judged about a result: the claims of its lab, or the answer of a ready test.

use serde::Serialize;
use std::fs;
use std::path::Path;
use weir_plan::Lab;
use weir_record::Summary;
use weir_study::{Reproduced, Score, claims, judge};

/// What is judged about a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    /// The verdict in a sentence or two.
    pub(crate) text: String,
    /// Whether it is good; `None` if it is neither good nor bad.
    pub(crate) holds: Option<bool>,
}

impl Verdict {
    /// The verdict on a result with this lab; `None` if nothing asks for one, or `summary.json` cannot be read.
    pub(crate) fn of(folder: &Path, lab: &Lab) -> Option<Verdict> {
        let test = weir_ready::find(lab.name()).ok();
        // Another lab may have a test's name, but hardly its title too.
        let test = test.filter(|test| lab.title().is_some_and(|title| test.text.contains(title)));
        let claims = claims(lab).ok().filter(|claims| !claims.is_empty());
        if test.is_none() && claims.is_none() {
            return None;
        }
        let text = fs::read(folder.join("summary.json")).ok()?;
        let summary: Summary = serde_json::from_slice(&text).ok()?;
        match (claims, test) {
            (Some(claims), _) => {
                let (lab, study) = (lab.name().to_owned(), String::new());
                let claims = judge(&claims, &summary);
                let score =
                    Score::of(&[Reproduced { study, lab, title: None, folder: String::new(), claims }]);
                let open = score.not_measured + score.differs > 0;
                let holds = if score.fails > 0 { Some(false) } else { (!open).then_some(true) };
                Some(Verdict { text: score.sentence(), holds })
            }
            (None, Some(test)) if !summary.runs.is_empty() => {
                Some(Verdict { text: test.verdict(&summary).sentences.join(" "), holds: None })
            }
            _ => None,
        }
    }
}
