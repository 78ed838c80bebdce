//! Starts the receiver on the database of `DATABASE_URL`, or on an SQLite file.

use std::process::ExitCode;

use billing::config::Config;
use billing::serve;

#[tokio::main]
async fn main() -> ExitCode {
    serve::log();
    let served = match Config::from_env() {
        Ok(config) => serve::run(config).await,
        Err(refused) => Err(refused.into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("billing: {error}");
            ExitCode::FAILURE
        }
    }
}
