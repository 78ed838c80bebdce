//! `POST /webhooks/github`: the event's id and type are in headers, and the body is signed.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use onceonly::{Event, EventId, EventType, Source};
use serde::Deserialize;

use crate::database::Database;
use crate::delivery::{Credit, Delivery, NoDelivery};
use crate::failure::Failure;
use crate::receiver::Receiver;
use crate::{answer, signature};

/// The source of its events.
pub const SOURCE: &str = "github";

pub(super) async fn receive<D: Database>(
    State(receiver): State<Receiver<D>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(secret) = &receiver.config().github_secret {
        let signed = headers
            .get("x-hub-signature-256")
            .and_then(|header| header.to_str().ok());
        if !signed.is_some_and(|header| signature::verifies(secret, &body, header)) {
            tracing::warn!("a delivery to /webhooks/github is not signed with our secret");
            return answer::refused(StatusCode::UNAUTHORIZED, "bad signature");
        }
    }
    super::receive(&receiver, delivery(&headers, body)).await
}

/// GitHub sends the same id again on a redelivery.
fn delivery(headers: &HeaderMap, body: Bytes) -> Result<Delivery, NoDelivery> {
    let header = |name| headers.get(name).ok_or(NoDelivery::Header(name));
    let id = EventId::try_from(header("x-github-delivery")?.as_bytes())?;
    let event_type = EventType::try_from(header("x-github-event")?.as_bytes())?;
    Ok(Delivery {
        event: Event::from_parts(Source::new(SOURCE)?, id).with_type(event_type.as_str())?,
        headers: super::kept(headers),
        body,
    })
}

#[derive(Deserialize)]
struct Payload {
    repository: Option<Repository>,
    organization: Option<Owner>,
    sender: Option<Owner>,
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Deserialize)]
struct Owner {
    login: String,
}

/// Every delivery is one unit of usage of its repository, else organization, else user.
pub(crate) fn credit(body: &[u8]) -> Result<Credit, Failure> {
    let payload: Payload =
        serde_json::from_slice(body).map_err(|error| Failure::Rejected(error.to_string()))?;
    let owner = payload.organization.or(payload.sender);
    let account = payload
        .repository
        .map(|repository| repository.full_name)
        .or(owner.map(|owner| owner.login))
        // Events of GitHub itself, such as security advisories, belong to nobody.
        .unwrap_or_else(|| SOURCE.to_owned());
    Credit::new(account, 1)
}
