//! From files to one tree of values: reading, `extends`, settings from the command line, and the way back to a text.

use crate::diagnostic::{Diagnostics, Fault, Origin, Sources};
use crate::ordinary;
use crate::reader::bad_name;
use crate::size::{LARGEST_FILE, MOST_EXTENDED};
use crate::traces::Traces;
use crate::tree::SECTIONS;
use crate::tree::{self, Item, Node, Path, Table};
use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};

/// The texts read so far.
#[derive(Default)]
pub(crate) struct Reading {
    sources: Sources,
    /// Folders in which the files that a text names are looked for, by the text's number.
    folders: BTreeMap<usize, PathBuf>,
    /// Canonical paths of the files being read, outermost first.
    open: Vec<PathBuf>,
    /// Canonical paths of all files read.
    files: Vec<PathBuf>,
    /// Whether the lab is more than the text of one file.
    composed: bool,
}

impl Reading {
    /// The files that were read: the lab's own, and those that it extends.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The texts that were read.
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Faults with the texts that they are in.
    pub(crate) fn fail(&self, faults: Vec<Fault>) -> Diagnostics {
        self.sources.diagnose(faults)
    }

    /// The folder in which the files that this text names are looked for; for the command line, the current folder.
    pub(crate) fn folder(&self, file: usize) -> &FilePath {
        self.folders.get(&file).map_or(FilePath::new(""), PathBuf::as_path)
    }

    /// Adds a text that is a part of the lab and no file of it, and returns its number.
    pub(crate) fn line(&mut self, shown: &str, text: &str) -> usize {
        self.composed = true;
        self.sources.add(shown, text.into())
    }

    /// Reads a file and what it extends. `asked` is where its name was written.
    pub(crate) fn file(&mut self, path: &FilePath, asked: Option<Origin>) -> Result<Table, Diagnostics> {
        let shown = path.display().to_string();
        let unread = |reading: &Reading, why: String, help: &str| match asked {
            Some(origin) => reading.fail(vec![Fault::new(origin, why, help)]),
            None => Diagnostics::of_file(why, help),
        };
        // The canonical path shows a circle, whatever names and links lead to the file.
        let canonical = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if self.open.contains(&canonical) {
            let circle: Vec<String> =
                self.open.iter().chain([&canonical]).map(|path| file_name(path)).collect();
            let why = format!("the labs extend each other in a circle: {}", circle.join(" -> "));
            return Err(unread(self, why, "remove one of the `extends`"));
        }
        if self.open.len() > MOST_EXTENDED {
            let why = format!("more than {MOST_EXTENDED} labs extend each other in a row");
            return Err(unread(self, why, "join some of them into one file"));
        }
        let bytes = match ordinary::read(path, LARGEST_FILE) {
            Ok(bytes) => bytes,
            Err(error) => {
                let help = "`weir new FILE` writes a lab to start from; the file in `extends` is looked for beside the lab";
                return Err(unread(self, format!("cannot read the lab {shown}: {error}"), help));
            }
        };
        self.files.push(canonical.clone());
        self.open.push(canonical);
        let text = self.utf8(&shown, bytes)?;
        let folder = path.parent().map(FilePath::to_path_buf).unwrap_or_default();
        let table = self.text(&shown, text, &folder)?;
        self.open.pop();
        Ok(table)
    }

