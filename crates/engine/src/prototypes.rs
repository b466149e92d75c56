//! `prototypes.json`: what the members of registries are that a program added for the runs of a folder, with their sources. Readers learn
//! their names from it before they read the lab.

use crate::atomic_write::atomic_write;
use crate::error::{FolderError, at};
use crate::rerun::{PROTOTYPES, current};
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use weir_base::Prototype;
use weir_record::to_json;

/// Makes the members known that take part in the runs of a result folder.
pub(crate) fn know(folder: &Path) -> Result<(), FolderError> {
    let path = current(folder, PROTOTYPES);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(at(&path)(error)),
    };
    let damaged = |why: String| at(&path)(Error::other(format!("damaged: {why}")));
    let all: Vec<Prototype> = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    // A folder of another weir may have a name that is a member's of this one, which then reads its lab.
    all.into_iter().for_each(|prototype| drop(weir_plan::know(prototype)));
    Ok(())
}

/// Writes what the members are that take part in the runs of a folder.
pub(crate) fn write(folder: &Path, all: &[Arc<Prototype>]) -> Result<(), FolderError> {
    let text = to_json(&all).map_err(Error::other).map_err(at(folder))?;
    atomic_write(folder, PROTOTYPES, &text).map_err(at(folder))
}
