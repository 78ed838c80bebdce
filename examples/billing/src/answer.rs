//! What the provider gets.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use onceonly::{HandleError, Outcome, StoreError, StoreErrorKind};
use serde_json::json;

use crate::database::Failure;

/// Seconds after which a provider may come back.
const RETRY_AFTER: &str = "1";

/// The answer to a delivery: 200 only for what is processed and committed, now or before.
pub fn of(handled: Result<Outcome<()>, HandleError<Failure>>) -> Response {
    match handled {
        Ok(Outcome::Processed(())) => text(StatusCode::OK, "result", "processed"),
        Ok(Outcome::Duplicate(_)) => text(StatusCode::OK, "result", "duplicate"),
        Err(HandleError::Apply(failure)) => {
            tracing::warn!(%failure, "apply failed");
            text(StatusCode::INTERNAL_SERVER_ERROR, "error", "apply failed")
        }
        Err(HandleError::Store(error)) => of_store(&error),
        Err(error) => {
            tracing::error!(%error, "unknown failure");
            text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "error",
                "unknown failure",
            )
        }
    }
}

/// The answer when the store failed. The details are for the log, not for the provider.
#[must_use]
pub fn of_store(error: &StoreError) -> Response {
    tracing::warn!(%error, source = ?std::error::Error::source(error), "store failed");
    let kind = error.kind();
    if kind == StoreErrorKind::InvalidKey {
        text(StatusCode::BAD_REQUEST, "error", &kind.to_string())
    } else if error.is_retryable() {
        let answer = text(StatusCode::SERVICE_UNAVAILABLE, "error", &kind.to_string());
        ([(header::RETRY_AFTER, RETRY_AFTER)], answer).into_response()
    } else {
        text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "error",
            &kind.to_string(),
        )
    }
}

/// A small JSON answer.
pub fn text(status: StatusCode, name: &str, value: &str) -> Response {
    (status, Json(json!({ name: value }))).into_response()
}
