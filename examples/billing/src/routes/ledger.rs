//! `GET /ledger`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::answer;
use crate::database::Database;
use crate::receiver::Receiver;

pub(super) async fn show<D: Database>(State(receiver): State<Receiver<D>>) -> Response {
    match receiver.database().entries().await {
        Ok(entries) => Json(entries).into_response(),
        Err(error) => {
            tracing::warn!(%error, "ledger not read");
            answer::text(StatusCode::SERVICE_UNAVAILABLE, "error", "ledger not read")
        }
    }
}
