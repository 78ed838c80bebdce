//! `POST /webhooks/invoices`.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;

use crate::database::Database;
use crate::delivery::Delivery;
use crate::receiver::Receiver;

pub(super) async fn receive<D: Database>(
    State(receiver): State<Receiver<D>>,
    body: Bytes,
) -> Response {
    super::receive(&receiver, Delivery::invoice(&body)).await
}
