//! Random interleavings of deliveries, checked against what may be committed after them.

mod coverage;
mod delivery;
mod ledger;
mod play;
mod running;
mod script;
mod settings;

pub(crate) use coverage::Coverage;
pub(crate) use ledger::Totals;
pub(crate) use play::Stage;
pub(crate) use script::script;
pub(crate) use settings::{cases, seed};
