//! What a command writes: results to stdout, messages for the user to stderr. Control characters are escaped, since much of the text
//! comes from other hosts, from files and from commands.

use crate::failure::Failure;
use std::borrow::Cow;
use std::io::Write;
use weir_base::terminal::{printable, printable_line};

/// Prints text on stdout.
///
/// # Errors
/// It cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    write(&printable(text))
}

/// Prints a message for the user on stderr.
pub fn say(text: &str) {
    // A closed stderr is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

/// Writes text that is safe already to stdout; a reader that has gone away ends the program quietly.
///
/// # Errors
/// It cannot be written.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(|error| Failure::failed(format!("cannot write: {error}"))),
    }
}

/// Prints one JSON document on stdout.
///
/// # Errors
/// It cannot be written.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    // In JSON control characters stand in strings alone, most of them escaped already.
    let harmful =
        |c: char| c != '\n' && !matches!(printable_line(c.encode_utf8(&mut [0; 4])), Cow::Borrowed(_));
    let safe = |c: char| if harmful(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    write(&(text.chars().map(safe).collect::<String>() + "\n"))
}
