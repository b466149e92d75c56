//! The commands, as their `--help` prints them.

use super::Page;
use crate::cli::Cli;
use clap::{Command, CommandFactory};
use std::fmt::Write;
use weir_report::fit::folded;

/// Characters of a line of help.
const WIDTH: usize = 96;

pub(super) fn page() -> Page {
    let mut weir = Cli::command().term_width(WIDTH);
    weir.build();
    let mut text = String::new();
    add(&weir, "weir", 2, &mut text);
    Page {
        file: "commands.md".into(),
        title: "Commands".into(),
        about: "What `weir COMMAND --help` prints, for every command.".into(),
        text,
    }
}

/// Adds a command and those below it.
fn add(command: &Command, name: &str, level: usize, text: &mut String) {
    // What stands behind the arguments is folded here, so that no command line in it is broken.
    let help = command.clone().after_help("").render_long_help().to_string();
    let after = command.get_after_help().map_or(String::new(), |text| format!("\n{text}"));
    let after =
        after.lines().map(|line| if line.starts_with(' ') { line.into() } else { folded(line, 0, WIDTH) });
    let lines: Vec<String> = help.lines().map(|line| line.trim_end().to_owned()).chain(after).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{} {name}\n\n```text\n{}\n```\n", "#".repeat(level), lines.join("\n").trim_end());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        add(below, &format!("{name} {}", below.get_name()), 3, text);
    }
}
