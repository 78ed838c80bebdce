//! R7: identity is (source, event id), compared byte for byte.

use onceonly::Event;

use crate::Harness;
use crate::world::{World, duplicate, event, must};

/// Each of these is another key to a comparison of bytes, and the same to some collation, column
/// type or conversion.
const DISTINCT: &[&str] = &[
    "a",
    "A",
    "a ",
    " a",
    "a  ",
    "ａ",
    "á",
    "a\u{301}",
    "â",
    "aa", // case, padding, width, accents
    "ß",
    "ss",
    "SS",
    "ẞ",
    "i",
    "I",
    "ı",
    "İ",
    "ﬁ",
    "fi",
    "æ",
    "ae", // case folding and ligatures
    "zw",
    "z\u{200b}w",
    "z\u{200d}w",
    "z\u{ad}w",
    "z\u{feff}w", // characters of no width
    "😀",
    "😁",
    "💶",
    "👍",
    "👍🏽",
    "\u{fffd}",
    "?",
    "??", // beyond the basic plane
    "0",
    "00",
    "-0",
    "1",
    "01",
    "1.0",
    "1e3",
    "1000",
    "0x1",
    "true",
    "1 ",
    "+1", // numbers
    "NULL",
    "null",
    "Null",
    "\\N",
    "nan",
    "NaN", // values
    "ä",
    "a\u{308}",
    "Ä",
    "ö",
    "ø",
    "ñ",
    "n\u{303}",
    "ñ ", // composed and not
    "evt_1",
    "EVT_1",
    "evt-1",
    "evt_1\u{a0}",
    "evt_1\u{3000}",
    "evt\u{2011}1", // spaces and dashes
    "é",
    "e\u{301}",
    "e",
    "É",
    "è",
    "Е",
    "E",
    "Ε", // Latin, Cyrillic and Greek look-alikes
];

pub(crate) async fn r7_keys_that_differ_in_any_byte_are_distinct<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    for (before, id) in DISTINCT.iter().enumerate() {
        world.process(&store, &event(id), "acme").await;
        world.expect(&event(id), 1, "acme", before as u64 + 1).await;
    }
    for id in DISTINCT {
        duplicate(&*store, &event(id)).await;
    }
    world.done().await;
}

pub(crate) async fn r7_the_same_id_of_two_sources_is_two_events<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let names = [
        ("stripe", "1"),
        ("Stripe", "1"),
        ("stripe ", "1"),
        ("github", "1"), // the source counts
        ("a", "bc"),
        ("ab", "c"),
        ("a/b", "c"),
        ("a", "b/c"),
        ("a:b", "c"),
        ("a", "b:c"), // borders
    ];
    for (before, (source, id)) in names.into_iter().enumerate() {
        let event = must(Event::new(source, id), "an event");
        world.process(&store, &event, "acme").await;
        world.expect(&event, 1, "acme", before as u64 + 1).await;
    }
    for (source, id) in names {
        duplicate(&*store, &must(Event::new(source, id), "an event")).await;
    }
    world.done().await;
}

pub(crate) async fn r7_longest_names_are_kept_whole<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    for letter in ["x", "é", "€", "😀"] {
        let long = letter.repeat(255 / letter.len());
        for last in ["", "y", "z"] {
            let mut id = long.clone();
            if !last.is_empty() {
                id.truncate(id.len() - letter.len());
                id.push_str(last);
            }
            let event = must(Event::new(long.as_str(), id.as_str()), "an event");
            let event = must(event.with_type(long.as_str()), "its type");
            world.process(&store, &event, "acme").await;
            duplicate(&*store, &event).await;
        }
    }
    world.done().await;
}

pub(crate) async fn r7_hostile_names_are_only_names<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let hostile = [
        "'; DROP TABLE processed_events; --",
        "\"; ROLLBACK; --",
        "` ; COMMIT; #",
        "\\",
        "\\'",
        "''",
        "x'00'",
        "$1",
        "?",
        ":id",
        "@a",
        "%s",
        "{}",
        "${x}",
        "*/",
        "/*",
        "--",
        ")",
        "E'\\000'",
        "\u{202e}evt",
        "a,b",
        "(a)",
        "[1]",
        "~",
        "|",
        "&amp;",
        "<script>",
        "../../etc/passwd",
    ];
    for (before, id) in hostile.into_iter().enumerate() {
        let event = must(Event::new(id, id), "an event");
        let event = must(event.with_type(id), "its type");
        world.process(&store, &event, "acme").await;
        world.expect(&event, 1, "acme", before as u64 + 1).await;
        duplicate(&*store, &event).await;
    }
    world.done().await;
}
