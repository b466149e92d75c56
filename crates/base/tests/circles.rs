//! No circular imports between the files of a crate: a reader can begin with a file that imports nothing and continue from there. A
//! file and those in the folder of its name count as one; they may import each other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The files that each file of a crate imports, by their paths below `src` without `.rs`.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_two_files_of_a_room_import_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut circles = vec![];
    for member in fs::read_dir(crates).unwrap() {
        let member = member.unwrap();
        let imports = imports_of(&member.path().join("src"));
        let name = member.file_name().to_string_lossy().into_owned();
        circles.extend(
            circles_in(&imports).into_iter().map(|circle| format!("{name}: {}", circle.join(" and "))),
        );
    }
    circles.sort();
    assert!(circles.is_empty(), "these import each other:\n{}", circles.join("\n"));
}

#[test]
fn an_import_circle_is_found_through_grouped_imports_and_other_files() {
    let files = [
        ("first", "use crate::{shared, second::{Second, Other}};"),
        ("second", "use super::third::Third;\n// use crate::nothing;"),
        ("third", "fn third() -> crate::first::First { todo }"),
        ("shared", "use std::fs;"),
        ("parent", "mod child; use child::Child;"),
        ("parent/child", "use super::Parent; use crate::shared;"),
        ("tested", "#[cfg(test)]\nmod tests { use crate::third; }"),
    ];
    let imports = imports(files.map(|(name, text)| (name.into(), text.into())).into());
    assert_eq!(circles_in(&imports), [["first", "second", "third"].map(String::from).to_vec()]);
    assert!(imports["first"].contains("shared") && imports["tested"].is_empty());
}

fn imports_of(source: &Path) -> Imports {
    let mut files = BTreeMap::new();
    read(source, source, &mut files);
    imports(files)
}

fn read(source: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path: PathBuf = entry.unwrap().path();
        let place = path.strip_prefix(source).unwrap().with_extension("").to_string_lossy().into_owned();
        let is_test = place.split('/').any(|part| part.ends_with("tests"));
        if path.is_dir() {
            read(source, &path, files);
        } else if !is_test && !["lib", "main"].contains(&place.as_str()) {
            let module = place.strip_suffix("/mod").unwrap_or(&place).to_owned();
            files.insert(module, fs::read_to_string(&path).unwrap());
        }
    }
}

fn imports(files: BTreeMap<String, String>) -> Imports {
    let imported = |name: &String, text: &str| {
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code: String = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
        let own: Vec<&str> = name.split('/').collect();
        let paths = paths(&code).into_iter().map(|(above, path)| {
            let base: &[&str] = above.map_or(&[], |above| &own[..own.len().saturating_sub(above)]);
            base.iter().map(|part| part.to_string()).chain(path).collect::<Vec<_>>()
        });
        let file = |path: Vec<String>| {
            (1..=path.len())
                .rev()
                .map(|parts| path[..parts].join("/"))
                .find(|place| files.contains_key(place))
        };
        paths.filter_map(file).filter(|other| other != name).collect()
    };
    files.iter().map(|(name, text)| (name.clone(), imported(name, text))).collect()
}

/// The paths in a text that begin with `crate` or `super`: the number of `super` (`None` for `crate`), and the parts after it.
fn paths(code: &str) -> Vec<(Option<usize>, Vec<String>)> {
    let mut found = vec![];
    for (at, beginning) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let before = &code[..at];
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') || before.ends_with("super::") {
            continue;
        }
        let mut rest = &code[at + beginning.len()..];
        let mut above = (beginning == "super::").then_some(1);
        while let (Some(count), Some(further)) = (above.as_mut(), rest.strip_prefix("super::")) {
            *count += 1;
            rest = further;
        }
        let mut parts = vec![];
        tree(&mut rest, &mut vec![], &mut parts);
        found.extend(parts.into_iter().map(|path| (above, path)));
    }
    found
}

/// Takes one path, or a group of paths in braces, from the beginning of `rest`.
fn tree(rest: &mut &str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    *rest = rest.trim_start();
    if let Some(inside) = rest.strip_prefix('{') {
        *rest = inside;
        while !rest.is_empty() && !rest.starts_with('}') {
            tree(rest, before, found);
            *rest = rest.trim_start().trim_start_matches(',').trim_start();
        }
        *rest = rest.strip_prefix('}').unwrap_or(rest);
        return;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    before.push(name.to_owned());
    *rest = after;
    match after.strip_prefix("::") {
        Some(further) => {
            *rest = further;
            tree(rest, before, found);
        }
        None => {
            found.push(before.clone());
            // The text up to the next comma or brace names no file: `as` and its name, a `*`, arguments.
            let end = rest.find([',', '}', ';', '\n']).unwrap_or(rest.len());
            *rest = &rest[end..];
        }
    }
    before.pop();
}

/// The files of each circle.
fn circles_in(imports: &Imports) -> Vec<Vec<String>> {
    let within = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
    let reached = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = next.pop() {
            let further = imports.get(&file).into_iter().flatten();
            for other in further.filter(|other| !within(other, &file) && !within(&file, other)) {
                if seen.insert(other.clone()) {
                    next.push(other.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|file| (file, reached(file))).collect();
    let mut circles = BTreeSet::new();
    for (file, others) in &reached {
        if others.contains(*file) {
            let back = |other: &&String| reached.get(other).is_some_and(|others| others.contains(*file));
            circles.insert(others.iter().filter(back).cloned().collect::<Vec<_>>());
        }
    }
    circles.into_iter().collect()
}
