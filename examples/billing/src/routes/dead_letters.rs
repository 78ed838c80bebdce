//! `GET /dead-letters` and `POST /dead-letters/replay`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::answer;
use crate::database::{Database, Failure};
use crate::receiver::Receiver;

pub(super) async fn show<D: Database>(State(receiver): State<Receiver<D>>) -> Response {
    match receiver.database().dead_letters().await {
        Ok(letters) => Json(letters).into_response(),
        Err(error) => unreadable(&error),
    }
}

pub(super) async fn replay<D: Database>(State(receiver): State<Receiver<D>>) -> Response {
    match receiver.replay().await {
        Ok((done, left)) => Json(json!({ "done": done, "left": left })).into_response(),
        Err(error) => unreadable(&error),
    }
}

fn unreadable(error: &Failure) -> Response {
    tracing::warn!(%error, "dead letters not read");
    answer::text(
        StatusCode::SERVICE_UNAVAILABLE,
        "error",
        "dead letters not read",
    )
}
