//! Whatever a run's folder holds, reading its records gives records or an error. The first byte chooses a file, and the other
//! bytes are its contents; the other files are those of a sound run. The list of the tables gets the length and checksum of
//! the chosen file: otherwise the reader would refuse every file but the list.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use weir_base::{Span, Time};
use weir_record::{FlowSample, LinkSample, ParquetRecorder, Recorder, Records};

/// The list of a run's tables.
const LIST: &str = "records.json";

/// A sound run, written once: the name and contents of each of its files.
fn sound() -> &'static [(String, Vec<u8>)] {
    static SOUND: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let folder = TempDir::new().expect("a temporary folder");
        let mut recorder = ParquetRecorder::create(folder.path()).expect("a recorder");
        for period in 1..=3 {
            let at = Time::ZERO + Span::from_millis(100 * period);
            recorder.link(&LinkSample { at, ..LinkSample::default() });
            recorder.flow(&FlowSample { at, ..FlowSample::default() });
        }
        recorder.finish().expect("records");
        let mut files: Vec<PathBuf> =
            folder.path().read_dir().expect("a folder").flatten().map(|entry| entry.path()).collect();
        files.sort();
        let name = |file: &Path| file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        files.iter().map(|file| (name(file), std::fs::read(file).expect("a file"))).collect()
    })
}

/// The list, with length and checksum of these bytes of a table.
fn listed(list: &[u8], table: &str, bytes: &[u8]) -> Vec<u8> {
    let mut list: Value = serde_json::from_slice(list).expect("a sound list");
    let entry = &mut list["tables"][table.trim_end_matches(".parquet")];
    entry["bytes"] = bytes.len().into();
    entry["xxh64"] = format!("{:016x}", twox_hash::XxHash64::oneshot(0, bytes)).into();
    serde_json::to_vec(&list).expect("a list")
}

/// Reads a run in which `data` replaces one file.
pub(crate) fn check(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    let files = sound();
    let (hit, _) = &files[usize::from(*which) % files.len()];
    let folder = TempDir::new().expect("a temporary folder");
    for (name, sound) in files {
        let content = match name.as_str() {
            name if name == hit => bytes.to_vec(),
            LIST => listed(sound, hit, bytes),
            _ => sound.clone(),
        };
        std::fs::write(folder.path().join(name), content).expect("a file");
    }
    let _ = Records::read(folder.path());
}
