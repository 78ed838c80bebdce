//! GitHub's signature of a delivery.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Whether `header` (`X-Hub-Signature-256`: `sha256=` and hex) signs `body` with `secret`.
///
/// The comparison takes the same time wherever the signatures differ.
///
/// ```
/// // The example of GitHub's documentation, "Validating webhook deliveries".
/// let header = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
/// assert!(billing::signature::verifies("It's a Secret to Everybody", b"Hello, World!", header));
/// assert!(!billing::signature::verifies("It's a Secret to Everybody", b"Hello, World?", header));
/// ```
#[must_use]
pub fn verifies(secret: &str, body: &[u8], header: &str) -> bool {
    let signature = header
        .strip_prefix("sha256=")
        .and_then(|text| hex::decode(text).ok());
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes());
    match (signature, mac) {
        (Some(signature), Ok(mac)) => mac.chain_update(body).verify_slice(&signature).is_ok(),
        _ => false,
    }
}
