//! What every request must have: a `Host` of this server, which no foreign page that has made its name lead here can send, and the secret
//! of what it asks for as the first part of its path.
//!
//! Reports may come from somebody else, and hold scripts. They have a secret of their own, with which nothing can be written, and their
//! browser gives them an origin of their own (`Content-Security-Policy: sandbox`), so that they read neither the list nor each other.

use crate::refusal::Refusal;
use crate::site::Site;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Beginnings of the paths, after the secret, of reports and comparisons.
const REPORTS: [&str; 2] = ["files/", "compared/"];
/// What a report may do: run its own scripts and save what they draw. It may load nothing from elsewhere.
const OF_REPORTS: &str = "sandbox allow-scripts allow-downloads allow-popups; default-src 'self' data: blob: 'unsafe-inline'; \
                          connect-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

/// Refuses a request that has not what it must have, and adds to the answer what a browser is to know.
pub(crate) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let is_report = match check(&site, request.method(), request.uri(), request.headers()) {
        Ok(is_report) => is_report,
        Err(refusal) => return refusal.into_response(),
    };
    let mut response = next.run(request).await;
    let policy = if is_report { HeaderValue::from_static(OF_REPORTS) } else { site.policy.clone() };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Whether a request asks for a report. It has what it must have.
fn check(site: &Site, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<bool, Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else {
        return Err(Refusal::forbidden("a request without one `Host`"));
    };
    let ours = |name: &str| site.hosts.iter().any(|host| host == name);
    if !ours(host) || uri.authority().is_some_and(|authority| !ours(authority.as_str())) {
        return Err(Refusal::forbidden("a `Host` that is not this server's"));
    }
    let path = uri.path().strip_prefix('/').unwrap_or_default();
    let (secret, rest) = path.split_once('/').unwrap_or((path, ""));
    let is_report = REPORTS.iter().any(|beginning| rest.starts_with(beginning));
    if !(if is_report { &site.of_reports } else { &site.of_list }).is(secret) {
        return Err(Refusal::forbidden("a wrong token; `weir serve` printed the address with the right one"));
    }
    // A browser says from which page a request comes that may change something.
    let origin = headers
        .get(ORIGIN)
        .map(|origin| origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")));
    if method == Method::POST && origin.is_some_and(|origin| origin != Some(host)) {
        return Err(Refusal::forbidden("a request from another page"));
    }
    Ok(is_report)
}
