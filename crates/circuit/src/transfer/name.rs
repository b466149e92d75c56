//! Names of files that a stranger may choose: they stay in the folder that is meant for them.

/// Longest name that Linux's file systems take in bytes (`NAME_MAX`).
const LONGEST: usize = 255;
/// What the name of a file that is not whole ends in.
const PART: &str = ".weir-part";

/// Why a file cannot have a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It names a folder, or nothing.
    #[error("{0:?} is not the name of a file")]
    NoFile(String),
    /// It has a slash, or characters that do not print.
    #[error("{0:?} has characters that a name may not have here: slashes and control characters")]
    Characters(String),
    /// It is too long.
    #[error("a name of {0} bytes is too long: {most} at most", most = LONGEST - PART.len())]
    TooLong(usize),
    /// It is the name of a file that is not whole.
    #[error("{0:?} ends in {PART}, as files do that are not whole")]
    Part(String),
}

/// Refuses names that are not those of a file in the folder itself.
///
/// # Errors
/// Why it is none.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let told = || name.chars().take(80).collect::<String>();
    if name.len() > LONGEST - PART.len() {
        return Err(NameError::TooLong(name.len()));
    }
    if ["", ".", ".."].contains(&name) {
        return Err(NameError::NoFile(told()));
    }
    if name.contains(|c: char| c == '/' || c.is_control()) {
        return Err(NameError::Characters(told()));
    }
    if name.ends_with(PART) { Err(NameError::Part(told())) } else { Ok(()) }
}

/// The name that a file has until it is whole.
pub fn part_name(name: &str) -> String {
    format!("{name}{PART}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        for name in ["data.bin", "a b", "...", ".hidden", "ü", "-rf", "a\\b"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let long = "x".repeat(246);
        for name in
            ["", ".", "..", "/", "a/b", "../a", "/etc/passwd", "a\0", "a\n", "\x1b[2J", "a.weir-part", &long]
        {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(part_name(&"x".repeat(245)).len() == LONGEST);
    }
}
