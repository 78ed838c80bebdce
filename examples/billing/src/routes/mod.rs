//! From requests to deliveries.

mod dead_letters;
mod github;
mod invoices;
mod ledger;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};

use crate::answer;
use crate::database::Database;
use crate::delivery::{Delivery, NoDelivery};
use crate::receiver::Receiver;

/// Larger bodies are answered with 413.
pub const BODY_LIMIT: usize = 5 * 1024 * 1024;

/// All routes.
pub fn router<D: Database>(receiver: Receiver<D>) -> Router {
    Router::new()
        .route("/webhooks/invoices", post(invoices::receive::<D>))
        .route("/webhooks/github", post(github::receive::<D>))
        .route("/ledger", get(ledger::show::<D>))
        .route("/dead-letters", get(dead_letters::show::<D>))
        .route("/dead-letters/replay", post(dead_letters::replay::<D>))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(receiver)
}

/// Handles what is a delivery, and refuses what is none: no redelivery could help.
async fn receive<D: Database>(
    receiver: &Receiver<D>,
    delivery: Result<Delivery, NoDelivery>,
) -> Response {
    match delivery {
        Ok(delivery) => receiver.receive(&delivery).await,
        Err(refused) => answer::text(StatusCode::BAD_REQUEST, "error", &refused.to_string()),
    }
}
