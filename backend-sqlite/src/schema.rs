//! The schema of an open store: bringing it up to date, and checking it.

use std::sync::Arc;
use std::time::Duration;

use onceonly::StoreError;
use rusqlite::ffi;

use crate::blocking::{blocking, runtime};
use crate::error::was_busy;
use crate::{SqliteStore, migrate, settings};

impl SqliteStore {
    /// How long `migrate` waits for claims that are open, in this process and in others.
    const MIGRATE_WAIT: Duration = Duration::from_secs(60);

    /// Brings the claim table up to this version: idempotent, in one transaction, and safe when ten
    /// processes do it at once.
    ///
    /// What was applied is written to `<table>_migrations`. A table that a team's own migration
    /// tool made from `migrations/sqlite/` has no such history and is accepted if it fits. Waits
    /// for open claims for at most a minute.
    ///
    /// # Errors
    ///
    /// [`Schema`](onceonly::StoreErrorKind::Schema) when an applied migration was changed, when the schema
    /// says that it is incompatible with this version (a merely newer one is fine), and as
    /// [`check`](Self::check); [`InFlight`](onceonly::StoreErrorKind::InFlight) when claims stayed open.
    /// After an error, and when the future is dropped before the commit, nothing has changed.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        // A setting such as an exclusive lock would keep BEGIN from ever succeeding.
        let connector = Arc::clone(&self.shared.connector);
        let verified = self.shared.readers.look("checking", move |connection| {
            found(settings::verify(connection, &connector.config))
        });
        verified.await??;
        let writer = self.begin(Self::MIGRATE_WAIT).await?;
        let statements = Arc::clone(&self.shared.statements);
        let migrated = blocking(move || {
            migrate::apply(writer.connection(), &statements)?;
            Ok::<_, StoreError>(writer)
        });
        let writer = migrated.await??;
        self.commit_open(writer).await
    }

    /// Looks at the settings and the schema that the guarantees rest on; the first claim does it
    /// too.
    ///
    /// Settings: the journal, `synchronous` and `locking_mode`. Schema: STRICT, the columns'
    /// types, the primary key (source, event_id) with BINARY collation, and no other unique index
    /// and no trigger, which could fake a duplicate.
    ///
    /// # Errors
    ///
    /// [`Schema`](onceonly::StoreErrorKind::Schema), naming what is wrong and its fix.
    pub async fn check(&self) -> Result<(), StoreError> {
        let statements = Arc::clone(&self.shared.statements);
        let connector = Arc::clone(&self.shared.connector);
        let looked = self.shared.readers.look("checking", move |connection| {
            found(
                settings::verify(connection, &connector.config)
                    .and_then(|()| migrate::require_compatible(connection, &statements)),
            )
        });
        looked.await?
    }

    /// Checks once, at the first use that succeeds.
    pub(crate) async fn ready(&self) -> Result<(), StoreError> {
        runtime()?;
        self.shared.checked.get_or_try_init(|| self.check()).await?;
        Ok(())
    }
}

/// A check that met a lock has found nothing yet, and is run again.
fn found(checked: Result<(), StoreError>) -> rusqlite::Result<Result<(), StoreError>> {
    match checked {
        Err(error) if was_busy(&error) => {
            let busy = ffi::Error::new(ffi::SQLITE_BUSY);
            Err(rusqlite::Error::SqliteFailure(busy, None))
        }
        checked => Ok(checked),
    }
}
