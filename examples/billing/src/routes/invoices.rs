//! `POST /webhooks/invoices`: the event's id and type are in the body.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use onceonly::Event;
use serde::Deserialize;

use crate::database::Database;
use crate::delivery::{Credit, Delivery, NoDelivery};
use crate::failure::Failure;
use crate::receiver::Receiver;

/// The source of its events.
pub const SOURCE: &str = "invoices";

pub(super) async fn receive<D: Database>(
    State(receiver): State<Receiver<D>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    super::receive(&receiver, delivery(&headers, body)).await
}

#[derive(Deserialize)]
struct Envelope {
    id: String,
    r#type: String,
}

/// Only what names the event. The rest is read in `apply`, where a body that can't be credited
/// becomes a dead letter.
fn delivery(headers: &HeaderMap, body: Bytes) -> Result<Delivery, NoDelivery> {
    let Envelope { id, r#type } = serde_json::from_slice(&body)?;
    Ok(Delivery {
        event: Event::new(SOURCE, id)?.with_type(r#type)?,
        headers: super::kept(headers),
        body,
    })
}

#[derive(Deserialize)]
struct Invoice {
    account: String,
    amount: i64,
}

/// A paid invoice credits its account; the other types credit nothing.
pub(crate) fn credit(body: &[u8]) -> Result<Option<Credit>, Failure> {
    let unreadable = |error: serde_json::Error| Failure::Rejected(error.to_string());
    let Envelope { r#type, .. } = serde_json::from_slice(body).map_err(unreadable)?;
    if r#type != "invoice.paid" {
        return Ok(None);
    }
    let invoice: Invoice = serde_json::from_slice(body).map_err(unreadable)?;
    Credit::new(invoice.account, invoice.amount).map(Some)
}
