//! Whatever lies in a run's folder, reading its records ends with records or with an error. The first byte says which file the
//! others are; the rest of the folder is that of a sound run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use weir_base::{Span, Time};
use weir_record::{FlowSample, LinkSample, ParquetRecorder, Recorder, Records};

/// A sound run, written once, and its files.
fn sound() -> &'static (TempDir, Vec<PathBuf>) {
    static SOUND: OnceLock<(TempDir, Vec<PathBuf>)> = OnceLock::new();
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
        (folder, files)
    })
}

fn read(folder: &Path) {
    let _ = Records::read(folder);
}

fuzz_target!(|data: (u8, &[u8])| {
    let (which, bytes) = data;
    let (_, files) = sound();
    let folder = TempDir::new().expect("a temporary folder");
    let hit = usize::from(which) % files.len();
    for (number, file) in files.iter().enumerate() {
        let name = file.file_name().expect("a file has a name");
        let to = folder.path().join(name);
        if number == hit { std::fs::write(&to, bytes).map(|()| 0) } else { std::fs::copy(file, &to) }.expect("a file");
    }
    read(folder.path());
});
