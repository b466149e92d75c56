//! The command lines of all documents are ones that this command line reads.

#[path = "../../tests/documents/mod.rs"]
mod documents;

use super::Cli;
use clap::Parser;
use clap::error::ErrorKind;
use documents::{Block, Document, documents};
use std::ffi::OsString;
use std::path::Path;

/// The command lines of a block that call weir, without prompts, and without explanations, which help has behind two spaces. Lines with
/// `<` are the usage of a command.
fn command_lines(block: &Block) -> Vec<String> {
    let text = block.text.replace("\\\n", " ");
    let line = |line: &str| {
        let line = line
            .split_once(" | ")
            .filter(|(_, last)| last.starts_with("weir "))
            .map_or(line, |(_, last)| last);
        let line = line.trim_start().trim_start_matches("$ ").trim_start_matches("sudo ");
        let weir = line.strip_prefix("weir ")?.trim_start();
        let weir = weir.split("  ").next().unwrap_or(weir);
        (!weir.contains(" <")).then(|| weir.to_owned())
    };
    text.lines().filter_map(line).collect()
}

/// The words of a command line up to where the shell would begin something else.
fn words(line: &str) -> Vec<String> {
    let shell = |word: &String| ["|", "&&", ">", ";", "2>"].contains(&word.as_str());
    let words = shlex::split(&with_whole_keys(line)).unwrap_or_default().into_iter();
    ["weir".to_owned()].into_iter().chain(words.take_while(|word| !shell(word))).collect()
}

/// A text in which public keys that documents shorten to four digits have all their 64.
fn with_whole_keys(text: &str) -> String {
    ["8f3c", "1b9e"]
        .iter()
        .fold(text.to_owned(), |text, key| text.replace(&format!("{key}..."), &key.repeat(16)))
}

/// The words with which the command line is read: those of a configuration file, which is a block of the document, are among them.
fn with_configuration(words: Vec<String>, document: &Document, place: &Path) -> Vec<OsString> {
    for block in &document.blocks {
        if let Some(name) = block.file() {
            std::fs::write(place.join(name.replace('/', "-")), with_whole_keys(&block.text)).unwrap();
        }
    }
    let local = |word: String| match Path::new(&word).file_name() {
        Some(name) if word.starts_with("/etc/weir/") => place.join(name).into_os_string(),
        _ => word.into(),
    };
    weir_daemon::frame::config::with_file(words.into_iter().map(local).collect()).unwrap()
}

#[test]
fn every_command_line_of_a_document_is_one_that_weir_reads() {
    let place = tempfile::tempdir().unwrap();
    let (mut seen, mut wrong) = (0, vec![]);
    for document in documents() {
        let blocks = document.blocks.iter().filter(|block| !block.is("toml") && !block.is("rust"));
        let lines =
            blocks.flat_map(|block| command_lines(block).into_iter().map(move |line| (block.line, line)));
        for (at, line) in lines {
            seen += 1;
            let words = with_configuration(words(&line), &document, place.path());
            let Err(error) = Cli::try_parse_from(words) else { continue };
            if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                wrong.push(format!("{}, block at line {at}: weir {line}\n{error}", document.path.display()));
            }
        }
    }
    assert!(seen > 200, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pages whose tables have whole command lines as code in their cells.
const TABLES: [&str; 3] = ["docs/coming-from.md", "docs/how-to/compare-and-plot.md", "docs/wrap.md"];

#[test]
fn every_command_line_in_a_table_is_one_that_weir_reads() {
    let (mut seen, mut wrong) = (0, vec![]);
    for document in TABLES.map(|path| documents::read(Path::new(path))) {
        let rows = document.text.lines().filter(|line| line.starts_with('|'));
        let codes = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        for line in codes.filter_map(|code| code.strip_prefix("weir ")) {
            seen += 1;
            if let Err(error) = Cli::try_parse_from(words(line)) {
                wrong.push(format!("{}: weir {line}\n{error}", document.path.display()));
            }
        }
    }
    assert!(seen > 30, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
