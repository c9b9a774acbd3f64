//! SQL as the `psql` program runs it.
//!
//! Tests ask servers all the time, and to start a program takes longer than most answers: plain
//! scripts at plain addresses are sent from here, all else is left to psql.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use super::programs::PostgresPrograms;
use super::script::statements;
use crate::own_server::feed;
use crate::pgclient::{Address, Client, Message, frontend};

/// `psql` of the server's own version where there is one: it starts faster than the wrapper that
/// Debian puts on the PATH. Or else what the PATH has.
pub fn program() -> PathBuf {
    PostgresPrograms::find().map_or_else(|_| PathBuf::from("psql"), |found| found.program("psql"))
}

/// Runs SQL, one transaction a statement; rows come back one a line, columns separated by `|`, NULL
/// as nothing. Blocks until it is done, and its connection has ended at the server.
///
/// # Errors
/// The server cannot be reached, or a statement fails (those after it are not run).
pub fn psql(url: &str, sql: &str) -> Result<String> {
    let address = Address::of(url).ok().filter(is_plain);
    if let (Some(address), Some(statements)) = (address, statements(sql))
        && let Some(client) = connect(&address)
    {
        return run(client, &statements);
    }
    by_program(url, sql)
}

/// Returns true if nothing of an address is encoded, and no password or option is given.
fn is_plain(address: &Address) -> bool {
    let is_plain = |text: &str| !text.is_empty() && !text.contains(['%', ':', '?', '/']);
    is_plain(&address.role) && is_plain(&address.database)
}

/// Connects. `None` if the server refuses, or asks for a password: psql may have other means, and
/// the better words.
fn connect(address: &Address) -> Option<Client> {
    let mut client = Client::open(address.socket).ok()?;
    // What psql waits for has no limit.
    client.stream().set_read_timeout(None).ok()?;
    let mut out = Vec::new();
    let parameters = [
        ("user", address.role.as_str()),
        ("database", address.database.as_str()),
        ("application_name", "psql"),
    ];
    frontend::startup(&mut out, &parameters);
    client.send(&out).ok()?;
    loop {
        let message = client.receive().ok()??;
        match message.tag {
            b'Z' => return Some(client),
            b'R' if message.body == [0; 4] => {}
            b'R' | b'E' => return None,
            _ => {}
        }
    }
}

fn run(mut client: Client, statements: &[&str]) -> Result<String> {
    let mut text = String::new();
    for statement in statements {
        let answer = client.query(statement)?;
        for message in &answer {
            match message.tag {
                b'D' => push_row(&mut text, message),
                b'E' => bail!("psql: {}", words(message)),
                _ => {}
            }
        }
        if answer.last().is_none_or(|last| last.tag != b'Z') {
            bail!("psql: the server closed the connection");
        }
    }
    let mut end = Vec::new();
    frontend::message(&mut end, b'X', |_| {});
    client.send(&end)?;
    // The server closes the connection last of all.
    client.receive()?;
    Ok(text.trim_end_matches('\n').to_owned())
}

fn push_row(text: &mut String, row: &Message) {
    for (place, value) in row.values().into_iter().enumerate() {
        if place > 0 {
            text.push('|');
        }
        text.push_str(&String::from_utf8_lossy(&value.unwrap_or_default()));
    }
    text.push('\n');
}

/// Returns an error as psql shows it.
fn words(error: &Message) -> String {
    let field = |code: u8| error.field(code);
    let head = [field(b'S'), field(b'M')].map(Option::unwrap_or_default);
    let mut words = head.join(":  ");
    for (name, code) in [("DETAIL", b'D'), ("HINT", b'H'), ("CONTEXT", b'W')] {
        if let Some(text) = field(code) {
            words.push_str(&format!("\n{name}:  {text}"));
        }
    }
    words
}

fn by_program(url: &str, sql: &str) -> Result<String> {
    let advice = "cannot run psql; install it, for example with: apt-get install postgresql-client";
    let mut command = Command::new(program());
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", "-"]);
    feed(&mut command, sql, advice)
}
