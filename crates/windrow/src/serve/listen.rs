//! Explains why an address cannot be listened on.

use std::io;
use std::net::SocketAddr;

use anyhow::anyhow;

/// Explains why a frontend cannot listen, and what to do if another program uses the address.
pub(super) fn cannot_listen(
    error: &io::Error,
    who: &str,
    listen: SocketAddr,
    option: &str,
) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("; end the program that listens there, or give another address ({option})")
        }
        _ => String::new(),
    };
    anyhow!("{who} cannot listen on {listen}: {error}{advice}")
}
