//! Headless Chromium for tests that read pages.

#[path = "../../../report/tests/integration/chromium.rs"]
mod chromium;
#[path = "../../../report/tests/integration/devtools.rs"]
mod devtools;

pub(crate) use chromium::for_a_test as browser;
use std::path::Path;

/// The text that a page has written into its `<pre id="found">` after this many milliseconds of its own time; `part` stands
/// after the address.
pub(crate) fn found(browser: &Path, page: &Path, part: &str, window: &str, millis: u32) -> String {
    let dom = at_rest(browser, &format!("file://{}{part}", page.display()), window, millis);
    let rest = &dom[dom.find("<pre id=\"found\">").unwrap() + 16..];
    rest[..rest.find("</pre>").unwrap()].to_owned()
}

/// The page at this address, as a text, after this many milliseconds of its own time.
pub(crate) fn at_rest(browser: &Path, address: &str, window: &str, millis: u32) -> String {
    devtools::open(browser, address, window, millis).dom
}

/// The same in a browser of its own, which is where the caller is: in another network namespace, say.
pub(crate) fn at_rest_here(browser: &Path, address: &str, window: &str, millis: u32) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = chromium::at_rest(browser, profile.path(), window, address, millis).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
