//! Throwaway PostgreSQL, MariaDB and PgBouncer servers for the tests
