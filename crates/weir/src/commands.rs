//! The commands of labs. A live run executes them on this machine, as the user who runs weir and with the whole of the file
//! system, and a lab may come from a stranger: weir shows them before anything runs, and runs them only with permission.

use crate::cli::EngineName;
use crate::failure::Failure;
use crate::say;
use std::fmt::Write;
use std::io::IsTerminal;
use weir_base::terminal::printable_line;
use weir_plan::Lab;

/// Proof that commands may be run, or that there are none. Only [`leave`] makes it.
pub(crate) struct Leave(());

/// A lab's commands as text; empty if it has none.
pub(crate) fn listed(lab: &Lab) -> String {
    let commands = lab.commands();
    if commands.is_empty() {
        return String::new();
    }
    let mut text = format!("commands that live runs of {} execute on this machine:\n", lab.name());
    for command in commands {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  in host {}:", command.host);
        for (name, value) in &command.environment {
            let _ = writeln!(text, "    {}={}", printable_line(name), printable_line(value));
        }
        for line in command.command.trim_end().lines() {
            let _ = writeln!(text, "    {}", printable_line(line));
        }
    }
    text
}

/// Permission to run the labs' commands: given on the simulator and without commands; otherwise by `allowed`, or by a yes at
/// the terminal.
///
/// # Errors
/// The permission is not given.
pub(crate) fn leave<'a>(
    labs: impl Iterator<Item = &'a Lab>,
    engines: &[EngineName],
    allowed: bool,
) -> Result<Leave, Failure> {
    if allowed || !engines.contains(&EngineName::Live) {
        return Ok(Leave(()));
    }
    let commands: String = labs.map(listed).collect();
    if commands.is_empty() {
        return Ok(Leave(()));
    }
    say(commands.trim_end());
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        eprint!("Run them as the user who runs weir? [y/N] ");
        let mut answer = String::new();
        // An answer that cannot be read counts as no.
        let _ = std::io::stdin().read_line(&mut answer);
        if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            return Ok(Leave(()));
        }
    }
    Err(Failure::bad_input(
        "the commands need your permission, and nothing was run",
        "read them; --allow-commands permits them to run, as the user who runs weir",
    ))
}
