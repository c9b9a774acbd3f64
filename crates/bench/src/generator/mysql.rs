//! Commands over MySQL's protocol.

use std::io::Write;

use mysql_async::consts::{CapabilityFlags, ColumnType, Command};
use windrow_testkit::pgclient::Address;

use super::pg::Mode;
use crate::reading::Value;

/// The command that prepares a statement.
pub(super) const PREPARE: u8 = Command::COM_STMT_PREPARE as u8;

/// The command that executes a prepared statement.
const EXECUTE: u8 = Command::COM_STMT_EXECUTE as u8;

/// The first byte of a packet: the server's greeting, success, a switch to another kind of proof at
/// the login and the end of columns and rows later, and an error.
pub(super) const GREETING: u8 = 10;
pub(super) const OK: u8 = 0;
pub(super) const END: u8 = 0xfe;
pub(super) const ERROR: u8 = 0xff;

/// The number of `utf8mb4_general_ci`.
const COLLATION: u8 = 45;

/// The longest packet that the client says to take, in bytes.
const MAX_PACKET: u32 = 1 << 24;

/// The longest text whose length is one byte.
const MAX_SHORT: usize = 250;

/// Appends a packet with its number in the exchange.
pub(super) fn packet(out: &mut Vec<u8>, number: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0, 0, 0, number]);
    content(out);
    let [a, b, c, ..] = (out.len() - at - 4).to_le_bytes();
    if let Some(place) = out.get_mut(at..at + 3) {
        place.copy_from_slice(&[a, b, c]);
    }
}

/// Appends the login of a user without a password.
pub(super) fn log_in(out: &mut Vec<u8>, number: u8, address: &Address) {
    let flags = CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_CONNECT_WITH_DB
        | CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH;
    packet(out, number, |out| {
        out.extend_from_slice(&flags.bits().to_le_bytes());
        out.extend_from_slice(&MAX_PACKET.to_le_bytes());
        out.push(COLLATION);
        out.extend_from_slice(&[0; 23]);
        out.extend_from_slice(address.role.as_bytes());
        // The end of the name, and no proof.
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(address.database.as_bytes());
        out.extend_from_slice(b"\0mysql_native_password\0");
    });
}

/// Appends the command that prepares a statement with a list of parameters behind its text.
pub(super) fn prepare(out: &mut Vec<u8>, text: &str, parameters: usize) {
    packet(out, 0, |out| {
        out.push(PREPARE);
        let marks = vec!["?"; parameters].join(", ");
        write!(out, "{text}({marks})").ok();
    });
}

/// Appends the command of a statement with a list of values behind its text.
pub(super) fn statement(
    mode: Mode,
    text: impl Fn() -> String,
    values: &[Value<'_>],
    out: &mut Vec<u8>,
) {
    packet(out, 0, |out| match mode {
        Mode::Prepared => execute(out, values),
        Mode::Simple | Mode::Extended => query(out, &text(), values),
    });
}

fn query(out: &mut Vec<u8>, text: &str, values: &[Value<'_>]) {
    out.push(Command::COM_QUERY as u8);
    out.extend_from_slice(text.as_bytes());
    for (at, value) in values.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"(" } else { b", " });
        // Writing into a Vec cannot fail.
        match value {
            Value::Text(text) => write!(out, "'{text}'").ok(),
            number => write!(out, "{number}").ok(),
        };
    }
    out.push(b')');
}

/// Writes the server's number of the prepared statement into a packet that executes it.
pub(super) fn put_number(packet: &mut [u8], statement: [u8; 4]) {
    if let Some([EXECUTE, number @ ..]) = packet.get_mut(4..9) {
        number.copy_from_slice(&statement);
    }
}

fn execute(out: &mut Vec<u8>, values: &[Value<'_>]) {
    out.push(EXECUTE);
    // The statement's number, which the connection knows.
    out.extend_from_slice(&[0; 4]);
    // No cursor, and one execution.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    // No value is NULL, and their types follow.
    out.resize(out.len() + values.len().div_ceil(8), 0);
    out.push(1);
    for value in values {
        let kind = match value {
            Value::Int(_) => ColumnType::MYSQL_TYPE_LONGLONG,
            Value::Float(_) => ColumnType::MYSQL_TYPE_DOUBLE,
            Value::Text(_) => ColumnType::MYSQL_TYPE_VAR_STRING,
        };
        out.extend_from_slice(&[kind as u8, 0]);
    }
    for value in values {
        match value {
            Value::Int(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::Float(x) => out.extend_from_slice(&x.to_le_bytes()),
            Value::Text(text) => {
                let [low, high, ..] = text.len().to_le_bytes();
                match text.len() {
                    ..=MAX_SHORT => out.push(low),
                    _ => out.extend_from_slice(&[0xfc, low, high]),
                }
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_what_the_protocol_says() {
        let values = [Value::Int(7), Value::Float(1.5), Value::Text("abc")];
        let mut out = Vec::new();
        statement(
            Mode::Simple,
            || "insert into t values ".to_owned(),
            &values,
            &mut out,
        );
        assert_eq!(out, b"\x25\0\0\0\x03insert into t values (7, 1.5, 'abc')");
        out.clear();
        prepare(&mut out, "insert into t values ", 3);
        assert_eq!(out, b"\x1f\0\0\0\x16insert into t values (?, ?, ?)");
        out.clear();
        statement(Mode::Prepared, String::new, &values, &mut out);
        put_number(&mut out, [1, 0, 0, 0]);
        let plain = [
            &b"\x26\0\0\0\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x08\0\x05\0\xfd\0\x07\0\0\0\0\0\0\0"[..],
            &1.5_f64.to_le_bytes(),
            b"\x03abc",
        ];
        assert_eq!(out, plain.concat());
    }
}
