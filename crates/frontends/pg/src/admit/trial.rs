use super::options;
use super::packet::{self, Packet};

/// Reads the first packet of a connection, writes it, and checks that the result is the same
/// packet, and that settings which were removed from its options are not found again.
pub(crate) fn startup(bytes: &[u8]) {
    let Ok(packet) = packet::parse(bytes) else {
        return;
    };
    let Packet::Startup(startup) = packet else {
        assert!(bytes.len() == 4 || (12..=264).contains(&bytes.len()));
        return;
    };
    if !startup.is_beyond() {
        let mut written = startup.version.to_be_bytes().to_vec();
        for (name, value) in &startup.parameters {
            written.extend_from_slice(name.as_bytes());
            written.push(0);
            written.extend_from_slice(value.as_bytes());
            written.push(0);
        }
        written.push(0);
        assert_eq!(written, bytes);
    }
    let Ok(request) = options::read(startup.parameters) else {
        return;
    };
    assert!(!request.identity.role.is_empty() && !request.identity.database.is_empty());
    let own = |text: &str| text.to_owned();
    let mut again: Vec<(String, String)> = vec![
        (own("user"), own(&request.identity.role)),
        (own("database"), own(&request.identity.database)),
        (own("application_name"), own(&request.application_name)),
    ];
    let startup = request.settings.startup.iter();
    again.extend(startup.map(|(name, value)| (own(name), own(value))));
    let other = options::read(again);
    assert!(other.is_ok(), "not taken again: {request:?}");
    let Ok(other) = other else {
        return;
    };
    assert!(other.own.is_empty());
    assert_eq!(
        (other.identity, other.settings, other.application_name),
        (request.identity, request.settings, request.application_name)
    );
}
