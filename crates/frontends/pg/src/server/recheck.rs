//! Revoked logins: checks that connected roles could still log in.
//!
//! A server checks the password once, and so does Windrow. But Windrow's connections outlive the
//! sessions for which they were opened. So each role is checked periodically: a role that was
//! dropped, may not log in any more or has another password must not continue on existing
//! connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use windrow_core::Fault;
use windrow_pgwire::scram::Verifier;
use windrow_pgwire::target::Credential;

use crate::client::{Identity, Settings};
use crate::pool::Who;
use crate::session_info::SessionInfo;
use crate::shared::Shared;

/// The interval of the checks. With the time that a check takes, no revoked login lasts longer than
/// 10 seconds.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The most checks at the same time: each takes a server connection for a moment.
const MAX_CHECKS_AT_ONCE: usize = 2;

/// Sessions with the same login.
type Logins = HashMap<(Identity, Credential, Option<Verifier>), Vec<Arc<SessionInfo>>>;

/// Checks again and again, until Windrow stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut tick = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = round(&shared) => {}
        }
    }
}

/// Checks the logins of all connected sessions once.
async fn round(shared: &Arc<Shared>) {
    let mut admitted = Logins::new();
    for info in shared.register.list() {
        let admission = &info.admission;
        let identity = info.identity.clone();
        let key = (
            identity,
            admission.credential.clone(),
            admission.verifier.clone(),
        );
        admitted.entry(key).or_default().push(info);
    }
    let turns = Arc::new(Semaphore::new(MAX_CHECKS_AT_ONCE));
    let mut asking = JoinSet::new();
    for ((identity, credential, verifier), sessions) in admitted {
        let (shared, turns) = (Arc::clone(shared), Arc::clone(&turns));
        asking.spawn(async move {
            let _turn = turns.acquire_owned().await;
            let refused = refused(&shared, &identity, &credential, verifier.as_ref()).await;
            if let Some(why) = refused {
                revoke(&shared, (&identity, &credential), &sessions, &why);
            }
        });
    }
    asking.join_all().await;
}

/// Returns the reason why a role could not log in any more; `None` if it could, or if the server
/// cannot be asked.
async fn refused(
    shared: &Shared,
    identity: &Identity,
    credential: &Credential,
    verifier: Option<&Verifier>,
) -> Option<String> {
    if !shared.access.still(&identity.role, verifier).await {
        return Some("its password was changed, or it is not configured any more".to_owned());
    }
    let who = Who {
        identity: identity.clone(),
        settings: Settings::default(),
        application_name: "windrow".into(),
        credential: credential.clone(),
    };
    let fault = shared.databases.pool.try_connect(&who).await.err()?;
    is_refusal(&fault).then(|| fault.to_string())
}

/// Returns true if the server refuses the role; other errors may be temporary.
fn is_refusal(fault: &Fault) -> bool {
    fault.code.starts_with("28") || fault.code == "42501"
}

fn revoke(
    shared: &Shared,
    (identity, credential): (&Identity, &Credential),
    sessions: &[Arc<SessionInfo>],
    why: &str,
) {
    tracing::warn!(
        role = &*identity.role,
        database = &*identity.database,
        sessions = sessions.len(),
        "sessions are ended whose role is not let in any more: {why}"
    );
    // Connections first, because a client whose session is ended may come back at once.
    shared.databases.pool.revoke(&identity.database);
    shared.lanes.revoke(identity, credential);
    for session in sessions {
        session.admission.revoked.cancel();
    }
}
