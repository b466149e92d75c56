//! The command lines of all documents are ones that this command line reads.

#[path = "../../tests/documents/mod.rs"]
mod documents;

use super::Cli;
use clap::Parser;
use clap::error::ErrorKind;
use documents::{Block, documents};

/// The command lines of a block that call weir, without what a shell would read: prompts, comments, pipes. Help has an explanation
/// behind two spaces.
fn command_lines(block: &Block) -> Vec<String> {
    let text = block.text.replace("\\\n", " ");
    let line = |line: &str| {
        let line = line.trim_start().trim_start_matches("$ ").trim_start_matches("sudo ");
        let weir = line.strip_prefix("weir ")?.trim_start();
        Some(weir.split("  ").next().unwrap_or(weir).to_owned())
    };
    text.lines().filter_map(line).collect()
}

/// The words of a command line up to where the shell would begin something else.
fn words(line: &str) -> Vec<String> {
    let shell = |word: &String| ["|", "&&", ">", "<", ";", "2>"].contains(&word.as_str());
    let words = shlex::split(line).unwrap_or_default().into_iter();
    ["weir".to_owned()].into_iter().chain(words.take_while(|word| !shell(word))).collect()
}

#[test]
fn every_command_line_of_a_document_is_one_that_weir_reads() {
    let (mut seen, mut wrong) = (0, vec![]);
    for document in documents() {
        let blocks = document.blocks.iter().filter(|block| !block.is("toml") && !block.is("rust"));
        for (block, line) in
            blocks.flat_map(|block| command_lines(block).into_iter().map(move |line| (block, line)))
        {
            seen += 1;
            let Err(error) = Cli::try_parse_from(words(&line)) else { continue };
            if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                let (path, at) = (document.path.display(), block.line);
                wrong.push(format!("{path}, block at line {at}: weir {line}\n{error}"));
            }
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
