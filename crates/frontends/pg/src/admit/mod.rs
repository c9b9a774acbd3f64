//! The way in: TLS, the startup packet, the proof of who it is; and cancel requests, which never
//! get any further.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `packet` | the first packet, bounded |
//! | `secure` | TLS, asked for or at once, and what a proof can be bound to |
//! | `options` | what is asked for: role, database, settings |
//! | `access`, `lookup` | how a role is let in |
//! | `moment` | what the server says of the role at this moment |
//! | `login` | SCRAM-SHA-256 |
//! | `register` | who is in, for cancel requests and the console |
//! | `starting` | how many may be on their way in |

mod access;
mod login;
mod lookup;
mod moment;
mod options;
mod packet;
mod register;
mod say;
mod secure;
mod starting;
#[cfg(any(test, fuzzing))]
mod trial;

use bytes::BytesMut;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::scram::{Binding, Server, Verifier};
use windrow_pgwire::target::Credential;

pub(crate) use access::Access;
pub use access::Roles;
use access::Way;
use moment::Moment;
pub(crate) use moment::Moments;
use options::Request;
use packet::{Packet, Startup};
pub(crate) use register::{Entry, Register};
pub(crate) use secure::Tls;
pub(crate) use starting::{Place, Starting};
#[cfg(any(test, fuzzing))]
pub(crate) use trial::startup;

use crate::client::Identity;
use crate::client_stream::ClientStream;
use crate::config::DatabaseConfig;
use crate::house::House;
use crate::metrics::Login;
use crate::pool::Who;
use crate::session::Client;
use crate::warrant::Warrant;

/// The database that is none: the console.
pub(crate) const CONSOLE: &str = "windrow";

/// Why somebody does not come in.
#[derive(Debug)]
enum Ended {
    /// It has gone, or never was a client; or it came only to interrupt somebody.
    Silent,
    /// It is told why.
    Fatal(Fault),
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Fatal(fault)
    }
}

/// A connection that was accepted.
pub(crate) enum Arrival {
    /// Over TCP, and from where.
    Tcp(TcpStream, std::net::SocketAddr),
    /// Over the UNIX-domain socket.
    Unix(UnixStream),
}

/// Somebody who was let in.
pub(crate) enum Admitted {
    /// A client, with what it holds as long as it is in.
    Session(Box<Client>, Entry, OwnedSemaphorePermit),
    /// Somebody at the console.
    Console(ClientStream),
}

/// Lets somebody in, or turns it away within the time that is allowed.
pub(crate) async fn admit(house: &House, arrival: Arrival, place: &Place) -> Option<Admitted> {
    let mut greeter = Greeter::new(house, arrival);
    let ended = tokio::select! {
        biased;
        admitted = timeout(house.config.login_timeout, greeter.run()) => match admitted {
            Ok(Ok(admitted)) => {
                house.metrics.login(Login::Ok);
                return Some(admitted);
            }
            Ok(Err(ended)) => ended,
            Err(_) => too_slow(house).into(),
        },
        () = house.stop.cancelled() => Fault::new(
            FaultClass::Unavailable,
            "57P03",
            "Windrow is shutting down",
        )
        .into(),
        () = place.given_up.cancelled() => crowded().into(),
    };
    greeter.turn_away(ended).await;
    None
}

fn too_slow(house: &House) -> Fault {
    let text = format!(
        "canceling authentication due to timeout: the client was not in within {:?} (login_timeout)",
        house.config.login_timeout
    );
    Fault::new(FaultClass::Cancelled, "57014", text)
}

fn crowded() -> Fault {
    let text = "too many connections are on their way in, and this one takes too long";
    Fault::new(FaultClass::Overloaded, "53300", text)
}

/// One connection on its way in.
struct Greeter<'a> {
    house: &'a House,
    /// `None` while it shakes hands.
    stream: Option<ClientStream>,
    peer: Box<str>,
    /// Over loopback or a UNIX-domain socket.
    local: bool,
    binding: Binding,
}

impl<'a> Greeter<'a> {
    fn new(house: &'a House, arrival: Arrival) -> Self {
        let (stream, peer, local) = match arrival {
            Arrival::Tcp(socket, address) => (
                ClientStream::Tcp(socket),
                address.to_string(),
                address.ip().to_canonical().is_loopback(),
            ),
            Arrival::Unix(socket) => (ClientStream::Unix(socket), "[local]".to_owned(), true),
        };
        Self {
            house,
            stream: Some(stream),
            peer: peer.into(),
            local,
            binding: None,
        }
    }

