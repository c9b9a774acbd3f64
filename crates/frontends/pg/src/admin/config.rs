//! SHOW CONFIG: what is set, and no secret.

use super::table::{Rows, on};
use crate::config::PgConfig;
use crate::shared::Shared;

/// Name and value of each setting.
pub(super) fn rows(shared: &Shared) -> Rows {
    let PgConfig {
        listen,
        // It is where `listen` says.
        socket: _,
        unix_socket_dir,
        tls,
        require_tls,
        databases,
        // They can be changed by RELOAD.
        users: _,
        auth_query: _,
        admins: _,
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
        ("max_server_connections", max_server_connections.to_string()),
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
