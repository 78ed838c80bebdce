//! Every answer that the provider got.

use std::collections::BTreeMap;

/// What billing answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 200, and the body says processed.
    Processed,
    /// 200, and the body says duplicate.
    Duplicate,
    /// Anything that makes a provider retry, by its status; 0 when the connection failed.
    Retry(u16),
}

/// The answers to each event's deliveries: one list per delivery, in the order of its attempts.
pub(crate) type Journal = BTreeMap<String, Vec<Vec<Answer>>>;
