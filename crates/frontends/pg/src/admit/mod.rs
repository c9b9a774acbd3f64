//! Logging in: TLS, the startup packet, the proof of a password. Also handles cancel requests,
//! which need no session.
//!
//! | module | what it does |
//! | --- | --- |
//! | here | the login as a whole, up to the session or the console |
//! | `greeter` | reads the startup packet, or turns the client away |
//! | `packet` | parses the first packet, with a size limit |
//! | `secure` | TLS, and the binding of a proof to it |
//! | `options` | the requested role, database and settings |
//! | `access`, `lookup` | the rules by which roles are admitted |
//! | `login` | SCRAM-SHA-256 |
//! | `say`, `not_admitted` | messages to a client, and reasons to refuse one |

mod greeter;
mod login;
mod not_admitted;
mod options;
mod packet;
mod say;
#[cfg(any(test, fuzzing))]
mod trial;

use bytes::BytesMut;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use windrow_core::{Fault, FaultClass, Name};
use windrow_pgwire::scram::{Server, Verifier};
use windrow_pgwire::target::Credential;
use windrow_sockets::{ClientSocket, StartSlot};

use greeter::Greeter;
use not_admitted::NotAdmitted;
use options::Request;
#[cfg(any(test, fuzzing))]
pub(crate) use trial::startup;
use windrow_pgwire::wire::Socket;

use crate::access::{self, RequiredProof};
use crate::admission::Admission;
use crate::admitted_client::AdmittedClient;
use crate::client::Identity;
use crate::config::DatabaseConfig;
use crate::metrics::Login;
use crate::own::Own;
use crate::pool::Who;
use crate::register::RegisterEntry;
use crate::role_state::RoleState;
use crate::shared::Shared;

/// Windrow's own settings, by their names after `windrow.`.
type OwnSettings<'a> = &'a [(Name, Name)];

/// The name by which clients reach the console, as if it were a database.
pub(crate) const CONSOLE: &str = "windrow";

/// An admitted client.
pub(crate) enum Admitted {
    /// A client, with its register entry and its slot.
    Session(Box<AdmittedClient>, RegisterEntry, OwnedSemaphorePermit),
    /// A client at the console.
    Console(Socket),
}

/// Admits a client within the login timeout, or turns it away.
pub(crate) async fn admit(
    shared: &Shared,
    arrival: ClientSocket,
    slot: &StartSlot,
) -> Option<Admitted> {
    let mut greeter = Greeter::new(shared, arrival);
    let ended = tokio::select! {
        biased;
        admitted = timeout(shared.config.login_timeout, greeter.run()) => match admitted {
            Ok(Ok(admitted)) => {
                shared.metrics.login(Login::Ok);
                return Some(admitted);
            }
            Ok(Err(ended)) => ended,
            Err(_) => too_slow(shared).into(),
        },
        () = shared.stop.cancelled() => Fault::new(
            FaultClass::Unavailable,
            "57P03",
            "Windrow is shutting down",
        )
        .into(),
        () = slot.given_up.cancelled() => crowded().into(),
    };
    greeter.turn_away(ended).await;
    None
}

fn too_slow(shared: &Shared) -> Fault {
    let text = format!(
        "canceling authentication due to timeout: the client was not in within {:?} (login_timeout)",
        shared.config.login_timeout
    );
    Fault::new(FaultClass::Cancelled, "57014", text)
}

fn crowded() -> Fault {
    let text = "too many connections are on their way in, and this one takes too long";
    Fault::new(FaultClass::Overloaded, "53300", text)
}

impl<'a> Greeter<'a> {
    async fn run(&mut self) -> Result<Admitted, NotAdmitted> {
        let startup = self.startup().await?;
        let mut out = BytesMut::new();
        if startup.is_beyond() {
            say::negotiate(&mut out, startup.spoken(), &startup.unknown);
        }
        let key_bytes = startup.key_bytes();
        let request = options::read(startup.parameters)?;
        self.check_secure()?;
        let (credential, verifier) = self.authenticate(&request, &mut out).await?;
        say::welcome(&mut out);
        if &*request.identity.database == CONSOLE {
            return self.console(&request, verifier.is_none(), out).await;
        }
        let slot = self.client_slot()?;
        self.session(request, (credential, verifier), (slot, key_bytes), out)
            .await
    }

    /// Returns the credential for the server, and the verifier by which the client has proven its
    /// password, if a proof was required.
    async fn authenticate(
        &mut self,
        request: &Request,
        out: &mut BytesMut,
    ) -> Result<(Credential, Option<Verifier>), NotAdmitted> {
        let role = &request.identity.role;
        match self.shared.access.way(role, self.local).await? {
            RequiredProof::Trusted => Ok((Credential::Own, None)),
            RequiredProof::Scram {
                verifier,
                known,
                credential,
            } => {
                let server = Server::new(verifier.clone(), known, self.binding.take());
                let keys = login::scram(self.stream()?, role, server, out).await?;
                let target = self.database(request).map(|database| &database.target);
                let own = target.is_some_and(|target| target.has_password_of(role));
                let credential = match credential {
                    Some(credential) => credential,
                    None if own => Credential::Own,
                    None => Credential::Scram(keys),
                };
                Ok((credential, Some(verifier)))
            }
        }
    }

