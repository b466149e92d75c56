//! Tells the program which commit it was built from (`weir --version`). Without Git, or outside a repository, it says so.

use std::process::Command;

fn main() {
    // Each commit and each checkout adds a line to this file (git-reflog(1)).
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])
        .map_or("commit unknown".to_owned(), |it| format!("commit {it}"));
    println!("cargo:rustc-env=WEIR_COMMIT={commit}");
}

/// The line that Git prints. `None` if it fails.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}
