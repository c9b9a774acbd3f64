//! The `auth_query`, on a connection of its own.
//!
//! It does not use the pool: a login must not wait for the connections of other sessions.

use std::time::Duration;

use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tokio::sync::Mutex;
use tokio::time::Instant;
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::Target;
use windrow_pgwire::scram::{BadVerifier, Verifier};
use windrow_pgwire::wire::{Answer, ServerError, Wire};

use crate::config::PgConfig;

/// The database's answer about a role.
pub(super) type LookupAnswer = Option<Result<Verifier, BadVerifier>>;

/// Asks one question at a time.
pub(super) struct Lookup {
    target: Option<Target>,
    connect_timeout: Duration,
    idle: Duration,
    connection: Mutex<Option<(Wire, Instant)>>,
}

/// The row of the answer.
#[derive(Default)]
struct VerifierReply {
    verifier: Option<Option<String>>,
    error: Option<ServerError>,
}

impl Lookup {
    pub(super) fn new(config: &PgConfig) -> Self {
        Self {
            target: config.databases.first().map(|first| first.target.clone()),
            connect_timeout: config.connect_timeout,
            idle: config.server_idle,
            connection: Mutex::default(),
        }
    }

    /// Returns the verifier of a role. Cancel safe: if the future is dropped half-way, the
    /// connection is closed.
    pub(super) async fn ask(&self, query: &str, role: &str) -> Result<LookupAnswer, Fault> {
        let mut connection = self.connection.lock().await;
        let kept = connection.take().map(|(wire, _)| wire);
        let alive = kept.and_then(|mut wire| wire.is_alive().then_some(wire));
        let mut wire = match alive {
            Some(wire) => wire,
            None => self.connect().await?,
        };
        let reply = question(&mut wire, query, role).await?;
        *connection = Some((wire, Instant::now()));
        if let Some(error) = reply.error {
            tracing::error!(%error, "the auth_query fails");
            let text = format!("the auth_query failed: {}", error.message);
            return Err(Fault::new(FaultClass::Other, error.code.clone(), text));
        }
        let verifier = reply.verifier.flatten();
        Ok(verifier.map(|verifier| verifier.parse()))
    }

    async fn connect(&self) -> Result<Wire, Fault> {
        let target = self
            .target
            .as_ref()
            .ok_or_else(|| Fault::internal("there is no database for the auth_query"))?;
        Wire::connect(target, &[], self.connect_timeout).await
    }

    pub(super) async fn sweep(&self) {
        let Ok(mut connection) = self.connection.try_lock() else {
            return;
        };
        if let Some((wire, _)) = connection.take_if(|(_, used)| used.elapsed() > self.idle) {
            wire.terminate().await;
        }
    }
}

async fn question(wire: &mut Wire, query: &str, role: &str) -> Result<VerifierReply, Fault> {
    let encoded = encode(wire, query, role);
    encoded.ok_or_else(|| Fault::invalid("the auth_query holds a zero byte"))?;
    let mut reply = VerifierReply::default();
    wire.exchange(1, &mut |answer| match answer {
        Answer::DataRow(row) => {
            let last = row.columns().last().flatten();
            let text = last.map(|text| String::from_utf8_lossy(text).into_owned());
            reply.verifier.get_or_insert(text);
        }
        Answer::Error(error) => reply.error = Some(error),
        _ => {}
    })
    .await
    .map_err(|broken| broken.unavailable())?;
    Ok(reply)
}

fn encode(wire: &mut Wire, query: &str, role: &str) -> Option<()> {
    let out = wire.out();
    let start = out.len();
    let encoded = frontend::parse("", query, [], out).is_ok()
        && frontend::bind(
            "",
            "",
            [],
            [role],
            |role, out| {
                out.extend_from_slice(role.as_bytes());
                Ok(IsNull::No)
            },
            [],
            out,
        )
        .is_ok()
        && frontend::execute("", 1, out).is_ok();
    if !encoded {
        out.truncate(start);
        return None;
    }
    frontend::sync(out);
    Some(())
}
