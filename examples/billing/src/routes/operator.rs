//! For the people who run billing. Behind a login of your own, if it is not on localhost.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use crate::answer;
use crate::database::Database;
use crate::failure::Failure;
use crate::receiver::Receiver;

pub(super) async fn ledger<D: Database>(State(receiver): State<Receiver<D>>) -> Response {
    read(receiver.database().entries().await)
}

pub(super) async fn dead_letters<D: Database>(State(receiver): State<Receiver<D>>) -> Response {
    read(receiver.database().dead_letters().await)
}

pub(super) async fn replay<D: Database>(State(receiver): State<Receiver<D>>) -> Response {
    read(receiver.replay().await)
}

/// 200 when a delivery could be claimed now.
pub(super) async fn health<D: Database>(State(receiver): State<Receiver<D>>) -> Response {
    match receiver.database().check().await {
        Ok(()) => Json(json!({ "status": "ok" })).into_response(),
        Err(error) => {
            tracing::warn!(%error, "unhealthy");
            answer::refused(StatusCode::SERVICE_UNAVAILABLE, &error.kind().to_string())
        }
    }
}

fn read<T: Serialize>(rows: Result<T, Failure>) -> Response {
    match rows {
        Ok(rows) => Json(rows).into_response(),
        Err(failure) => answer::unreadable(&failure),
    }
}
