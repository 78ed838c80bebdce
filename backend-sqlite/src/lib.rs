//! onceonly on SQLite, with rusqlite
