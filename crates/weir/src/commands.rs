//! The permission for commands of labs: given on the command line, or at the terminal.

use crate::cli::EngineName;
use crate::failure::Failure;
use crate::say;
use std::io::IsTerminal;
use weir_plan::Lab;
use weir_session::{NOT_PERMITTED, PERMIT, commands_of};

/// Proof that commands may be run, or that there are none. Only [`leave`] makes it.
pub(crate) struct Leave(());

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
    let commands: String = labs.map(commands_of).collect();
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
    Err(Failure::bad_input(NOT_PERMITTED, PERMIT))
}
