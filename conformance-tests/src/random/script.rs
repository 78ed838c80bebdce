//! What one random run does, and in which order.

use proptest::prelude::*;
use proptest::sample::Index;

/// How many events one run delivers.
pub(super) const EVENTS: u8 = 5;

/// Deliveries in the order of their start, at least two of them in flight at any time.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) deliveries: Vec<Planned>,
    /// How many are in flight, at most.
    pub(crate) width: usize,
}

/// One delivery, and what happens before the next one starts.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    /// Which of the run's events it delivers.
    pub(crate) event: u8,
    pub(crate) way: Way,
    pub(crate) wait: Wait,
    pub(crate) fate: Fate,
    /// Which of those in flight goes on when there is no room for another.
    pub(crate) next: Index,
    /// It is dropped where it stands instead of going on.
    pub(crate) drops_next: bool,
    /// Old claims of its event are pruned before it starts.
    pub(crate) prunes: bool,
}

/// How a delivery reaches the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Store,
    OtherStore,
    Handle,
    Guard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Zero,
    Short,
    Patient,
}

/// How a delivery ends if it gets to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Commits,
    Fails,
    Panics,
    /// The whole delivery is dropped after so many polls.
    DroppedAfter(u32),
    /// Its commit is dropped after so many polls.
    CommitDroppedAfter(u32),
}

/// Many more deliveries than events, so that most of them race.
pub(crate) fn script() -> impl Strategy<Value = Script> {
    (prop::collection::vec(planned(), 16..32), 2_usize..7)
        .prop_map(|(deliveries, width)| Script { deliveries, width })
}

fn planned() -> impl Strategy<Value = Planned> {
    let way = prop_oneof![
        4 => Just(Way::Store),
        4 => Just(Way::OtherStore),
        2 => Just(Way::Handle),
        2 => Just(Way::Guard),
    ];
    let wait = prop_oneof![
        1 => Just(Wait::Zero),
        1 => Just(Wait::Short),
        4 => Just(Wait::Patient),
    ];
    let fate = prop_oneof![
        2 => Just(Fate::Commits),
        4 => Just(Fate::Fails),
        2 => Just(Fate::Panics),
        2 => (1_u32..6).prop_map(Fate::DroppedAfter),
        2 => Just(Fate::CommitDroppedAfter(0)),
        2 => (1_u32..5).prop_map(Fate::CommitDroppedAfter),
    ];
    let next = (any::<Index>(), prop::bool::weighted(0.2));
    let prunes = prop::bool::weighted(0.1);
    (0..EVENTS, way, wait, fate, next, prunes).prop_map(
        |(event, way, wait, fate, (next, drops_next), prunes)| Planned {
            event,
            way,
            wait,
            fate,
            next,
            drops_next,
            prunes,
        },
    )
}
