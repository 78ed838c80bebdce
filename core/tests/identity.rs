//! What a source, an event id and an event type may be.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use onceonly::{Event, EventId, InvalidKeyKind, KeyPart, MAX_BYTES};
use proptest::prelude::*;

#[test]
fn bad_names_are_refused_with_their_reason() {
    let refused = |text: &str| EventId::new(text).unwrap_err().kind();
    assert_eq!(refused(""), InvalidKeyKind::Empty);
    assert_eq!(
        refused(&"x".repeat(256)),
        InvalidKeyKind::TooLong { bytes: 256 }
    );
    assert_eq!(
        refused(&"é".repeat(128)),
        InvalidKeyKind::TooLong { bytes: 256 }
    );
    for control in ["a\0b", "a\nb", "\t", "a\u{7f}", "a\u{85}"] {
        assert_eq!(
            refused(control),
            InvalidKeyKind::ControlCharacter,
            "{control:?}"
        );
    }
    let invalid = EventId::try_from(&b"evt_\xff"[..]).unwrap_err();
    assert_eq!(
        (invalid.kind(), invalid.part()),
        (InvalidKeyKind::NotUtf8, KeyPart::EventId)
    );
}

#[test]
fn each_part_has_the_limits() {
    let long = "x".repeat(256);
    assert_eq!(Event::new("", "id").unwrap_err().part(), KeyPart::Source);
    assert_eq!(
        Event::new("s", long.as_str()).unwrap_err().part(),
        KeyPart::EventId
    );
    let typed = Event::new("s", "id").unwrap().with_type(long);
    assert_eq!(typed.unwrap_err().part(), KeyPart::EventType);
}

#[test]
fn errors_name_the_part_the_length_and_the_limit() {
    let error = EventId::new("x".repeat(300)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "event id is 300 bytes long, the limit is 255"
    );
}

#[cfg(feature = "serde")]
#[test]
fn serde_keeps_the_limits() {
    let event = Event::new("stripe", "evt_1")
        .unwrap()
        .with_type("invoice.paid")
        .unwrap();
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(
        json,
        r#"{"source":"stripe","id":"evt_1","type":"invoice.paid"}"#
    );
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    let untyped: Event = serde_json::from_str(r#"{"source":"s","id":"1"}"#).unwrap();
    assert_eq!(untyped.event_type(), None);
    assert!(serde_json::from_str::<Event>(r#"{"source":"s","id":""}"#).is_err());
    assert!(serde_json::from_str::<EventId>(r#""a\u0000""#).is_err());
}

proptest! {
    #[test]
    fn what_is_accepted_is_kept_byte_for_byte(text in "\\PC{0,300}") {
        match EventId::new(text.as_str()) {
            Ok(id) => prop_assert_eq!(id.as_str(), text.as_str()),
            Err(_) => prop_assert!(
                text.is_empty() || text.len() > MAX_BYTES || text.chars().any(char::is_control)
            ),
        }
    }
}
