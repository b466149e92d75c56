//! `weir doctor`: what this machine can do, what would make a result invalid, and what to do about it.

use crate::cli::DoctorArgs;
use crate::failure::{Failure, terminal_width};
use crate::{print, print_json, say};
use std::fmt::Write;
use std::io::IsTerminal;
use weir_live::doctor::{Check, Status, examine};
use weir_report::fit::folded;

/// Prints the findings about this machine; fails if one keeps live runs from working or from being trusted.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<(), Failure> {
    let privilege = weir_linux::enter();
    if std::io::stderr().is_terminal() {
        say("weir: measuring the clock for two seconds ...");
    }
    let checks = examine(privilege);
    if args.json {
        print_json(&checks)?;
    } else {
        print(&text(&checks, terminal_width()))?;
    }
    match checks.iter().any(|check| check.status == Status::Bad) {
        true => Err(Failure::quiet(1)),
        false => Ok(()),
    }
}

fn text(checks: &[Check], width: usize) -> String {
    let label = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let indent = label + 8;
    let mut text = String::new();
    for check in checks {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Warn => "note",
            Status::Bad => "BAD",
        };
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{status:4}  {:label$}  {}", check.name, folded(&check.finding, indent, width));
        if !check.advice.is_empty() {
            let _ = writeln!(text, "{:indent$}{}", "", folded(&check.advice, indent, width));
        }
    }
    // The sources of the checks of circuits (`doctor/transfers.rs`, `doctor/measured.rs`).
    let sources = "Numbers in brackets are sections of F. Alali, \"A Cross-Layer Design for Large Data Transfers\", 2016.";
    let _ = writeln!(text, "\n{}", folded(sources, 0, width));
    let of = |status| checks.iter().filter(|check| check.status == status).count();
    let verdict = match (of(Status::Bad), of(Status::Warn)) {
        (0, 0) => "This machine is fit for live runs.".to_owned(),
        (0, notes) => format!("Live runs work here. Findings that may distort their results: {notes}."),
        (bad, _) => format!("Findings that prevent live runs or make their results unreliable: {bad}."),
    };
    text + "\n" + &verdict + "\n"
}
