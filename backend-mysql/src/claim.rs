//! Contending for a key: the insert of a claim, or the delete that forgets one, until it is decided.

use std::future::Future;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use mysql_async::Error;
use onceonly::{Event, EventId, Forget, Source, StoreError, StoreErrorKind};
use tokio::time::{sleep, timeout};

use crate::budget::{Budget, GRACE};
use crate::connection::Connection;
use crate::error::{self, DUPLICATE_ENTRY, LOCK_WAIT_TIMEOUT};
use crate::proof::{Nonce, Token};
use crate::reply::{Reply, number};
use crate::statements::{CLAIM_STATEMENTS, Statements};
use crate::transaction::Claimed;

/// A pool whose connections are out of step is not asked for ever.
const OUT_OF_STEP_LIMIT: u32 = 5;
const ROLLBACK_LIMIT: Duration = Duration::from_secs(2);

/// What waits for a key's lock.
pub(crate) trait Contender: Sync {
    /// What one try wrote, to recognise it by.
    type Mark: Send;
    /// What it came to.
    type Outcome: Send;

    /// The statements of one try, made by [`Statements`].
    fn text(&self, nonce: Nonce, seconds: u64) -> (String, Self::Mark);

    /// What a reply means that is no reason for another try.
    fn outcome(&self, mark: Self::Mark, reply: Reply) -> Result<Self::Outcome, StoreError>;
}

/// Tries until there is an outcome or `wait` has passed. The connection's transaction is still open
/// when it returns, and dropping it rolls back.
pub(crate) async fn contend<C, F>(
    contender: &C,
    wait: Duration,
    connect: impl Fn() -> F + Sync,
) -> Result<(C::Outcome, Connection), StoreError>
where
    C: Contender,
    F: Future<Output = Result<Connection, StoreError>> + Send,
{
    let mut connection = connect().await?;
    let budget = Budget::start(wait);
    let mut pauses = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(2))
        .with_max_delay(Duration::from_millis(100))
        .with_jitter()
        .without_max_times()
        .build();
    let mut out_of_step = 0;
    loop {
        let plan = budget.plan();
        let nonce = Nonce::random();
        let (text, mark) = contender.text(nonce, plan.lock_wait_seconds);
        let answer = timeout(plan.answer_within, connection.contend(&text, nonce)).await;
        let Ok(reply) = answer else {
            return Err(if plan.last {
                error::in_flight()
            } else {
                StoreError::new(StoreErrorKind::Unavailable, "the server stopped answering")
            });
        };
        let Some(reply) = reply else {
            out_of_step += 1;
            if out_of_step == OUT_OF_STEP_LIMIT {
                return Err(error::out_of_step());
            }
            // First: it may be the pool's only one.
            drop(connection);
            connection = connect().await?;
            continue;
        };
        let passing = reply
            .server_error()
            .map(|error| error.code)
            .filter(|code| error::is_passing(*code));
        let Some(code) = passing else {
            let outcome = contender.outcome(mark, reply);
            if matches!(&outcome, Err(error) if error.kind() == StoreErrorKind::Unavailable) {
                connection.give_up();
            }
            return Ok((outcome?, connection));
        };
        let pause = budget.pause(pauses.next().unwrap_or(GRACE));
        let (Some(pause), false) = (pause, code == LOCK_WAIT_TIMEOUT && budget.is_spent()) else {
            return Err(spent(reply.error));
        };
        if !matches!(
            timeout(ROLLBACK_LIMIT, connection.roll_back()).await,
            Ok(Ok(()))
        ) {
            drop(connection);
            connection = connect().await?;
        }
        sleep(pause).await;
    }
}

/// No time is left for another try after this error. A conflict over the key means that others
/// contend for it.
fn spent(last: Option<Error>) -> StoreError {
    match last.map(error::statement) {
        Some(error) if error.kind() != StoreErrorKind::Conflict => error,
        _ => error::in_flight(),
    }
}

/// The insert of a claim.
pub(crate) struct Claiming<'a> {
    pub(crate) statements: &'a Statements,
    pub(crate) event: &'a Event,
}

pub(crate) enum Decision {
    Fresh(Claimed),
    Duplicate,
    /// Some unique index refused the row, and the message does not show that it was the primary key.
    Refused(Error),
}

impl Contender for Claiming<'_> {
    type Mark = Token;
    type Outcome = Decision;

    fn text(&self, nonce: Nonce, seconds: u64) -> (String, Token) {
        let token = Token::random();
        let text = self.statements.claim(self.event, token, nonce, seconds);
        (text, token)
    }

    fn outcome(&self, token: Token, reply: Reply) -> Result<Decision, StoreError> {
        match reply.error {
            None if reply.statements != CLAIM_STATEMENTS => Err(error::out_of_step()),
            None => Ok(Decision::Fresh(Claimed {
                source: self.event.source().clone(),
                id: self.event.id().clone(),
                token,
            })),
            Some(Error::Server(server)) if server.code == DUPLICATE_ENTRY => {
                Ok(if error::names_primary_key(&server) {
                    Decision::Duplicate
                } else {
                    Decision::Refused(Error::Server(server))
                })
            }
            Some(error) => Err(error::statement(error)),
        }
    }
}

/// The delete of a committed claim.
pub(crate) struct Forgetting<'a> {
    pub(crate) statements: &'a Statements,
    pub(crate) source: &'a Source,
    pub(crate) id: &'a EventId,
}

impl Contender for Forgetting<'_> {
    type Mark = Nonce;
    type Outcome = Forget;

    fn text(&self, nonce: Nonce, seconds: u64) -> (String, Nonce) {
        let done = Nonce::random();
        let text = self
            .statements
            .forget(self.source, self.id, nonce, done, seconds);
        (text, done)
    }

    fn outcome(&self, done: Nonce, reply: Reply) -> Result<Forget, StoreError> {
        if reply.ends_with(done) {
            let count = reply.rows.first().and_then(|row| number(row, 0));
            return Ok(match count {
                Some(0) => Forget::NotClaimed,
                _ => Forget::Forgotten,
            });
        }
        Err(match reply.error {
            Some(error @ Error::Server(_)) => error::statement(error),
            Some(error) => unconfirmed().with_source(error),
            None => unconfirmed(),
        })
    }
}

fn unconfirmed() -> StoreError {
    StoreError::new(
        StoreErrorKind::CommitUnknown,
        "the connection was lost before the delete was confirmed: ask is_claimed, or forget again",
    )
}
