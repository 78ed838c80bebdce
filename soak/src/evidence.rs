//! What the database holds in the end.

use std::collections::HashMap;

use crate::Failure;

/// The source of every event of a run.
pub(crate) const SOURCE: &str = "soak";
/// What `apply` writes to: a plain INSERT per effect and no unique key on the event, so that a
/// second effect would show.
pub(crate) const LEDGER: &str = "soak_ledger";
pub(crate) const CLAIMS: &str = "soak_claims";

/// The id of an event.
pub(crate) fn event_id(event: u32) -> String {
    format!("evt_{event}")
}

/// Ledger and claims, read by a connection that knows nothing of onceonly.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// Per event: the deliveries whose effect is there.
    pub(crate) effects: HashMap<u32, Vec<u64>>,
    /// Per event: how many claims are there.
    pub(crate) claims: HashMap<u32, u32>,
}

impl Evidence {
    pub(crate) fn of(
        effects: impl IntoIterator<Item = (i64, i64)>,
        claims: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Failure> {
        let mut evidence = Self::default();
        for (event, delivery) in effects {
            let rows = evidence.effects.entry(u32::try_from(event)?).or_default();
            rows.push(u64::try_from(delivery)?);
        }
        for (source, id) in claims {
            let event = id
                .strip_prefix("evt_")
                .filter(|_| source == SOURCE)
                .and_then(|number| number.parse().ok())
                .ok_or_else(|| format!("nobody delivered the claim {source:?} {id:?}"))?;
            *evidence.claims.entry(event).or_default() += 1;
        }
        Ok(evidence)
    }
}
