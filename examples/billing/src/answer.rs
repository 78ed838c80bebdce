//! What the provider gets: 200 only for what is processed and committed, now or before.

use std::error::Error;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use onceonly::{HandleError, Outcome, StoreErrorKind};
use serde_json::json;

use crate::failure::Failure;
use crate::receiver::Handled;

/// Seconds after which a provider may come back.
const RETRY_AFTER: &str = "1";

/// The answer to a delivery. Details are for the log, not for the provider.
#[must_use]
pub fn of(handled: &Handled) -> Response {
    let error = match handled {
        Ok(Outcome::Processed(())) => return text(StatusCode::OK, "result", "processed"),
        Ok(Outcome::Duplicate(_)) => return text(StatusCode::OK, "result", "duplicate"),
        Err(error) => error,
    };
    let (status, reason) = match error {
        HandleError::Store(error) => (status(error.kind()), error.kind().to_string()),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "apply failed".to_owned()),
    };
    tracing::warn!(
        status = status.as_u16(),
        error = chain(error),
        "not processed"
    );
    refused(status, &reason)
}

/// The answer when the ledger or the letters could not be read.
#[must_use]
pub fn unreadable(failure: &Failure) -> Response {
    tracing::warn!(error = chain(failure), "not read");
    refused(StatusCode::SERVICE_UNAVAILABLE, "database unavailable")
}

/// An answer other than 200, with `Retry-After` where it is 503.
#[must_use]
pub fn refused(status: StatusCode, reason: &str) -> Response {
    let answer = text(status, "error", reason);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return ([(header::RETRY_AFTER, RETRY_AFTER)], answer).into_response();
    }
    answer
}

/// In flight is 503 and never 409 or 200: the first delivery may still roll back, and providers take
/// a 4xx as "never again".
const fn status(kind: StoreErrorKind) -> StatusCode {
    if matches!(kind, StoreErrorKind::InvalidKey) {
        StatusCode::BAD_REQUEST
    } else if kind.is_retryable() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    }
}

fn text(status: StatusCode, name: &str, value: &str) -> Response {
    (status, Json(json!({ name: value }))).into_response()
}

/// The error and what caused it, without saying anything twice.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
