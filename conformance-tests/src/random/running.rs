//! The deliveries that are in flight.

use tokio::task::JoinHandle;

use super::delivery::{Answer, Control, Phase};
use super::script::{Fate, Planned, Wait, Way};

pub(super) struct Running {
    pub(super) event: u8,
    pub(super) account: String,
    pub(super) fate: Fate,
    pub(super) way: Way,
    pub(super) wait: Wait,
    pub(super) waited: bool,
    pub(super) control: Control,
    pub(super) task: JoinHandle<Answer>,
}

impl Running {
    pub(super) fn is_claiming(&self) -> bool {
        !self.task.is_finished() && self.control.phase() == Phase::Claiming
    }

    pub(super) fn is_applying(&self) -> bool {
        self.control.phase() == Phase::Applying
    }

    /// A claim that the harness counts once it waits.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.way, Way::Store | Way::OtherStore) && self.is_claiming()
    }
}

/// Lets the planned one of those in flight go on, after whoever holds its key, or drops it.
pub(super) fn go_on(running: &[Running], planned: &Planned) {
    let next = &running[planned.next.index(running.len())];
    if planned.drops_next {
        next.task.abort();
        return;
    }
    next.control.go_on();
    for holder in running
        .iter()
        .filter(|other| other.event == next.event && other.is_applying())
    {
        holder.control.go_on();
    }
}
