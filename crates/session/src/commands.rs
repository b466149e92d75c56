//! The commands of labs. A live run executes them on this machine, as the user who runs weir and with the whole of the file
//! system, and a lab may come from a stranger: they are shown before anything runs, and run only with permission.

use std::fmt::Write;
use weir_base::terminal::printable_line;
use weir_plan::Lab;

/// Why a lab is refused whose commands the user has seen and not permitted.
pub const NOT_PERMITTED: &str = "the commands need your permission, and nothing was run";
/// What permits them.
pub const PERMIT: &str = "read them; --allow-commands permits them to run, as the user who runs weir";

/// A lab's commands as text; empty if it has none.
pub fn commands_of(lab: &Lab) -> String {
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
