//! The database as a sink: connections, and what they share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, Fault, Profile, Sink, Unit};

use super::compiled::Shaped;
use super::dialect::{COCKROACH, Dialect, POSTGRES};
use super::executor::{Connection, Shared};
use crate::options::Options;
use windrow_pgwire::Target;
use windrow_pgwire::wire::Wire;

/// How long a sign of life may take.
const PING: Duration = Duration::from_secs(5);

/// What a URL says of the database that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// It speaks PostgreSQL's protocol.
    Postgres,
    /// It is CockroachDB.
    Cockroach,
}

/// A database that speaks PostgreSQL's protocol.
pub(crate) struct PostgresSink {
    named: Named,
    /// What it turned out to be.
    found: OnceLock<&'static Dialect>,
    target: Target,
    options: Options,
    shared: Arc<Shared>,
}

impl PostgresSink {
    pub(crate) fn new(target: Target, named: Named, options: &Options) -> Self {
        Self {
            named,
            found: OnceLock::new(),
            target,
            options: options.clone(),
            shared: Arc::default(),
        }
    }

    /// What it is, or before anybody has looked: what its URL says.
    fn dialect(&self) -> &'static Dialect {
        let named = match self.named {
            Named::Postgres => &POSTGRES,
            Named::Cockroach => &COCKROACH,
        };
        self.found.get().copied().unwrap_or(named)
    }

    async fn wire(&self, purpose: Option<Purpose>) -> Result<(Wire, &'static Dialect), Fault> {
        let parameters = session(purpose, self.options.lock_wait);
        let mut wire =
            Wire::connect(&self.target, &parameters, self.options.connect_timeout).await?;
        let dialect = Dialect::recognize(&mut wire, self.found.get().copied()).await?;
        if self.named == Named::Cockroach && *dialect != COCKROACH {
            return Err(Fault::invalid(
                "the URL says that this is CockroachDB, but the server says that it is not: for PostgreSQL write postgres://",
            ));
        }
        Ok((wire, self.found.get_or_init(|| dialect)))
    }
}

/// The settings that what is sent and decoded here relies on; all else is as the role has it.
fn session(purpose: Option<Purpose>, lock_wait: Duration) -> Vec<(&'static str, String)> {
    let mut parameters = vec![
        ("client_encoding", "UTF8".to_owned()),
        ("DateStyle", "ISO".to_owned()),
        ("TimeZone", "UTC".to_owned()),
        ("bytea_output", "hex".to_owned()),
        ("extra_float_digits", "1".to_owned()),
        ("standard_conforming_strings", "on".to_owned()),
    ];
    if purpose == Some(Purpose::Batches) {
        // 0 would switch it off.
        let millis = lock_wait.as_millis().clamp(1, i32::MAX as u128);
        parameters.push(("lock_timeout", format!("{millis}ms")));
    }
    parameters
}

/// Asks for a sign of life on a new connection.
pub(super) async fn ping(
    connecting: impl Future<Output = Result<(Wire, &'static Dialect), Fault>>,
) -> Result<(), Fault> {
    let sign = async {
        let (mut wire, _) = connecting.await?;
        let answer = wire.simple("SELECT 1").await;
        wire.terminate().await;
        match answer {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Fault::from(error)),
            Err(broken) => Err(broken.unavailable()),
        }
    };
    match tokio::time::timeout(PING, sign).await {
        Ok(answer) => answer,
        Err(_) => Err(Fault::unavailable(format!(
            "the database gave no sign of life within {} seconds",
            PING.as_secs()
        ))),
    }
}

#[async_trait]
impl Sink for PostgresSink {
    fn profile(&self) -> &Profile {
        &self.dialect().profile
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let wire = self.wire(Some(purpose)).await?;
        let connection = Connection::new(
            wire,
            self.shared.clone(),
            purpose,
            self.options.create_tables,
        );
        Ok(Box::new(connection))
    }

    async fn ping(&self) -> Result<(), Fault> {
        ping(self.wire(None)).await
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        let mut scratch = Vec::new();
        for write in unit.writes() {
            if let Some(table) = self.shared.catalog.get(&write.shape.table) {
                Shaped::touches(&write.shape, &table, &write.row, &mut scratch, hashes);
            }
        }
    }
}
