//! A folder with a lab in it, and weir to run there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Four runs of four seconds, which take a tenth of a second.
pub(crate) const LAB: &str = "format = 1
[run]
duration = '4 s'
warmup = '1 s'
repeats = 2
[dumbbell]
rate = '10 Mbit/s'
rtt = '20 ms'
[traffic.a]
cc = 'cubic'
[traffic.b]
cc = 'newreno'
ecn = true
[vary]
'dumbbell.queue' = ['tail-drop', 'pie']
";

pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::write(place.path("lab.toml"), LAB).unwrap();
        place
    }
    /// Runs weir with these arguments, which must end well. Returns its output.
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.weir(args);
        assert_eq!(status(&output), 0, "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }
    pub(crate) fn weir(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every file below a folder with its bytes.
pub(crate) fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = vec![];
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}
