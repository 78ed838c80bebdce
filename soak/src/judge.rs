//! Judging a run from outside: raw connections, the journal, and nothing of onceonly.

use crate::Failure;
use crate::arguments::{Judge, Kind};
use crate::counts::Counts;
use crate::database::{Database, MySql, Postgres, Sqlite};
use crate::journal;
use crate::verdict::Verdict;

pub(crate) fn main(judge: &Judge) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let place = &judge.place;
    let evidence = runtime.block_on(async {
        match place.database {
            Kind::Sqlite => Sqlite::new(place.file()?).evidence().await,
            Kind::Postgres => Postgres::new(place.url()?).evidence().await,
            Kind::Mysql => MySql::new(&place.url()?)?.evidence().await,
        }
    })?;
    let lines = journal::read(&judge.journal)?;
    let mut counts = Counts::default();
    for line in &lines {
        counts.add(line.plan, line.answer);
    }
    let verdict = Verdict::of(judge.size.events, &lines, &evidence);
    println!("judged from {} lines of the journal:", lines.len());
    print!("{verdict}");
    counts.require(judge.size.deliveries)?;
    match verdict.wrong() {
        0 => Ok(()),
        wrong => Err(format!("wrong: {wrong}").into()),
    }
}
