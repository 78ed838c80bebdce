//! One event as a provider names it.

use crate::{EventId, EventType, InvalidKey, Source};

/// An event: its identity (source and id) and, for people, its type.
///
/// Two deliveries are the same event when source and id are equal byte for byte; the type plays no
/// part in it.
///
/// ```
/// use onceonly::Event;
///
/// let event = Event::new("stripe", "evt_1")?.with_type("invoice.paid")?;
/// assert_eq!(event.id().as_str(), "evt_1");
/// assert_eq!(event.event_type().map(|t| t.as_str()), Some("invoice.paid"));
/// assert!(Event::new("stripe", "").is_err());
/// # Ok::<(), onceonly::InvalidKey>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Event {
    source: Source,
    id: EventId,
    #[cfg_attr(feature = "serde", serde(rename = "type", default))]
    event_type: Option<EventType>,
}

impl Event {
    /// Checks both names and puts them together.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`], as [`Source::new`] and [`EventId::new`] say.
    pub fn new(source: impl Into<Box<str>>, id: impl Into<Box<str>>) -> Result<Self, InvalidKey> {
        Ok(Self::from_parts(Source::new(source)?, EventId::new(id)?))
    }

    /// An event of names that were checked before.
    #[must_use]
    pub const fn from_parts(source: Source, id: EventId) -> Self {
        Self {
            source,
            id,
            event_type: None,
        }
    }

    /// The same event with a type.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`], as [`EventType::new`] says.
    pub fn with_type(mut self, event_type: impl Into<Box<str>>) -> Result<Self, InvalidKey> {
        self.event_type = Some(EventType::new(event_type)?);
        Ok(self)
    }

    /// Who sends it.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// The provider's id of it.
    #[must_use]
    pub const fn id(&self) -> &EventId {
        &self.id
    }

    /// What happened, if it was given.
    #[must_use]
    pub const fn event_type(&self) -> Option<&EventType> {
        self.event_type.as_ref()
    }
}
