//! `POST /webhooks/github`.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::database::Database;
use crate::delivery::{Delivery, NoDelivery};
use crate::receiver::Receiver;
use crate::{answer, signature};

pub(super) async fn receive<D: Database>(
    State(receiver): State<Receiver<D>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(secret) = &receiver.config().github_secret {
        let header = headers
            .get("x-hub-signature-256")
            .and_then(|header| header.to_str().ok());
        if !header.is_some_and(|header| signature::verifies(secret, &body, header)) {
            return answer::text(StatusCode::UNAUTHORIZED, "error", "bad signature");
        }
    }
    super::receive(&receiver, delivery(&headers, &body)).await
}

/// GitHub sends the same id again on a redelivery.
fn delivery(headers: &HeaderMap, body: &[u8]) -> Result<Delivery, NoDelivery> {
    let header = |name| headers.get(name).ok_or(NoDelivery::Header(name));
    let (id, event_type) = (header("x-github-delivery")?, header("x-github-event")?);
    Delivery::github(id.as_bytes(), event_type.as_bytes(), body)
}
