//! Parses addresses to listen on.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::bail;

/// Parses an address and a port. A port alone and `localhost` mean this machine. `name` is the
/// setting's name, `usual` an example for the error.
///
/// # Errors
/// A description of what is missing.
pub fn read(name: &str, written: &str, usual: SocketAddr) -> anyhow::Result<SocketAddr> {
    let text = written.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let here = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if let Ok(port) = text.parse() {
        return Ok(here(port));
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        let whole = SocketAddr::new(ip, usual.port());
        bail!("{name}: {written:?} has no port; write {whole}");
    }
    match text.rsplit_once(':') {
        Some(("localhost", port)) if port.parse::<u16>().is_ok() => {
            Ok(here(port.parse().unwrap_or_default()))
        }
        Some(("" | "*", port)) if port.parse::<u16>().is_ok() => bail!(
            "{name}: {written:?} does not say for whom; write 127.0.0.1:{port} for this machine alone, 0.0.0.0:{port} for all"
        ),
        Some((host, port)) if port.parse::<u16>().is_ok() => bail!(
            "{name}: {host:?} is no address to listen on; write an IP address of this machine, as in 127.0.0.1:{port} or 0.0.0.0:{port}"
        ),
        _ => bail!(
            "{name}: {written:?} is not an address and a port such as {usual}, nor a port alone"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);

    #[test]
    fn a_port_alone_and_localhost_are_this_machine() {
        for (written, address) in [
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("27960", "127.0.0.1:27960"),
            ("localhost:27960", "127.0.0.1:27960"),
            (" 0.0.0.0:80 ", "0.0.0.0:80"),
            ("[::1]:0", "[::1]:0"),
        ] {
            let read = read("http.listen", written, USUAL).unwrap();
            assert_eq!(read.to_string(), address, "{written}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        for (written, word) in [
            (":8080", "127.0.0.1:8080 for this machine alone"),
            ("*:8080", "0.0.0.0:8080 for all"),
            ("127.0.0.1", "write 127.0.0.1:8420"),
            ("::1", "write [::1]:8420"),
            ("example.com:80", "an IP address of this machine"),
            ("99999", "nor a port alone"),
            ("here", "127.0.0.1:8420"),
            ("localhost:port", "127.0.0.1:8420"),
        ] {
            let told = read("http.listen", written, USUAL).unwrap_err().to_string();
            assert!(
                told.starts_with("http.listen: ") && told.contains(word),
                "{told}"
            );
        }
    }
}
