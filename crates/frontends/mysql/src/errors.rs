//! The frontend's own errors, by the numbers that the server uses in the same case.

use std::time::Duration;

use windrow_core::{Fault, FaultClass};
use windrow_mysqlwire::{ConnectError, ErrorPacket, Target};

/// The number for a server that cannot be reached: "Unable to connect to foreign data source".
/// Clients do not accept numbers of their own range (2000 to 2999) from a server.
const NOT_CONNECTED: u16 = 1429;

pub(crate) fn too_many_clients() -> ErrorPacket {
    ErrorPacket::new(1040, *b"08004", "Too many connections")
}

pub(crate) fn no_server_connection(wait: Duration) -> ErrorPacket {
    let message = format!(
        "Too many connections: no server connection became free within {wait:?} \
         (mysql.max_server_connections, mysql.server_wait)"
    );
    ErrorPacket::new(1040, *b"08004", message)
}

pub(crate) fn bad_handshake() -> ErrorPacket {
    ErrorPacket::new(1043, *b"08S01", "Bad handshake")
}

pub(crate) fn compressed() -> ErrorPacket {
    let message = "Windrow does not compress: connect without compression";
    ErrorPacket::new(1043, *b"08S01", message)
}

pub(crate) fn denied(user: &[u8], host: &str, has_proof: bool) -> ErrorPacket {
    let user = String::from_utf8_lossy(user);
    let using = if has_proof { "YES" } else { "NO" };
    let message = format!("Access denied for user '{user}'@'{host}' (using password: {using})");
    ErrorPacket::new(1045, *b"28000", message)
}

pub(crate) fn unknown_command() -> ErrorPacket {
    ErrorPacket::new(1047, *b"08S01", "Unknown command")
}

/// Returns the error of an execution whose strings are in the character set of an earlier one.
pub(crate) fn other_charset(charset: &str) -> ErrorPacket {
    let message = format!(
        "the strings of this execution are in {charset}, the character set at the time when the \
         types of its parameters were sent: send the types again, or prepare the statement again"
    );
    ErrorPacket::new(1235, *b"42000", message)
}

pub(crate) fn shutdown() -> ErrorPacket {
    ErrorPacket::new(1053, *b"08S01", "Server shutdown in progress")
}

pub(crate) fn late_login() -> ErrorPacket {
    let message = "Got timeout reading communication packets (mysql.login_timeout)";
    ErrorPacket::new(1159, *b"08S01", message)
}

pub(crate) fn revoked() -> ErrorPacket {
    ErrorPacket::new(
        1927,
        *b"70100",
        "Connection was killed: the login was revoked",
    )
}

/// Returns the error for a value that one of Windrow's variables does not accept. `rule` describes
/// the values that it accepts.
pub(crate) fn wrong_value(name: &str, value: &str, rule: &str) -> ErrorPacket {
    let message = format!(
        "Variable 'windrow_{name}' can't be set to the value of '{value}': it takes {rule}"
    );
    ErrorPacket::new(1231, *b"42000", message)
}

/// Returns the error for an INSERT that the spool could not take.
pub(crate) fn not_spooled(reason: &str) -> ErrorPacket {
    let message = format!(
        "The spool cannot take this INSERT: {reason}; \
         SET @windrow_ack = 'commit' to have the database answer"
    );
    ErrorPacket::new(1235, *b"0A000", message)
}

/// Returns the error for a statement that cannot be executed under the session's key.
pub(crate) fn not_keyed(key: &str, reason: &str) -> ErrorPacket {
    let message = format!(
        "@windrow_idempotency_key is '{key}', and this statement cannot be executed under a key: \
         {reason}; SET @windrow_idempotency_key = NULL to execute it without one"
    );
    ErrorPacket::new(1235, *b"0A000", message)
}

pub(crate) fn needs_tls() -> ErrorPacket {
    let message = "Connections using insecure transport are prohibited (mysql.require_tls)";
    ErrorPacket::new(3159, *b"HY000", message)
}

/// Returns the error for a server whose abilities are not those that the client was greeted with.
pub(crate) fn changed_server() -> ErrorPacket {
    let message = "The server's abilities have changed since Windrow looked; connect again";
    ErrorPacket::new(NOT_CONNECTED, *b"HY000", message)
}

/// Returns the error for a server that cannot be used: its own, if it sent one.
pub(crate) fn of_connecting(error: ConnectError, target: &Target) -> ErrorPacket {
    match error {
        ConnectError::Refused(error) => error,
        ConnectError::NoProof(_) => ErrorPacket::new(
            1045,
            *b"28000",
            format!("Access denied: {error}; set server_password for this user"),
        ),
        _ => ErrorPacket::new(
            NOT_CONNECTED,
            *b"HY000",
            format!("Can't connect to the server at {target}: {error}"),
        ),
    }
}

/// Returns the error of a write of one row whose answer does not hold the server's own packet.
pub(crate) fn of_fault(fault: &Fault) -> ErrorPacket {
    if fault.class == FaultClass::Cancelled {
        return ErrorPacket::new(1317, *b"70100", "Query execution was interrupted");
    }
    if let Some(error) = ErrorPacket::of_note(&fault.message) {
        return of_only_row(error);
    }
    let (number, state) = match fault.class {
        FaultClass::TooLarge => (1153, None),
        FaultClass::Overloaded => (1041, None),
        FaultClass::Unavailable => (NOT_CONNECTED, None),
        FaultClass::Unsupported => (1235, None),
        FaultClass::Unique => (1062, Some(b"23000")),
        FaultClass::ForeignKey => (1452, Some(b"23000")),
        FaultClass::NotNull => (1048, Some(b"23000")),
        FaultClass::Check => (4025, Some(b"23000")),
        FaultClass::NoTable => (1146, Some(b"42S02")),
        FaultClass::NoColumn => (1054, Some(b"42S22")),
        FaultClass::Denied => (1227, Some(b"42000")),
        FaultClass::Conflict => (1213, Some(b"40001")),
        _ => (1105, None),
    };
    let code = fault.code.as_bytes().first_chunk();
    let state = state.or(code).copied().unwrap_or(*b"HY000");
    ErrorPacket::new(number, state, &*fault.message)
}

/// Returns the error of a row that was written with other rows, as if it had been the only one.
fn of_only_row(mut error: ErrorPacket) -> ErrorPacket {
    const PLACE: &str = " at row ";
    if let Some((text, row)) = error.message.rsplit_once(PLACE)
        && row.parse::<u64>().is_ok()
    {
        error.message = format!("{text}{PLACE}1");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_server_is_answered_as_if_the_row_had_been_alone() {
        let message =
            "Incorrect value: 'x' for column 'v' at row 42 (MySQL error 1366, SQLSTATE 22007)";
        let error = of_fault(&Fault::new(FaultClass::Value, "22P02", message));
        let alone = "Incorrect value: 'x' for column 'v' at row 1";
        assert_eq!(error, ErrorPacket::new(1366, *b"22007", alone));
    }
}
