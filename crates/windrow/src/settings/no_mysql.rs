//! A build without MySQL: `[mysql]` can be read, but not be used.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use windrow_sockets::Threads;

use super::faults::Faults;
use super::file::File;
use super::tls::ServerTls;

/// No value of this type exists.
#[derive(Clone)]
pub enum MysqlSettings {}

impl MysqlSettings {
    /// Returns the address where clients connect, and the socket that a service manager opened
    /// there.
    pub fn listening(&mut self) -> (&mut SocketAddr, &mut Option<Arc<TcpListener>>) {
        match *self {}
    }

    /// Checks that clients could log in as configured.
    pub(super) fn check(&self) -> Result<(), String> {
        match *self {}
    }

    /// Sets the threads that serve clients.
    pub(super) fn serve_on(&mut self, _: Threads) {
        match *self {}
    }

    /// Describes where the frontend listens.
    pub fn greeting(&self, _: SocketAddr) -> String {
        match *self {}
    }
}

pub(super) fn settings(
    file: &File,
    _: &str,
    _: Option<&ServerTls>,
    faults: &mut Faults,
) -> Option<MysqlSettings> {
    if file.mysql.listen.is_some() {
        faults.note::<()>(Err(anyhow::anyhow!(
            "mysql.listen is set, but this build has no MySQL: it was made without the feature `mysql`"
        )));
    }
    None
}
