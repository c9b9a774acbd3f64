//! The server's current answers about roles that log in: one query for all that ask at the same
//! time.
//!
//! The query has a connection of its own: a login must not wait for other sessions.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use windrow_core::{Fault, FaultClass, Name};
use windrow_pgwire::Target;
use windrow_pgwire::wire::Wire;

use crate::config::PgConfig;
use crate::pool::literal;

/// The number of roles whose last answer is kept, for times at which the server cannot be asked.
const MAX_ROLES: usize = 10_000;

/// The current start state of a role's sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoleState {
    /// A number that changes with everything that a new session inherits: the role's identity and
    /// its settings. It is never reused: connections opened between two changes have the settings
    /// of that time, and may belong to a session from before.
    pub(crate) version: u64,
    /// True if the server may refuse the role, which only the server can say in its own words.
    pub(crate) doubtful: bool,
    /// True if the role's password has expired.
    pub(crate) expired: bool,
    /// The most connections of the role, and of the database.
    pub(crate) role_limit: Option<usize>,
    pub(crate) database_limit: Option<usize>,
    /// Windrow's own settings of the role and the database, by their names after `windrow.`. If a
    /// name is repeated, the last one counts.
    pub(crate) own: Box<[(Name, Name)]>,
}

/// The queries, one for each database.
pub(crate) struct RoleStates {
    databases: HashMap<Name, DatabaseRoles>,
    connect_timeout: Duration,
    idle: Duration,
}

type AnswerSender = oneshot::Sender<Result<Option<RoleState>, Fault>>;

/// The last answer about a role.
struct LastAnswer {
    /// The version that the answer alone would have.
    said: u64,
    state: RoleState,
}

impl LastAnswer {
    /// Returns the answer that follows `before`. `state`: the new answer, with its own version.
    fn next(before: Option<&Self>, mut state: RoleState) -> Self {
        let said = state.version;
        state.version = match before {
            Some(before) if before.said == said => before.state.version,
            Some(before) => HASHER.hash_one((before.state.version, said)),
            None => said,
        };
        Self { said, state }
    }
}

const HASHER: FixedState = FixedState::with_seed(0);

struct DatabaseRoles {
    target: Target,
    waiting: Mutex<Vec<(Name, AnswerSender)>>,
    last: Mutex<HashMap<Name, LastAnswer>>,
    connection: tokio::sync::Mutex<Option<(Wire, Instant)>>,
}

impl RoleStates {
    pub(crate) fn new(config: &PgConfig) -> Self {
        let databases = config.databases.iter().map(|database| {
            let roles = DatabaseRoles {
                target: database.target.clone(),
                waiting: Mutex::default(),
                last: Mutex::default(),
                connection: tokio::sync::Mutex::default(),
            };
            (Name::from(&*database.name), roles)
        });
        Self {
            databases: databases.collect(),
            connect_timeout: config.connect_timeout,
            idle: config.server_idle,
        }
    }

    /// Returns the answer about a role, or the last one while the server cannot be reached. `None`
    /// if it cannot be asked: the database is not configured, its own role is refused, or it is not
    /// PostgreSQL. Cancel safe.
    ///
    /// # Errors
    /// The server cannot be reached, and there is no last answer about this role.
    pub(crate) async fn of(
        &self,
        database: &Name,
        role: &Name,
    ) -> Result<Option<RoleState>, Fault> {
        let Some(roles) = self.databases.get(database) else {
            return Ok(None);
        };
        match roles.ask(role, self.connect_timeout).await {
            Ok(state) => Ok(state),
            Err(fault) if fault.class == FaultClass::Unavailable => {
                let last = roles.last.lock().get(role).map(|last| last.state.clone());
                last.map(Some).ok_or(fault)
            }
            Err(fault) => {
                tracing::debug!(%fault, %database, "roles cannot be looked up as the role of the database's URL");
                Ok(None)
            }
        }
    }

    /// Closes the connection to a database, unless a query is under way.
    pub(crate) fn close(&self, database: &Name) {
        if let Some(roles) = self.databases.get(database)
            && let Ok(mut connection) = roles.connection.try_lock()
            && let Some((wire, _)) = connection.take()
        {
            tokio::spawn(wire.terminate());
        }
    }

