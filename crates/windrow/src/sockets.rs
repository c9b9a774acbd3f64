//! Sockets that a service manager has opened (systemd's socket activation). Clients can connect
//! before this program runs, and while it starts again: they wait, and are not refused.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, bail};
use listenfd::ListenFd;
use windrow::settings::Settings;

/// Lets the frontends use the sockets that the service manager passed, if there are any. Each
/// belongs to the frontend with its name (`http`, `pg`, `mysql`), or else to the one that is
/// configured to listen at its address. Changes the environment, so no other thread may run yet.
///
/// # Errors
/// A socket is not a TCP socket, or no frontend is configured to listen at its address.
pub(crate) fn take_over(settings: &mut Settings) -> anyhow::Result<()> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut sockets = ListenFd::from_env();
    for number in 0..sockets.len() {
        let socket = sockets.take_tcp_listener(number);
        let socket = socket.context("the service manager handed over what is no TCP socket")?;
        let name = names.next().unwrap_or_default();
        if let Some(socket) = socket {
            assign(settings, name, socket)?;
        }
    }
    Ok(())
}

fn assign(settings: &mut Settings, name: &str, open: TcpListener) -> anyhow::Result<()> {
    let address = open.local_addr()?;
    let is_meant = |frontend: &str, listen: SocketAddr| match name {
        "http" | "pg" | "mysql" => name == frontend,
        _ => listen == address,
    };
    let http = settings.http.as_mut();
    let http = http.map(|http| ("http", &mut http.listen, &mut http.socket));
    let pg = settings.pg.as_mut().map(|pg| {
        let (listen, socket) = pg.listening();
        ("pg", listen, socket)
    });
    let mysql = settings.mysql.as_mut().map(|mysql| {
        let (listen, socket) = mysql.listening();
        ("mysql", listen, socket)
    });
    for (frontend, listen, socket) in http.into_iter().chain(pg).chain(mysql) {
        if socket.is_none() && is_meant(frontend, *listen) {
            *listen = address;
            *socket = Some(Arc::new(open));
            return Ok(());
        }
    }
    bail!(
        "the service manager handed over a socket at {address}, and nothing is to listen there: set http.listen, pg.listen or mysql.listen to \
         this address, or name the socket after one of them, as in FileDescriptorName=pg"
    )
}