    fn database(&self, request: &Request) -> Option<&'a DatabaseConfig> {
        self.shared.databases.find(&request.identity.database)
    }

    fn client_slot(&self) -> Result<OwnedSemaphorePermit, NotAdmitted> {
        let slot = self.shared.client_slots.clone().try_acquire_owned();
        slot.map_err(|_| {
            let hint = format!(
                "At most {} clients are let in (max_clients).",
                self.shared.config.max_clients
            );
            let text = "sorry, too many clients already";
            let fault = Fault::new(FaultClass::Overloaded, "53300", text);
            fault.with_hint(Some(hint)).into()
        })
    }

    async fn session(
        &mut self,
        request: Request,
        (credential, verifier): (Credential, Option<Verifier>),
        (slot, key_bytes): (OwnedSemaphorePermit, usize),
        mut out: BytesMut,
    ) -> Result<Admitted, NotAdmitted> {
        let join = self
            .database(&request)
            .is_some_and(|database| database.join);
        let who = Who {
            identity: request.identity,
            settings: request.settings,
            application_name: request.application_name,
            credential,
        };
        let mut who = who;
        let state = self.role_state(&who, verifier.is_some()).await?;
        who.settings.version = state.version;
        let own = self.own((&request.own, &state.own), join, &who.identity)?;
        let report = self.shared.databases.pool.report(&who).await?;
        report.write(&mut out, &who.application_name);
        // Shared by all clients with the same identity and settings, which saves memory.
        let identity = report.identity.clone();
        let admission = Admission {
            credential: who.credential.clone(),
            verifier,
            revoked: self.shared.stop.child_token(),
        };
        let name = who.application_name.clone();
        let register = &self.shared.register;
        let entry = register.enter((&*self.peer, key_bytes), identity.clone(), name, admission);
        self.check_limits(&entry, &state)?;
        say::key(&mut out, entry.info.pid, &entry.info.secret);
        login::send(self.stream()?, &mut out).await?;
        let client = AdmittedClient {
            stream: self.stream.take().ok_or(NotAdmitted::Silent)?,
            received: BytesMut::new(),
            identity,
            settings: report.settings.clone(),
            application_name: who.application_name,
            credential: who.credential,
            own,
            standard_strings: report.standard_strings,
            utf8: report.utf8,
            info: std::sync::Arc::clone(&entry.info),
        };
        Ok(Admitted::Session(Box::new(client), entry, slot))
    }

    /// Returns Windrow's own settings at the start of the client's session. `given`: those of its
    /// role and database.
    fn own(
        &self,
        (asked, given): (OwnSettings<'_>, OwnSettings<'_>),
        join: bool,
        identity: &Identity,
    ) -> Result<Own, Fault> {
        let allowed = self.shared.allowed(identity);
        let mut own = Own::at_start(join, allowed.spool, identity);
        own.set_given(given, allowed);
        let default = own.clone();
        for (name, value) in asked {
            own.set(name, Some(value), &default, allowed)?;
        }
        Ok(own)
    }

    /// Returns the start state of the role's session. If the server may refuse the role, a
    /// connection is tried, for the server's own message.
    async fn role_state(&self, who: &Who, proven: bool) -> Result<RoleState, Fault> {
        let Identity { database, role } = &who.identity;
        let databases = &self.shared.databases;
        let state = databases.role_states.of(database, role).await?;
        let state = state.unwrap_or_default();
        if state.doubtful {
            databases.pool.try_connect(who).await?;
        }
        match state.expired && proven {
            true => Err(access::denied(role)),
            false => Ok(state),
        }
    }

    /// Checks that the role and the database have no more sessions than the server would allow
    /// connections.
    fn check_limits(&self, entry: &RegisterEntry, state: &RoleState) -> Result<(), Fault> {
        let Identity { database, role } = &entry.info.identity;
        let too_many = |of: &str, name: &str| {
            let text = format!("too many connections for {of} \"{name}\"");
            Err(Fault::new(FaultClass::Overloaded, "53300", text))
        };
        let count = |is: &dyn Fn(&Identity) -> bool| self.shared.register.count(is);
        if let Some(limit) = state.role_limit
            && count(&|other| other.role == *role) > limit
        {
            return too_many("role", role);
        }
        if let Some(limit) = state.database_limit
            && count(&|other| other.database == *database) > limit
        {
            return too_many("database", database);
        }
        Ok(())
    }

    async fn console(
        &mut self,
        request: &Request,
        trusted: bool,
        mut out: BytesMut,
    ) -> Result<Admitted, NotAdmitted> {
        let role = &request.identity.role;
        if !self.shared.access.is_admin(role, trusted) {
            let text = format!("user \"{role}\" may not use the console");
            let hint = "Roles that may are configured as admins.";
            let fault = Fault::new(FaultClass::Denied, "42501", text);
            return Err(fault.with_hint(Some(hint)).into());
        }
        say::greet_console(&mut out, role, &request.application_name);
        login::send(self.stream()?, &mut out).await?;
        let stream = self.stream.take().ok_or(NotAdmitted::Silent)?;
        Ok(Admitted::Console(stream))
    }
}
