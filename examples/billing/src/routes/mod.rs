//! From requests to deliveries, one file per sender.

pub mod github;
pub mod invoices;
mod operator;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};

use crate::answer;
use crate::database::Database;
use crate::delivery::{Delivery, Headers, NoDelivery};
use crate::receiver::Receiver;

/// Larger bodies are answered with 413. GitHub sends up to 25 MB, but rarely more than 100 kB.
pub const BODY_LIMIT: usize = 5 * 1024 * 1024;

/// All routes.
pub fn router<D: Database>(receiver: Receiver<D>) -> Router {
    Router::new()
        .route("/webhooks/invoices", post(invoices::receive::<D>))
        .route("/webhooks/github", post(github::receive::<D>))
        .route("/ledger", get(operator::ledger::<D>))
        .route("/dead-letters", get(operator::dead_letters::<D>))
        .route("/dead-letters/replay", post(operator::replay::<D>))
        .route("/health", get(operator::health::<D>))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(receiver)
}

/// Handles what is a delivery, and refuses what is none.
async fn receive<D: Database>(
    receiver: &Receiver<D>,
    delivery: Result<Delivery, NoDelivery>,
) -> Response {
    match delivery {
        Ok(delivery) => answer::of(&receiver.receive(&delivery).await),
        Err(refused) => {
            tracing::warn!(%refused, "no delivery");
            answer::refused(StatusCode::BAD_REQUEST, &refused.to_string())
        }
    }
}

/// The headers that a dead letter keeps: all but those that let people in.
fn kept(headers: &HeaderMap) -> Headers {
    let secret = [
        header::AUTHORIZATION,
        header::COOKIE,
        header::PROXY_AUTHORIZATION,
    ];
    headers
        .iter()
        .filter(|(name, _)| !secret.contains(name))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value)
        })
        .collect()
}
