//! Connection URLs, with what libpq knows about TLS and tokio-postgres doesn't.

use std::path::PathBuf;
use std::sync::Arc;

use onceonly::{StoreError, StoreErrorKind};
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::connector::Connector;
use crate::error::chain;

/// A URL, read.
pub(crate) struct ConnectionUrl {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
}

/// How far TLS goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tls {
    Disable,
    /// Where the server offers it; any certificate.
    Prefer,
    /// Any certificate.
    Require,
    /// A certificate signed by one of the roots, of any host.
    VerifyCa(Roots),
    /// A certificate signed by one of the roots, of the host in the URL.
    VerifyFull(Roots),
}

/// Who may sign the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Roots {
    System,
    File(PathBuf),
}

impl ConnectionUrl {
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let mut mode = None;
        let mut root = None;
        let mut rest = url.to_owned();
        if !is_url(url) && url.contains("://") {
            return Err(malformed("the scheme is neither postgres nor postgresql"));
        }
        if let Some((base, query)) = url.split_once('?').filter(|_| is_url(url)) {
            let mut kept = Vec::new();
            if query.contains('@') {
                return Err(malformed("there is an @ behind the ?"));
            }
            for pair in query.split('&') {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                match name {
                    "sslmode" => mode = Some(decode(value)?),
                    "sslrootcert" => root = Some(decode(value)?),
                    _ => kept.push(pair),
                }
            }
            rest = if kept.is_empty() {
                base.to_owned()
            } else {
                format!("{base}?{}", kept.join("&"))
            };
        }
        let mut config: Config = rest
            .parse()
            .map_err(|error: tokio_postgres::Error| malformed(&chain(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid("the connection URL names no host"));
        }
        let mode = mode.unwrap_or_else(|| {
            String::from(match config.get_ssl_mode() {
                SslMode::Disable => "disable",
                SslMode::Require => "require",
                _ => "prefer",
            })
        });
        let tls = Tls::new(&mode, root)?;
        config.ssl_mode(match tls {
            Tls::Disable => SslMode::Disable,
            Tls::Prefer => SslMode::Prefer,
            _ => SslMode::Require,
        });
        Ok(Self { config, tls })
    }
}

impl Tls {
    fn new(mode: &str, root: Option<String>) -> Result<Self, StoreError> {
        let file = root.as_deref().filter(|root| *root != "system");
        let roots = file.map_or(Roots::System, |file| Roots::File(file.into()));
        Ok(match mode {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            // As libpq does it: a root that was named is used.
            "require" if root.is_some() => Self::VerifyCa(roots),
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa(roots),
            "verify-full" => Self::VerifyFull(roots),
            _ => {
                return Err(invalid(
                    "sslmode is none of disable, prefer, require, verify-ca, verify-full",
                ));
            }
        })
    }

    #[cfg(feature = "rustls")]
    pub(crate) fn connector(&self) -> Result<Arc<dyn Connector>, StoreError> {
        crate::tls::connector(self)
    }

    #[cfg(not(feature = "rustls"))]
    pub(crate) fn connector(&self) -> Result<Arc<dyn Connector>, StoreError> {
        match self {
            Self::Disable | Self::Prefer => Ok(Arc::new(crate::connector::Plain)),
            _ => Err(invalid(
                "the URL asks for TLS: build onceonly-postgres with the feature `rustls`, or give \
                 a connector to PostgresConfig::tls",
            )),
        }
    }
}

/// `fault` must not quote what may be a part of the password.
fn malformed(fault: &str) -> StoreError {
    invalid(format!(
        "{fault}; expected postgres://user:password@host:port/database?option=value, with special \
         characters percent-encoded"
    ))
}

fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

fn decode(value: &str) -> Result<String, StoreError> {
    percent_decode_str(value)
        .decode_utf8()
        .map(Into::into)
        .map_err(|_| invalid("an option of the connection URL is not UTF-8"))
}

pub(crate) fn invalid(message: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Unsupported, message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(url: &str) -> Tls {
        ConnectionUrl::parse(url).unwrap().tls
    }

    #[test]
    fn tls_options_mean_what_they_mean_to_libpq() {
        let file = Roots::File("/ca file.pem".into());
        let base = "postgres://u:p@h/d";
        assert_eq!(tls(base), Tls::Prefer);
        assert_eq!(tls(&format!("{base}?sslmode=disable")), Tls::Disable);
        assert_eq!(tls(&format!("{base}?sslmode=require")), Tls::Require);
        assert_eq!(
            tls(&format!(
                "{base}?sslmode=require&sslrootcert=%2Fca%20file.pem"
            )),
            Tls::VerifyCa(file.clone())
        );
        assert_eq!(
            tls(&format!(
                "{base}?sslrootcert=/ca%20file.pem&sslmode=verify-full"
            )),
            Tls::VerifyFull(file)
        );
        assert_eq!(
            tls(&format!("{base}?sslmode=verify-ca&sslrootcert=system")),
            Tls::VerifyCa(Roots::System)
        );
        assert_eq!(tls("host=h sslmode=require"), Tls::Require);
    }

    #[test]
    fn other_options_reach_the_driver() {
        let url = "postgres://h/d?sslmode=disable&application_name=a&connect_timeout=3";
        let config = ConnectionUrl::parse(url).unwrap().config;
        assert_eq!(config.get_application_name(), Some("a"));
        assert_eq!(config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn errors_name_the_fault_and_hide_the_password() {
        for (url, fault) in [
            (
                "postgres://u:hunter2@h/d?sslmode=maybe",
                "sslmode is none of",
            ),
            ("postgres://u:hunter2@h/d?frobnicate=1", "frobnicate"),
            ("postgres://u:hunter2@h:port/d", "port"),
            ("postgres://u:hunter2@/d", "no host"),
            ("mysql://u:hunter2@h/d", "scheme"),
            ("postgre://u:hunter2@h/d?sslmode=disable", "scheme"),
            ("postgres://u:?hunter2=1@h/d?sslmode=disable", "@ behind"),
            (
                "postgres://u:hunter2@h/d?connect_timeout=soon",
                "connect_timeout",
            ),
            ("", "no host"),
        ] {
            let Err(error) = ConnectionUrl::parse(url) else {
                panic!("{url} was accepted");
            };
            let text = format!("{error} {error:?}");
            assert!(text.contains(fault), "{url}: {text}");
            assert!(!text.contains("hunter2"), "{url}: {text}");
        }
    }
}
