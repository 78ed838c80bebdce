//! One delivery, whoever sent it, and what it credits.

use axum::body::Bytes;
use onceonly::{Event, InvalidKey};
use serde::Serialize;

use crate::failure::Failure;
use crate::routes::{github, invoices};

/// A delivery whose sender is verified and whose event has an id.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Which event it is. Its source says what the body means.
    pub event: Event,
    /// Its headers, for the dead letters.
    pub headers: Headers,
    /// Its body, byte for byte.
    pub body: Bytes,
}

/// Names and values.
pub type Headers = Vec<(String, String)>;

/// What an event does to the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Credit {
    /// Whose credits.
    pub account: String,
    /// How many, at least one.
    pub amount: i64,
}

/// Why a request is no delivery. Sending it again can't help.
#[derive(Debug, thiserror::Error)]
pub enum NoDelivery {
    /// No id can be read out of the body.
    #[error("unreadable body: {0}")]
    Body(#[from] serde_json::Error),
    /// The event's names are out of bounds.
    #[error(transparent)]
    Key(#[from] InvalidKey),
    /// A header that must be there is not.
    #[error("header {0} is missing")]
    Header(&'static str),
}

impl Delivery {
    /// What it credits, if anything.
    ///
    /// # Errors
    ///
    /// [`Failure::Rejected`] when the body doesn't say so in a way that can be credited.
    pub fn credit(&self) -> Result<Option<Credit>, Failure> {
        match self.event.source().as_str() {
            invoices::SOURCE => invoices::credit(&self.body),
            github::SOURCE => github::credit(&self.body).map(Some),
            source => Err(Failure::Rejected(format!(
                "nobody reads events of {source}"
            ))),
        }
    }
}

impl Credit {
    /// Longest name of an account, in bytes.
    const LONGEST: usize = 255;

    /// A credit that every database can keep.
    ///
    /// # Errors
    ///
    /// [`Failure::Rejected`] for an amount below one, or an account without a name or with a strange
    /// one.
    pub fn new(account: String, amount: i64) -> Result<Self, Failure> {
        let rejected = if amount < 1 {
            format!("an amount of {amount} can't be credited")
        } else if account.is_empty() || account.len() > Self::LONGEST {
            format!("an account has a name of 1 to {} bytes", Self::LONGEST)
        } else if account.chars().any(char::is_control) {
            "the account's name holds a control character".to_owned()
        } else {
            return Ok(Self { account, amount });
        };
        Err(Failure::Rejected(rejected))
    }
}