    async fn run(&mut self) -> Result<Admitted, Ended> {
        let startup = self.startup().await?;
        let mut out = BytesMut::new();
        if startup.newer || !startup.unknown.is_empty() {
            say::negotiate(&mut out, &startup.unknown);
        }
        let request = options::read(startup.parameters)?;
        self.check_secure()?;
        let (credential, verifier) = self.authenticate(&request, &mut out).await?;
        say::welcome(&mut out);
        if &*request.identity.database == CONSOLE {
            return self.console(&request, verifier.is_none(), out).await;
        }
        let seat = self.seat()?;
        self.session(request, (credential, verifier), seat, out)
            .await
    }

    /// The startup packet, behind whatever encryption is agreed on. Either kind may be asked for
    /// once.
    async fn startup(&mut self) -> Result<Startup, Ended> {
        self.take_direct().await?;
        let (mut tls_asked, mut gss_asked) = (false, false);
        loop {
            match packet::read(self.stream()?).await? {
                Packet::Startup(startup) => return Ok(startup),
                Packet::Cancel { pid, secret } => {
                    self.house.metrics.cancels.inc();
                    self.house.register.cancel(pid, secret).await;
                    return Err(Ended::Silent);
                }
                Packet::Ssl if !tls_asked => {
                    tls_asked = true;
                    self.answer_ssl().await?;
                }
                Packet::Gss if !gss_asked => {
                    gss_asked = true;
                    self.refuse_injected("GSSAPI encryption").await?;
                    self.answer(b'N').await?;
                }
                Packet::Ssl | Packet::Gss => {
                    let text = "encryption is asked for again";
                    return Err(Fault::new(FaultClass::Invalid, "08P01", text).into());
                }
            }
        }
    }

    /// TLS from the first byte on (`sslnegotiation=direct`).
    async fn take_direct(&mut self) -> Result<(), Ended> {
        let Some(ClientStream::Tcp(socket)) = &self.stream else {
            return Ok(());
        };
        match secure::is_direct(socket).await {
            Ok(false) => Ok(()),
            Ok(true) if self.house.tls.is_some() => self.secure(true).await,
            _ => Err(Ended::Silent),
        }
    }

    async fn answer_ssl(&mut self) -> Result<(), Ended> {
        self.refuse_injected("SSL").await?;
        let plain = matches!(self.stream, Some(ClientStream::Tcp(_)));
        if !plain || self.house.tls.is_none() {
            return self.answer(b'N').await;
        }
        self.answer(b'S').await?;
        self.secure(false).await
    }

    /// Bytes that came in plain text behind a request for encryption would be taken for the
    /// client's own words later.
    async fn refuse_injected(&mut self, what: &str) -> Result<(), Ended> {
        let injected = match &self.stream {
            Some(ClientStream::Tcp(socket)) => secure::has_more(socket).await,
            _ => false,
        };
        if !injected {
            return Ok(());
        }
        let text = format!("received unencrypted data after {what} request");
        let detail = "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.";
        Err(Fault::new(FaultClass::Invalid, "08P01", text)
            .with_detail(Some(detail))
            .into())
    }

    async fn answer(&mut self, letter: u8) -> Result<(), Ended> {
        let mut out = BytesMut::from(&[letter][..]);
        login::send(self.stream()?, &mut out).await
    }

    async fn secure(&mut self, direct: bool) -> Result<(), Ended> {
        let (Some(tls), Some(ClientStream::Tcp(socket))) = (&self.house.tls, self.stream.take())
        else {
            return Err(Ended::Silent);
        };
        let shaken = Box::pin(tls.accept(socket, direct)).await;
        let (stream, binding) = shaken.map_err(|error| {
            tracing::debug!(%error, peer = %self.peer, "TLS handshake failed");
            Ended::Silent
        })?;
        self.stream = Some(ClientStream::Tls(Box::new(stream)));
        self.binding = binding;
        Ok(())
    }

    fn check_secure(&self) -> Result<(), Ended> {
        let open = matches!(self.stream, Some(ClientStream::Tcp(_)));
        if !(open && self.house.config.require_tls) {
            return Ok(());
        }
        let text =
            "only connections with TLS are let in (require_tls): use sslmode=require or better";
        Err(Fault::new(FaultClass::Denied, "28000", text).into())
    }

