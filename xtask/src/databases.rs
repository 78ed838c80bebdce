//! The databases of a run: given by variables, or started here.

use std::io;
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;
use onceonly_test_servers::{MariaDbServer, PgBouncer, PostgresServer};

use crate::given::{is_given, pgbouncer_before, variable_value};
use crate::install;

const POSTGRES: &str = "ONCEONLY_POSTGRES_URL";
const PGBOUNCER: &str = "ONCEONLY_PGBOUNCER_URL";
const POSTGRES_TLS: [&str; 3] = [
    "ONCEONLY_POSTGRES_TLS_URL",
    "ONCEONLY_POSTGRES_TLS_CA",
    "ONCEONLY_POSTGRES_TLS_OTHER_CA",
];
const MYSQL: &str = "ONCEONLY_MYSQL_URL";
const MYSQL_TLS: [&str; 3] = [
    "ONCEONLY_MYSQL_TLS_URL",
    "ONCEONLY_MYSQL_TLS_CA",
    "ONCEONLY_MYSQL_TLS_OTHER_CA",
];

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
#[derive(Default)]
pub(crate) struct Databases {
    // Stopped in this order.
    pgbouncer: Option<PgBouncer>,
    postgres: Option<PostgresServer>,
    mysql: Option<MariaDbServer>,
    variables: Vec<(&'static str, String)>,
}

impl Databases {
    /// Starts what `wanted` needs and the environment doesn't give.
    pub(crate) fn start(wanted: &[Database]) -> io::Result<Self> {
        let lacks = |database, variables: &[&str]| {
            wanted.contains(&database) && !variables.iter().all(|name| is_given(name))
        };
        let postgres =
            lacks(Database::Postgres, &[POSTGRES]) || lacks(Database::Postgres, &POSTGRES_TLS);
        let pgbouncer = lacks(Database::Postgres, &[PGBOUNCER]);
        let mysql = lacks(Database::Mysql, &[MYSQL]) || lacks(Database::Mysql, &MYSQL_TLS);
        if postgres || pgbouncer || mysql {
            install::servers()?;
        }
        let mut databases = Self::default();
        if postgres {
            databases.start_postgres()?;
        }
        if pgbouncer {
            databases.start_pgbouncer()?;
        }
        if mysql {
            databases.start_mysql()?;
        }
        Ok(databases)
    }

    fn start_postgres(&mut self) -> io::Result<()> {
        let server = self.postgres.insert(PostgresServer::start()?);
        if !is_given(POSTGRES) {
            self.variables.push((POSTGRES, server.url()));
        }
        let tls = [
            server.tls_url(),
            text(server.tls().ca()),
            text(server.tls().other_ca()),
        ];
        self.variables.extend(POSTGRES_TLS.into_iter().zip(tls));
        Ok(())
    }

    /// Before the server that the tests use, whoever started that.
    fn start_pgbouncer(&mut self) -> io::Result<()> {
        let (pgbouncer, url) = match (variable_value(POSTGRES), &self.postgres) {
            (Some(url), _) => pgbouncer_before(&url)?,
            (None, Some(server)) => {
                let pgbouncer = PgBouncer::start(server)?;
                let url = pgbouncer.url();
                (pgbouncer, url)
            }
            (None, None) => return Ok(()),
        };
        self.pgbouncer = Some(pgbouncer);
        self.variables.push((PGBOUNCER, url));
        Ok(())
    }

    fn start_mysql(&mut self) -> io::Result<()> {
        let server = self.mysql.insert(MariaDbServer::start()?);
        if !is_given(MYSQL) {
            self.variables.push((MYSQL, server.url()));
        }
        let tls = [
            server.tls_url(),
            text(server.tls().ca()),
            text(server.tls().other_ca()),
        ];
        self.variables.extend(MYSQL_TLS.into_iter().zip(tls));
        Ok(())
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
