//! The browser of all tests and measurements that read pages: finds Chromium and starts it without a window.
#![allow(dead_code, reason = "each of those who include it uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Path of Chromium; `None` if it is not installed.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// Path of Chromium for a test. `None` after a note that the test is skipped; `WEIR_REQUIRE_CHROMIUM=1` makes that a failure.
pub(crate) fn for_a_test() -> Option<PathBuf> {
    let found = find();
    if found.is_none() {
        let required = std::env::var("WEIR_REQUIRE_CHROMIUM").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "WEIR_REQUIRE_CHROMIUM=1, and no chromium on the path (Debian: apt-get install chromium)"
        );
        eprintln!("skipped: no chromium on the path (Debian: apt-get install chromium)");
    }
    found
}

/// Arguments with which Chromium has no window and asks no server for anything.
pub(crate) const QUIET: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
];

/// A command that opens `address` in a window of `size` (`1280,1000`) with a profile of its own, and writes the final state
/// of the page to stdout. Its console is on stderr.
pub(crate) fn command(browser: &Path, profile: &Path, size: &str, address: &str) -> Command {
    let mut command = Command::new(browser);
    command
        .args(QUIET)
        .arg("--dump-dom")
        .arg(format!("--window-size={size}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(address)
        .stdin(Stdio::null());
    command
}

/// The same command with a virtual clock, which runs for this many milliseconds, or until the page is idle. A page that is
/// never idle is given up.
pub(crate) fn at_rest(browser: &Path, profile: &Path, size: &str, address: &str, millis: u32) -> Command {
    let mut command = command(browser, profile, size, address);
    command.args([&format!("--virtual-time-budget={millis}"), "--timeout=60000"]);
    command
}
