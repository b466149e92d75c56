//! What all requests share.

use crate::compared::{Compare, Comparisons};
use crate::files::Files;
use crate::list::List;
use crate::secret::Secret;
use axum::http::HeaderValue;
use std::io;
use std::path::Path;

/// What all requests share.
pub(crate) struct Site {
    /// Whether pins and notes may be written.
    pub(crate) writes: bool,
    /// The values of `Host` by which a browser reaches this server.
    pub(crate) hosts: [String; 2],
    /// The secret of the list and of all that it asks for.
    pub(crate) of_list: Secret,
    /// The secret of reports and comparisons.
    pub(crate) of_reports: Secret,
    /// What the page of the list may do: load its own scripts and styles and no others (a value of `Content-Security-Policy`).
    pub(crate) policy: HeaderValue,
    /// The page of the list.
    pub(crate) page: String,
    /// The results.
    pub(crate) list: List,
    /// The files below the folder.
    pub(crate) files: Files,
    /// The comparisons that were asked for.
    pub(crate) comparisons: Comparisons,
}

impl Site {
    /// What requests to this port share.
    ///
    /// # Errors
    /// The folder cannot be opened, or the system gives no random bytes.
    pub(crate) fn new(folder: &Path, port: u16, writes: bool, compare: Box<Compare>) -> io::Result<Site> {
        let of_reports = Secret::new()?;
        let nonce = Secret::new()?.to_string();
        let policy = format!(
            "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src data:; connect-src 'self'; \
             form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
        );
        Ok(Site {
            writes,
            hosts: ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}")),
            of_list: Secret::new()?,
            policy: HeaderValue::try_from(policy).map_err(io::Error::other)?,
            page: crate::page::page(folder, &nonce, &of_reports, writes),
            of_reports,
            list: List::new(folder),
            files: Files::below(folder)?,
            comparisons: Comparisons::new(compare),
        })
    }
}
