//! Checks the rights of Windrow's role: to insert, and to create tables if it must.

use std::path::Path;

use nix::unistd::{AccessFlags, access};
use windrow::disk::folder_of;
use windrow::settings::Settings;
use windrow_core::bookkeeping::{IDEMPOTENCY, PROGRESS, REJECTED};
use windrow_core::{Fault, WriteRights};

use super::finding::ConnectFinding;

/// The subject of these findings.
const RIGHTS: &str = "rights";

/// The rights to its own tables that Windrow uses.
const OWN_RIGHTS: &str = "SELECT, INSERT, UPDATE, DELETE";

/// Checks the rights of the role of `database.url`. Returns no finding for databases that do not
/// tell them.
///
/// # Errors
/// The error of the database.
pub(super) async fn of_role(settings: &Settings) -> Result<Vec<ConnectFinding>, Fault> {
    if let Some(file) = windrow::databases::file(settings.url.reveal())? {
        return Ok(vec![of_file(&file)]);
    }
    let database = windrow::databases::open(settings.url.reveal(), &settings.sink).await?;
    let rights = database.write_rights().await?;
    Ok(rights.map_or_else(Vec::new, |rights| of_tables(&rights, settings)))
}

/// Checks that the process may write a file and create others in its folder, as SQLite does.
fn of_file(file: &Path) -> ConnectFinding {
    let folder = folder_of(file).unwrap_or_else(|| file.to_owned());
    let may = |path: &Path| access(path, AccessFlags::W_OK).is_ok();
    match may(&folder) && (!file.exists() || may(file)) {
        true => ConnectFinding::good(RIGHTS, "this user may write the file"),
        false => ConnectFinding::bad(
            RIGHTS,
            format!(
                "this user may not write {} and its folder; change their owner or mode",
                file.display()
            ),
        ),
    }
}

fn of_tables(rights: &WriteRights, settings: &Settings) -> Vec<ConnectFinding> {
    let role = &rights.role;
    let mut found = vec![inserts(rights)];
    let creates = settings.sink.create_tables;
    if creates && !rights.can_create {
        found.push(ConnectFinding::bad(
            RIGHTS,
            format!(
                "create_tables is on, and {role} may not create tables: GRANT CREATE ON {}, or set create_tables = false",
                rights.place
            ),
        ));
    }
    for table in own_tables(settings) {
        found.extend(missing(rights, table, rights.can_create, OWN_RIGHTS));
        if rights.limited.iter().any(|limited| limited == table) {
            let said = format!(
                "{role} may insert into {table}, and not all of the rest: GRANT {OWN_RIGHTS} ON {table}"
            );
            found.push(ConnectFinding::bad(RIGHTS, said));
        }
    }
    let tokens = settings
        .http
        .iter()
        .flat_map(|http| http.tokens.written_tables());
    for table in tokens.filter(|table| table.schema.is_none()) {
        found.extend(missing(rights, &table.table, creates, "INSERT"));
    }
    found
}

/// Returns the tables of its own that Windrow writes to with these settings.
fn own_tables(settings: &Settings) -> impl Iterator<Item = &'static str> {
    let spools = settings.spool.is_some();
    let used = [
        (PROGRESS, spools),
        (REJECTED, spools || settings.mqtt.is_some()),
        (IDEMPOTENCY, spools || settings.certain_outcomes),
    ];
    used.into_iter()
        .filter_map(|(table, is_used)| is_used.then_some(table))
}

fn inserts(rights: &WriteRights) -> ConnectFinding {
    let (role, open, closed) = (&rights.role, rights.open.len(), rights.closed.len());
    let all = open + closed;
    if open == 0 && closed > 0 {
        let said = format!("{role} may insert into none of the {all} tables: GRANT INSERT ON them");
        return ConnectFinding::bad(RIGHTS, said);
    }
    let creates = match rights.can_create {
        true => "may create tables",
        false => "may not create tables",
    };
    let mut said = format!("{role} may insert into {open} of {all} tables, and {creates}");
    if closed > 0 {
        said.push_str(&format!("; not into {}", rights.closed.join(", ")));
    }
    ConnectFinding::good(RIGHTS, said)
}

/// Returns why a required table cannot be written to. `needed` lists the rights that Windrow uses.
fn missing(
    rights: &WriteRights,
    table: &str,
    can_create: bool,
    needed: &str,
) -> Option<ConnectFinding> {
    let is = |one: &String| one == table;
    let role = &rights.role;
    if rights.closed.iter().any(is) {
        let said = format!("{role} may not insert into {table}: GRANT {needed} ON {table}");
        return Some(ConnectFinding::bad(RIGHTS, said));
    }
    if rights.open.iter().any(is) || can_create {
        return None;
    }
    let said = format!("the table {table} is not there, and {role} does not create it: create it");
    Some(ConnectFinding::bad(RIGHTS, said))
}
