//! Admission of clients: configured roles, roles that a database is asked about, and trusted
//! clients on this machine.

mod lookup;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rand::RngExt;
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::scram::{BadVerifier, Verifier};
use windrow_pgwire::target::Credential;

use self::lookup::{Lookup, LookupAnswer};
use crate::cache::Cache;
use crate::config::{PgConfig, Roles};

/// The number of roles whose last verifier is kept, for times at which the database cannot be
/// asked.
const MAX_ROLES: usize = 10_000;

/// The rules in force.
pub(crate) struct Access {
    rules: RwLock<Arc<Rules>>,
    lookup: Lookup,
    found: Cache<Box<str>, LookupAnswer>,
    /// The key for the verifiers of unknown roles, so that they stay the same while the process
    /// lives.
    secret: [u8; 32],
}

/// The checked rules.
struct Rules {
    /// As [`Roles::trusts`].
    trusts: bool,
    users: HashMap<Box<str>, User>,
    auth_query: Option<Arc<str>>,
    admins: HashSet<Box<str>>,
}

#[derive(Clone)]
struct User {
    verifier: Verifier,
    credential: Option<Credential>,
}

/// The proof that is required of a role.
pub(crate) enum RequiredProof {
    /// No proof.
    Trusted,
    /// With a proof against this verifier.
    Scram {
        verifier: Verifier,
        /// False if the role is unknown, so that no proof is accepted.
        known: bool,
        /// The credential for the server, if the client's own proof does not open the server.
        credential: Option<Credential>,
    },
}

/// Runs the `auth_query` for the role of the first database, as a login does. Returns a sentence
/// about the answer; `None` if no query is configured.
///
/// # Errors
/// The error of the query, of the connection, or of the answer.
pub async fn try_auth_query(config: &PgConfig) -> Option<Result<String, Fault>> {
    let query = config.roles.auth_query.as_ref()?;
    let role = config.databases.first().map(|first| first.target.role());
    let role = role.unwrap_or("postgres");
    let answer = Lookup::new(config).ask(query, role).await;
    Some(answer.and_then(|found| match found {
        Some(Ok(_)) => Ok(format!("finds a verifier for the role {role}")),
        None => Ok(format!("runs, and finds no role {role}")),
        Some(Err(bad)) => {
            let text = format!("what it returns for the role {role} cannot be used: {bad}");
            Err(Fault::invalid(text))
        }
    }))
}

impl Access {
    /// Checks the configured rules.
    ///
    /// # Errors
    /// The defect, and the role.
    pub(crate) fn new(config: &PgConfig) -> Result<Self, String> {
        Ok(Self {
            rules: RwLock::new(Arc::new(Rules::of(config.roles.clone())?)),
            lookup: Lookup::new(config),
            found: Cache::new(MAX_ROLES, Duration::ZERO),
            secret: rand::rng().random(),
        })
    }

    /// Replaces the rules for clients that come from now on.
    ///
    /// # Errors
    /// The defect; the earlier rules stay in force.
    pub(crate) fn replace(&self, roles: Roles) -> Result<(), String> {
        let rules = Rules::of(roles)?;
        if rules.trusts && !self.rules().trusts {
            return Err(
                "neither users nor an auth_query are configured any more: that everybody on this machine is trusted takes a restart"
                    .to_owned(),
            );
        }
        *self.rules.write() = Arc::new(rules);
        self.found.clear();
        Ok(())
    }

    /// Returns true if a role may use the console. `trusted`: it was admitted without a proof.
    pub(crate) fn is_admin(&self, role: &str, trusted: bool) -> bool {
        let rules = self.rules();
        rules.admins.contains(role) || (rules.admins.is_empty() && trusted)
    }

    /// Returns the proof that is required of a role. `local`: the client comes over loopback or a
    /// UNIX-domain socket.
    ///
    /// # Errors
    /// The role is refused, or the database that knows it cannot be asked.
    pub(crate) async fn way(&self, role: &str, local: bool) -> Result<RequiredProof, Fault> {
        let rules = self.rules();
        if rules.trusts {
            return if local {
                Ok(RequiredProof::Trusted)
            } else {
                Err(not_local(role))
            };
        }
        if let Some(user) = rules.users.get(role) {
            return Ok(RequiredProof::Scram {
                verifier: user.verifier.clone(),
                known: true,
                credential: user.credential.clone(),
            });
        }
        let found = match &rules.auth_query {
            Some(query) => {
                let ask = |_| self.lookup.ask(query, role);
                self.found.get(&role.into(), ask).await?
            }
            None => None,
        };
        let (verifier, known) = match found {
            Some(verifier) => (verifier.map_err(|bad| unusable(role, bad))?, true),
            None => (Verifier::decoy(&self.secret, role), false),
        };
        Ok(RequiredProof::Scram {
            verifier,
            known,
            credential: None,
        })
    }

    /// Returns true if a role that was admitted with this verifier (`None`: without a proof) would
    /// be admitted with it now.
    pub(crate) async fn still(&self, role: &str, verifier: Option<&Verifier>) -> bool {
        match self.way(role, true).await {
            Ok(RequiredProof::Trusted) => true,
            Ok(RequiredProof::Scram {
                verifier: now,
                known,
                ..
            }) => known && verifier == Some(&now),
            // A database that cannot be asked refuses no role.
            Err(fault) => fault.class != FaultClass::Denied,
        }
    }

    /// Returns the console's summary: the number of configured users, the auth_query, and the roles
    /// that may use the console.
    pub(crate) fn summary(&self) -> (usize, String, String) {
        let rules = self.rules();
        let mut admins: Vec<&str> = rules.admins.iter().map(|admin| &**admin).collect();
        admins.sort_unstable();
        let query = rules.auth_query.as_deref().unwrap_or_default();
        (rules.users.len(), query.to_owned(), admins.join(", "))
    }

    /// Closes the connection of the auth_query if it has not been used for a while.
    pub(crate) async fn sweep(&self) {
        self.lookup.sweep().await;
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read())
    }
}

impl Rules {
    fn of(roles: Roles) -> Result<Self, String> {
        let trusts = roles.trusts();
        let mut users = HashMap::new();
        for user in roles.users {
            let verifier = user.verifier.reveal().parse().map_err(|bad: BadVerifier| {
                format!("the verifier of user {:?} cannot be used: {bad}", user.name)
            })?;
            let credential = user.server_password.map(Credential::Password);
            users.insert(
                user.name.into(),
                User {
                    verifier,
                    credential,
                },
            );
        }
        Ok(Self {
            trusts,
            users,
            auth_query: roles.auth_query.map(Arc::from),
            admins: roles.admins.into_iter().map(Box::from).collect(),
        })
    }
}

fn not_local(role: &str) -> Fault {
    let text = format!("user \"{role}\" cannot log in from another machine");
    let hint = "Neither users nor an auth_query are configured, so only connections over loopback or a UNIX-domain socket are trusted.";
    Fault::new(FaultClass::Denied, "28000", text).with_hint(Some(hint))
}

/// Returns the fault of a wrong password and of an unknown role, which a client cannot distinguish.
pub(crate) fn denied(role: &str) -> Fault {
    let text = format!("password authentication failed for user \"{role}\"");
    Fault::new(FaultClass::Denied, "28P01", text)
}

fn unusable(role: &str, bad: BadVerifier) -> Fault {
    let detail = format!("What the auth_query says of this role cannot be used: {bad}.");
    denied(role).with_detail(Some(detail))
}
