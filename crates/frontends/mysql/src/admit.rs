//! Admits clients: greeting, TLS, the proof of a password, and the session's server connection.

use std::io;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use windrow_mysqlwire::answer::{Forms, ok_status};
use windrow_mysqlwire::auth::CACHING_SHA2;
use windrow_mysqlwire::connect::connect;
use windrow_mysqlwire::handshake::{Nonce, auth_switch, nonce};
use windrow_mysqlwire::{
    CapabilityFlags, Credential, ErrorPacket, Greeting, LoginRequest, MariadbCapabilities,
    StatusFlags, Stream, Verifier, Wire,
};
use windrow_sockets::{ClientSocket, StartSlot};

use crate::access::Admittance;
use crate::errors;
use crate::register::RegisterEntry;
use crate::shared::Shared;

/// The longest packet of a client that logs in, in bytes.
pub(crate) const MAX_LOGIN_BYTES: usize = 128 * 1024;

/// The packet that tells a client that its fast proof was right.
const FAST_DONE: &[u8] = &[1, 3];

/// A client that is logged in, with its server connection.
pub(crate) struct AdmittedClient {
    pub(crate) client: Wire,
    pub(crate) server: ServerConnection,
    pub(crate) request: LoginRequest,
    pub(crate) host: String,
    pub(crate) is_local: bool,
    pub(crate) entry: RegisterEntry,
    _slots: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// A server connection of a session.
pub(crate) struct ServerConnection {
    pub(crate) wire: Wire,
    pub(crate) forms: Forms,
    /// The status that the server reported with the login.
    pub(crate) status: StatusFlags,
    /// The credential by which it was logged in.
    pub(crate) credential: Credential,
}

/// The proof that a client has given.
pub(crate) struct ProvenLogin {
    /// The credential for the server.
    credential: Credential,
    /// The verifier of the proof, if one was asked for.
    verifier: Option<Verifier>,
}

/// The reason for which a client is not admitted.
pub(crate) enum NotAdmitted {
    /// The client gets this error.
    Refused(ErrorPacket),
    /// The connection broke off.
    Gone,
}

impl From<ErrorPacket> for NotAdmitted {
    fn from(error: ErrorPacket) -> Self {
        Self::Refused(error)
    }
}

impl From<io::Error> for NotAdmitted {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Admits a client, or turns it away.
pub(crate) async fn admit(
    shared: &Shared,
    client: ClientSocket,
    slot: StartSlot,
) -> Option<AdmittedClient> {
    let mut greeter = Greeter::new(shared, client);
    match greeter.run(slot).await {
        Ok(admitted) => {
            shared.metrics.admitted.inc();
            return Some(admitted);
        }
        Err(NotAdmitted::Refused(error)) => {
            if let Some(mut wire) = greeter.wire {
                wire.put(&error.encode());
                // Closing must not wait for a client that does not read.
                let closing = timeout(shared.config.connect_timeout, wire.close());
                drop(closing.await);
            }
        }
        Err(NotAdmitted::Gone) => {}
    }
    shared.metrics.refused.inc();
    None
}

/// A connection that is being admitted.
struct Greeter<'a> {
    shared: &'a Shared,
    /// `None` while TLS begins.
    wire: Option<Wire>,
    /// The client's address, as errors name it.
    host: String,
    /// True for clients over loopback or the UNIX-domain socket.
    is_local: bool,
    /// True if nobody can listen in: the UNIX-domain socket.
    is_private: bool,
}

impl<'a> Greeter<'a> {
    fn new(shared: &'a Shared, client: ClientSocket) -> Self {
        let (wire, host, is_local, is_private) = match client {
            ClientSocket::Tcp(socket, address) => {
                let ip = address.ip().to_canonical();
                (Wire::new(socket), ip.to_string(), ip.is_loopback(), false)
            }
            ClientSocket::Unix(socket) => (Wire::new(socket), "localhost".to_owned(), true, true),
        };
        Self {
            shared,
            wire: Some(wire),
            host,
            is_local,
            is_private,
        }
    }

