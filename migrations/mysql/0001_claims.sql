-- One row per claimed event. The primary key is the lock: a second insert waits for the first.
-- VARBINARY compares bytes: no case folding, no trimming, no normalisation, on any collation.
CREATE TABLE `processed_events` (
    source       VARBINARY(255) NOT NULL,
    event_id     VARBINARY(255) NOT NULL,
    event_type   VARBINARY(255),
    received_at  DATETIME(6)    NOT NULL COMMENT 'UTC',
    claim_token  BINARY(16)     NOT NULL,
    PRIMARY KEY (source, event_id),
    KEY `processed_events_received_at` (received_at)
) ENGINE = InnoDB;

-- For people: the same rows with readable ids.
CREATE VIEW `processed_events_text` AS
SELECT CONVERT(source USING utf8mb4) AS source,
       CONVERT(event_id USING utf8mb4) AS event_id,
       CONVERT(event_type USING utf8mb4) AS event_type,
       received_at,
       LOWER(HEX(claim_token)) AS claim_token
FROM `processed_events`;
