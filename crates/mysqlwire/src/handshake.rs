//! The server's greeting (version 10) and the client's login request, of the protocol that has been
//! in use since MySQL 4.1.

use bytes::BufMut;
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::{BufMutExt, ParseBuf};
use rand::RngExt;

use crate::target::Target;

/// Bytes of the random number that a password's proof is bound to.
pub const NONCE_BYTES: usize = 20;

/// The nonce of a greeting, or of a request for another kind of proof.
pub type Nonce = [u8; NONCE_BYTES];

/// Bytes of a request for TLS, which is the beginning of a login request.
const TLS_REQUEST_BYTES: usize = 32;

/// Returns a nonce. It contains no zero bytes, because clients would read the first one as its end.
pub fn nonce() -> Nonce {
    let mut nonce = [0; NONCE_BYTES];
    let mut random = rand::rng();
    nonce.fill_with(|| random.random_range(1..=127));
    nonce
}

/// The server's greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The server's version.
    pub version: Vec<u8>,
    /// The server's number of the connection, cut to 32 bits.
    pub id: u32,
    /// The nonce for a proof.
    pub nonce: Nonce,
    /// The abilities of the server.
    pub capabilities: CapabilityFlags,
    /// Further abilities of a MariaDB server.
    pub extended: MariadbCapabilities,
    /// The default collation's number.
    pub collation: u8,
    /// The session's status flags.
    pub status: u16,
    /// The kind of proof that the nonce is for.
    pub plugin: Vec<u8>,
}

impl Greeting {
    /// Reads a packet's content. `None` if it is not a greeting of version 10.
    pub fn parse(content: &[u8]) -> Option<Self> {
        let mut from = ParseBuf(content);
        if from.checked_eat_u8()? != 10 {
            return None;
        }
        let version = from.eat_null_str().to_vec();
        let id = from.checked_eat_u32_le()?;
        let mut nonce = [0; NONCE_BYTES];
        let (first, second) = nonce.split_at_mut(8);
        first.copy_from_slice(from.checked_eat(8)?);
        from.checked_eat_u8()?;
        let low = from.checked_eat_u16_le()?;
        let collation = from.checked_eat_u8()?;
        let status = from.checked_eat_u16_le()?;
        let high = from.checked_eat_u16_le()?;
        let bits = u32::from(low) | u32::from(high) << 16;
        from.checked_eat_u8()?;
        from.checked_eat(6)?;
        let extended = from.checked_eat_u32_le()?;
        // MySQL has no flags there, and sets this flag, which MariaDB does not.
        let is_mysql = bits & CapabilityFlags::CLIENT_LONG_PASSWORD.bits() != 0;
        let extended = if is_mysql { 0 } else { extended };
        second.copy_from_slice(from.checked_eat(12)?);
        let plugin = match from.eat_all() {
            [0, plugin @ ..] => plugin.strip_suffix(&[0]).unwrap_or(plugin),
            _ => b"mysql_native_password",
        };
        Some(Self {
            version,
            id,
            nonce,
            capabilities: CapabilityFlags::from_bits_truncate(bits),
            extended: MariadbCapabilities::from_bits_truncate(extended),
            collation,
            status,
            plugin: plugin.to_vec(),
        })
    }

    /// Returns the packet's content.
    pub fn encode(&self) -> Vec<u8> {
        let bits = self.capabilities.bits();
        let [a, b, c, d] = bits.to_le_bytes();
        let (first, second) = self.nonce.split_at(8);
        let mut out = vec![10];
        out.put_slice(&self.version);
        out.put_u8(0);
        out.put_u32_le(self.id);
        out.put_slice(first);
        out.put_u8(0);
        out.put_slice(&[a, b, self.collation]);
        out.put_u16_le(self.status);
        out.put_slice(&[c, d]);
        // The length of the nonce with the zero byte after it.
        out.put_u8(21);
        out.put_slice(&[0; 6]);
        out.put_u32_le(self.extended.bits());
        out.put_slice(second);
        out.put_u8(0);
        out.put_slice(&self.plugin);
        out.put_u8(0);
        out
    }
}

/// The client's login request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRequest {
    /// The abilities of the client.
    pub capabilities: CapabilityFlags,
    /// Further abilities of a MariaDB client.
    pub extended: MariadbCapabilities,
    /// The longest packet that the client accepts.
    pub max_packet: u32,
    /// The collation's number.
    pub collation: u8,
    /// The user's name.
    pub user: Vec<u8>,
    /// The proof of the password.
    pub proof: Vec<u8>,
    /// The database to begin in.
    pub database: Option<Vec<u8>>,
    /// The kind of proof.
    pub plugin: Vec<u8>,
    /// Attributes of the connection, encoded.
    pub attributes: Option<Vec<u8>>,
}

/// The longest packet that Windrow's own logins announce, in bytes: the server's default.
const MAX_PACKET_BYTES: u32 = 16 << 20;

