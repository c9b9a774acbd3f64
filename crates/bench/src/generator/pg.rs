//! Statements over PostgreSQL's protocol.

use std::fmt::Display;
use std::io::Write;

use windrow_testkit::pgclient::frontend;

use crate::reading::Value;

/// The name under which a client has its prepared statement.
pub const PREPARED_NAME: &str = "w";

/// The protocol of a client's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Parse once, then Bind and Execute.
    #[default]
    Prepared,
    /// Parse, Bind and Execute each time.
    Extended,
    /// Query, with the values in the text.
    Simple,
}

impl Mode {
    /// Returns the name of the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Extended => "extended",
            Self::Simple => "simple",
        }
    }
}

/// Returns a statement with a list of parameters behind its text.
pub(super) fn with_parameters(text: &str, count: usize) -> String {
    let marks: Vec<_> = (1..=count).map(|n| format!("${n}")).collect();
    format!("{text}({})", marks.join(", "))
}

/// Appends the messages that prepare statements with these names.
pub fn prepare(out: &mut Vec<u8>, statements: &[(&str, &str)]) {
    for (name, sql) in statements {
        frontend::parse(out, name, sql, &[]);
    }
    frontend::sync(out);
}

/// Appends the messages of a statement with a list of values behind its text.
pub(super) fn statement(
    mode: Mode,
    text: impl Fn() -> String,
    values: &[Value<'_>],
    out: &mut Vec<u8>,
) {
    let all = |out: &mut Values<'_>| values.iter().for_each(|value| out.add(value));
    match mode {
        Mode::Prepared => execute(out, PREPARED_NAME, all),
        Mode::Extended => {
            let text = with_parameters(&text(), values.len());
            frontend::parse(out, "", &text, &[]);
            execute(out, "", all);
        }
        Mode::Simple => frontend::message(out, b'Q', |out| {
            out.extend_from_slice(text().as_bytes());
            out.push(b'(');
            all(&mut Values::new(out, true));
            out.extend_from_slice(b")\0");
        }),
    }
}

/// Appends the messages that execute a prepared statement with some values.
pub fn execute(out: &mut Vec<u8>, statement: &str, values: impl FnOnce(&mut Values<'_>)) {
    frontend::message(out, b'B', |out| {
        // The unnamed portal, the statement, no formats: all text.
        out.extend_from_slice(&[0]);
        out.extend_from_slice(statement.as_bytes());
        out.extend_from_slice(&[0, 0, 0]);
        let at = out.len();
        out.extend_from_slice(&[0, 0]);
        let mut bound = Values::new(out, false);
        values(&mut bound);
        let count = bound.count.to_be_bytes();
        if let Some(place) = out.get_mut(at..at + 2) {
            place.copy_from_slice(&count);
        }
        out.extend_from_slice(&[0, 0]);
    });
    frontend::execute(out, "", 0);
    frontend::sync(out);
}

/// Values of a Bind message, all as text; or of a statement's text, all as literals.
#[derive(Debug)]
pub struct Values<'a> {
    out: &'a mut Vec<u8>,
    count: u16,
    literal: bool,
}

impl<'a> Values<'a> {
    fn new(out: &'a mut Vec<u8>, literal: bool) -> Self {
        let count = 0;
        Self {
            out,
            count,
            literal,
        }
    }

    /// Appends one, which has no quotation mark in it.
    pub fn add(&mut self, value: impl Display) {
        // Writing into a Vec cannot fail.
        if self.literal {
            let comma = if self.count > 0 { ", " } else { "" };
            write!(self.out, "{comma}'{value}'").ok();
        } else {
            let at = self.out.len();
            self.out.extend_from_slice(&[0; 4]);
            write!(self.out, "{value}").ok();
            let length = u32::try_from(self.out.len() - at - 4).unwrap_or(u32::MAX);
            if let Some(place) = self.out.get_mut(at..at + 4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
        self.count += 1;
    }
}
