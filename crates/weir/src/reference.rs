//! `weir reference`: the reference of the manual as Markdown. Every sentence in it comes from the schema of lab files, the registries or
//! the command line's own help.

mod commands;
mod keys;
mod members;
mod tables;

use crate::failure::Failure;
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir reference docs/reference

Files of the same names in the folder are replaced; other files stay.")]
pub(crate) struct ReferenceArgs {
    /// The folder; it is made if it does not exist
    pub folder: PathBuf,
}

/// A page: its file below the folder, its title, what it has in a sentence, and the text below these.
struct Page {
    file: String,
    title: String,
    about: String,
    text: String,
}

/// The sentence at the top of every page.
const GENERATED: &str = "<!-- Written by `weir reference`; `make reference` renews it. -->";

/// Writes all pages.
pub(crate) fn reference(args: &ReferenceArgs) -> Result<(), Failure> {
    let mut pages = keys::pages();
    pages.push(commands::page());
    pages.extend(members::pages());
    pages.push(tables::page());
    write(&args.folder, &contents(&pages))?;
    pages.iter().try_for_each(|page| write(&args.folder, page))
}

/// The first page, which leads to the others.
fn contents(pages: &[Page]) -> Page {
    let line = |page: &Page| format!("- [{}]({}): {}\n", page.title, page.file, page.about);
    let text = "`weir describe NAME` prints the same about any name or key, and `weir list` all names.\n\n";
    Page {
        file: "index.md".into(),
        title: "Reference".into(),
        about: "Every key, command, name, metric and table of this version of weir.".into(),
        text: text.to_owned() + &pages.iter().map(line).collect::<String>(),
    }
}

fn write(folder: &Path, page: &Page) -> Result<(), Failure> {
    let Page { file, title, about, text } = page;
    let path = folder.join(file);
    let text = format!("{GENERATED}\n\n# {title}\n\n{about}\n\n{}\n", text.trim_end());
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    written
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error: io::Error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}

/// A sentence as Markdown: what would be taken for a tag is marked, except in code.
fn prose(sentence: &str) -> String {
    let parts = sentence.split('`').enumerate();
    let marked =
        parts.map(|(place, part)| if place % 2 == 0 { part.replace('<', "&lt;") } else { part.into() });
    marked.collect::<Vec<_>>().join("`")
}
