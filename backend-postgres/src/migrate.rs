//! Bringing the schema up to date.

use std::collections::BTreeMap;

use onceonly::{StoreError, StoreErrorKind};
use onceonly_migrations::{Migration, POSTGRES};
use tokio_postgres::types::Type;

use crate::connection::{Connection, OnDrop};
use crate::error::failed;
use crate::statements::quote;
use crate::store::PostgresStore;

/// Held by whoever migrates, in this database. Not used anywhere else: claims take no advisory lock.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4884716113253924)";

/// The name of the table of applied migrations, quoted, with its schema if it has one.
pub(crate) fn history(store: &PostgresStore) -> String {
    let config = &store.shared.config;
    let table = quote(&format!("{}_migrations", config.table));
    match &config.schema {
        Some(schema) => format!("{}.{table}", quote(schema)),
        None => table,
    }
}

pub(crate) async fn migrate(store: &PostgresStore) -> Result<(), StoreError> {
    let mut connection = store.acquire().await?;
    // Whoever waits for the lock would go on waiting for it if its future were dropped.
    connection.on_drop = OnDrop::Cancel;
    run(
        &connection,
        &format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 0; \
             SET LOCAL statement_timeout = 0; {LOCK}"
        ),
    )
    .await?;
    apply_all(store, &connection).await?;
    connection.on_drop = OnDrop::Close;
    run(&connection, "COMMIT").await?;
    connection.give_back();
    Ok(())
}

async fn apply_all(store: &PostgresStore, connection: &Connection) -> Result<(), StoreError> {
    let qualified = store.shared.statements.qualified();
    let history = history(store);
    let recorded = exists(connection, &history).await?;
    let applied = if recorded {
        applied(connection, &history).await?
    } else {
        BTreeMap::new()
    };
    if applied.is_empty() && exists(connection, qualified).await? {
        // The team's own tool applied the files and keeps the record; check() judges the table.
        return Ok(());
    }
    if let Some(schema) = &store.shared.config.schema
        && !schema_exists(connection, schema).await?
    {
        run(connection, &format!("CREATE SCHEMA {}", quote(schema))).await?;
    }
    if !recorded {
        run(
            connection,
            &format!(
                "CREATE TABLE {history} (\
                 version int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, \
                 compatible_with int NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
            ),
        )
        .await?;
    }
    for migration in judge(&applied, POSTGRES)? {
        run(
            connection,
            &migration.sql_for(qualified, &store.shared.config.table),
        )
        .await?;
        connection
            .execute_typed(
                &format!(
                    "INSERT INTO {history} (version, name, checksum, compatible_with) \
                     VALUES ($1::int8, $2, $3, $4::int8)"
                ),
                &[
                    (&i64::from(migration.version()), Type::INT8),
                    (&migration.name(), Type::TEXT),
                    (&migration.checksum(), Type::TEXT),
                    (&i64::from(migration.compatible_with()), Type::INT8),
                ],
            )
            .await
            .map_err(|error| failed(error, "recording a migration"))?;
    }
    Ok(())
}

/// An applied migration as the database recorded it.
struct Applied {
    checksum: String,
    compatible_with: i64,
}

/// What is still to be applied, unless what was applied forbids it.
fn judge<'a>(
    applied: &BTreeMap<i64, Applied>,
    known: &'a [Migration],
) -> Result<Vec<&'a Migration>, StoreError> {
    let newest = known.last().map_or(0, Migration::version);
    if let Some((version, _)) = applied
        .iter()
        .find(|(_, applied)| applied.compatible_with > i64::from(newest))
    {
        return Err(StoreError::new(
            StoreErrorKind::Schema,
            format!(
                "the schema is at version {version}, this program knows {newest}; update the \
                 onceonly-postgres crate"
            ),
        ));
    }
    let mut missing = Vec::new();
    for migration in known {
        match applied.get(&i64::from(migration.version())) {
            None => missing.push(migration),
            Some(applied) if applied.checksum == migration.checksum() => {}
            Some(_) => {
                return Err(StoreError::new(
                    StoreErrorKind::Schema,
                    format!(
                        "migration {} ({}) was changed after it was applied; restore its record in \
                         the history table, or the database from before it",
                        migration.version(),
                        migration.name()
                    ),
                ));
            }
        }
    }
    Ok(missing)
}

async fn applied(
    connection: &Connection,
    history: &str,
) -> Result<BTreeMap<i64, Applied>, StoreError> {
    let rows = connection
        .query_typed(
            &format!("SELECT version::int8, checksum::text, compatible_with::int8 FROM {history}"),
            &[],
        )
        .await
        .map_err(|error| failed(error, "reading the history of migrations"))?;
    rows.iter()
        .map(|row| {
            let applied = Applied {
                checksum: row.try_get(1)?,
                compatible_with: row.try_get(2)?,
            };
            Ok((row.try_get(0)?, applied))
        })
        .collect::<Result<_, tokio_postgres::Error>>()
        .map_err(|error| failed(error, "reading the history of migrations"))
}

async fn exists(connection: &Connection, table: &str) -> Result<bool, StoreError> {
    found(
        connection,
        "SELECT WHERE to_regclass($1) IS NOT NULL",
        table,
    )
    .await
}

async fn schema_exists(connection: &Connection, schema: &str) -> Result<bool, StoreError> {
    found(
        connection,
        "SELECT FROM pg_namespace WHERE nspname = $1",
        schema,
    )
    .await
}

async fn found(connection: &Connection, query: &str, name: &str) -> Result<bool, StoreError> {
    let row = connection
        .query_typed_opt(query, &[(&name, Type::TEXT)])
        .await
        .map_err(|error| failed(error, "looking for the claim table"))?;
    Ok(row.is_some())
}

async fn run(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    connection
        .batch_execute(sql)
        .await
        .map_err(|error| failed(error, "migrating"))
}
