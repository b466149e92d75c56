//! The documents: the reference is what weir writes, links lead somewhere, labs run, and commands marked `run` print what stands below
//! them.

mod asked;
#[path = "../documents/mod.rs"]
mod documents;

use crate::place::{Place, status, text, tree};
use documents::{Block, Document, documents, read, root};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

#[test]
fn the_reference_is_what_weir_writes() {
    let place = Place::new();
    place.done(&["reference", "reference"]);
    let (written, kept) = (tree(&place.path("reference")), tree(&root().join("docs/reference")));
    let names = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&written), names(&kept), "`make reference` renews docs/reference");
    for ((path, written), (_, kept)) in written.iter().zip(&kept) {
        assert!(
            written == kept,
            "docs/reference/{} is not current: `make reference` renews it",
            path.display()
        );
    }
}

#[test]
fn every_link_of_a_document_leads_to_a_file_and_an_anchor() {
    let documents = documents();
    let anchors: HashMap<&Path, &[String]> =
        documents.iter().map(|document| (document.path.as_path(), document.anchors.as_slice())).collect();
    let (mut seen, mut wrong) = (0, vec![]);
    for document in &documents {
        let outside = |link: &str| link.contains("://") || link.starts_with("mailto:");
        for link in document.links.iter().filter(|link| !outside(link)) {
            seen += 1;
            let (file, anchor) =
                link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { document.path.clone() } else { beside(&document.path, file) };
            let is_there = root().join(&target).exists();
            let known = |anchor: &str| {
                anchors.get(target.as_path()).is_some_and(|all| all.iter().any(|one| one == anchor))
            };
            if !is_there || anchor.is_some_and(|anchor| !known(anchor)) {
                wrong.push(format!("{}: {link}", document.path.display()));
            }
        }
    }
    assert!(seen > 150, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The path that a link in a document names.
fn beside(document: &Path, link: &str) -> PathBuf {
    let mut path = document.parent().unwrap().to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{link} leaves the repository"),
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_document_is_a_chapter_of_the_manual() {
    let summary = read(Path::new("docs/SUMMARY.md"));
    let chapters: Vec<PathBuf> =
        summary.links.iter().map(|link| beside(Path::new("docs/SUMMARY.md"), link)).collect();
    let missing: Vec<PathBuf> = documents()
        .into_iter()
        .map(|document| document.path)
        .filter(|path| path != Path::new("docs/SUMMARY.md") && !chapters.contains(path))
        .collect();
    assert_eq!(missing, Vec::<PathBuf>::new());
}

#[test]
fn labs_of_documents_run_and_commands_print_what_stands_below_them() {
    let (mut labs, mut commands) = (0, 0);
    for document in documents() {
        let place = with_labs();
        for (number, block) in document.blocks.iter().enumerate() {
            if block.is("toml") {
                let name = block.file().map_or(format!("block-{number}.toml"), str::to_owned);
                std::fs::create_dir_all(place.path(&name).parent().unwrap()).unwrap();
                let lab = whole(&document, &block.text);
                std::fs::write(place.path(&name), lab.as_ref().unwrap_or(&block.text)).unwrap();
                labs += usize::from(lab.is_some());
                // A lab in a folder is part of a study, which a command of the page judges.
                if lab.is_some() && !name.contains('/') && !is_run(&document, &name) {
                    run(&place, &format!("weir run {name} --no-report"), &document, block);
                }
            }
            if block.is("run") {
                for (command, printed) in console(&block.text) {
                    commands += 1;
                    let found = run(&place, &command, &document, block);
                    let (path, line) = (document.path.display(), block.line);
                    assert!(
                        alike(&printed, &found),
                        "{path}, line {line}: {command} prints\n{}",
                        found.join("\n")
                    );
                }
            }
        }
    }
    assert!(labs >= 12 && commands >= 12, "{labs} labs, {commands} commands");
}

/// A lab in a document: as it is, or a part of one, which begins with a table, with the rest that a short run needs. `None` for other
/// TOML. The examples of the reference have names in the place of values.
fn whole(document: &Document, text: &str) -> Option<String> {
    if text.contains("format = 1") {
        return Some(text.to_owned());
    }
    let has = |table: &str| text.contains(&format!("[{table}"));
    if !text.starts_with('[') || has("[") || document.path.starts_with("docs/reference") {
        return None;
    }
    let mut lab = "format = 1\n[run]\nduration = '10 s'\n".to_owned();
    if !has("graph") && !has("chain") && !has("dumbbell") {
        lab.push_str("[dumbbell]\nrate = '100 Mbit/s'\nrtt = '10 ms'\n");
    }
    if !has("traffic") {
        lab.push_str("[traffic.some]\n");
    }
    Some(lab + text)
}

/// A place with the labs of the repository, to which a document may add its own.
fn with_labs() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("labs")).unwrap();
    for entry in std::fs::read_dir(root().join("labs")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        std::os::unix::fs::symlink(entry.path().canonicalize().unwrap(), place.path("labs").join(name))
            .unwrap();
    }
    place
}

/// Whether a command marked `run` in a document names this file.
fn is_run(document: &Document, file: &str) -> bool {
    let blocks = document.blocks.iter().filter(|block| block.is("run"));
    blocks.flat_map(|block| console(&block.text)).any(|(command, _)| command.contains(file))
}

/// Executes a command with this build of weir. Returns the lines of its standard output, with plain blanks.
fn run(place: &Place, command: &str, document: &Document, block: &Block) -> Vec<String> {
    let weir = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
    let path = format!("{}:{}", weir.display(), std::env::var("PATH").unwrap());
    let output =
        Command::new("sh").args(["-c", command]).current_dir(place.path("")).env("PATH", path).output();
    let output = output.unwrap();
    let (file, line) = (document.path.display(), block.line);
    assert_eq!(status(&output), 0, "{file}, line {line}: {command}: {}", text(&output.stderr));
    text(&output.stdout).replace('\u{a0}', " ").lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The commands of a block and the lines that stand below each.
fn console(text: &str) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = vec![];
    for line in text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), vec![])),
            (None, Some((_, printed))) => printed.push(line.trim_end().to_owned()),
            (None, None) => panic!("a block begins with a command, not with {line}"),
        }
    }
    commands
}

