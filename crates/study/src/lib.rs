//! Studies: published results, written as claims in labs and compared with weir's measurements. A study is a folder of labs that
//! extend one profile; `[[expect]]` in a lab claims a published result ([`claims`]); each claim is judged on the results of its
//! lab's runs ([`judge`]), and shown in a table, a page and a document.
//!
//! `claim.rs` is the file to open first.
#![forbid(unsafe_code)]

mod claim;
mod document;
mod figure;
mod judge;
mod page;
mod score;
mod study_lab;
mod table;
#[cfg(test)]
mod tests;
mod words;

pub use claim::{
    Against, Along, Cells, Claim, Expected, Order, Over, Relation, Repeats, Tolerance, claims,
    describe_setting, schema,
};
pub use document::write_document;
pub use judge::{ClaimVerdict, Judged, Point, Standing, judge};
pub use page::write_claims;
pub use score::{Reproduced, Score};
pub use study_lab::{Missing, PROFILE, StudyLab, find, require_profile};
pub use table::claims_table;
