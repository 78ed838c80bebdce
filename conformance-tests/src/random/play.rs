//! Plays a script: starts its deliveries, lets one after the other go on, and checks what is left.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use onceonly::{Claim, ClaimStore, Event, Handler};
use tokio::time::{Instant, sleep, timeout};

use super::delivery::{Answer, Control, Delivery};
use super::ledger::Ended;
use super::running::{Running, go_on};
use super::script::{EVENTS, Fate, Planned, Script, Wait, Way};
use super::{Coverage, Totals};
use crate::world::{PATIENT, World, event, must};
use crate::{Capabilities, Harness};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The world in which scripts are played, one after the other.
pub(crate) struct Stage<H: Harness> {
    world: World<H>,
    store: Arc<H::Store>,
    other: Arc<H::Store>,
    handler: Handler<Arc<H::Store>>,
    capabilities: Capabilities,
    played: u32,
    pub(crate) coverage: Coverage,
    pub(crate) totals: Totals,
}

impl<H: Harness> Stage<H> {
    pub(crate) async fn new(world: World<H>) -> Self {
        let capabilities = H::capabilities();
        let store = world.open(8).await;
        let other = match capabilities.second_store {
            true => world.open(8).await,
            false => Arc::clone(&store),
        };
        Self {
            handler: Handler::new(Arc::clone(&store)),
            world,
            store,
            other,
            capabilities,
            played: 0,
            coverage: Coverage::default(),
            totals: Totals::default(),
        }
    }

    fn event(&self, number: u8) -> Event {
        event(&format!("{}/{number}", self.played))
    }

    pub(crate) async fn play(&mut self, script: &Script) {
        self.played += 1;
        let mut running: Vec<Running> = Vec::new();
        let mut ended: Vec<Ended> = Vec::new();
        let mut aged: HashMap<u8, u64> = HashMap::new();
        for (number, planned) in script.deliveries.iter().enumerate() {
            if planned.prunes {
                *aged.entry(planned.event).or_default() += 1;
                // To make a claim older may take its lock, and to prune the one writer's.
                for delivery in &running {
                    if delivery.event == planned.event || !self.capabilities.concurrent_keys {
                        delivery.control.go_on();
                    }
                }
                self.prune(planned.event).await;
            }
            running.push(self.start(number, planned));
            self.quiet(&mut running).await;
            self.collect(&mut running, &mut ended).await;
            while running.len() >= script.width {
                go_on(&running, planned);
                self.until_one_ends(&mut running).await;
                self.collect(&mut running, &mut ended).await;
            }
        }
        for delivery in &running {
            delivery.control.go_on();
        }
        while !running.is_empty() {
            self.until_one_ends(&mut running).await;
            self.collect(&mut running, &mut ended).await;
        }
        for number in 0..EVENTS {
            let deliveries: Vec<_> = ended.iter().filter(|ended| ended.event == number).collect();
            let event = self.event(number);
            let aged = aged.get(&number).copied().unwrap_or_default();
            // Its claim waits for what a dropped commit may still be doing.
            self.deliver_again(&event).await;
            self.totals
                .check_event(&self.world, &event, &deliveries, aged)
                .await;
        }
    }

    fn start(&self, number: usize, planned: &Planned) -> Running {
        let account = format!("{}/{number}", self.played);
        let control = Control::new();
        let store = if planned.way == Way::OtherStore {
            &self.other
        } else {
            &self.store
        };
        let delivery = Delivery {
            world: self.world.clone(),
            store: Arc::clone(store),
            handler: self.handler.clone(),
            event: self.event(planned.event),
            account: account.clone(),
            way: planned.way,
            wait: planned.wait,
            fate: planned.fate,
            control: control.clone(),
        };
        Running {
            event: planned.event,
            account,
            fate: planned.fate,
            way: planned.way,
            wait: planned.wait,
            waited: false,
            control,
            task: tokio::spawn(delivery.run()),
        }
    }

