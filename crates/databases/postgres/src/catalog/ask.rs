//! Questions to the catalog, and the rows of their answers.

use postgres_protocol::message::frontend;
use postgres_protocol::{IsNull, Oid};
use windrow_pgwire::wire::{DataRow, Wire};

use super::column;

/// Appends a query with one parameter, a text.
pub(crate) fn ask(wire: &mut Wire, sql: &str, name: &str) {
    ask_of(wire, sql, column::oid::TEXT, &[name]);
}

/// Appends a query whose parameters are of one type.
pub(super) fn ask_of(wire: &mut Wire, sql: &str, parameter: Oid, values: &[&str]) {
    let out = wire.out();
    let asked = frontend::parse("", sql, values.iter().map(|_| parameter), out).is_ok()
        && frontend::bind(
            "",
            "",
            [],
            values,
            |value: &&str, out| {
                out.extend_from_slice(value.as_bytes());
                Ok(IsNull::No)
            },
            [],
            out,
        )
        .is_ok()
        && frontend::execute("", 0, out).is_ok();
    debug_assert!(asked, "neither the texts nor a value hold a zero byte");
}

/// A row of text columns. A missing column reads as an empty text; each query returns the columns
/// that its reader expects.
pub(crate) struct Fields<'a>(pub(crate) DataRow<'a>);

impl<'a> Fields<'a> {
    pub(crate) fn get(&self, place: usize) -> Option<&'a str> {
        std::str::from_utf8(self.0.get(place)?).ok()
    }

    pub(crate) fn text(&self, place: usize) -> &'a str {
        self.get(place).unwrap_or_default()
    }

    pub(crate) fn is(&self, place: usize) -> bool {
        self.text(place) == "t"
    }

    pub(crate) fn byte(&self, place: usize) -> u8 {
        self.text(place).bytes().next().unwrap_or(b',')
    }

    pub(crate) fn number<T: std::str::FromStr + Default>(&self, place: usize) -> T {
        self.text(place).parse().unwrap_or_default()
    }
}
