//! onceonly on PostgreSQL, with tokio-postgres and deadpool-postgres