    /// Closes connections that were not used for a while.
    pub(crate) async fn sweep(&self) {
        for roles in self.databases.values() {
            let Ok(mut connection) = roles.connection.try_lock() else {
                continue;
            };
            let goes = |used: &Instant| used.elapsed() > self.idle;
            if let Some((wire, _)) = connection.take_if(|(_, used)| goes(used)) {
                wire.terminate().await;
            }
        }
    }
}

impl DatabaseRoles {
    async fn ask(&self, role: &Name, timeout: Duration) -> Result<Option<RoleState>, Fault> {
        loop {
            let (reply, mut answer) = oneshot::channel();
            self.waiting.lock().push((Name::clone(role), reply));
            let mut connection = self.connection.lock().await;
            // The task that had the turn before may have asked for all that were waiting then.
            if let Ok(answer) = answer.try_recv() {
                return answer;
            }
            let asking = std::mem::take(&mut *self.waiting.lock());
            let kept = connection.take().map(|(wire, _)| wire);
            let replied = self.question(kept, &asking, timeout).await;
            let (wire, states) = match replied {
                Ok((wire, states)) => (Some(wire), Ok(states)),
                Err(fault) => (None, Err(fault)),
            };
            *connection = wire.map(|wire| (wire, Instant::now()));
            drop(connection);
            self.reply_to_all(asking, &states);
            // If an answer was lost with the task that asked for it, it is asked for again.
            if let Ok(answer) = answer.try_recv() {
                return answer;
            }
        }
    }

    fn reply_to_all(
        &self,
        asking: Vec<(Name, AnswerSender)>,
        states: &Result<Option<HashMap<Name, RoleState>>, Fault>,
    ) {
        for (role, reply) in asking {
            let answer = match states {
                Err(fault) => Err(fault.clone()),
                Ok(None) => Ok(None),
                Ok(Some(states)) => {
                    let state = states.get(&role).cloned().unwrap_or(RoleState {
                        doubtful: true,
                        ..RoleState::default()
                    });
                    let mut last = self.last.lock();
                    if last.len() >= MAX_ROLES {
                        last.clear();
                    }
                    let next = LastAnswer::next(last.get(&role), state);
                    let state = next.state.clone();
                    last.insert(role, next);
                    Ok(Some(state))
                }
            };
            // An error means that the caller has left.
            reply.send(answer).ok();
        }
    }

    async fn question(
        &self,
        kept: Option<Wire>,
        asking: &[(Name, AnswerSender)],
        timeout: Duration,
    ) -> Result<(Wire, Option<HashMap<Name, RoleState>>), Fault> {
        let sql = question(asking.iter().map(|(role, _)| &**role));
        if let Some(mut wire) = kept.and_then(alive)
            && let Ok(replied) = wire.simple(&sql).await
        {
            return Ok((wire, replied.ok().map(read)));
        }
        let mut wire = Wire::connect(&self.target, &[], timeout).await?;
        let replied = wire.simple(&sql).await;
        let replied = replied.map_err(|broken| broken.unavailable())?;
        Ok((wire, replied.ok().map(read)))
    }
}

fn alive(mut wire: Wire) -> Option<Wire> {
    wire.is_alive().then_some(wire)
}

fn question<'a>(roles: impl Iterator<Item = &'a str>) -> String {
    let roles: Vec<_> = roles.map(literal).collect();
    format!(
        "SELECT r.rolname, r.rolcanlogin AND d.datallowconn AND \
         pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT'), \
         r.rolvaliduntil IS NOT NULL AND r.rolvaliduntil < pg_catalog.now(), \
         CASE WHEN r.rolsuper THEN -1 ELSE r.rolconnlimit END, \
         CASE WHEN r.rolsuper THEN -1 ELSE d.datconnlimit END, \
         (SELECT pg_catalog.string_agg(o, pg_catalog.chr(1) ORDER BY s.setrole <> 0, s.setdatabase <> 0) \
         FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) o \
         WHERE s.setdatabase IN (0, d.oid) AND s.setrole IN (0, r.oid) \
         AND pg_catalog.lower(o) LIKE 'windrow.%'), \
         pg_catalog.concat_ws('|', d.oid, r.oid, r.rolsuper), \
         (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(':', s.setdatabase, s.setrole, s.setconfig), '|' \
         ORDER BY s.setdatabase, s.setrole) FROM pg_catalog.pg_db_role_setting s \
         WHERE s.setdatabase IN (0, d.oid) AND s.setrole IN (0, r.oid)) \
         FROM pg_catalog.pg_roles r, pg_catalog.pg_database d \
         WHERE d.datname = pg_catalog.current_database() AND r.rolname IN ({})",
        roles.join(", ")
    )
}

