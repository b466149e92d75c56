//! `weir note`: dated notes on a result.

use crate::failure::Failure;
use crate::{print, print_json};
use clap::Args;
use std::path::PathBuf;
use weir_base::terminal::printable;
use weir_engine::notes::{self, LONGEST_NOTE, Note, NoteError};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir note results/quickstart 'PIE with the old target'
  weir note results/quickstart --list
  weir note results/quickstart --remove 2

Notes stay when the lab is run again (--rerun) and when the report is rebuilt. They are in DIR/notes.json.")]
pub(crate) struct NoteArgs {
    /// A result folder
    pub folder: PathBuf,
    /// The note
    #[arg(required_unless_present_any = ["list", "remove"], conflicts_with_all = ["list", "remove"])]
    pub text: Option<String>,
    /// List the notes
    #[arg(long, conflicts_with = "remove")]
    pub list: bool,
    /// Remove the note of this number
    #[arg(long, value_name = "N")]
    pub remove: Option<u32>,
    /// Print the notes as one JSON document
    #[arg(long)]
    pub json: bool,
}

impl From<NoteError> for Failure {
    fn from(error: NoteError) -> Failure {
        let message = error.to_string();
        match error {
            NoteError::NoResults(_) => {
                Failure::bad_input(message, "name a folder that `weir run` has written")
            }
            NoteError::Empty => Failure::bad_input(message, "write what is to be kept, in quotes"),
            NoteError::TooLong(_) => Failure::bad_input(
                message,
                format!("keep it below {LONGEST_NOTE} bytes, or name a file that holds it"),
            ),
            NoteError::Control(..) => {
                Failure::bad_input(message, "write plain text; line ends and tabs may be in it")
            }
            NoteError::TooMany => Failure::bad_input(message, "remove some: --list, --remove N"),
            NoteError::Unknown(_) => Failure::bad_input(message, "--list shows the notes and their numbers"),
            NoteError::Damaged { .. } => Failure::failed_with(
                message,
                "restore the file from a copy, or move it elsewhere to begin anew",
            ),
            NoteError::Folder(_) => Failure::bad_input(
                message,
                "check that the folder can be written and its disk has space; the notes are as they were",
            ),
        }
    }
}

/// Adds, lists or removes.
pub(crate) fn note(args: &NoteArgs) -> Result<(), Failure> {
    let told = match (&args.text, args.remove) {
        (Some(text), _) => vec![notes::add_note(&args.folder, text)?],
        (None, Some(number)) => vec![notes::remove_note(&args.folder, number)?],
        (None, None) => notes::notes(&args.folder)?,
    };
    if args.json {
        return print_json(&told);
    }
    let done = match (&args.text, args.remove) {
        (Some(_), _) => "added ",
        (None, Some(_)) => "removed ",
        _ => "",
    };
    let line = |note: &Note| {
        let text = printable(&note.text).replace('\n', "\n    ");
        format!("{done}{}  {}  {text}\n", note.number, note.at)
    };
    print(&told.iter().map(line).collect::<String>())
}
