//! What these tests share.

use std::time::Duration;

use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use windrow_core::Fault;

use crate::target::Target;
use crate::wire::{Answer, Wire};

/// Long enough for any machine; only a failing test waits so long.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// A target that nothing in the environment changes.
pub(super) fn target(url: &str) -> Target {
    Target::parse_with(url, &|_| None).unwrap()
}

pub(super) async fn connect(url: &str) -> Result<Wire, Fault> {
    Wire::connect(&target(url), &[], TIMEOUT).await
}

/// The first column of the first row.
pub(super) async fn ask(wire: &mut Wire, sql: &str) -> String {
    let rows = wire.simple(sql).await.unwrap().unwrap();
    rows[0][0].clone().unwrap_or_default()
}

pub(super) fn parse(wire: &mut Wire, name: &str, sql: &str) {
    frontend::parse(name, sql, [], wire.out()).unwrap();
}

/// Binds text values to the unnamed portal and executes it.
pub(super) fn run(wire: &mut Wire, statement: &str, values: &[&str]) {
    let bound = frontend::bind(
        "",
        statement,
        [],
        values,
        |value, buf| {
            buf.extend_from_slice(value.as_bytes());
            Ok(IsNull::No)
        },
        [],
        wire.out(),
    );
    assert!(bound.is_ok());
    frontend::execute("", 0, wire.out()).unwrap();
}

pub(super) fn sync(wire: &mut Wire) {
    frontend::sync(wire.out());
}

/// An answer, short.
pub(super) fn short(answer: &Answer<'_>) -> String {
    match answer {
        Answer::CommandComplete(tag) => tag.0.to_owned(),
        Answer::Error(error) => error.code.clone(),
        Answer::Ready(status) => format!("ready {}", char::from(*status)),
        Answer::DataRow(row) => format!("row of {}", row.columns().len()),
        other => format!("{other:?}"),
    }
}
