//! TLS with rustls.

use rustls::crypto::{CryptoProvider, ring};

/// The driver takes the process's provider and panics where there is none to choose, which happens
/// as soon as another crate turns on a second one.
pub(crate) fn install_provider() {
    if CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster, which is as good.
        let _ = ring::default_provider().install_default();
    }
}