    /// Returns when every claim was answered or waits for another transaction.
    async fn quiet(&self, running: &mut [Running]) {
        let started = Instant::now();
        loop {
            let waiting = must(self.world.waiting().await, "asking who waits") as usize;
            let claiming = running
                .iter()
                .filter(|delivery| delivery.is_counted())
                .count();
            // One that would not wait gets its answer while the key is held.
            let undecided = running
                .last()
                .is_some_and(|last| last.wait == Wait::Zero && last.is_counted());
            if waiting >= claiming && !undecided {
                break;
            }
            assert!(
                started.elapsed() < PATIENT,
                "of {claiming} claims that were not answered, only {waiting} wait for another"
            );
            sleep(Duration::from_millis(1)).await;
        }
        let Some((last, before)) = running.split_last_mut() else {
            return;
        };
        // Where there is one writer, whoever holds it holds every key.
        let one_writer = !self.capabilities.concurrent_keys;
        let held = before
            .iter()
            .any(|other| (one_writer || other.event == last.event) && other.is_applying());
        last.waited = held && last.is_counted();
    }

    async fn until_one_ends(&self, running: &mut [Running]) {
        let started = Instant::now();
        while !running.iter().any(|delivery| delivery.task.is_finished()) {
            // On a database with one writer it may wait for any of them.
            if started.elapsed() > Duration::from_millis(20) {
                for delivery in running.iter().filter(|other| other.is_applying()) {
                    delivery.control.go_on();
                }
            }
            assert!(
                started.elapsed() < 2 * PATIENT,
                "no delivery ended within {:?}",
                2 * PATIENT
            );
            sleep(Duration::from_millis(1)).await;
        }
    }

    async fn collect(&mut self, running: &mut Vec<Running>, ended: &mut Vec<Ended>) {
        for delivery in running.extract_if(.., |delivery| delivery.task.is_finished()) {
            let answer = match delivery.task.await {
                Ok(answer) => answer,
                Err(error) if error.is_cancelled() => Answer::Dropped(delivery.control.phase()),
                Err(_) if delivery.fate == Fate::Panics => Answer::Panicked,
                Err(error) => panic!("a delivery panicked, and it was not planned: {error}"),
            };
            self.coverage.count(&answer, delivery.waited);
            let Running { event, account, .. } = delivery;
            ended.push(Ended {
                event,
                account,
                answer,
            });
        }
    }

    async fn prune(&mut self, number: u8) {
        let event = self.event(number);
        let mut aged = self.world.age(&event, 2 * DAY).await;
        for _ in 0..10 {
            if aged.is_ok() {
                break;
            }
            // A deadlock with deliveries of the event is the harness's own to retry.
            sleep(Duration::from_millis(20)).await;
            aged = self.world.age(&event, 2 * DAY).await;
        }
        must(aged, "making a claim older");
        let pruned = must(self.store.prune(DAY, 1_000).await, "pruning");
        self.totals.pruned += pruned;
        self.coverage
            .pruned(u32::try_from(pruned).unwrap_or(u32::MAX));
    }

    /// The next delivery is right, whatever became of those before it.
    async fn deliver_again(&mut self, event: &Event) {
        for store in [&self.store, &self.other] {
            let claim = timeout(Duration::from_secs(10), store.claim(event, PATIENT)).await;
            let claim = must(claim, "claiming after a run, when nothing is open");
            let claim = must(claim, "claiming after a run");
            let (claims, _) = self.world.committed(event, "nobody").await;
            match claim {
                Claim::Duplicate(_) => assert_eq!(claims, 1, "claims of the duplicate {event:?}"),
                Claim::Fresh(tx) => {
                    assert_eq!(claims, 0, "claims of {event:?}, which was claimed anew");
                    must(store.rollback(tx).await, "rolling back");
                }
            }
        }
    }
}
