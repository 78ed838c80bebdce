//! Delivering the schedule, some at a time, and writing down every answer.

mod attempt;
mod planted;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onceonly::Handler;
use tokio::task::JoinSet;

use self::attempt::Attempt;
use crate::Failure;
use crate::arguments::{Deliver, Kind, Load};
use crate::counts::Counts;
use crate::database::{Database, MySql, Postgres, Sqlite};
use crate::delivery::{Answer, Delivery, Plan, PlanKind};
use crate::journal::{Journal, Line};
use crate::sabotage::Saboteur;
use crate::schedule::{HANDLERS, schedule};

/// How often an event without a 200 is delivered again after the schedule.
const REDELIVERIES: u32 = 20;

pub(crate) fn main(deliver: &Deliver) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()?;
    let place = &deliver.place;
    runtime.block_on(async {
        match place.database {
            Kind::Sqlite => on(Sqlite::new(place.file()?), deliver).await,
            Kind::Postgres => on(Postgres::new(place.url()?), deliver).await,
            Kind::Mysql => on(MySql::new(&place.url()?)?, deliver).await,
        }
    })
}

async fn on<D: Database>(database: D, deliver: &Deliver) -> Result<(), Failure> {
    let Load { size, seed, .. } = deliver.load;
    let seed = seed.unwrap_or_else(rand::random);
    println!(
        "{}: {} deliveries of {} events, {} at a time, --seed {seed}",
        deliver.place.database.name(),
        size.deliveries,
        size.events,
        deliver.load.concurrency
    );
    database.prepare().await?;
    let mut handlers = Vec::new();
    for _ in 0..HANDLERS {
        handlers.push(Handler::new(database.store().await?));
    }
    let run = Arc::new(Run {
        attempt: Attempt {
            database,
            handlers,
            saboteur: Saboteur::new(deliver.load.sabotage),
            journal: Journal::create(&deliver.journal)?,
        },
        deliveries: schedule(size, seed),
        next: AtomicUsize::new(0),
        sessions: match deliver.load.kill_every {
            Some(_) => Sessions::Killed,
            None => Sessions::Safe,
        },
        seen: Mutex::default(),
    });
    let started = Instant::now();
    run.schedule(&deliver.load).await?;
    run.redeliver(size.events).await?;
    run.conclude(size.deliveries, size.events, started.elapsed())
}

struct Run<D: Database> {
    attempt: Attempt<D>,
    deliveries: Vec<Delivery>,
    next: AtomicUsize,
    sessions: Sessions,
    seen: Mutex<Seen>,
}

/// Whether sessions of the server are ended under the deliveries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sessions {
    Safe,
    Killed,
}

/// What was answered so far.
#[derive(Default)]
struct Seen {
    counts: Counts,
    done: HashSet<u32>,
    /// Answers that nothing planted explains, shown in full: the first few.
    surprises: u32,
}

impl<D: Database> Run<D> {
    async fn schedule(self: &Arc<Self>, load: &Load) -> Result<(), Failure> {
        let mut workers = JoinSet::new();
        for _ in 0..load.concurrency.get() {
            let run = Arc::clone(self);
            workers.spawn(async move {
                while let number = run.next.fetch_add(1, Ordering::Relaxed)
                    && let Some(delivery) = run.deliveries.get(number)
                {
                    run.deliver(number as u64, *delivery, delivery.plan.kind())
                        .await?;
                }
                Ok::<_, Failure>(())
            });
        }
        let mut ticks = tokio::time::interval(Duration::from_secs(5));
        ticks.tick().await;
        let every = load.kill_every.map_or(Duration::MAX, |every| {
            Duration::from_millis(every.get().into())
        });
        loop {
            tokio::select! {
                joined = workers.join_next() => match joined {
                    Some(worker) => worker??,
                    None => return Ok(()),
                },
                () = tokio::time::sleep(every), if self.sessions == Sessions::Killed => {
                    self.attempt.database.kill_one().await?;
                }
                _ = ticks.tick() => println!("  {}", self.seen().counts.progress()),
            }
        }
    }

    /// Every event without a 200 is delivered plainly until it has one.
    async fn redeliver(&self, events: u32) -> Result<(), Failure> {
        let mut number = self.deliveries.len() as u64;
        for event in 0..events {
            for _ in 0..REDELIVERIES {
                if self.seen().done.contains(&event) {
                    break;
                }
                let delivery = Delivery {
                    event,
                    handler: number as usize % HANDLERS,
                    wait: Duration::from_secs(2),
                    plan: Plan::Plain,
                };
                self.deliver(number, delivery, PlanKind::Redelivery).await?;
                number += 1;
            }
        }
        Ok(())
    }

    async fn deliver(
        &self,
        number: u64,
        delivery: Delivery,
        plan: PlanKind,
    ) -> Result<(), Failure> {
        let journal = &self.attempt.journal;
        let began = journal.ticket();
        let attempted = self.attempt.make(number, delivery).await?;
        journal.write(&Line {
            delivery: number,
            event: delivery.event,
            plan,
            began,
            commit_began: attempted.commit_began,
            ended: journal.ticket(),
            answer: attempted.answer,
        })?;
        let mut seen = self.seen();
        seen.counts.add(plan, attempted.answer);
        if attempted.answer.is_200() {
            seen.done.insert(delivery.event);
        }
        if !self.is_expected(attempted.answer, plan) && seen.surprises < 10 {
            let Delivery { event, plan, .. } = delivery;
            let detail = attempted.detail.unwrap_or_default();
            let surprise = format!("delivery {number} of event {event} ({plan:?}): {detail}");
            eprintln!("  UNEXPECTED {}: {surprise}", attempted.answer);
            seen.surprises += 1;
        }
        Ok(())
    }

    fn conclude(&self, deliveries: u32, events: u32, took: Duration) -> Result<(), Failure> {
        let seen = self.seen();
        println!("delivered in {:.1} s:", took.as_secs_f64());
        print!("{}", seen.counts);
        let all = seen.counts.iter();
        for (answer, plan, count) in
            all.filter(|(answer, plan, _)| !self.is_expected(*answer, *plan))
        {
            println!("  UNEXPECTED: {count} x {answer} in deliveries planned as {plan}");
        }
        if let Some(done) = self.attempt.saboteur.done() {
            println!("  SABOTAGE: {done} wrongs done on purpose");
        }
        let missing = events as usize - seen.done.len();
        if missing > 0 {
            return Err(format!("{missing} events never got a 200").into());
        }
        seen.counts.require(deliveries)
    }

    fn is_expected(&self, answer: Answer, plan: PlanKind) -> bool {
        answer.is_expected(plan)
            || (self.sessions == Sessions::Killed && answer.is_of_killed_session())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
