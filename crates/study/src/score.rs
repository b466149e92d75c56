//! The outcome of a study's labs: their judged claims, and how many rows hold.

use crate::judge::{ClaimVerdict, Judged};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A lab of a study, with its judged claims.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduced {
    /// The study: the name of its folder.
    pub study: String,
    /// The lab's name.
    pub lab: String,
    /// The lab's title.
    pub title: Option<String>,
    /// Its result folder, relative to the page.
    pub folder: String,
    /// Its judged claims on each engine, in the order of the lab.
    pub claims: Vec<Judged>,
}

/// Counts of the rows that hold, fail, differ for a reason, and were not measured. A row is a claim, or all claims of a study
/// that name the same row, on one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Score {
    /// Rows that hold.
    pub holds: usize,
    /// Rows that fail.
    pub fails: usize,
    /// Rows that differ for reasons that their claims give.
    pub differs: usize,
    /// Rows of which some claim was not measured, and all other claims hold.
    pub not_measured: usize,
    /// Claims of numbers and orders that were measured, each counted by itself.
    pub numbers: usize,
    /// How many of these hold.
    pub numbers_hold: usize,
}

impl Score {
    /// The score of several labs together.
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
        let numbers = each().filter(|verdict| **verdict != ClaimVerdict::NotMeasured).count();
        let numbers_hold = each().filter(|verdict| **verdict == ClaimVerdict::Holds).count();
        alone.extend(named.into_values().map(ClaimVerdict::all));
        let of = |verdict| alone.iter().filter(|other| **other == verdict).count();
        Score {
            holds: of(ClaimVerdict::Holds),
            fails: of(ClaimVerdict::Fails),
            differs: of(ClaimVerdict::Differs),
            not_measured: of(ClaimVerdict::NotMeasured),
            numbers,
            numbers_hold,
        }
    }

    /// The score as a sentence.
    pub fn sentence(self) -> String {
        let all = self.holds + self.fails + self.differs;
        let mut text = match (self.holds, all) {
            (_, 0) if self.not_measured == 0 => return "No claim was judged.".into(),
            (_, 0) => "No claim was judged".into(),
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
        match self.not_measured {
            0 => {}
            1 => text += "; 1 was not measured",
            many => _ = write!(text, "; {many} were not measured"),
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
