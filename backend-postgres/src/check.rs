//! Whether table and server can keep the promise.

use std::sync::atomic::Ordering;

use onceonly::{StoreError, StoreErrorKind};
use onceonly_migrations::POSTGRES;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::connection::{Connection, OnDrop};
use crate::error::failed;
use crate::migrate::history;
use crate::settings::UnsafeSetting;
use crate::store::PostgresStore;
use crate::table;

/// Gives the connection back to its pool if the answer is no.
pub(crate) async fn check(
    store: &PostgresStore,
    mut connection: Connection,
) -> Result<Connection, StoreError> {
    connection.on_drop = OnDrop::Cancel;
    let limit = store.shared.config.acquire_timeout;
    let Ok(result) = timeout(limit, check_on(store, &connection)).await else {
        return Err(StoreError::new(
            StoreErrorKind::Unavailable,
            format!("no answer to the check of the schema within {limit:?}"),
        ));
    };
    connection.on_drop = OnDrop::Close;
    match result {
        Ok(()) => Ok(connection),
        Err(error) => {
            if error.kind() == StoreErrorKind::Schema {
                connection.give_back();
            }
            Err(error)
        }
    }
}

async fn check_on(store: &PostgresStore, connection: &Connection) -> Result<(), StoreError> {
    settings(store, connection).await?;
    let qualified = store.shared.statements.qualified();
    let tables = ask(
        connection,
        "SELECT relkind = 'r', relpersistence::text, row_security_active(oid) \
         FROM pg_class WHERE oid = to_regclass($1)",
        qualified,
    )
    .await?;
    let Some(found) = tables.first() else {
        return Err(StoreError::new(
            StoreErrorKind::Schema,
            format!(
                "there is no table {qualified}; run migrate() or apply migrations/postgres/*.sql"
            ),
        ));
    };
    let unfit = |fault: String| {
        StoreError::new(
            StoreErrorKind::Schema,
            format!("table {qualified} {fault}; see migrations/postgres/*.sql"),
        )
    };
    if !get::<bool>(found, 0)? {
        return Err(unfit("is not an ordinary table".to_owned()));
    }
    match get::<&str>(found, 1)? {
        "p" => {}
        "u" => allow(
            store,
            UnsafeSetting::UnloggedTable,
            &format!("table {qualified} is UNLOGGED; ALTER TABLE {qualified} SET LOGGED"),
        )?,
        _ => return Err(unfit("is temporary".to_owned())),
    }
    if get::<bool>(found, 2)? {
        return Err(unfit(
            "hides rows from this role by row security; connect as a role that sees them all"
                .to_owned(),
        ));
    }
    table::columns(&ask(connection, table::COLUMNS, qualified).await?).map_err(unfit)?;
    table::indexes(&ask(connection, table::INDEXES, qualified).await?).map_err(unfit)?;
    if let Some(hook) = ask(connection, table::HOOKS, qualified).await?.first() {
        return Err(unfit(format!(
            "has the {} {}, which can fake a duplicate; drop it",
            get::<&str>(hook, 0)?,
            get::<&str>(hook, 1)?
        )));
    }
    compatible(store, connection).await
}

async fn settings(store: &PostgresStore, connection: &Connection) -> Result<(), StoreError> {
    let standbys = "synchronous_standby_names";
    let alone = ask(
        connection,
        "SELECT WHERE current_setting($1) = ''",
        standbys,
    )
    .await?;
    let has_standbys = alone.is_empty();
    store
        .shared
        .has_standbys
        .store(has_standbys, Ordering::Relaxed);
    for (setting, name) in [
        (UnsafeSetting::FsyncOff, "fsync"),
        (UnsafeSetting::FullPageWritesOff, "full_page_writes"),
        (UnsafeSetting::SynchronousCommitOff, "synchronous_commit"),
    ] {
        let rows = ask(connection, "SELECT current_setting($1) = 'off'", name).await?;
        if rows.first().map_or(Ok(false), |row| get::<bool>(row, 0))? {
            allow(
                store,
                setting,
                &format!("{name} = off can lose acknowledged events; set it to on"),
            )?;
        }
    }
    Ok(())
}

fn allow(store: &PostgresStore, setting: UnsafeSetting, fault: &str) -> Result<(), StoreError> {
    if store.shared.config.allowed.contains(&setting) {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::Schema,
        format!("{fault}, or accept it with allow_unsafe(UnsafeSetting::{setting:?})"),
    ))
}

/// A later version may have changed the schema beyond what this one can work with.
async fn compatible(store: &PostgresStore, connection: &Connection) -> Result<(), StoreError> {
    let history = history(store);
    if ask(
        connection,
        "SELECT WHERE to_regclass($1) IS NOT NULL",
        &history,
    )
    .await?
    .is_empty()
    {
        return Ok(());
    }
    let newest = POSTGRES.last().map_or(0, |migration| migration.version());
    let rows = connection
        .query_typed(
            &format!(
                "SELECT max(compatible_with)::text FROM {history} WHERE compatible_with > $1::int8"
            ),
            &[(&i64::from(newest), Type::INT8)],
        )
        .await
        .map_err(|error| failed(error, "checking the schema"))?;
    match rows
        .first()
        .map_or(Ok(None), |row| get::<Option<&str>>(row, 0))?
    {
        None => Ok(()),
        Some(needed) => Err(StoreError::new(
            StoreErrorKind::Schema,
            format!(
                "the schema is at version {needed}, this program knows {newest}; update the \
                 onceonly-postgres crate"
            ),
        )),
    }
}

async fn ask(
    connection: &Connection,
    query: &str,
    parameter: &str,
) -> Result<Vec<Row>, StoreError> {
    let parameter: &(dyn ToSql + Sync) = &parameter;
    connection
        .query_typed(query, &[(parameter, Type::TEXT)])
        .await
        .map_err(|error| failed(error, "checking the schema"))
}

fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    column: usize,
) -> Result<T, StoreError> {
    row.try_get(column)
        .map_err(|error| failed(error, "checking the schema"))
}
