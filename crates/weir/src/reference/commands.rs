//! The commands, as their `--help` prints them.

use super::Page;
use crate::cli::Cli;
use clap::{Command, CommandFactory};
use std::fmt::Write;

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
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{} {name}\n\n```text\n{}\n```\n", "#".repeat(level), lines.join("\n").trim_end());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        add(below, &format!("{name} {}", below.get_name()), 3, text);
    }
}
