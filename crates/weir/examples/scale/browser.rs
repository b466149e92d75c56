//! How long a browser takes to open a page.

#[path = "../../../report/tests/integration/chromium.rs"]
mod chromium;

use std::path::Path;

/// Number of openings.
const TIMES: usize = 5;

/// Seconds from the beginning of a page's opening until all its scripts have run and it answers, the median of several; `None`
/// without a browser.
///
/// # Errors
/// The browser failed, or the page did not get so far.
pub(crate) fn opened(page: &Path) -> Result<Option<f64>, String> {
    let Some(browser) = chromium::find() else { return Ok(None) };
    let text = |error: std::io::Error| error.to_string();
    let html = std::fs::read_to_string(page).map_err(text)?;
    // A copy of the page writes down when its load event came: by then every script of it has run.
    let script = "<script>addEventListener('load', () => document.body.insertAdjacentHTML('beforeend', \
                  `<p id=\"opened\">${performance.now()}</p>`))</script></body>";
    let copy = page.with_file_name("opened.html");
    std::fs::write(&copy, html.replacen("</body>", script, 1)).map_err(text)?;
    let once = || -> Result<f64, String> {
        let profile = tempfile::tempdir().map_err(text)?;
        let address = format!("file://{}", copy.canonicalize().map_err(text)?.display());
        let output =
            chromium::command(&browser, profile.path(), "1280,1000", &address).output().map_err(text)?;
        let dom = String::from_utf8_lossy(&output.stdout);
        // The last match counts, since the script itself stands in the page too.
        let millis = dom.rsplit("<p id=\"opened\">").next().and_then(|rest| rest.split('<').next());
        let millis: Option<f64> = millis.and_then(|millis| millis.parse().ok());
        Ok(millis.ok_or("the page did not open")? / 1e3)
    };
    let mut times: Vec<f64> = (0..TIMES).map(|_| once()).collect::<Result<_, _>>()?;
    std::fs::remove_file(&copy).map_err(text)?;
    times.sort_by(f64::total_cmp);
    Ok(Some(times[TIMES / 2]))
}
