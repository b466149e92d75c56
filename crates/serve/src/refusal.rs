//! Why a request is refused, as the answer says it.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::fmt::Display;

/// A refusal: a status and the reason as plain text.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    /// What is asked for is not given: `what` names it.
    pub(crate) fn forbidden(what: impl Display) -> Refusal {
        Refusal { status: StatusCode::FORBIDDEN, why: format!("refused: {what}") }
    }
    /// There is no such file.
    pub(crate) fn missing() -> Refusal {
        Refusal { status: StatusCode::NOT_FOUND, why: "there is no such file here".into() }
    }
    /// The request asks for what cannot be done, for this reason.
    pub(crate) fn bad_request(why: impl Display) -> Refusal {
        Refusal { status: StatusCode::BAD_REQUEST, why: why.to_string() }
    }
    /// The server could not do it, for this reason.
    pub(crate) fn failed(why: impl Display) -> Refusal {
        Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, why: why.to_string() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, self.why + "\n").into_response()
    }
}
