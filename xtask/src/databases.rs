//! The databases of a run: given by variables, or started here.

use std::env;
use std::io;
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;
use onceonly_test_servers::{MariaDbServer, PgBouncer, PostgresServer};

use crate::install;

/// What a run can be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Database {
    Memory,
    Sqlite,
    Postgres,
    Mysql,
}

impl Database {
    pub(crate) const ALL: [Self; 4] = [Self::Memory, Self::Sqlite, Self::Postgres, Self::Mysql];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }
}

/// The servers of a run. They live as long as this value.
pub(crate) struct Databases {
    // Stopped in this order.
    _pgbouncer: Option<PgBouncer>,
    _postgres: Option<PostgresServer>,
    _mysql: Option<MariaDbServer>,
    variables: Vec<(&'static str, String)>,
}

impl Databases {
    /// Starts what `wanted` needs and the environment doesn't give.
    pub(crate) fn start(wanted: &[Database]) -> io::Result<Self> {
        let lacks =
            |database, variable| wanted.contains(&database) && env::var_os(variable).is_none();
        let postgres = lacks(Database::Postgres, "ONCEONLY_POSTGRES_URL");
        let mysql = lacks(Database::Mysql, "ONCEONLY_MYSQL_URL");
        if postgres || mysql {
            install::servers()?;
        }
        let mut variables = Vec::new();
        let postgres = postgres.then(PostgresServer::start).transpose()?;
        let pgbouncer = postgres.as_ref().map(PgBouncer::start).transpose()?;
        if let (Some(postgres), Some(pgbouncer)) = (&postgres, &pgbouncer) {
            let port = postgres.addr().port();
            variables.extend([
                ("ONCEONLY_POSTGRES_URL", postgres.url()),
                ("ONCEONLY_PGBOUNCER_URL", pgbouncer.url()),
                (
                    "ONCEONLY_POSTGRES_TLS_URL",
                    format!("postgres://postgres@localhost:{port}/postgres"),
                ),
                ("ONCEONLY_POSTGRES_TLS_CA", text(postgres.tls().ca())),
                (
                    "ONCEONLY_POSTGRES_TLS_OTHER_CA",
                    text(postgres.tls().other_ca()),
                ),
            ]);
        }
        let mysql = mysql.then(MariaDbServer::start).transpose()?;
        if let Some(mysql) = &mysql {
            let port = mysql.addr().port();
            variables.extend([
                ("ONCEONLY_MYSQL_URL", mysql.url()),
                (
                    "ONCEONLY_MYSQL_TLS_URL",
                    format!("mysql://onceonly@localhost:{port}/onceonly"),
                ),
                ("ONCEONLY_MYSQL_TLS_CA", text(mysql.tls().ca())),
                ("ONCEONLY_MYSQL_TLS_OTHER_CA", text(mysql.tls().other_ca())),
            ]);
        }
        Ok(Self {
            _pgbouncer: pgbouncer,
            _postgres: postgres,
            _mysql: mysql,
            variables,
        })
    }

    /// Gives a command the variables of the servers started here.
    pub(crate) fn give(&self, command: &mut Command) {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    pub(crate) fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