    /// Admits the client: the client has a limited time for its proof, and waits for a server
    /// connection beyond that.
    async fn run(&mut self, slot: StartSlot) -> Result<AdmittedClient, NotAdmitted> {
        let shared = self.shared;
        let client_slot = Arc::clone(&shared.client_slots).try_acquire_owned();
        let client_slot = client_slot.map_err(|_| errors::too_many_clients())?;
        let entry = shared.register.enter();
        let admitting = async {
            let logging_in = timeout(shared.config.login_timeout, self.log_in(entry.id));
            let (request, proven) = tokio::select! {
                biased;
                logged_in = logging_in => logged_in.unwrap_or_else(|_| {
                    Err(errors::late_login().into())
                })?,
                () = slot.given_up.cancelled() => {
                    return Err(errors::too_many_clients().into());
                }
            };
            drop(slot);
            let server_slot = shared.server_slot().await?;
            let (server, ok) = open(shared, &request, proven, &entry).await?;
            let mut client = self.wire.take().ok_or(NotAdmitted::Gone)?;
            client.put(&ok);
            client.flush().await?;
            Ok(AdmittedClient {
                client,
                server,
                request,
                host: std::mem::take(&mut self.host),
                is_local: self.is_local,
                entry,
                _slots: (client_slot, server_slot),
            })
        };
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => Err(errors::shutdown().into()),
            admitted = admitting => admitted,
        }
    }

    /// Greets the client and has it prove its password.
    async fn log_in(&mut self, id: u32) -> Result<(LoginRequest, ProvenLogin), NotAdmitted> {
        let shared = self.shared;
        let (target, limit) = (&shared.config.target, shared.config.connect_timeout);
        let profile = shared.profile.get(target, limit).await;
        let profile = profile.map_err(|error| errors::of_connecting(error, target))?;
        let greeting = greeting(&profile, id, shared.tls.is_some());
        let mut request = self.greet(&greeting).await?;
        agree(&mut request, &greeting);
        let client = self.wire.as_mut().ok_or(NotAdmitted::Gone)?;
        let place = (&*self.host, self.is_local);
        let proven = prove(shared, client, &request, Some(&greeting.nonce), place).await?;
        Ok((request, proven))
    }

    /// Sends the greeting and reads the login request, behind TLS if the client asks for it.
    async fn greet(&mut self, greeting: &Greeting) -> Result<LoginRequest, NotAdmitted> {
        let wire = self.wire.as_mut().ok_or(NotAdmitted::Gone)?;
        wire.put(&greeting.encode());
        wire.flush().await?;
        let content = wire.packet_alone(MAX_LOGIN_BYTES).await?;
        let mut content = content.ok_or(NotAdmitted::Gone)?;
        let is_secure = LoginRequest::asks_for_tls(&content);
        if is_secure {
            let wire = self.secure().await?;
            let behind = wire.packet(MAX_LOGIN_BYTES).await?;
            content = behind.ok_or(NotAdmitted::Gone)?;
        }
        if self.shared.config.require_tls && !is_secure && !self.is_private {
            return Err(errors::needs_tls().into());
        }
        let request = LoginRequest::parse(&content).ok_or_else(errors::bad_handshake)?;
        // Otherwise such a client would compress from now on, although compression was not offered.
        match request
            .capabilities
            .contains(CapabilityFlags::CLIENT_COMPRESS)
        {
            true => Err(errors::compressed().into()),
            false => Ok(request),
        }
    }

    /// Puts TLS over the connection.
    async fn secure(&mut self) -> Result<&mut Wire, NotAdmitted> {
        let wire = self.wire.take().ok_or(NotAdmitted::Gone)?;
        let acceptor = self.shared.tls.as_ref().ok_or(NotAdmitted::Gone)?;
        let stream: Box<dyn Stream> = wire.into_stream().ok_or(NotAdmitted::Gone)?;
        let secured = acceptor.accept(stream).await?;
        Ok(self.wire.insert(Wire::new(secured)))
    }
}

/// Returns the greeting of a session: the server's, without the abilities that cannot be relayed.
fn greeting(profile: &Greeting, id: u32, has_tls: bool) -> Greeting {
    let mut greeting = Greeting {
        id,
        nonce: nonce(),
        ..profile.clone()
    };
    greeting.capabilities.remove(
        CapabilityFlags::CLIENT_COMPRESS
            | CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM
            | CapabilityFlags::CLIENT_OPTIONAL_RESULTSET_METADATA,
    );
    greeting
        .capabilities
        .set(CapabilityFlags::CLIENT_SSL, has_tls);
    let several_commands = MariadbCapabilities::MARIADB_CLIENT_RESERVED_1;
    greeting.extended.remove(several_commands);
    greeting
}

