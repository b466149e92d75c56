//! The translations of other emulators' commands in docs/wrap.md.

use super::*;
use std::process::Command;
use weir_base::Time;
use weir_plan::{Link, change};

/// The pieces of code in the page's tables that begin with these words.
fn pieces(beginning: &str) -> Vec<String> {
    let page = include_str!("../../../../../docs/wrap.md");
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let of = |row: &str| row.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    rows.flat_map(of).filter(|code| code.starts_with(beginning)).collect()
}

#[test]
fn each_translated_line_is_one_that_weir_reads() {
    let place = Place::new();
    for name in ["up.trace", "down.trace"] {
        std::fs::write(place.path(name), "1\n2\n3\n").unwrap();
    }
    let lines = pieces("weir wrap ");
    assert_eq!(lines.len(), 16);
    let weir = format!("{} wrap --print ", env!("CARGO_BIN_EXE_weir"));
    for line in lines {
        let command = line.replacen("weir wrap ", &weir, 1);
        let output = Command::new("sh").args(["-c", &command]).current_dir(place.path("")).output().unwrap();
        assert_eq!(status(&output), 0, "{line}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("[traffic.program]"), "{line}");
    }
    let changes = pieces("weir link set up ");
    assert_eq!(changes.len(), 2);
    for line in changes {
        let settings = line.trim_start_matches("weir link set up ");
        change(settings, &Link::plain("up", 0, 1), Time::ZERO)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}