fn read(rows: Vec<Vec<Option<String>>>) -> HashMap<Name, RoleState> {
    let states = rows.into_iter().filter_map(|row| {
        let mut columns = row.into_iter().map(Option::unwrap_or_default);
        let role = columns.next()?;
        let mut is = || columns.next().is_some_and(|value| value == "t");
        let (enters, expired) = (is(), is());
        let mut limit = || columns.next()?.parse().ok();
        let (role_limit, database_limit) = (limit(), limit());
        let own = columns.next()?;
        let own = own.split('\u{1}').filter_map(|setting| {
            let (name, value) = setting.split_once('=')?;
            let name = name.to_ascii_lowercase();
            Some((name.strip_prefix("windrow.")?.into(), value.into()))
        });
        let own = own.collect();
        let version = HASHER.hash_one(columns.collect::<Vec<_>>());
        let state = RoleState {
            version,
            doubtful: !enters,
            expired,
            role_limit,
            database_limit,
            own,
        };
        Some((role.into(), state))
    });
    states.collect()
}

#[cfg(test)]
mod tests {
    use windrow_testkit::postgres::Postgres;

    use super::*;
    use crate::config::DatabaseConfig;

    #[tokio::test]
    async fn the_version_changes_with_what_a_session_would_take_over() {
        let server = Postgres::start().unwrap();
        server
            .exec("create role a login; create role b login")
            .unwrap();
        let config = PgConfig {
            databases: vec![DatabaseConfig::new(
                "app",
                Target::parse(&server.url()).unwrap(),
            )],
            ..PgConfig::default()
        };
        let states = RoleStates::new(&config);
        let of = async |role: &str| {
            let state = states.of(&"app".into(), &role.into()).await;
            state.unwrap().unwrap()
        };
        let first = of("a").await;
        assert!(!first.doubtful && !first.expired);
        assert_eq!((first.role_limit, first.database_limit), (None, None));
        assert_eq!(of("a").await, first);
        assert!(first.own.is_empty());
        assert!(of("nobody").await.doubtful);
        let mut versions = vec![first.version];
        for change in [
            "alter role a set work_mem = '5MB'",
            "alter database postgres set work_mem = '6MB'",
            "alter role a in database postgres set work_mem = '7MB'",
            "alter role all set work_mem = '8MB'",
            "alter role all set work_mem = '9MB'",
            "alter role all set work_mem = '8MB'",
            "alter role a reset all",
            "alter role all reset all; alter database postgres reset all; alter role a in database postgres reset all",
            "drop role a; create role a login",
        ] {
            let database = Target::parse(&server.url()).unwrap().database().to_owned();
            server.exec(&change.replace("postgres", &database)).unwrap();
            let both = tokio::join!(of("a"), of("b"), of("a"));
            assert_eq!(both.0, both.2);
            assert!(!versions.contains(&both.0.version), "{change}");
            versions.push(both.0.version);
        }
        let database = Target::parse(&server.url()).unwrap().database().to_owned();
        server
            .exec(&format!(
                "alter role a set windrow.ack = commit; alter database {database} set windrow.ack = spool; \
                 alter database {database} set Windrow.Defer = on"
            ))
            .unwrap();
        let own = of("a").await.own;
        let own: Vec<(&str, &str)> = own
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(own, [("ack", "spool"), ("defer", "on"), ("ack", "commit")]);
        server
            .exec("alter role a nologin connection limit 3 valid until '2001-01-01'")
            .unwrap();
        let last = of("a").await;
        assert!(last.doubtful && last.expired);
        assert_eq!(last.role_limit, Some(3));
    }
}
