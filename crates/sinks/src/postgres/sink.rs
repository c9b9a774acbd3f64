//! The database as a sink: connections, and what they share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, Fault, Profile, Sink, Unit};

use super::compiled::Shaped;
use super::executor::{Connection, Shared};
use crate::options::Options;
use windrow_pgwire::Target;
use windrow_pgwire::wire::Wire;

/// How long a sign of life may take.
const PING: Duration = Duration::from_secs(5);

/// A PostgreSQL database.
pub(super) struct PostgresSink {
    profile: Profile,
    target: Target,
    options: Options,
    shared: Arc<Shared>,
}

impl PostgresSink {
    pub(super) fn new(target: Target, options: &Options) -> Self {
        Self {
            profile: Profile {
                name: "PostgreSQL",
                transactional: true,
                flights: 8,
                batch_rows: 10_000,
            },
            target,
            options: options.clone(),
            shared: Arc::default(),
        }
    }

    async fn wire(&self, purpose: Option<Purpose>) -> Result<Wire, Fault> {
        let parameters = session(purpose, self.options.lock_wait);
        Wire::connect(&self.target, &parameters, self.options.connect_timeout).await
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
    connecting: impl Future<Output = Result<Wire, Fault>>,
) -> Result<(), Fault> {
    let sign = async {
        let mut wire = connecting.await?;
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
            "PostgreSQL gave no sign of life within {} seconds",
            PING.as_secs()
        ))),
    }
}

#[async_trait]
impl Sink for PostgresSink {
    fn profile(&self) -> &Profile {
        &self.profile
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
