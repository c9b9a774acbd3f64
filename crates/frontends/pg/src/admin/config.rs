//! SHOW CONFIG: the settings, without secrets.

use super::table::{Rows, on};
use crate::config::{DatabaseConfig, PgConfig};
use crate::shared::Shared;

/// Returns name and value of each setting.
pub(super) fn rows(shared: &Shared) -> Rows {
    let PgConfig {
        listen,
        // Its address is that of `listen`.
        socket: _,
        threads: _,
        unix_socket_dir,
        tls,
        require_tls,
        databases,
        // RELOAD can change these.
        roles: _,
        max_clients,
        max_server_connections,
        server_wait,
        server_idle,
        login_timeout,
        max_message,
        max_pending,
        join,
        connect_timeout,
    } = &shared.config;
    let directory = unix_socket_dir.as_ref();
    let names: Vec<_> = databases
        .iter()
        .map(|database| database.name.as_str())
        .collect();
    let (users, auth_query, admins) = shared.access.summary();
    let rows = [
        ("listen", listen.to_string()),
        (
            "unix_socket_dir",
            directory.map_or_else(String::new, |dir| dir.display().to_string()),
        ),
        ("tls", on(tls.is_some())),
        ("require_tls", on(*require_tls)),
        ("databases", names.join(", ")),
        ("users", users.to_string()),
        ("auth_query", auth_query),
        ("admins", admins),
        ("max_clients", max_clients.to_string()),
        (
            "max_server_connections",
            connections(databases, *max_server_connections),
        ),
        ("server_wait", format!("{server_wait:?}")),
        ("server_idle", format!("{server_idle:?}")),
        ("login_timeout", format!("{login_timeout:?}")),
        ("max_message", max_message.to_string()),
        ("max_pending", max_pending.to_string()),
        ("join", on(*join)),
        ("connect_timeout", format!("{connect_timeout:?}")),
    ];
    rows.map(|(name, value)| vec![name.to_owned(), value])
        .into()
}

/// Returns the most server connections: one number if all databases have the same, otherwise one
/// for each database. The numbers may have been determined at the start.
fn connections(databases: &[DatabaseConfig], otherwise: usize) -> String {
    let most = |database: &DatabaseConfig| {
        let slots = database.connection_slots.as_ref();
        slots.map_or(otherwise, |slots| slots.most())
    };
    let first = databases.first().map_or(otherwise, most);
    if databases.iter().all(|database| most(database) == first) {
        return first.to_string();
    }
    let each = databases.iter();
    let each = each.map(|database| format!("{}: {}", database.name, most(database)));
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windrow_pgwire::target::Target;

    use super::*;
    use crate::connection_slots::ConnectionSlots;

    #[test]
    fn connections_are_those_in_force() {
        let database = |name: &str, most: Option<usize>| {
            let target = Target::parse("postgres://app@127.0.0.1/d").unwrap();
            let slots = |most| ConnectionSlots::new(name, most, Duration::ZERO);
            DatabaseConfig {
                connection_slots: most.map(slots),
                ..DatabaseConfig::new(name, target)
            }
        };
        for (most, shown) in [
            (vec![], "50"),
            (vec![("a", None)], "50"),
            (vec![("a", Some(72))], "72"),
            (vec![("a", Some(72)), ("b", Some(72))], "72"),
            (vec![("a", Some(72)), ("b", None)], "a: 72, b: 50"),
        ] {
            let each = most.into_iter().map(|(name, most)| database(name, most));
            assert_eq!(connections(&each.collect::<Vec<_>>(), 50), shown);
        }
    }
}
