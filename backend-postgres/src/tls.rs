//! TLS with rustls and ring.

use std::path::Path;
use std::sync::Arc;

use onceonly::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, crypto::ring,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connector::{Connector, Plain, Typed};
use crate::url::{Roots, Tls, invalid};

pub(crate) fn connector(tls: &Tls) -> Result<Arc<dyn Connector>, StoreError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS could not be set up").with_source(error))?;
    let roots = match tls {
        Tls::Disable => return Ok(Arc::new(Plain)),
        Tls::Prefer | Tls::Require => None,
        Tls::VerifyCa(roots) | Tls::VerifyFull(roots) => Some(read(roots)?),
    };
    let mut config = match (tls, roots) {
        (Tls::VerifyFull(_), Some(roots)) => {
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        (_, roots) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyHost { roots, provider }))
            .with_no_client_auth(),
    };
    // PostgreSQL 17 demands it for `sslnegotiation=direct`; older servers ignore it.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(Arc::new(Typed(MakeRustlsConnect::new(config))))
}

fn read(roots: &Roots) -> Result<RootCertStore, StoreError> {
    let certificates = match roots {
        Roots::System => rustls_native_certs::load_native_certs().certs,
        Roots::File(path) => read_file(path)?,
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(invalid(match roots {
            Roots::System => {
                "the system has no root certificates: name a file with sslrootcert".into()
            }
            Roots::File(path) => format!("sslrootcert {} holds no certificate", path.display()),
        }));
    }
    Ok(store)
}

fn read_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| {
            invalid(format!(
                "sslrootcert {} could not be read: {error}",
                path.display()
            ))
        })
}

/// Takes a certificate of any host: signed by one of the roots, or by anybody if there are none.
#[derive(Debug)]
struct AnyHost {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(end_entity)?,
                roots,
                intermediates,
                now,
                self.provider.signature_verification_algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