/// Reduces the abilities of a client to those that it was greeted with.
fn agree(request: &mut LoginRequest, greeting: &Greeting) {
    // Only clients set this flag. MariaDB recognises clients of MySQL by it.
    let own = request.capabilities & CapabilityFlags::CLIENT_LONG_PASSWORD;
    request.capabilities &= greeting.capabilities;
    request.capabilities |= own;
    request.capabilities.remove(CapabilityFlags::CLIENT_SSL);
    request.extended &= greeting.extended;
}

/// Asks a client for the proof that its user needs, unless the request holds one for the nonce of
/// the greeting.
pub(crate) async fn prove(
    shared: &Shared,
    client: &mut Wire,
    request: &LoginRequest,
    greeted: Option<&Nonce>,
    (host, is_local): (&str, bool),
) -> Result<ProvenLogin, NotAdmitted> {
    let (verifier, password, plugin) = match shared.access.of(&request.user, is_local) {
        Admittance::Trusted(credential) => {
            // A client without a password, for which some clients send a zero byte, expects only
            // the success.
            let has_proof = !matches!(request.proof[..], [] | [0]);
            if request.plugin == CACHING_SHA2.as_bytes() && has_proof {
                client.put(FAST_DONE);
            }
            return Ok(ProvenLogin {
                credential,
                verifier: None,
            });
        }
        Admittance::Proof { verifier, password } => {
            let plugin = verifier.plugin();
            (Some(verifier), password, plugin)
        }
        Admittance::Refused(plugin) => (None, None, plugin),
    };
    let (nonce, proof) = match greeted {
        Some(greeted) if request.plugin == plugin.as_bytes() => (*greeted, request.proof.clone()),
        _ => switch(client, plugin).await?,
    };
    let key = verifier
        .as_ref()
        .and_then(|verifier| verifier.verify(&nonce, &proof));
    let Some(key) = key else {
        return Err(errors::denied(&request.user, host, !proof.is_empty()).into());
    };
    if plugin == CACHING_SHA2 {
        client.put(FAST_DONE);
    }
    Ok(ProvenLogin {
        credential: password.unwrap_or(key),
        verifier,
    })
}

/// Asks for a proof of another kind.
async fn switch(client: &mut Wire, plugin: &str) -> Result<(Nonce, Vec<u8>), NotAdmitted> {
    let nonce = nonce();
    client.put(&auth_switch(plugin.as_bytes(), &nonce));
    client.flush().await?;
    let proof = client.packet(MAX_LOGIN_BYTES).await?;
    Ok((nonce, proof.ok_or(NotAdmitted::Gone)?.to_vec()))
}

/// Opens a session's server connection. Returns the packet that reports success.
pub(crate) async fn open(
    shared: &Shared,
    request: &LoginRequest,
    proven: ProvenLogin,
    entry: &RegisterEntry,
) -> Result<(ServerConnection, Vec<u8>), NotAdmitted> {
    let (target, limit) = (&shared.config.target, shared.config.connect_timeout);
    let connected = connect(target, request, &proven.credential, limit).await;
    let connected = connected.map_err(|error| errors::of_connecting(error, target))?;
    let profile = shared.profile.note(connected.greeting);
    let own = CapabilityFlags::CLIENT_LONG_PASSWORD;
    let is_able = (profile.capabilities | own).contains(request.capabilities)
        && profile.extended.contains(request.extended);
    if !is_able {
        return Err(errors::changed_server().into());
    }
    let verifier = proven.verifier;
    entry.info.note(&request.user, verifier.clone(), profile.id);
    // Users may have been replaced before the session's login was in the register.
    if !shared.access.still_admits(&request.user, verifier.as_ref()) {
        return Err(errors::revoked().into());
    }
    let server = ServerConnection {
        wire: connected.wire,
        forms: Forms::of(request.capabilities, request.extended),
        status: ok_status(&connected.ok),
        credential: proven.credential,
    };
    Ok((server, connected.ok.to_vec()))
}
