//! Names of files, as an untrusted sender chooses them: the files must stay in the folder that is
//! meant for them.

/// Longest name that Linux's file systems take in bytes (`NAME_MAX`).
const LONGEST: usize = 255;
/// The suffix of the name of an incomplete file.
const PART: &str = ".weir-part";

/// Why a file cannot have a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty or that of a folder.
    #[error("{0:?} is not a file name")]
    NoFile(String),
    /// The name has a slash or control characters.
    #[error("{0:?} has characters that a file name may not have here: slashes or control characters")]
    Characters(String),
    /// The name is too long.
    #[error("a name of {0} bytes is too long: {most} at most", most = LONGEST - PART.len())]
    TooLong(usize),
    /// The name is that of an incomplete file.
    #[error("{0:?} ends in {PART}, the ending of incomplete files")]
    Part(String),
}

/// Refuses names that do not name a file in the folder itself.
///
/// # Errors
/// Why the name is refused.
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

/// The name of a file until it is complete.
pub fn part_name(name: &str) -> String {
    format!("{name}{PART}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_their_folder_are_refused() {
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
