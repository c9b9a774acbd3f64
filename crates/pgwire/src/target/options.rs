//! What a URL asks of the connection: TLS, and which kind of server.

use std::path::PathBuf;
use std::time::Duration;

/// How TLS is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    pub(crate) mode: SslMode,
    pub(crate) roots: Roots,
    /// The client's own certificate and its key, as PEM files.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// TLS begins with the connection's first byte (`sslnegotiation=direct`).
    pub(crate) is_direct: bool,
}

/// Settings for noticing a vanished server. `None`: Windrow's own.
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
    /// If the server can.
    #[default]
    Prefer,
    /// Always, with whatever certificate the server shows.
    Require,
    /// Always, with a certificate from a known authority.
    VerifyCa,
    /// Always, with a certificate from a known authority for this host.
    VerifyFull,
}

/// Whose certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Roots {
    /// The system's authorities.
    #[default]
    System,
    /// Those in a PEM file. A server's own self-signed certificate in it is believed too.
    File(PathBuf),
}

/// libpq's `channel_binding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChannelBinding {
    /// Never.
    Disable,
    /// Where TLS and the server offer it.
    #[default]
    Prefer,
    /// Or the connection is refused.
    Require,
}

/// libpq's `target_session_attrs`, as far as it makes sense for a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// The first server that lets us in.
    #[default]
    Any,
    /// The first one whose transactions may write.
    ReadWrite,
    /// The first one that is no standby.
    Primary,
}
