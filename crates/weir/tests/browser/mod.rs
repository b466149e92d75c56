//! Headless Chromium, for tests that read pages.
#![allow(clippy::unwrap_used, reason = "what is not as expected fails the test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The browser. `None` after saying why the test is skipped, which `WEIR_REQUIRE_CHROMIUM=1` makes a failure.
pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut files = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let found = files.find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var("WEIR_REQUIRE_CHROMIUM").is_ok_and(|value| value == "1");
        assert!(!required, "WEIR_REQUIRE_CHROMIUM=1, and no chromium on the path");
        eprintln!("skipped: no chromium on the path (Debian: apt-get install chromium)");
    }
    found
}

/// Opens a page in a window of this size ("1280,1000"), with `part` after its address, for so many milliseconds of virtual time. Gives
/// what stands in its element `found` then.
pub(crate) fn found(browser: &Path, page: &Path, part: &str, window: &str, millis: u32) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args([format!("--window-size={window}"), format!("--virtual-time-budget={millis}")])
        .args(["--timeout=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}{part}", page.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let (_, rest) = dom.split_once("<pre id=\"found\">").unwrap();
    rest.split_once("</pre>").unwrap().0.to_owned()
}
