-- One row per claimed event. The primary key is the lock: a second insert waits for the first.
-- COLLATE "C" compares bytes: no case folding, no trimming, no normalisation, on any database.
CREATE TABLE "processed_events" (
    source       text COLLATE "C" NOT NULL,
    event_id     text COLLATE "C" NOT NULL,
    event_type   text COLLATE "C",
    received_at  timestamptz      NOT NULL,
    claim_token  bytea            NOT NULL,
    PRIMARY KEY (source, event_id)
);

CREATE INDEX "processed_events_received_at" ON "processed_events" (received_at);
