//! A webhook receiver that credits a ledger exactly once: read [`receiver`] first.
//!
//! [`routes`] turns requests into deliveries, [`receiver`] handles them through onceonly,
//! [`database`] has the SQL of each database, and [`answer`] says what the provider gets.
//! [`dead_letters`] keeps what failed, and sends it through the same receiver again.

pub mod answer;
pub mod config;
pub mod database;
pub mod dead_letters;
pub mod delivery;
pub mod failure;
mod faults;
pub mod receiver;
pub mod routes;
pub mod serve;
pub mod signature;
