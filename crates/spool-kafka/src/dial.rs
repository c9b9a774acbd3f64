//! Connects to a broker, and logs in.

use std::time::Duration;

use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use windrow_sockets::trusting;

use crate::address::{Address, Login};
use crate::failure::Failure;
use crate::sasl;
use crate::wire::Wire;

/// Timeout for connecting, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings for connections to brokers.
pub(crate) struct Ways {
    tls: Option<TlsConnector>,
    login: Option<Login>,
}

impl Ways {
    pub(crate) fn new(address: &Address) -> Result<Self, String> {
        let tls = address
            .tls
            .then(|| trusting(address.ca.as_deref(), "`ca`").map(TlsConnector::from));
        Ok(Self {
            tls: tls.transpose()?,
            login: address.login.clone(),
        })
    }

    /// Connects, and logs in if that is configured. Cancel safe.
    pub(crate) async fn dial(&self, host: &str, port: u16) -> Result<Wire, Failure> {
        let dialing = timeout(CONNECT_TIMEOUT, self.dial_untimed(host, port));
        let too_slow = |_| {
            let seconds = CONNECT_TIMEOUT.as_secs();
            Failure::unsent(format!(
                "the broker {host}:{port} did not answer within {seconds} s"
            ))
        };
        dialing.await.map_err(too_slow)?
    }

    async fn dial_untimed(&self, host: &str, port: u16) -> Result<Wire, Failure> {
        let mut wire = Wire::connect(host, port, self.tls.as_ref()).await?;
        if let Some(login) = &self.login {
            let named = |failure| match failure {
                Failure::Refused(_) | Failure::Said(_) => Failure::refused(format!(
                    "the broker {host}:{port} refuses the login: {failure}"
                )),
                other => Failure::unsent(format!("the login is not answered: {other}")),
            };
            sasl::log_in(&mut wire, login).await.map_err(named)?;
        }
        Ok(wire)
    }
}