    /// What lets the client into the server, and what it has proven itself against, if a proof was
    /// asked for.
    async fn authenticate(
        &mut self,
        request: &Request,
        out: &mut BytesMut,
    ) -> Result<(Credential, Option<Verifier>), Ended> {
        let role = &request.identity.role;
        match self.house.access.way(role, self.local).await? {
            Way::Trusted => Ok((Credential::Own, None)),
            Way::Scram {
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
        let mut databases = self.house.config.databases.iter();
        databases.find(|database| *database.name == *request.identity.database)
    }

    fn seat(&self) -> Result<OwnedSemaphorePermit, Ended> {
        let seat = self.house.seats.clone().try_acquire_owned();
        seat.map_err(|_| {
            let hint = format!(
                "At most {} clients are let in (max_clients).",
                self.house.config.max_clients
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
        seat: OwnedSemaphorePermit,
        mut out: BytesMut,
    ) -> Result<Admitted, Ended> {
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
        let moment = self.moment(&who, verifier.is_some()).await?;
        who.settings.version = moment.version;
        let report = self.house.pool.report(&who).await?;
        report.write(&mut out, &who.application_name);
        // Shared by all clients that ask for the same, so that each costs less.
        let identity = report.identity.clone();
        let warrant = Warrant {
            credential: who.credential.clone(),
            verifier,
            revoked: self.house.stop.child_token(),
        };
        let name = who.application_name.clone();
        let register = &self.house.register;
        let entry = register.enter(&self.peer, identity.clone(), name, warrant);
        self.check_limits(&entry, &moment)?;
        say::key(&mut out, entry.presence.pid, entry.presence.secret);
        login::send(self.stream()?, &mut out).await?;
        let client = Client {
            stream: self.stream.take().ok_or(Ended::Silent)?,
            received: BytesMut::new(),
            identity,
            settings: report.settings.clone(),
            application_name: who.application_name,
            credential: who.credential,
            join: request.join.unwrap_or(join),
            standard_strings: report.standard_strings,
            utf8: report.utf8,
            presence: std::sync::Arc::clone(&entry.presence),
        };
        Ok(Admitted::Session(Box::new(client), entry, seat))
    }

    /// What the role's session begins with. Whom the server may refuse, it is asked to let in, for
    /// its own words.
    async fn moment(&self, who: &Who, proven: bool) -> Result<Moment, Fault> {
        let Identity { database, role } = &who.identity;
        let moment = self.house.moments.of(database, role).await?;
        let moment = moment.unwrap_or_default();
        if moment.doubtful {
            self.house.pool.knock(who).await?;
        }
        match moment.expired && proven {
            true => Err(say::denied(role)),
            false => Ok(moment),
        }
    }

    /// As many sessions as a server would allow connections.
    fn check_limits(&self, entry: &Entry, moment: &Moment) -> Result<(), Fault> {
        let Identity { database, role } = &entry.presence.identity;
        let too_many = |of: &str, name: &str| {
            let text = format!("too many connections for {of} \"{name}\"");
            Err(Fault::new(FaultClass::Overloaded, "53300", text))
        };
        let count = |is: &dyn Fn(&Identity) -> bool| self.house.register.count(is);
        if let Some(limit) = moment.role_limit
            && count(&|other| other.role == *role) > limit
        {
            return too_many("role", role);
        }
        if let Some(limit) = moment.database_limit
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
    ) -> Result<Admitted, Ended> {
        let role = &request.identity.role;
        if !self.house.access.is_admin(role, trusted) {
            let text = format!("user \"{role}\" may not use the console");
            let hint = "Roles that may are configured as admins.";
            let fault = Fault::new(FaultClass::Denied, "42501", text);
            return Err(fault.with_hint(Some(hint)).into());
        }
        crate::admin::greet(&mut out, role, &request.application_name);
        login::send(self.stream()?, &mut out).await?;
        let stream = self.stream.take().ok_or(Ended::Silent)?;
        Ok(Admitted::Console(stream))
    }

    fn stream(&mut self) -> Result<&mut ClientStream, Ended> {
        self.stream.as_mut().ok_or(Ended::Silent)
    }

    async fn turn_away(&mut self, ended: Ended) {
        match ended {
            Ended::Silent => self.house.metrics.login(Login::Left),
            Ended::Fatal(fault) => {
                self.house.metrics.login(Login::of(&fault));
                tracing::debug!(%fault, peer = %self.peer, "a client is turned away");
                if let Some(stream) = self.stream.take() {
                    say::turn_away(stream, &fault).await;
                }
            }
        }
    }
}
