//! Messages to the service manager, if it asked for them (systemd's `Type=notify-reload`).

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Reports that the gateway serves.
pub(crate) fn ready() {
    tell("READY=1");
}

/// Reports that the gateway reads its configuration again.
pub(crate) fn reloading() {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    let micros = now.map_or(0, |now| now.tv_sec() * 1_000_000 + now.tv_nsec() / 1000);
    tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
}

/// Reports that the gateway is about to end.
pub(crate) fn stopping() {
    tell("STOPPING=1");
}

/// Sends a message. A manager that is absent or does not listen changes nothing.
fn tell(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&path, state) {
        tracing::warn!(%error, "the service manager does not get {state}; it may not know the state of this gateway");
    }
}

fn send(path: &OsStr, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(state.as_bytes(), &address(path)?)?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn address(path: &OsStr) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;

    match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    }
}

#[cfg(not(target_os = "linux"))]
fn address(path: &OsStr) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(path)
}
