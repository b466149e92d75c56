//! Which build of weir this is: runs of different builds are never mixed in one result folder.
//!
//! On request the linker writes a hash of all that it links into the program, the build ID (a `NT_GNU_BUILD_ID` note, elf(5)).
//! Reading it takes microseconds, while the program has megabytes. A program without a build ID is hashed itself.

use serde_json::Value;
use std::fs::File;
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use twox_hash::XxHash64;
use weir_base::{Hex, Prototype};

/// Bytes that are read at once: the program with its line tables has tens of megabytes, and their pages cost more than their
/// hash.
const PIECE: usize = 1 << 17;

/// The build of a program or a library: the version of weir, and the file's build ID or hash.
pub fn build_of(file: &Path) -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), identity(file).unwrap_or_else(|_| "0".into()))
}

/// The build of a program with members that it has added: `0.1.0 3fa9.. with controller mine 1a2b..`. It differs if the source of one of
/// them does.
pub(crate) fn with_prototypes(build: &str, prototypes: &[Arc<Prototype>]) -> String {
    let one = |prototype: &Arc<Prototype>| {
        let Prototype { what, name, source, parameters, properties, .. } = &**prototype;
        let mut hasher = XxHash64::with_seed(0);
        // The length keeps the parts apart.
        hasher.write(&(source.len() as u64).to_le_bytes());
        hasher.write(source.as_bytes());
        hasher.write(
            Value::Array(vec![parameters.clone().into(), properties.clone().into()]).to_string().as_bytes(),
        );
        format!("{what} {name} {:016x}", hasher.finish())
    };
    match prototypes {
        [] => build.into(),
        all => format!("{build} with {}", all.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

fn identity(file: &Path) -> std::io::Result<String> {
    let mut program = File::open(file)?;
    if let Some(id) = build_id(&mut program) {
        return Ok(id);
    }
    program.seek(SeekFrom::Start(0))?;
    hash(&mut program).map(|hash| format!("{hash:016x}"))
}

fn hash(program: &mut impl Read) -> std::io::Result<u64> {
    let mut hasher = XxHash64::with_seed(0);
    let mut piece = vec![0; PIECE];
    loop {
        match program.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(&piece[..length]),
        }
    }
}

/// Largest segment of notes that is looked at; a few hundred bytes are usual.
const MOST_NOTES: u64 = 1 << 16;
/// Program header type of notes (`PT_NOTE`).
const NOTES: u32 = 4;
/// Note type of the build ID (`NT_GNU_BUILD_ID`), under the name `GNU`.
const BUILD_ID: u32 = 3;

/// The build ID of a 64-bit little-endian ELF program in hexadecimal, if it has one.
fn build_id(program: &mut (impl Read + Seek)) -> Option<String> {
    let header = read_at(program, 0, 64)?;
    if header.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count) = (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?);
    for number in 0..u64::from(count) {
        let at = table.checked_add(number * u64::from(size))?;
        let entry = read_at(program, at, 56)?;
        let (offset, length) = (u64_at(&entry, 8)?, u64_at(&entry, 32)?);
        if u32_at(&entry, 0)? == NOTES
            && length <= MOST_NOTES
            && let Some(id) = read_at(program, offset, length as usize).as_deref().and_then(id_in_notes)
        {
            return Some(id);
        }
    }
    None
}

/// Notes follow each other: three words (length of name, length of content, type), then both, each filled up to four bytes.
fn id_in_notes(mut notes: &[u8]) -> Option<String> {
    loop {
        let (name, content) = (u32_at(notes, 0)? as usize, u32_at(notes, 4)? as usize);
        let start = 12 + name.checked_next_multiple_of(4)?;
        let end = start.checked_add(content)?;
        if u32_at(notes, 8)? == BUILD_ID && notes.get(12..12 + name)? == b"GNU\0" && content > 0 {
            return Some(Hex(notes.get(start..end)?).to_string());
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

fn read_at(program: &mut (impl Read + Seek), at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    program.seek(SeekFrom::Start(at)).ok()?;
    program.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
}
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A program of a header, one program header and these notes.
    fn program_with(notes: &[u8]) -> Cursor<Vec<u8>> {
        let mut program = vec![0; 64 + 56];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[32] = 64;
        program[54] = 56;
        program[56] = 1;
        program[64] = NOTES as u8;
        program[64 + 8] = 120;
        program[64 + 32..64 + 40].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        program.extend_from_slice(notes);
        Cursor::new(program)
    }
    fn note(kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = [4, content.len() as u32, kind].map(u32::to_le_bytes).concat();
        note.extend_from_slice(b"GNU\0");
        note.extend_from_slice(content);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let notes = [note(1, b"\x01\x02\x03"), note(BUILD_ID, b"\xab\x00\x7f")].concat();
        assert_eq!(build_id(&mut program_with(&notes)).as_deref(), Some("ab007f"));
    }

    #[test]
    fn programs_without_a_build_id_and_other_files_have_none() {
        for notes in [note(1, b"\x01"), vec![], vec![0xff; 40]] {
            assert_eq!(build_id(&mut program_with(&notes)), None);
        }
        let whole = program_with(&note(BUILD_ID, b"\x01\x02\x03\x04")).into_inner();
        for length in 0..whole.len() {
            assert_eq!(build_id(&mut Cursor::new(&whole[..length])), None, "cut at {length}");
        }
    }
}
