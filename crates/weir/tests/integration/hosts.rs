//! Two hosts that know each other's key, and weir to send from the one to the other over loopback.

use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Length of a file's blocks in bytes.
pub(crate) const BLOCK: usize = 4 << 20;

/// A folder to send from, one to receive in, and the keys of both hosts.
pub(crate) struct Place {
    /// The command whose subcommands send and serve.
    pub(crate) command: &'static str,
    /// Further arguments of every sender.
    told: &'static [&'static str],
    pub(crate) folder: tempfile::TempDir,
    pub(crate) sender: String,
    pub(crate) receiver: String,
}

/// A receiver, which ends with the test.
pub(crate) struct Serving {
    process: Child,
    pub(crate) at: String,
}

impl Serving {
    pub(crate) fn signal(&self, signal: Signal) {
        send_signal(&self.process, signal);
    }

    /// Asks it to end. Returns its exit status.
    pub(crate) fn stopped(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.process.wait().unwrap().code()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

pub(crate) fn send_signal(process: &Child, signal: Signal) {
    rustix::process::kill_process(Pid::from_child(process), signal).unwrap();
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

pub(crate) fn weir(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes in which no two blocks are alike.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// The address at which a receiver says that it listens.
pub(crate) fn address(line: &str) -> String {
    line.split(' ').nth(2).unwrap().trim_end_matches(',').to_owned()
}

/// Starts a receiver. Returns the first line of its output too.
pub(crate) fn serving(mut command: Command) -> (Serving, String) {
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Serving { process, at: address(&line) }, line)
}

impl Place {
    /// Two hosts that use this command; `told` are further arguments of the senders.
    pub(crate) fn of(command: &'static str, told: &'static [&'static str]) -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        let key = |name: &str| {
            let made =
                weir(&[command, "keygen", folder.path().join(name).to_str().unwrap()]).output().unwrap();
            assert!(made.status.success(), "{}", text(&made.stderr));
            text(&made.stdout).trim().to_owned()
        };
        let (sender, receiver) = (key("sender.key"), key("receiver.key"));
        Place { command, told, sender, receiver, folder }
    }

    /// The same two hosts in exchanged roles, with other folders.
    pub(crate) fn reversed(&self) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let (sender, receiver) = (self.receiver.clone(), self.sender.clone());
        let back = Place { folder, sender, receiver, ..*self };
        fs::create_dir(back.path("in")).unwrap();
        fs::copy(self.path("sender.key"), back.path("receiver.key")).unwrap();
        fs::copy(self.path("receiver.key"), back.path("sender.key")).unwrap();
        back
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        fs::write(self.path(name), contents).unwrap();
        self.path(name)
    }

    pub(crate) fn serve_command(&self, more: &[&str]) -> Command {
        let key = self.path("receiver.key");
        let arguments = [self.command, "serve", "--key", key.to_str().unwrap(), "--allow", &self.sender];
        weir(&[&arguments[..], &["--listen", "127.0.0.1:0"], more].concat())
    }

    pub(crate) fn serve(&self, more: &[&str]) -> Serving {
        let into = self.path("in");
        let (serving, line) =
            serving(self.serve_command(&[&["--into", into.to_str().unwrap()], more].concat()));
        assert!(line.contains(&self.receiver), "{line}");
        serving
    }

    pub(crate) fn send_command(&self, files: &[&Path], to: &str, more: &[&str]) -> Command {
        let mut command = weir(&[self.command, "send"]);
        command.args(files).arg(to).arg("--key").arg(self.path("sender.key"));
        command.args(["--peer", &self.receiver]).args(self.told).args(more);
        command
    }

    pub(crate) fn send(&self, files: &[&Path], to: &str, more: &[&str]) -> Output {
        self.send_command(files, to, more).output().unwrap()
    }

    /// Sends files, which must arrive. Returns the final report.
    pub(crate) fn sent(&self, files: &[&Path], to: &str, more: &[&str]) -> Value {
        let output = self.send(files, to, &[more, &["--json"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let all = text(&output.stdout);
        // Before it there may be a line for each second.
        serde_json::from_str(all.lines().last().unwrap()).unwrap_or_else(|error| panic!("{error}: {all}"))
    }

    /// Sends files until the receiver lets them go on: it may not have noticed yet that an earlier sender is gone.
    pub(crate) fn resumed(&self, files: &[&Path], to: &str) -> Value {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            let output = self.send(files, to, &["--json"]);
            if output.status.success() {
                return serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap();
            }
            let why = text(&output.stderr);
            assert!(why.contains("is being received in another session"), "{why}");
        }
        panic!("the receiver does not let the files go on");
    }

    /// Sends files that are refused as bad input. Returns the explanation.
    pub(crate) fn refusal(&self, files: &[&Path], to: &str, more: &[&str]) -> String {
        let output = self.send(files, to, more);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    }

    pub(crate) fn received(&self) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.path("in")).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = entries
            .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
            .collect();
        all.sort();
        all
    }
}
