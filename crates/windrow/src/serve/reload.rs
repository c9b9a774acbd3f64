//! Settings that may change while the server runs. They are read again on SIGHUP, and by RELOAD at
//! the console.

use std::sync::{Arc, OnceLock};

use anyhow::ensure;
use windrow_http::Admission;

use crate::settings::{Certificate, Settings};

/// Reads the settings again.
pub type Reread = dyn Fn() -> anyhow::Result<Settings> + Send + Sync;

/// Replaces the roles of the PostgreSQL frontend by those of the settings.
pub(super) type TakeRoles = Box<dyn Fn(Settings) -> anyhow::Result<()> + Send + Sync>;

/// Replaces the users of the MySQL frontend by those of the settings.
pub(super) type TakeUsers = Box<dyn Fn(&Settings) + Send + Sync>;

/// Applies settings that may change. Cheap to clone.
#[derive(Clone)]
pub struct Reload(Arc<Running>);

struct Running {
    reread: Arc<Reread>,
    certificates: [Option<Certificate>; 3],
    /// Set once the frontends listen.
    admission: OnceLock<Admission>,
    take_roles: OnceLock<TakeRoles>,
    take_users: OnceLock<TakeUsers>,
}

impl Reload {
    pub(super) fn new(settings: &Settings, reread: Arc<Reread>) -> Self {
        Self(Arc::new(Running {
            reread,
            certificates: settings.certificates.clone(),
            admission: OnceLock::new(),
            take_roles: OnceLock::new(),
            take_users: OnceLock::new(),
        }))
    }

    /// Sets the frontends that changes apply to.
    pub(super) fn listening(
        &self,
        admission: Option<Admission>,
        take_roles: Option<TakeRoles>,
        take_users: Option<TakeUsers>,
    ) {
        if let Some(take_users) = take_users {
            self.0.take_users.get_or_init(|| take_users);
        }
        if let Some(admission) = admission {
            self.0.admission.get_or_init(|| admission);
        }
        if let Some(take_roles) = take_roles {
            self.0.take_roles.get_or_init(|| take_roles);
        }
    }

    /// Reads the configuration again, and applies roles and their verifiers, the `auth_query`, the
    /// admins of the console, the tokens of HTTP and the certificates. Blocks while it reads files.
    ///
    /// # Errors
    /// The errors in the configuration; nothing was changed.
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = self.but_roles()?;
        match self.0.take_roles.get() {
            Some(take_roles) => take_roles(settings),
            None => Ok(()),
        }
    }

    /// Reads the configuration again, without applying the roles, which are in the returned
    /// settings.
    pub(super) fn but_roles(&self) -> anyhow::Result<Settings> {
        let settings = (self.0.reread)()?;
        if let Some(admission) = self.0.admission.get() {
            let tokens = settings.http.as_ref().map(|http| http.tokens.clone());
            ensure!(
                admission.replace(tokens.unwrap_or_default()),
                "http.token and [http.tokens] can be changed while the server runs, but the first token cannot be added, nor the last one removed: that takes a restart"
            );
        }
        let pairs = self.0.certificates.iter().zip(&settings.certificates);
        for (running, new) in pairs.filter_map(|(a, b)| a.as_ref().zip(b.as_ref())) {
            running.replace(new);
        }
        if let Some(take_users) = self.0.take_users.get() {
            take_users(&settings);
        }
        Ok(settings)
    }
}
