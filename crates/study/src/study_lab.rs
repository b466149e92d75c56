//! The places of studies: a study is a folder with a `profile.toml`, which fixes every choice that its sources leave open. Its
//! labs extend that profile; a lab that does not is refused.

use std::fs;
use std::path::{Path, PathBuf};
use weir_plan::Lab;

/// A study's profile.
pub const PROFILE: &str = "profile.toml";

/// An error: a study, lab or profile is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is missing.
    pub message: String,
    /// What exists instead, or what to write.
    pub help: String,
}

impl Missing {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Missing {
        Missing { message: message.into(), help: help.into() }
    }
}

/// A lab of a study.
pub struct StudyLab {
    /// The study: the name of its folder.
    pub study: String,
    /// That folder.
    pub folder: PathBuf,
    /// The lab's file.
    pub file: PathBuf,
}

/// The labs of `STUDY`, of `STUDY/LAB`, or of all studies.
///
/// # Errors
/// There is no such study or lab; the error lists those that exist.
pub fn find(what: Option<&str>, root: &Path) -> Result<Vec<StudyLab>, Missing> {
    let (study, lab) = match what.map(|what| what.trim_end_matches('/').split_once('/').unwrap_or((what, "")))
    {
        None => (None, ""),
        Some((study, lab)) => (Some(study.trim_end_matches('/')), lab.trim_end_matches(".toml")),
    };
    let studies: Vec<PathBuf> = below(root).into_iter().filter(|path| path.join(PROFILE).is_file()).collect();
    let names = || studies.iter().map(|path| name(path)).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&PathBuf> =
        studies.iter().filter(|path| study.is_none_or(|study| name(path) == study)).collect();
    if chosen.is_empty() {
        let there = if studies.is_empty() {
            format!("a study is a folder in {} with a {PROFILE}; --labs names another folder", root.display())
        } else {
            format!("the studies in {} are {}", root.display(), names())
        };
        let message = match study {
            Some(study) => format!("there is no study `{study}`"),
            None => format!("there are no studies in {}", root.display()),
        };
        return Err(Missing::new(message, there));
    }
    let mut found = vec![];
    for folder in chosen {
        let labs = below(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml"));
        for file in labs.filter(|path| !path.ends_with(PROFILE)) {
            found.push(StudyLab { study: name(folder), folder: folder.clone(), file });
        }
    }
    let labs: Vec<String> = found.iter().map(|place| stem(&place.file)).collect();
    found.retain(|place| lab.is_empty() || stem(&place.file) == lab);
    if found.is_empty() {
        let message = format!("the study has no lab {}", if lab.is_empty() { "at all" } else { lab });
        return Err(Missing::new(message, format!("its labs are {}", labs.join(", "))));
    }
    Ok(found)
}

/// The entries of a folder, sorted by name.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Checks that a lab extends its study's profile: only then is it judged.
///
/// # Errors
/// The lab does not extend the profile.
pub fn require_profile(place: &StudyLab, lab: &Lab) -> Result<(), Missing> {
    let profile = place.folder.join(PROFILE);
    let canonical = profile.canonicalize().unwrap_or_else(|_| profile.clone());
    if lab.files().contains(&canonical) {
        return Ok(());
    }
    Err(Missing::new(
        format!("{} does not extend its study's profile", place.file.display()),
        format!("write extends = \"{PROFILE}\": it sets, once for all labs, what the study does not specify"),
    ))
}