    fn utf8(&mut self, shown: &str, bytes: Vec<u8>) -> Result<String, Diagnostics> {
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let file = self.sources.add(shown, text);
            let origin = Origin::new(file, at..at + char::REPLACEMENT_CHARACTER.len_utf8());
            self.fail(vec![Fault::new(
                origin,
                "this is not UTF-8",
                "save the file as UTF-8; TOML has no other encoding",
            )])
        })
    }

    /// Reads a text and what it extends.
    pub(crate) fn text(
        &mut self,
        shown: &str,
        text: String,
        folder: &FilePath,
    ) -> Result<Table, Diagnostics> {
        let file = self.sources.add(shown, text);
        self.folders.insert(file, folder.to_path_buf());
        let mut table = tree::parse(self.sources.text(file), file).map_err(|faults| self.fail(faults))?;
        self.format(&table, file)?;
        let Some(extends) = table.get("extends").cloned() else { return Ok(table) };
        let Some(base) = extends.as_str() else {
            let message = format!("`extends` is a file's name, and this is {}", extends.what());
            return Err(self.fail(vec![Fault::new(
                extends.origin,
                message,
                "write extends = \"other.toml\"",
            )]));
        };
        self.composed = true;
        let mut whole = self.file(&folder.join(base), Some(extends.origin))?;
        table.remove("extends");
        // The sections `name` and `live` belong to each lab alone and are not inherited.
        whole.remove("name");
        whole.remove("live");
        whole.overlay(table);
        Ok(whole)
    }

    fn format(&self, table: &Table, file: usize) -> Result<(), Diagnostics> {
        let fault = match table.get("format") {
            Some(Node { item: Item::Integer(1), .. }) => return Ok(()),
            Some(node) => Fault::new(node.origin, "this build reads labs of format 1", "write format = 1"),
            None => {
                let first_line = self.sources.text(file).lines().next().map_or(0, str::len);
                Fault::new(
                    Origin::new(file, 0..first_line),
                    "the lab has no format",
                    "begin it with format = 1",
                )
            }
        };
        Err(self.fail(vec![fault]))
    }

    /// Applies `PATH=VALUE`. A level that varies the same path is taken out of the tree.
    pub(crate) fn setting(&mut self, root: &mut Table, setting: &str) -> Result<(), Diagnostics> {
        self.composed = true;
        let file = self.sources.add("--set", setting.into());
        let whole = Origin::new(file, 0..setting.len());
        let help = "write --set PATH=VALUE, for example --set run.duration=\"5 s\"";
        let Some((path, value)) = split_setting(setting) else {
            return Err(self.fail(vec![Fault::new(whole, "a setting is a path, `=` and a value", help)]));
        };
        let start = setting.len() - value.len();
        let parsed = Path::parse(path.trim_end(), file, 0).and_then(|path| match path.first() {
            "format" | "extends" => {
                Err(Fault::new(whole, format!("`{}` cannot be set here", path.first()), help))
            }
            _ => Ok(path),
        });
        let path = parsed.map_err(|fault| self.fail(vec![fault]))?;
        let value = tree::parse_value(value, file, start).map_err(|faults| self.fail(faults))?;
        self.apply(root, &path, value)
    }

    fn apply(&self, root: &mut Table, path: &Path, value: Node) -> Result<(), Diagnostics> {
        pin(root, path).and_then(|()| root.set(path, value)).map_err(|fault| self.fail(vec![fault]))
    }

    /// Removes the section of a form (`[full]`, `[live]`) from the lab, and applies its settings if the lab is read in that
    /// form. Returns whether there is such a section.
    pub(crate) fn form(&mut self, root: &mut Table, form: &str, applies: bool) -> Result<bool, Diagnostics> {
        let help = "write settings by their paths, for example \"run.repeats\" = 10";
        let Some(node) = root.get(form).cloned() else { return Ok(false) };
        let Some(settings) = node.as_table() else {
            let message = format!("[{form}] is {}, not a table of settings", node.what());
            return Err(self.fail(vec![Fault::new(node.origin, message, help)]));
        };
        root.remove(form);
        if applies {
            self.composed = true;
        }
        for (key, entry) in &settings.0 {
            let path = Path::of_key(key, entry.named).map_err(|fault| self.fail(vec![fault]))?;
            if matches!(path.first(), "format" | "extends" | "full" | "live") {
                let message = format!("`{}` cannot be set here", path.first());
                return Err(self.fail(vec![Fault::new(entry.named, message, help)]));
            }
            if applies {
                self.apply(root, &path, entry.value.clone())?;
            }
        }
        Ok(true)
    }

    /// The lab's name and title.
    pub(crate) fn names(
        &self,
        root: &Table,
        path: &FilePath,
    ) -> Result<(String, Option<String>), Diagnostics> {
        let text = |key: &str, what: &str| match root.get(key).map(|node| (node, node.as_str())) {
            Some((node, None)) => {
                let message = format!("the lab's {key} is {}", node.what());
                Err(self.fail(vec![Fault::new(node.origin, message, format!("write {key} = \"{what}\""))]))
            }
            Some((_, Some(text))) => Ok(Some(text.to_string())),
            None => Ok(None),
        };
        let name = text("name", "my-lab")?;
        if let (Some(name), Some(node)) = (&name, root.get("name"))
            && let Some((message, help)) = bad_name("lab", name)
        {
            return Err(self.fail(vec![Fault::new(node.origin, message, help)]));
        }
        Ok((name.unwrap_or_else(|| plain_name(path)), text("title", "What this lab shows")?))
    }

    /// The lab as one file with its name: the original text if the lab is no more than that.
    pub(crate) fn source(&self, root: &Table, name: &str, traces: &Traces) -> String {
        let mut named = root.clone();
        traces.name_copies(&mut named);
        if self.composed || !traces.is_empty() {
            let origin = Origin::new(0, 0..0);
            let value = Node { item: Item::String(name.into()), origin };
            // A path of one key can always be set.
            let _ = named.set(&Path(vec![("name".into(), origin)]), value);
            return tree::to_toml(&named);
        }
        let text = self.sources.text(0);
        if root.get("name").is_some() {
            return text.into();
        }
        let format = root.locate(&["format"]).map_or(0, |origin| origin.end);
        let line = format + text[format..].find('\n').map_or(text.len() - format, |end| end + 1);
        let (before, after) = text.split_at(line);
        let newline = if before.ends_with('\n') { "" } else { "\n" };
        format!("{before}{newline}name = {}\n{after}", tree::quoted(name))
    }
}

