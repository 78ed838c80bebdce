//! R7: identity is (source, event id), compared byte for byte.

use std::collections::BTreeSet;

use onceonly::{Claim, ClaimStore, Event, EventId, Handler};
use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::Harness;
use crate::random::seed;
use crate::world::{PATIENT, World, begun, duplicate, must};

/// Ids that are the same to some collation, column type or conversion, and other bytes.
const LOOK_ALIKES: &[(&str, &[&str])] = &[
    (
        "case",
        &["a", "A", "evt_1", "EVT_1", "Evt_1", "i", "I", "ı", "İ"],
    ),
    ("padding", &["p", "p ", "p  ", " p", "p\u{a0}", "p\u{3000}"]),
    ("width", &["w", "ｗ", "1w", "１w"]),
    (
        "accents",
        &["e", "é", "è", "ê", "É", "o", "ö", "ø", "n", "ñ"],
    ),
    (
        "normal forms",
        &[
            "\u{e9}", "e\u{301}", "\u{e4}", "a\u{308}", "\u{f1}", "n\u{303}", "\u{c5}", "\u{212b}",
            "A\u{30a}",
        ],
    ),
    (
        "expansions",
        &["ß", "ss", "SS", "ẞ", "ﬁ", "fi", "æ", "ae", "ǆ", "dž"],
    ),
    (
        "no width",
        &["zw", "z\u{200b}w", "z\u{200d}w", "z\u{ad}w", "z\u{feff}w"],
    ),
    (
        "beyond the basic plane",
        &["😀", "😁", "💶", "👍", "👍🏽", "\u{fffd}", "?", "??"],
    ),
    (
        "numbers",
        &[
            "1", "01", "1.0", "+1", "1 ", "1e0", "0x1", "1e3", "1000", "0", "00", "-0",
        ],
    ),
    (
        "large numbers",
        &["9007199254740993", "9007199254740992", "1e400", "1e401"],
    ),
    (
        "values",
        &[
            "NULL", "null", "\\N", "NaN", "nan", "true", "TRUE", "t", "Infinity",
        ],
    ),
    (
        "alphabets",
        &[
            "E", "\u{415}", "\u{395}", "K", "\u{212a}", "\u{3a9}", "\u{2126}",
        ],
    ),
    (
        "dashes",
        &["evt-1", "evt_1", "evt\u{2011}1", "evt\u{2013}1"],
    ),
];

pub(crate) async fn r7_keys_that_differ_in_any_byte_are_distinct<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    for (why, ids) in LOOK_ALIKES {
        all_are_distinct(&world, &store, why, ids).await;
    }
    world.done().await;
}

/// Processes each id once, in a source of its own, and then finds a duplicate of each.
async fn all_are_distinct<H: Harness>(
    world: &World<H>,
    store: &H::Store,
    why: &str,
    ids: &[impl AsRef<str>],
) {
    let event = |id: &str| must(Event::new(why, id), "an event");
    let mut processed = 0;
    for id in ids {
        match must(store.claim(&event(id.as_ref()), PATIENT).await, "claiming") {
            Claim::Fresh(mut tx) => {
                world.credit(&mut tx, why).await;
                must(store.commit(tx).await, "committing");
            }
            Claim::Duplicate(_) => panic!(
                "{:?} is said to be a duplicate, and differs ({why}) from all before it",
                id.as_ref()
            ),
        }
        processed += 1;
        world.expect(&event(id.as_ref()), 1, why, processed).await;
    }
    for id in ids {
        duplicate(store, &event(id.as_ref())).await;
    }
}

pub(crate) async fn r7_random_keys_are_distinct<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let seed = seed();
    println!("r7_random_keys_are_distinct: ONCEONLY_SEED={seed}");
    let config = Config {
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let names = must(string_regex("\\PC{1,40}"), "a pattern for names");
    let mut ids = BTreeSet::new();
    for _ in 0..30 {
        let id = must(names.new_tree(&mut runner), "a random name").current();
        let mut shorter = id.clone();
        shorter.pop();
        ids.extend([
            format!("{id} "),
            format!(" {id}"),
            format!("{id}0"),
            format!("{id}{id}"),
            id.to_lowercase(),
            id.to_uppercase(),
            shorter,
            id,
        ]);
    }
    let valid = ids
        .into_iter()
        .filter(|id| EventId::new(id.as_str()).is_ok());
    all_are_distinct(&world, &store, "random", &valid.collect::<Vec<_>>()).await;
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

/// A handler's queue is one per source and id: behind another source's event nobody is a duplicate.
pub(crate) async fn r7_two_sources_do_not_share_a_handlers_queue<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(4).await).with_wait(PATIENT);
    let one = must(Event::new("source one", "r7"), "an event");
    let other = must(Event::new("source two", "r7"), "an event");
    let open = begun(&handler, &one).await;
    let delivery = handler.handle(&other, async |tx| world.effect(tx, "acme").await);
    // Polled in this order, so that the delivery comes while the other one is open.
    let (outcome, committed) = tokio::join!(biased; delivery, open.commit());
    must(committed, "committing");
    let outcome = must(outcome, "delivering the other source's event");
    assert!(!outcome.is_duplicate(), "of another source's event");
    world.expect(&other, 1, "acme", 1).await;
    world.done().await;
}
