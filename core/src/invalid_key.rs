//! Why a source, an event id or an event type was refused.

use std::fmt;

use crate::identity::MAX_BYTES;

/// A source, event id or event type that no store accepts.
///
/// Sending the same bytes again can't help: answer the provider with a 4xx and look at the code
/// that extracts the id.
///
/// ```
/// use onceonly::{EventId, InvalidKeyKind, KeyPart};
///
/// let refused = EventId::new("a\0b").unwrap_err();
/// assert_eq!(refused.kind(), InvalidKeyKind::ControlCharacter);
/// assert_eq!(refused.part(), KeyPart::EventId);
/// assert_eq!(refused.to_string(), "event id holds a control character");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidKey {
    part: KeyPart,
    kind: InvalidKeyKind,
}

impl InvalidKey {
    pub(crate) const fn new(part: KeyPart, kind: InvalidKeyKind) -> Self {
        Self { part, kind }
    }

    /// What is wrong with it.
    #[must_use]
    pub const fn kind(&self) -> InvalidKeyKind {
        self.kind
    }

    /// Which of the names was refused.
    #[must_use]
    pub const fn part(&self) -> KeyPart {
        self.part
    }
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            KeyPart::Source => "source",
            KeyPart::EventId => "event id",
            KeyPart::EventType => "event type",
        };
        match self.kind {
            InvalidKeyKind::Empty => write!(f, "{part} is empty"),
            InvalidKeyKind::TooLong { bytes } => {
                write!(f, "{part} is {bytes} bytes long, the limit is {MAX_BYTES}")
            }
            InvalidKeyKind::ControlCharacter => write!(f, "{part} holds a control character"),
            InvalidKeyKind::NotUtf8 => write!(f, "{part} is not valid UTF-8"),
        }
    }
}

impl std::error::Error for InvalidKey {}

/// What is wrong with a refused name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidKeyKind {
    /// No byte at all.
    Empty,
    /// More than [`MAX_BYTES`] bytes of UTF-8.
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A character of Unicode's category Cc: NUL, line breaks, tabs, DEL, U+0080 to U+009F.
    ControlCharacter,
    /// Bytes that are not UTF-8.
    NotUtf8,
}

/// Which of an event's names was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyPart {
    /// The [`Source`](crate::Source).
    Source,
    /// The [`EventId`](crate::EventId).
    EventId,
    /// The [`EventType`](crate::EventType).
    EventType,
}
