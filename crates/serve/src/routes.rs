//! The requests and their answers, after the guard. What reads or writes files runs on threads of its own.

use crate::files::{Found, send};
use crate::guard::guard;
use crate::page::ASSETS;
use crate::query::Query as Wanted;
use crate::refusal::Refusal;
use crate::row::{Row, State as Standing};
use crate::site::Site;
use axum::body::Body;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{Response, StatusCode, Uri};
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use weir_engine::notes::{LONGEST_NOTE, Note, NoteError, add_note, notes, remove_note};
use weir_engine::pins::set_pinned;

/// Most bytes of a request's body: a note whose letters are all escaped, and the path of its result.
const MOST_BYTES: usize = 6 * LONGEST_NOTE + 16_384;

type Answer<T> = Result<T, Refusal>;
type Shared = State<Arc<Site>>;

/// All requests and their answers.
pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/{secret}/", get(page))
        .route("/{secret}/index.html", get(page))
        .route("/{secret}/results", get(results))
        .route("/{secret}/compare", get(compare))
        .route("/{secret}/notes", post(change_notes))
        .route("/{secret}/pins", post(change_pin))
        .route("/{secret}/assets/{name}", get(own_asset))
        .route("/{secret}/report/assets/{name}", get(report_asset))
        .route("/{secret}/files/{*path}", get(file))
        .route("/{secret}/compared/{number}/{*path}", get(compared))
        .fallback(async || Refusal::missing())
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), guard))
        .with_state(site)
}

/// Runs what waits for files on a thread of its own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Answer<T> + Send + 'static) -> Answer<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Refusal::failed("the server failed at this; it goes on"))?
}

async fn page(State(site): Shared) -> Html<String> {
    Html(site.page.clone())
}

/// The rows that are asked for.
#[derive(Serialize)]
struct Rows<'a> {
    rows: Vec<&'a Row>,
    /// How many there are, of which `rows` may be a part.
    found: usize,
    /// How many results there are at all.
    all: usize,
    /// How many of these are being written.
    running: usize,
    /// How many of these were not looked at yet, so that their size and damage are not known.
    unchecked: usize,
}

async fn results(State(site): Shared, Query(wanted): Query<Wanted>) -> Answer<Response<Body>> {
    let text = apart(move || {
        let list = site.list.rows(wanted.fresh);
        let (rows, found) = wanted.rows(&list);
        let running = list.iter().filter(|row| row.state == Standing::Running).count();
        let unchecked = list.iter().filter(|row| row.bytes.is_none()).count();
        serde_json::to_vec(&Rows { rows, found, all: list.len(), running, unchecked })
            .map_err(Refusal::failed)
    });
    Ok(([(CONTENT_TYPE, "application/json")], text.await?).into_response())
}

/// Results to compare: two, or the engines of one.
#[derive(Deserialize)]
struct Pair {
    first: String,
    second: Option<String>,
}

async fn compare(State(site): Shared, Query(pair): Query<Pair>) -> Answer<Response<Body>> {
    let address = apart(move || {
        let folders: Vec<PathBuf> = [Some(pair.first), pair.second]
            .into_iter()
            .flatten()
            .map(|path| readable(&site, &path))
            .collect::<Answer<_>>()?;
        let number = site.comparisons.make(&folders)?;
        Ok(format!("../{}/compared/{number}/index.html", site.of_reports))
    });
    Ok((StatusCode::SEE_OTHER, [(LOCATION, address.await?)]).into_response())
}

/// The folder of a result that the list can read.
fn readable(site: &Site, path: &str) -> Answer<PathBuf> {
    match site.list.result(path) {
        None => Err(Refusal::bad_request(format!("there is no result {path} in the list"))),
        Some((row, _)) if row.state == Standing::Damaged => {
            Err(Refusal::bad_request(format!("{path} cannot be read; the list says why")))
        }
        Some((_, folder)) => Ok(folder),
    }
}

/// A change of a result's notes: one is added, or one is removed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteChange {
    result: String,
    add: Option<String>,
    remove: Option<u32>,
}

async fn change_notes(
    State(site): Shared,
    change: Result<Json<NoteChange>, JsonRejection>,
) -> Answer<Json<Vec<Note>>> {
    let NoteChange { result, add, remove } = body(&site, change)?;
    let after = apart(move || {
        let folder = readable(&site, &result)?;
        match (add, remove) {
            (Some(text), None) => add_note(&folder, &text),
            (None, Some(number)) => remove_note(&folder, number),
            _ => return Err(Refusal::bad_request("say which note is added, or which one is removed")),
        }
        .map_err(refused)?;
        site.list.expire();
        notes(&folder).map_err(refused)
    });
    Ok(Json(after.await?))
}

/// A change of a result's pin.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PinChange {
    result: String,
    pinned: bool,
}

async fn change_pin(
    State(site): Shared,
    change: Result<Json<PinChange>, JsonRejection>,
) -> Answer<StatusCode> {
    let PinChange { result, pinned } = body(&site, change)?;
    apart(move || {
        set_pinned(&readable(&site, &result)?, pinned).map_err(refused)?;
        site.list.expire();
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// The body of a request that writes, if writing is permitted.
fn body<T>(site: &Site, body: Result<Json<T>, JsonRejection>) -> Answer<T> {
    if !site.writes {
        return Err(Refusal::forbidden("pins and notes are written only with `weir serve --notes`"));
    }
    match body {
        Ok(Json(body)) => Ok(body),
        Err(JsonRejection::BytesRejection(_)) => Err(Refusal::bad_request(format!(
            "the request is too long; a note may have {LONGEST_NOTE} bytes"
        ))),
        Err(rejection) => Err(Refusal::bad_request(rejection.body_text())),
    }
}

/// A note or a pin that cannot be kept: the fault of the request, or of what is on the disk.
fn refused(error: NoteError) -> Refusal {
    match error {
        NoteError::Folder(_) | NoteError::Damaged { .. } => {
            Refusal::failed(format!("{error}; nothing was changed"))
        }
        _ => Refusal::bad_request(error),
    }
}

async fn own_asset(Path((_, name)): Path<(String, String)>) -> Answer<Response<Body>> {
    asset(&name, &ASSETS)
}

async fn report_asset(Path((_, name)): Path<(String, String)>) -> Answer<Response<Body>> {
    asset(&name, &weir_report::ASSETS)
}

fn asset(name: &str, assets: &[(&str, &'static str)]) -> Answer<Response<Body>> {
    let (name, text) = assets.iter().find(|(one, _)| *one == name).ok_or_else(Refusal::missing)?;
    let kind =
        if name.ends_with(".css") { "text/css; charset=utf-8" } else { "text/javascript; charset=utf-8" };
    Ok(([(CONTENT_TYPE, kind)], *text).into_response())
}

async fn file(
    State(site): Shared,
    Path((_, path)): Path<(String, String)>,
    uri: Uri,
) -> Answer<Response<Body>> {
    let found = apart(move || site.files.find(&path)).await?;
    Ok(answer(found, &uri))
}

async fn compared(
    State(site): Shared,
    Path((_, number, path)): Path<(String, u64, String)>,
    uri: Uri,
) -> Answer<Response<Body>> {
    let found = apart(move || site.comparisons.files(number)?.find(&path)).await?;
    Ok(answer(found, &uri))
}

fn answer(found: Found, uri: &Uri) -> Response<Body> {
    match found {
        Found::File(file, length, kind) => send(file, length, kind),
        Found::Folder => (StatusCode::SEE_OTHER, [(LOCATION, format!("{}/", uri.path()))]).into_response(),
    }
}
