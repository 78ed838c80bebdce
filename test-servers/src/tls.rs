//! Certificates for the servers.

use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::User;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::run_dir::{Readers, RunDir};

/// PEM files of one server: its certificate is for the name `localhost` only, so that `127.0.0.1` is
/// a wrong host.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    ca: PathBuf,
    other_ca: PathBuf,
}

impl TlsFiles {
    pub(crate) fn new(dir: &RunDir, owner: Option<&User>) -> io::Result<Self> {
        let (ca, issuer) = authority("onceonly test authority").map_err(io::Error::other)?;
        let (other_ca, _) = authority("another authority").map_err(io::Error::other)?;
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = CertificateParams::new(vec!["localhost".into()])
            .and_then(|params| params.signed_by(&key, &issuer))
            .map_err(io::Error::other)?;
        Ok(Self {
            certificate: dir.write("server.pem", &certificate.pem(), Readers::All, owner)?,
            key: dir.write("server.key", &key.serialize_pem(), Readers::Server, owner)?,
            ca: dir.write("ca.pem", &ca, Readers::All, owner)?,
            other_ca: dir.write("other-ca.pem", &other_ca, Readers::All, owner)?,
        })
    }

    /// The authority that signed the server's certificate.
    #[must_use]
    pub fn ca(&self) -> &Path {
        &self.ca
    }

    /// An authority that signed nothing here.
    #[must_use]
    pub fn other_ca(&self) -> &Path {
        &self.other_ca
    }
}

fn authority(name: &str) -> Result<(String, Issuer<'static, KeyPair>), rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let pem = params.self_signed(&key)?.pem();
    Ok((pem, Issuer::new(params, key)))
}
