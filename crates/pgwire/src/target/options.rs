//! Options of a connection URL: TLS, TCP, and the kind of server.

use std::path::PathBuf;
use std::time::Duration;

/// Options for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    pub(crate) mode: SslMode,
    pub(crate) roots: Roots,
    /// The client's own certificate and its key, as PEM files.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// True if TLS begins with the connection's first byte (`sslnegotiation=direct`).
    pub(crate) is_direct: bool,
}

/// Settings that detect a vanished server. `None` stands for Windrow's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpOptions {
    /// True if no keepalives are sent.
    pub(crate) no_keepalive: bool,
    pub(crate) idle: Option<Duration>,
    pub(crate) interval: Option<Duration>,
    pub(crate) count: Option<u32>,
    pub(crate) user_timeout: Option<Duration>,
}

/// libpq's `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SslMode {
    /// Never.
    Disable,
    /// Only if the server insists.
    Allow,
    /// If the server supports TLS.
    #[default]
    Prefer,
    /// Always, with whatever certificate the server shows.
    Require,
    /// Always, with a certificate from a known authority.
    VerifyCa,
    /// Always, with a certificate from a known authority for this host.
    VerifyFull,
}

/// The trusted certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Roots {
    /// The system's authorities.
    #[default]
    System,
    /// The certificates in a PEM file. A server's self-signed certificate in it is trusted too.
    File(PathBuf),
}

/// libpq's `channel_binding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChannelBinding {
    /// Never.
    Disable,
    /// If TLS and the server offer it.
    #[default]
    Prefer,
    /// Always; otherwise the connection is refused.
    Require,
}

/// libpq's `target_session_attrs`, without the values that only make sense for readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// The first server that accepts the connection.
    #[default]
    Any,
    /// The first server whose transactions may write.
    ReadWrite,
    /// The first server that is no standby.
    Primary,
}
