-- One row per claimed event. The primary key is the lock; TEXT compares bytes (BINARY collation).
CREATE TABLE "processed_events" (
    source       TEXT    NOT NULL,
    event_id     TEXT    NOT NULL,
    event_type   TEXT,
    received_at  INTEGER NOT NULL, -- microseconds since 1970-01-01 UTC
    claim_token  BLOB    NOT NULL,
    PRIMARY KEY (source, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX "processed_events_received_at" ON "processed_events" (received_at);
