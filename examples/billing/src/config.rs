//! What the environment says.

use std::env;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The settings of one billing process.
#[derive(Clone)]
pub struct Config {
    /// `DATABASE_URL`: `postgres://…`, `mysql://…`, or the path of an SQLite file.
    pub database: Place,
    /// `BIND`: where to listen.
    pub bind: SocketAddr,
    /// `GITHUB_WEBHOOK_SECRET`: with it, deliveries to `/webhooks/github` must be signed.
    pub github_secret: Option<String>,
    /// `BILLING_FAIL_FIRST`: only for tests. This percentage of events fails in `apply` once.
    pub fail_first: u8,
}

/// Which database, and where.
#[derive(Clone)]
pub enum Place {
    /// A file.
    Sqlite(PathBuf),
    /// A PostgreSQL URL.
    Postgres(String),
    /// A MySQL or MariaDB URL.
    MySql(String),
}

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// A sentence about the variable that can't be read.
    pub fn from_env() -> Result<Self, String> {
        let text =
            |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
        let bind = text("BIND", "127.0.0.1:8080");
        let fail_first = text("BILLING_FAIL_FIRST", "0");
        Ok(Self {
            database: Place::of(&text("DATABASE_URL", "billing.db")),
            bind: bind
                .parse()
                .map_err(|error| format!("BIND={bind}: {error}"))?,
            github_secret: secret("GITHUB_WEBHOOK_SECRET")?,
            fail_first: fail_first
                .parse()
                .map_err(|error| format!("BILLING_FAIL_FIRST={fail_first}: {error}"))?,
        })
    }

    /// The defaults on this database: any free port, no secret, no planted failures.
    #[must_use]
    pub fn on(database: Place) -> Self {
        Self {
            database,
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            github_secret: None,
            fail_first: 0,
        }
    }
}

/// An empty key would let everyone sign.
fn secret(name: &str) -> Result<Option<String>, String> {
    match env::var(name) {
        Ok(secret) if secret.is_empty() => {
            Err(format!("{name} is empty: unset it, or set a secret"))
        }
        Ok(secret) => Ok(Some(secret)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

impl Place {
    /// By the scheme of the URL; everything else is the path of an SQLite file.
    #[must_use]
    pub fn of(url: &str) -> Self {
        match url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => Self::Postgres(url.to_owned()),
            Some(("mysql", _)) => Self::MySql(url.to_owned()),
            Some(("sqlite", path)) => Self::Sqlite(path.strip_prefix("//").unwrap_or(path).into()),
            _ => Self::Sqlite(url.into()),
        }
    }
}

impl fmt::Display for Place {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "the SQLite file {}", path.display()),
            Self::Postgres(_) => f.write_str("PostgreSQL"),
            Self::MySql(_) => f.write_str("MySQL"),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("database", &self.database)
            .field("bind", &self.bind)
            .field("github_secret", &self.github_secret.as_ref().map(|_| "…"))
            .field("fail_first", &self.fail_first)
            .finish()
    }
}