/// Whether lines are the expected ones, of which `...` stands for any number of lines.
fn alike(expected: &[String], found: &[String]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=found.len()).any(|skipped| alike(rest, &found[skipped..]))
        }
        Some((line, rest)) => found.first() == Some(line) && alike(rest, &found[1..]),
    }
}

#[test]
fn each_figure_in_bold_in_the_tutorial_is_one_that_weir_prints() {
    let tutorial = read(Path::new("docs/tutorial.md"));
    let printed: String =
        tutorial.blocks.iter().filter(|block| block.is("run")).map(|block| block.text.as_str()).collect();
    let figures: Vec<&String> =
        tutorial.bold.iter().filter(|bold| bold.starts_with(|first: char| first.is_ascii_digit())).collect();
    assert!(figures.len() >= 10, "{figures:?}");
    let wrong: Vec<&&String> = figures.iter().filter(|figure| !stands_in(&printed, figure)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Whether a text has the number with which a figure begins, as a word of its own.
fn stands_in(text: &str, figure: &str) -> bool {
    let number = figure.split([' ', '\u{a0}']).next().unwrap_or(figure);
    let apart = |letter: char| !letter.is_ascii_digit() && letter != '.';
    text.split(apart).any(|word| word.trim_end_matches('.') == number)
}

#[test]
fn every_key_in_the_reference_has_all_its_parts() {
    let (mut keys, mut lacking) = (0, vec![]);
    for document in documents().iter().filter(|document| document.path.starts_with("docs/reference/keys")) {
        for section in document.text.split("\n## `").skip(1) {
            keys += 1;
            let (name, rest) = section.split_once('`').unwrap();
            let sentence = rest.trim_start().split("\n\n").next().unwrap();
            let has = |part: &str| {
                rest.contains(&format!("\n- **{part}**")) && !rest.contains(&format!("**{part}** .\n"))
            };
            let is_whole = sentence.ends_with(['.', ':']) && !sentence.starts_with('-');
            if !is_whole || !has("Takes") || !has("Default") || !(has("Example") || has("Keys")) {
                lacking.push(name.to_owned());
            }
        }
    }
    assert!(keys > 300, "{keys}");
    assert_eq!(lacking, Vec::<String>::new());
}
