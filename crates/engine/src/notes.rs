//! Notes of a person on a result, in a file of the result folder that no run, rerun or report touches.
//!
//! The file holds a JSON document. It is replaced as a whole under a lock of its own, so that notes can be written while runs are, and
//! two writers wait for each other.

use crate::atomic_write::{OURS, atomic_write};
use crate::error::{FolderError, at};
use crate::folder::is_results;
use crate::lock;
use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The file.
const FILE: &str = "notes.json";
/// Most bytes of a note, and most notes of a result.
pub const LONGEST_NOTE: usize = 16_384;
const MOST_NOTES: usize = 10_000;
/// Most bytes of the file that are read: notes are escaped to six times their length at most.
const MOST_BYTES: u64 = 64 << 20;

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its number, from 1; a number is not given twice while a later note is there.
    pub number: u32,
    /// When it was written, in UTC (RFC 3339).
    pub at: String,
    /// What it says.
    pub text: String,
}

/// Why a note cannot be read, added or removed.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// The folder holds no results.
    #[error("{0} holds no results of weir")]
    NoResults(String),
    /// The text is empty.
    #[error("the note is empty")]
    Empty,
    /// The text is too long.
    #[error("the note has {0} bytes; it may have {LONGEST_NOTE}")]
    TooLong(usize),
    /// The text has a control character other than a line's end or a tab.
    #[error("the note has a control character, U+{:04X}, as its character {}", *.0 as u32, .1)]
    Control(char, usize),
    /// There are too many.
    #[error("there are {MOST_NOTES} notes on this result, and no more can be kept")]
    TooMany,
    /// There is no such note.
    #[error("there is no note {0}")]
    Unknown(u32),
    /// The file is damaged.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// The notes on a result, in the order in which they were written.
///
/// # Errors
/// The folder holds no results, or the file cannot be read.
pub fn notes(folder: &Path) -> Result<Vec<Note>, NoteError> {
    if !is_results(folder) {
        return Err(NoteError::NoResults(folder.display().to_string()));
    }
    let path = folder.join(FILE);
    let length = match fs::metadata(&path) {
        Ok(about) => about.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(&path)(error).into()),
    };
    let damaged = |reason: String| NoteError::Damaged { path: path.display().to_string(), reason };
    if length > MOST_BYTES {
        return Err(damaged(format!("it has {length} bytes, and notes have {MOST_BYTES} at most")));
    }
    let text = fs::read(&path).map_err(at(&path))?;
    serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))
}

/// Adds a note, dated now.
///
/// # Errors
/// The text or the folder cannot be used, or writing failed; the older notes stay as they are.
pub fn add_note(folder: &Path, text: &str) -> Result<Note, NoteError> {
    let text = text.trim();
    check(text)?;
    change(folder, |notes| {
        if notes.len() >= MOST_NOTES {
            return Err(NoteError::TooMany);
        }
        let number = notes.last().map_or(1, |last| last.number.saturating_add(1));
        let note = Note { number, at: now(), text: text.into() };
        notes.push(note.clone());
        Ok(note)
    })
}

/// Removes a note.
///
/// # Errors
/// There is no such note, the folder cannot be used, or writing failed.
pub fn remove_note(folder: &Path, number: u32) -> Result<Note, NoteError> {
    change(folder, |notes| {
        let place = notes.iter().position(|note| note.number == number).ok_or(NoteError::Unknown(number))?;
        Ok(notes.remove(place))
    })
}

/// Changes the notes of a folder while nobody else does.
fn change<T>(
    folder: &Path,
    change: impl FnOnce(&mut Vec<Note>) -> Result<T, NoteError>,
) -> Result<T, NoteError> {
    // Before a file for the lock is made: the folder may be somebody's own.
    if !is_results(folder) {
        return Err(NoteError::NoResults(folder.display().to_string()));
    }
    let path = folder.join(format!("{OURS}notes-lock"));
    let lock = lock::open(&path)?;
    lock.lock().map_err(at(&path))?;
    let mut all = notes(folder)?;
    let done = change(&mut all)?;
    let text = serde_json::to_vec_pretty(&all).map_err(io::Error::other).map_err(at(&path))?;
    atomic_write(folder, FILE, &text).map_err(at(&folder.join(FILE)))?;
    Ok(done)
}

fn check(text: &str) -> Result<(), NoteError> {
    if text.is_empty() {
        return Err(NoteError::Empty);
    }
    if text.len() > LONGEST_NOTE {
        return Err(NoteError::TooLong(text.len()));
    }
    let is_wrong = |letter: &char| letter.is_control() && !matches!(letter, '\n' | '\t');
    match text.chars().zip(1..).find(|(letter, _)| is_wrong(letter)) {
        Some((letter, place)) => Err(NoteError::Control(letter, place)),
        None => Ok(()),
    }
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = DateTime::from_timestamp(since.as_secs().try_into().unwrap_or(i64::MAX), 0).unwrap_or_default();
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    fn results() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("runs")).unwrap();
        fs::write(folder.path().join("lab.toml"), "").unwrap();
        folder
    }

    #[test]
    fn notes_are_numbered_and_a_removed_one_leaves_the_others_as_they_are() {
        let folder = results();
        assert_eq!(notes(folder.path()).unwrap(), []);
        for text in ["one", " two\nlines ", "three"] {
            add_note(folder.path(), text).unwrap();
        }
        assert_eq!(remove_note(folder.path(), 1).unwrap().text, "one");
        assert!(matches!(remove_note(folder.path(), 1), Err(NoteError::Unknown(1))));
        let left: Vec<_> =
            notes(folder.path()).unwrap().into_iter().map(|one| (one.number, one.text)).collect();
        assert_eq!(left, [(2, "two\nlines".into()), (3, "three".into())]);
        assert_eq!(add_note(folder.path(), "four").unwrap().number, 4);
    }

    #[test]
    fn a_note_that_a_terminal_or_a_page_could_not_show_is_refused_and_nothing_is_lost() {
        let folder = results();
        add_note(folder.path(), "first").unwrap();
        let before = fs::read(folder.path().join(FILE)).unwrap();
        let faults = ["a\u{1b}[31m", "", &"x".repeat(1 << 20)].map(|text| add_note(folder.path(), text));
        let told: Vec<String> = faults.into_iter().map(|fault| fault.unwrap_err().to_string()).collect();
        assert_eq!(told[0], "the note has a control character, U+001B, as its character 2");
        assert_eq!(told[1], "the note is empty");
        assert_eq!(told[2], "the note has 1048576 bytes; it may have 16384");
        assert_eq!(fs::read(folder.path().join(FILE)).unwrap(), before);
    }

    #[test]
    fn two_writers_lose_no_note() {
        let folder = results();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let folder = folder.path();
                scope.spawn(move || {
                    (0..25).for_each(|n| drop(add_note(folder, &format!("{writer} {n}")).unwrap()));
                });
            }
        });
        let numbers: Vec<u32> = notes(folder.path()).unwrap().iter().map(|note| note.number).collect();
        assert_eq!(numbers, (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn a_folder_without_results_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(add_note(folder.path(), "x"), Err(NoteError::NoResults(_))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_file_is_not_replaced() {
        let folder = results();
        fs::write(folder.path().join(FILE), "[{").unwrap();
        assert!(add_note(folder.path(), "x").unwrap_err().to_string().contains("notes.json is damaged: EOF"));
        assert_eq!(fs::read(folder.path().join(FILE)).unwrap(), b"[{");
    }
}
