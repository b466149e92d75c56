//! The documents of the repository as tests read them: their blocks of code, their links, and the anchors that links may name.
#![allow(dead_code, reason = "each of those who include it uses a part of it")]

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A block of code.
pub(crate) struct Block {
    /// The words behind its fence: the language first.
    pub words: Vec<String>,
    pub text: String,
    /// Number of its first line in the document.
    pub line: usize,
}

impl Block {
    pub(crate) fn is(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }

    /// The file's name that the block gives its text.
    pub(crate) fn file(&self) -> Option<&str> {
        self.words.iter().skip(1).find(|word| word.contains('.')).map(String::as_str)
    }
}

/// A Markdown file.
pub(crate) struct Document {
    /// Its path below the repository.
    pub path: PathBuf,
    pub text: String,
    pub blocks: Vec<Block>,
    /// Targets of links and of pictures, as they are written.
    pub links: Vec<String>,
    /// What links may name after `#`.
    pub anchors: Vec<String>,
    /// Texts that are in bold type.
    pub bold: Vec<String>,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents at the top of the repository and all of those in `docs`, by path.
pub(crate) fn documents() -> Vec<Document> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let mut paths: Vec<PathBuf> = top.map(PathBuf::from).to_vec();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.into_iter().map(|path| read(&path)).collect()
}

/// The document of this path below the repository.
pub(crate) fn read(path: &Path) -> Document {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let (mut blocks, mut links, mut anchors, mut bold) = (vec![], vec![], Anchors::default(), vec![]);
    let (mut heading, mut strong, mut code) = (None::<String>, None::<String>, None::<Block>);
    for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.add(&heading.take().unwrap()),
            Event::Start(Tag::Strong) => strong = Some(String::new()),
            Event::End(TagEnd::Strong) => bold.extend(strong.take()),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.into_string())
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let words = match kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().map(str::to_owned).collect(),
                    CodeBlockKind::Indented => vec![],
                };
                let line = 1 + text[..range.start].matches('\n').count();
                code = Some(Block { words, text: String::new(), line });
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(code.take()),
            Event::Text(part) | Event::Code(part) => match (&mut code, &mut heading, &mut strong) {
                (Some(code), ..) => code.text.push_str(&part),
                (_, heading, strong) => {
                    heading.iter_mut().chain(strong).for_each(|text| text.push_str(&part));
                }
            },
            _ => {}
        }
    }
    Document { path: path.to_owned(), text, blocks, links, anchors: anchors.all, bold }
}

/// Anchors of headings, as GitHub and mdBook make them of their texts.
#[derive(Default)]
struct Anchors {
    all: Vec<String>,
    times: HashMap<String, usize>,
}

impl Anchors {
    fn add(&mut self, heading: &str) {
        let letter = |letter: char| match letter {
            ' ' => Some('-'),
            '_' | '-' => Some(letter),
            _ => letter.is_alphanumeric().then(|| letter.to_ascii_lowercase()),
        };
        let anchor: String = heading.chars().filter_map(letter).collect();
        let times = self.times.entry(anchor.clone()).or_default();
        self.all.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
}
