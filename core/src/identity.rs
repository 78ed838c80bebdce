//! The names of an event, checked before any database sees them.

use std::fmt;
use std::str::FromStr;

use crate::invalid_key::{InvalidKey, InvalidKeyKind, KeyPart};

/// Longest [`Source`], [`EventId`] or [`EventType`], in bytes of UTF-8.
///
/// 255 bytes fit a unique index on every database that onceonly knows: InnoDB allows 3,072 bytes a
/// key and PostgreSQL 2,704 bytes an index row.
pub const MAX_BYTES: usize = 255;

fn check(part: KeyPart, text: &str) -> Result<(), InvalidKey> {
    if text.is_empty() {
        Err(InvalidKey::new(part, InvalidKeyKind::Empty))
    } else if text.len() > MAX_BYTES {
        Err(InvalidKey::new(
            part,
            InvalidKeyKind::TooLong { bytes: text.len() },
        ))
    } else if text.chars().any(char::is_control) {
        Err(InvalidKey::new(part, InvalidKeyKind::ControlCharacter))
    } else {
        Ok(())
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $part:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Checks `text` and takes it as it is: nothing is trimmed, folded or normalised.
            ///
            /// # Errors
            ///
            /// [`InvalidKey`] when it is empty, longer than [`MAX_BYTES`], or holds a control
            /// character (NUL and line breaks included).
            pub fn new(text: impl Into<Box<str>>) -> Result<Self, InvalidKey> {
                let text = text.into();
                check($part, &text)?;
                Ok(Self(text))
            }

            /// The text, byte for byte as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidKey;

            fn from_str(text: &str) -> Result<Self, InvalidKey> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidKey;

            fn try_from(text: &str) -> Result<Self, InvalidKey> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidKey;

            fn try_from(text: String) -> Result<Self, InvalidKey> {
                Self::new(text)
            }
        }

        /// For raw header values and bodies: bytes that are not UTF-8 are refused, never replaced.
        impl TryFrom<&[u8]> for $name {
            type Error = InvalidKey;

            fn try_from(bytes: &[u8]) -> Result<Self, InvalidKey> {
                match std::str::from_utf8(bytes) {
                    Ok(text) => Self::new(text),
                    Err(_) => Err(InvalidKey::new($part, InvalidKeyKind::NotUtf8)),
                }
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name! {
    /// Who sends the event, for example `stripe` or `github/acme`.
    ///
    /// Ids are unique within a source only; two accounts of one provider that number their events
    /// separately are two sources.
    ///
    /// ```
    /// use onceonly::Source;
    ///
    /// assert_eq!(Source::new("stripe")?.as_str(), "stripe");
    /// assert!(Source::new("").is_err());
    /// # Ok::<(), onceonly::InvalidKey>(())
    /// ```
    Source, KeyPart::Source
}

name! {
    /// The provider's stable id of the event: the same on every redelivery.
    ///
    /// Compared byte for byte: `a`, `A` and `a ` are three ids. Never a hash of the payload, which
    /// providers may re-serialise between two deliveries.
    ///
    /// ```
    /// use onceonly::EventId;
    ///
    /// assert_ne!(EventId::new("evt_1")?, EventId::new("EVT_1")?);
    /// assert!(EventId::new("x".repeat(256)).is_err());
    /// assert!(EventId::try_from(&b"\xff"[..]).is_err());
    /// # Ok::<(), onceonly::InvalidKey>(())
    /// ```
    EventId, KeyPart::EventId
}

name! {
    /// What happened, for example `invoice.paid`: stored for people, never part of the identity.
    ///
    /// ```
    /// use onceonly::EventType;
    ///
    /// assert_eq!(EventType::new("invoice.paid")?.as_str(), "invoice.paid");
    /// # Ok::<(), onceonly::InvalidKey>(())
    /// ```
    EventType, KeyPart::EventType
}
