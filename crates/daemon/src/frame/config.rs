//! Flags from a TOML file. Its keys are the flags' names, so the command line checks both alike.

use super::Daemon;
use crate::failure::Failure;
use clap::Command;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use toml::{Table, Value};

/// The flag that names the file.
const FLAG: &str = "--config";

/// The arguments of a command line, and those of the file that it names; flags that are given on the command line are left out.
///
/// # Errors
/// The file cannot be read, or a value in it is none of a flag.
pub fn with_file(given: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let flags = given.iter().position(|word| word == "--").unwrap_or(given.len());
    let Some((path, after)) = named(&given[..flags]) else { return Ok(given) };
    let wrong = |message: String| {
        let help = "its keys are names of flags, as in `listen = \"127.0.0.1:7765\"`";
        Failure::bad_input(format!("{}: {message}", Path::new(&path).display()), help)
    };
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let table: Table =
        text.parse().map_err(|error: toml::de::Error| wrong(error.to_string().trim_end().to_owned()))?;
    let mut all = given[..after].to_vec();
    for (key, value) in &table {
        let flag = format!("--{key}");
        let is_given = |word: &OsString| {
            let word = word.to_string_lossy();
            word.strip_prefix(flag.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        if !given[..flags].iter().any(is_given) {
            words(&flag, value, &mut all).map_err(|what| wrong(format!("`{key}` {what}")))?;
        }
    }
    all.extend_from_slice(&given[after..]);
    Ok(all)
}

/// The file that the arguments name, and the place after its name.
fn named(words: &[OsString]) -> Option<(OsString, usize)> {
    words.iter().enumerate().find_map(|(at, word)| {
        if word == FLAG {
            return words.get(at + 1).map(|path| (path.clone(), at + 2));
        }
        let path = word.to_str()?.strip_prefix(FLAG)?.strip_prefix('=')?;
        Some((path.into(), at + 1))
    })
}

/// Adds the arguments of a key.
fn words(flag: &str, value: &Value, to: &mut Vec<OsString>) -> Result<(), &'static str> {
    match value {
        Value::Boolean(true) => to.push(flag.into()),
        Value::Boolean(false) => {}
        Value::String(text) => to.push(format!("{flag}={text}").into()),
        Value::Integer(number) => to.push(format!("{flag}={number}").into()),
        Value::Float(number) => to.push(format!("{flag}={number}").into()),
        Value::Array(all) if !all.iter().any(Value::is_array) => {
            all.iter().try_for_each(|one| words(flag, one, to))?;
        }
        _ => return Err("is no text, number, truth value or list of them"),
    }
    Ok(())
}

/// The daemon's arguments, as the command line and the file say them now.
///
/// # Errors
/// The file cannot be read, or the arguments are wrong.
pub(super) fn again<D: Daemon>() -> Result<D, Failure> {
    let words = std::env::args_os().skip(1 + D::COMMAND.split(' ').count());
    let all = with_file([OsStr::new(D::COMMAND).to_owned()].into_iter().chain(words).collect())?;
    let wrong = |error: clap::Error| {
        let text = error.to_string();
        Failure::bad_input(text.lines().next().unwrap_or_default(), "correct the file, and send SIGHUP again")
    };
    let matches = D::augment_args(Command::new(D::COMMAND)).try_get_matches_from(all).map_err(wrong)?;
    D::from_arg_matches(&matches).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(file: &str, given: &[&str]) -> Result<Vec<String>, String> {
        let path = std::env::temp_dir().join(format!("weir-config-{}-{}", std::process::id(), file.len()));
        std::fs::write(&path, file).unwrap();
        let given = given.iter().map(|word| word.replace("FILE", path.to_str().unwrap()).into());
        let all = with_file(given.collect());
        std::fs::remove_file(&path).unwrap();
        let text = |word: OsString| word.to_string_lossy().replace(path.to_str().unwrap(), "FILE");
        all.map(|all| all.into_iter().map(text).collect()).map_err(|failure| failure.message)
    }

    #[test]
    fn keys_become_flags_and_flags_of_the_command_line_come_first() {
        let file = "listen = '127.0.0.1:1'\nallow = ['a', 'b']\nmemory = true\nplain = false\nstreams = 3\n";
        let found = all(file, &["weir", "--config", "FILE", "--listen=127.0.0.1:2", "x"]).unwrap();
        let expected = [
            "weir",
            "--config",
            "FILE",
            "--allow=a",
            "--allow=b",
            "--memory",
            "--streams=3",
            "--listen=127.0.0.1:2",
            "x",
        ];
        assert_eq!(found, expected);
        assert_eq!(all("a = 1", &["weir", "--config=FILE"]).unwrap()[2], "--a=1");
    }

    #[test]
    fn a_command_line_without_a_file_stays_as_it_is() {
        for given in [&["weir", "--config"][..], &["weir", "x", "--", "--config", "none"], &["weir"]] {
            assert_eq!(all("", given).unwrap(), given);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_with_its_name() {
        let none = with_file(["weir", "--config", "/none/such"].map(OsString::from).to_vec());
        assert!(none.unwrap_err().message.contains("/none/such"));
        assert!(all("a = ", &["weir", "--config=FILE"]).is_err());
        assert!(all("[a]\nb = 1", &["weir", "--config=FILE"]).unwrap_err().contains("`a` is no text"));
    }
}
