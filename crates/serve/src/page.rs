//! The page of the list. Its script asks for the rows.

use crate::secret::Secret;
use std::path::Path;
use weir_report::html::{Page, escape};

/// The scripts and styles of the page that reports do not have.
pub(crate) const ASSETS: [(&str, &str); 2] =
    [("list.js", include_str!("../assets/list.js")), ("list.css", include_str!("../assets/list.css"))];

/// The page of the results below a folder. `nonce` stands in the policy that lets its inline script run.
pub(crate) fn page(folder: &Path, nonce: &str, of_reports: &Secret, writes: bool) -> String {
    let name = folder.display().to_string();
    let body = include_str!("../assets/list.html");
    Page {
        title: format!("{name} · weir"),
        eyebrow: format!("<span class=\"chip\">{}</span>", escape(&name)),
        sentence: format!("Results in {name}"),
        body: format!(
            "<link rel=\"stylesheet\" href=\"assets/list.css\">\n\
             <div id=\"list\" data-reports=\"../{of_reports}/\" data-writes=\"{writes}\">\n{body}</div>\n"
        ),
        scripts: vec!["report/assets/weir.js".into(), "assets/list.js".into()],
        ..Page::default()
    }
    .render_with_nonce(nonce)
}
