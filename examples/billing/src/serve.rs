//! The life of the process: migrate, listen, drain.

use std::error::Error;
use std::future::pending;
use std::io::{self, Write};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::config::{Config, Place};
use crate::database::{Database, MySql, Postgres, Sqlite};
use crate::receiver::Receiver;
use crate::routes;

/// How long requests that have begun may take to end. Kubernetes kills after 30 s.
const DRAIN: Duration = Duration::from_secs(25);

/// Logs to stderr, as much as `RUST_LOG` asks for.
pub fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| "info,onceonly=debug".into()))
        .with_writer(io::stderr)
        .init();
}

/// Serves until SIGINT or SIGTERM, and lets the requests that have begun end.
///
/// # Errors
///
/// When the database or the address can't be had.
pub async fn run(config: Config) -> Result<(), Box<dyn Error>> {
    match &config.database {
        Place::Sqlite(path) => on(Sqlite::open(path).await?, config).await,
        Place::Postgres(url) => on(Postgres::connect(url).await?, config).await,
        Place::MySql(url) => on(MySql::connect(url).await?, config).await,
    }
}

async fn on<D: Database>(database: D, config: Config) -> Result<(), Box<dyn Error>> {
    database.migrate().await?;
    let listener = TcpListener::bind(config.bind).await?;
    let stop = told_to_stop()?;
    greet(&listener, &config)?;

    let receiver = Receiver::new(database, config);
    let pruner = tokio::spawn(receiver.pruner().run());
    let (told, stopping) = watch::channel(false);
    let served =
        axum::serve(listener, routes::router(receiver)).with_graceful_shutdown(async move {
            stop.await;
            tracing::info!("stopping: requests that have begun are finished");
            let _ = told.send(true);
        });
    tokio::select! {
        served = served => served?,
        // What is still open then is dropped, which rolls it back; the provider will retry.
        () = overdue(stopping) => tracing::warn!(limit = ?DRAIN, "stopped with requests still open"),
    }
    pruner.abort();
    Ok(())
}

fn greet(listener: &TcpListener, config: &Config) -> io::Result<()> {
    let address = listener.local_addr()?;
    let invoice = r#"{"id":"evt_1","type":"invoice.paid","account":"acme","amount":10}"#;
    let greeting = format!(
        "billing listens on http://{address}, its ledger is in {}
deliver the same event twice, then look at the ledger:
  curl -d '{invoice}' http://{address}/webhooks/invoices
  curl http://{address}/ledger
",
        config.database
    );
    // Nobody has to read it.
    let _ = io::stdout().write_all(greeting.as_bytes());
    if config.github_secret.is_none() {
        tracing::warn!("GITHUB_WEBHOOK_SECRET is not set: anyone can post to /webhooks/github");
    }
    if config.fail_first > 0 {
        tracing::warn!(
            percent = config.fail_first,
            "BILLING_FAIL_FIRST plants failures"
        );
    }
    Ok(())
}

/// Ready when the process is told to stop.
fn told_to_stop() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

async fn overdue(mut stopping: watch::Receiver<bool>) {
    match stopping.wait_for(|stopping| *stopping).await {
        Ok(_) => sleep(DRAIN).await,
        Err(_) => pending().await,
    }
}
