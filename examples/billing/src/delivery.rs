//! One delivery, whoever sent it.

use onceonly::{Event, EventId, EventType, InvalidKey, Source};
use serde::{Deserialize, Serialize};

/// A verified delivery: the event, what it credits, and the body as it came.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Which event it is.
    pub event: Event,
    /// What it credits, if anything.
    pub credit: Option<Credit>,
    /// Its body, kept for the dead letters.
    pub body: String,
}

/// What an event does to the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// Whose credits.
    pub account: String,
    /// How many.
    pub amount: i64,
}

/// The source of the invoices' events.
pub const INVOICES: &str = "invoices";
/// The source of GitHub's deliveries.
pub const GITHUB: &str = "github";

/// Why a request is no delivery.
#[derive(Debug, thiserror::Error)]
pub enum NoDelivery {
    /// The body isn't what it should be.
    #[error("unreadable body: {0}")]
    Body(#[from] serde_json::Error),
    /// The event's names are missing or out of bounds.
    #[error(transparent)]
    Key(#[from] InvalidKey),
    /// A header that must be there is not.
    #[error("header {0} is missing")]
    Header(&'static str),
}

#[derive(Deserialize)]
struct Invoice {
    id: String,
    r#type: String,
    account: String,
    amount: i64,
}

impl Delivery {
    /// An invoice event: its id is in the body.
    ///
    /// # Errors
    ///
    /// [`NoDelivery`] when the body is not such an event.
    pub fn invoice(body: &[u8]) -> Result<Self, NoDelivery> {
        let invoice: Invoice = serde_json::from_slice(body)?;
        let credit = Credit {
            account: invoice.account,
            amount: invoice.amount,
        };
        Ok(Self {
            credit: (invoice.r#type == "invoice.paid").then_some(credit),
            event: Event::new(INVOICES, invoice.id)?.with_type(invoice.r#type)?,
            body: String::from_utf8_lossy(body).into_owned(),
        })
    }

    /// A GitHub delivery: its id and type are in headers, and each credits its type by one.
    ///
    /// # Errors
    ///
    /// [`NoDelivery`] when a header is missing or out of bounds, or the body is no JSON.
    pub fn github(id: &[u8], event_type: &[u8], body: &[u8]) -> Result<Self, NoDelivery> {
        serde_json::from_slice::<serde::de::IgnoredAny>(body)?;
        let event_type = EventType::try_from(event_type)?;
        let account = format!("github/{event_type}");
        let event = Event::from_parts(Source::new(GITHUB)?, EventId::try_from(id)?);
        Ok(Self {
            event: event.with_type(event_type.as_str())?,
            credit: Some(Credit { account, amount: 1 }),
            body: String::from_utf8_lossy(body).into_owned(),
        })
    }

    /// The delivery that a dead letter was made of.
    ///
    /// # Errors
    ///
    /// [`NoDelivery`] when the letter was changed since.
    pub fn from_letter(letter: &DeadLetter) -> Result<Self, NoDelivery> {
        if letter.source == GITHUB {
            let event_type = letter.event_type.as_deref().unwrap_or_default();
            Self::github(
                letter.event_id.as_bytes(),
                event_type.as_bytes(),
                letter.body.as_bytes(),
            )
        } else {
            Self::invoice(letter.body.as_bytes())
        }
    }
}

/// A delivery whose `apply` failed, kept until a replay of it is processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// Who sent it.
    pub source: String,
    /// The event's id.
    pub event_id: String,
    /// The event's type.
    pub event_type: Option<String>,
    /// The body.
    pub body: String,
    /// Why it failed last.
    pub error: String,
    /// How often it failed.
    pub attempts: i64,
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Whose credits, and how many.
    #[serde(flatten)]
    pub credit: Credit,
    /// Who sent the event.
    pub source: String,
    /// The event's id.
    pub event_id: String,
}