impl LoginRequest {
    /// Returns a login of Windrow's own as the target's user, without abilities and without a
    /// database.
    pub fn own(target: &Target) -> Self {
        Self {
            capabilities: CapabilityFlags::empty(),
            extended: MariadbCapabilities::empty(),
            max_packet: MAX_PACKET_BYTES,
            // utf8mb4_general_ci
            collation: 45,
            user: target.user.clone().into_bytes(),
            proof: Vec::new(),
            database: None,
            plugin: Vec::new(),
            attributes: None,
        }
    }

    /// Returns true if an UPDATE counts the rows that it finds, and not only those that it changes.
    pub fn counts_found_rows(&self) -> bool {
        self.capabilities
            .contains(CapabilityFlags::CLIENT_FOUND_ROWS)
    }

    /// Returns true if a space may be between a function's name and its parenthesis.
    pub fn ignores_space(&self) -> bool {
        self.capabilities
            .contains(CapabilityFlags::CLIENT_IGNORE_SPACE)
    }

    /// Returns true if the content is the short request that asks for TLS first.
    pub fn asks_for_tls(content: &[u8]) -> bool {
        let bits = ParseBuf(content).checked_eat_u32_le().unwrap_or_default();
        let flags = CapabilityFlags::from_bits_truncate(bits);
        content.len() == TLS_REQUEST_BYTES && flags.contains(CapabilityFlags::CLIENT_SSL)
    }

    /// Reads a packet's content. `None` if it is not a login request, or is that of a client from
    /// before MySQL 4.1.
    pub fn parse(content: &[u8]) -> Option<Self> {
        let mut from = ParseBuf(content);
        let bits = from.checked_eat_u32_le()?;
        let capabilities = CapabilityFlags::from_bits_truncate(bits);
        let required =
            CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
        if !capabilities.contains(required) {
            return None;
        }
        let max_packet = from.checked_eat_u32_le()?;
        let collation = from.checked_eat_u8()?;
        from.checked_eat(19)?;
        let extended = from.checked_eat_u32_le()?;
        let is_mysql = capabilities.contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
        let extended = if is_mysql { 0 } else { extended };
        let user = from.eat_null_str().to_vec();
        let has_long_proof =
            capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA);
        let proof = match has_long_proof {
            true => from.checked_eat_lenenc_str()?,
            false => from.checked_eat_u8_str()?,
        };
        let has = |flag| capabilities.contains(flag);
        let database = has(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
            .then(|| from.eat_null_str().to_vec())
            .filter(|name| !name.is_empty());
        let plugin = match has(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            true => from.eat_null_str(),
            false => b"mysql_native_password",
        };
        let attributes = has(CapabilityFlags::CLIENT_CONNECT_ATTRS)
            .then(|| from.checked_eat_lenenc_str().map(<[u8]>::to_vec))
            .flatten();
        Some(Self {
            capabilities,
            extended: MariadbCapabilities::from_bits_truncate(extended),
            max_packet,
            collation,
            user,
            proof: proof.to_vec(),
            database,
            plugin: plugin.to_vec(),
            attributes,
        })
    }

    /// Returns the request for TLS that precedes this one.
    pub fn encode_tls_request(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_start(&mut out);
        out
    }

    /// Returns the packet's content. The flags are set according to its parts, whatever the
    /// client's own flags were.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_start(&mut out);
        out.put_slice(&self.user);
        out.put_u8(0);
        out.put_lenenc_str(&self.proof);
        if let Some(database) = &self.database {
            out.put_slice(database);
            out.put_u8(0);
        }
        out.put_slice(&self.plugin);
        out.put_u8(0);
        if let Some(attributes) = &self.attributes {
            out.put_lenenc_str(attributes);
        }
        out
    }

    fn encode_start(&self, out: &mut Vec<u8>) {
        let mut flags = self.capabilities
            | CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_PLUGIN_AUTH
            | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA;
        flags.set(
            CapabilityFlags::CLIENT_CONNECT_WITH_DB,
            self.database.is_some(),
        );
        flags.set(
            CapabilityFlags::CLIENT_CONNECT_ATTRS,
            self.attributes.is_some(),
        );
        out.put_u32_le(flags.bits());
        out.put_u32_le(self.max_packet);
        out.put_u8(self.collation);
        out.put_slice(&[0; 19]);
        out.put_u32_le(self.extended.bits());
    }

    /// Reads a `COM_CHANGE_USER`, which has the same parts except for the abilities, and returns
    /// the login request that replaces this one. MariaDB sets the SQL mode of `CLIENT_IGNORE_SPACE`
    /// only at the first login.
    pub fn changed(&self, content: &[u8], is_mariadb: bool) -> Option<Self> {
        let mut from = ParseBuf(content.get(1..)?);
        let user = from.eat_null_str().to_vec();
        let proof = from.checked_eat_u8_str()?.to_vec();
        let database = Some(from.eat_null_str().to_vec()).filter(|name| !name.is_empty());
        let has = |flag| self.capabilities.contains(flag);
        let collation = from.checked_eat_u16_le().unwrap_or(self.collation.into());
        let plugin = match has(CapabilityFlags::CLIENT_PLUGIN_AUTH) && !from.is_empty() {
            true => from.eat_null_str().to_vec(),
            false => self.plugin.clone(),
        };
        let attributes = has(CapabilityFlags::CLIENT_CONNECT_ATTRS)
            .then(|| from.checked_eat_lenenc_str().map(<[u8]>::to_vec))
            .flatten();
        let mut capabilities = self.capabilities;
        if is_mariadb {
            capabilities.remove(CapabilityFlags::CLIENT_IGNORE_SPACE);
        }
        Some(Self {
            capabilities,
            user,
            proof,
            database,
            // A login request has one byte for it.
            collation: u8::try_from(collation).unwrap_or(self.collation),
            plugin,
            attributes,
            ..self.clone()
        })
    }
}

