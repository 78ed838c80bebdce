//! The databases of a run: given by variables, or started here.

use std::io;
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;
use onceonly_test_servers::{MariaDbServer, PgBouncer, PostgresServer};

use crate::given::{is_given, pgbouncer_before, variable_value};
use crate::install;

const POSTGRES: &str = "ONCEONLY_POSTGRES_URL";
const POSTGRES_TLS: [&str; 3] = [
    "ONCEONLY_POSTGRES_TLS_URL",
    "ONCEONLY_POSTGRES_TLS_CA",
    "ONCEONLY_POSTGRES_TLS_OTHER_CA",
];
const PGBOUNCER: &str = "ONCEONLY_PGBOUNCER_URL";
const MYSQL: &str = "ONCEONLY_MYSQL_URL";
const MYSQL_TLS: [&str; 3] = [
    "ONCEONLY_MYSQL_TLS_URL",
    "ONCEONLY_MYSQL_TLS_CA",
    "ONCEONLY_MYSQL_TLS_OTHER_CA",
];

/// What the tests of a database need, and who starts it when a variable is not given.
struct Need {
    database: Database,
    variables: &'static [&'static str],
    package: &'static str,
    start: fn(&mut Databases) -> io::Result<()>,
}

const NEEDS: [Need; 3] = [
    Need {
        database: Database::Postgres,
        variables: &[POSTGRES, POSTGRES_TLS[0], POSTGRES_TLS[1], POSTGRES_TLS[2]],
        package: "postgresql",
        start: Databases::start_postgres,
    },
    Need {
        database: Database::Postgres,
        variables: &[PGBOUNCER],
        package: "pgbouncer",
        start: Databases::start_pgbouncer,
    },
    Need {
        database: Database::Mysql,
        variables: &[MYSQL, MYSQL_TLS[0], MYSQL_TLS[1], MYSQL_TLS[2]],
        package: "mariadb-server",
        start: Databases::start_mysql,
    },
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
        let mut needs = Vec::from(NEEDS);
        needs.retain(|need| {
            wanted.contains(&need.database) && !need.variables.iter().all(|name| is_given(name))
        });
        let packages: Vec<&str> = needs.iter().map(|need| need.package).collect();
        let variables = needs.iter().flat_map(|need| need.variables).copied();
        let lacking: Vec<&str> = variables.filter(|name| !is_given(name)).collect();
        install::servers(&packages, &lacking)?;
        let mut databases = Self::default();
        for need in needs {
            (need.start)(&mut databases)?;
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