/// A file's name without its extension, with the characters replaced that a lab's name cannot have.
fn plain_name(path: &FilePath) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = stem.chars().map(fit).take(40).collect();
    match name.trim_start_matches(['-', '_']) {
        "" => "lab".into(),
        name => name.into(),
    }
}

fn file_name(path: &FilePath) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Splits `PATH=VALUE` at the first `=` outside quotes.
fn split_setting(setting: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in setting.char_indices() {
        match (quote, c) {
            (None, '=') => return Some((&setting[..at], setting[at + 1..].trim_start())),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

/// Removes the level that varies the same path as a setting from the command line; a path that labels set cannot be set so.
fn pin(root: &mut Table, path: &Path) -> Result<(), Fault> {
    let Some(entry) = root.0.get_mut("vary") else { return Ok(()) };
    let Item::Table(levels) = &mut entry.value.item else { return Ok(()) };
    let sets = |key: &str| {
        Path::parse(key, 0, 0).is_ok_and(|other| other.starts_with(path) || path.starts_with(&other))
    };
    let exactly =
        |key: &str| Path::parse(key, 0, 0).is_ok_and(|other| other.0.len() == path.0.len() && sets(key));
    let pinned = |key: &str, level: &tree::Entry| matches!(level.value.item, Item::Array(_)) && exactly(key);
    let gone: Vec<String> =
        levels.0.iter().filter(|(key, level)| pinned(key, level)).map(|(key, _)| key.clone()).collect();
    levels.0.retain(|key, level| !pinned(key, level));
    for (name, level) in &levels.0 {
        let labels = level.value.as_table();
        let inside = labels.is_some_and(|labels| {
            labels
                .0
                .values()
                .any(|label| label.value.as_table().is_some_and(|settings| settings.keys().any(sets)))
        });
        if inside || (labels.is_none() && sets(name) && path.first() != "vary") {
            let key = path.0.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(".");
            let origin = path.origin().unwrap_or(entry.named);
            let help = format!("set vary.\"{0}\" instead, for example --set 'vary.\"{0}\"=[..]'", name);
            return Err(Fault::new(origin, format!("the level `{}` of the tree varies {key}", name), help));
        }
    }
    drop_entries(root, &gone);
    Ok(())
}

/// Removes entries that name a removed level from the lists of tables. Such a level's name is the path of a setting, so nothing
/// else has this name.
fn drop_entries(root: &mut Table, gone: &[String]) {
    fn names(node: &Node, gone: &[String]) -> bool {
        match &node.item {
            Item::String(text) => gone.contains(text),
            Item::Array(values) => values.iter().any(|value| names(value, gone)),
            Item::Table(table) => {
                table.0.iter().any(|(key, entry)| gone.contains(key) || names(&entry.value, gone))
            }
            _ => false,
        }
    }
    for section in SECTIONS.into_iter().chain(["plot"]) {
        if let Some(Item::Array(entries)) = root.0.get_mut(section).map(|entry| &mut entry.value.item) {
            entries.retain(|entry| !names(entry, gone));
        }
    }
}