/// Returns the content of a request for a proof of another kind.
pub fn auth_switch(plugin: &[u8], nonce: &Nonce) -> Vec<u8> {
    let mut out = vec![0xfe];
    out.put_slice(plugin);
    out.put_u8(0);
    out.put_slice(nonce);
    out.put_u8(0);
    out
}

/// Reads a request for a proof of another kind, after its first byte.
pub fn parse_auth_switch(rest: &[u8]) -> Option<(Vec<u8>, Nonce)> {
    let mut from = ParseBuf(rest);
    let plugin = from.eat_null_str().to_vec();
    let mut nonce = [0; NONCE_BYTES];
    nonce.copy_from_slice(from.checked_eat(NONCE_BYTES)?);
    Some((plugin, nonce))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The greeting of MariaDB 10.11, as it came over the line.
    const GREETING: &[u8] = b"\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\x03\0\0\0;cdJ&{^C\0\
        \xfe\xf7\x08\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0t>vY=cYwj-@9\0mysql_native_password\0";

    #[test]
    fn reads_and_writes_a_servers_greeting() {
        let greeting = Greeting::parse(GREETING).unwrap();
        assert!(greeting.version.starts_with(b"5.5.5-10.11.19-MariaDB"));
        assert_eq!(
            (greeting.id, greeting.collation, greeting.status),
            (3, 8, 2)
        );
        assert_eq!(&greeting.nonce, b";cdJ&{^Ct>vY=cYwj-@9");
        assert_eq!(greeting.plugin, b"mysql_native_password");
        let extended = MariadbCapabilities::MARIADB_CLIENT_STMT_BULK_OPERATIONS;
        assert!(greeting.extended.contains(extended));
        let again = Greeting::parse(&greeting.encode()).unwrap();
        assert_eq!(again, greeting);
    }

    #[test]
    fn a_nonce_has_no_zero_byte() {
        assert!(!nonce().contains(&0));
        assert_ne!(nonce(), nonce());
    }

    #[test]
    fn reads_what_it_switches_to() {
        let nonce = nonce();
        let content = auth_switch(b"caching_sha2_password", &nonce);
        let read = parse_auth_switch(&content[1..]);
        assert_eq!(read, Some((b"caching_sha2_password".to_vec(), nonce)));
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        vec(1..=255_u8, 1..40)
    }

    proptest! {
        #[test]
        fn logins_are_read_as_they_are_written(
            (user, plugin) in (name(), name()),
            proof in vec(any::<u8>(), 0..300),
            database in proptest::option::of(name()),
            attributes in proptest::option::of(vec(any::<u8>(), 0..300)),
            (max_packet, collation) in any::<(u32, u8)>(),
        ) {
            let request = LoginRequest {
                capabilities: CapabilityFlags::CLIENT_FOUND_ROWS,
                extended: MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA,
                max_packet, collation, user, proof, database, plugin, attributes,
            };
            let read = LoginRequest::parse(&request.encode()).unwrap();
            prop_assert!(read.capabilities.contains(request.capabilities));
            let read = LoginRequest { capabilities: request.capabilities, ..read };
            prop_assert_eq!(read, request);
        }

        #[test]
        fn nonsense_is_refused_and_never_panics(bytes in vec(any::<u8>(), 0..200)) {
            drop(Greeting::parse(&bytes));
            drop(parse_auth_switch(&bytes));
            if let Some(request) = LoginRequest::parse(&bytes) {
                drop(request.changed(&bytes, true));
                assert!(!LoginRequest::asks_for_tls(&request.encode()));
            }
            let mut cut = GREETING.to_vec();
            cut.truncate(bytes.len());
            drop(Greeting::parse(&cut));
        }
    }
}
