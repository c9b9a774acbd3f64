//! Names of tables and columns, exactly as the client wrote them.
//!
//! A name is never SQL by itself: only a sink's quoting function makes it an identifier.

use std::fmt;
use std::sync::Arc;

use crate::fault::{Fault, FaultClass};

/// A column or schema name, cheap to clone. Case is kept.
pub type Name = Arc<str>;

/// The longest accepted name, in bytes. PostgreSQL truncates at 63 bytes and MySQL refuses more
/// than 64 characters, so a longer name is a mistake or an attack.
pub const MAX_NAME_BYTES: usize = 255;

/// A table, optionally with the schema (or attached database) that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// The schema, if the client named one.
    pub schema: Option<Name>,
    /// The name of the table.
    pub table: Name,
}

impl TableName {
    /// Parses `table` or `schema.table`. A part in double quotes is taken literally, with `""` for
    /// a quote (`"a.b"` is one name). The case of an unquoted part is not folded either.
    ///
    /// # Errors
    /// [`FaultClass::Invalid`] if a part is empty, is longer than [`MAX_NAME_BYTES`] or contains a
    /// NUL, if a quote is not closed, or if there are more than two parts.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let mut parts = split(text)?;
        let (table, schema) = (parts.pop(), parts.pop());
        match table {
            Some(table) if parts.is_empty() => Ok(Self {
                schema: schema.map(Name::from),
                table: table.into(),
            }),
            _ => Err(invalid(
                text,
                "has more than two parts; write \"a.b\" in double quotes for a name with a dot",
            )),
        }
    }

    /// Returns a table without a schema. The name is not parsed.
    pub fn bare(table: impl Into<Name>) -> Self {
        Self {
            schema: None,
            table: table.into(),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.table),
            None => f.write_str(&self.table),
        }
    }
}

/// Checks a column name.
///
/// # Errors
/// [`FaultClass::Invalid`] if it is empty, too long or contains a NUL character.
pub fn check_column(name: &str) -> Result<(), Fault> {
    check(name, name)
}

fn split(text: &str) -> Result<Vec<String>, Fault> {
    let mut parts = Vec::with_capacity(2);
    let mut part = String::new();
    let mut chars = text.chars().peekable();
    loop {
        if part.is_empty() && chars.peek() == Some(&'"') {
            chars.next();
            loop {
                match chars.next() {
                    Some('"') if chars.peek() == Some(&'"') => {
                        chars.next();
                        part.push('"');
                    }
                    Some('"') => break,
                    Some(c) => part.push(c),
                    None => return Err(invalid(text, "has a double quote that is not closed")),
                }
            }
            if !matches!(chars.peek(), None | Some('.')) {
                return Err(invalid(text, "goes on after its closing double quote"));
            }
        }
        match chars.next() {
            Some('.') | None if part.is_empty() => return Err(invalid(text, "is empty")),
            Some('.') => {
                check(text, &part)?;
                parts.push(std::mem::take(&mut part));
            }
            Some(c) => part.push(c),
            None => {
                check(text, &part)?;
                parts.push(part);
                return Ok(parts);
            }
        }
    }
}

fn check(whole: &str, part: &str) -> Result<(), Fault> {
    if part.is_empty() {
        Err(invalid(whole, "is empty"))
    } else if part.len() > MAX_NAME_BYTES {
        Err(invalid(
            part,
            &format!(
                "is {} bytes long; the limit is {MAX_NAME_BYTES}",
                part.len()
            ),
        ))
    } else if part.contains('\0') {
        Err(invalid(part, "holds a NUL character"))
    } else {
        Ok(())
    }
}

/// The most characters of a name that a message repeats.
const SHOWN_CHARS: usize = 60;

fn invalid(text: &str, what: &str) -> Fault {
    let shown = match text.char_indices().nth(SHOWN_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}..", text.get(..end).unwrap_or_default()),
    };
    Fault::new(
        FaultClass::Invalid,
        "42602",
        format!("the name {shown} {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_plain_qualified_and_quoted_names() {
        assert_eq!(TableName::parse("t").unwrap(), TableName::bare("t"));
        let both = TableName::parse("s.Tab le").unwrap();
        assert_eq!(
            (both.schema.as_deref(), &*both.table),
            (Some("s"), "Tab le")
        );
        assert_eq!(TableName::parse("\"a.b\"").unwrap(), TableName::bare("a.b"));
        let quoted = TableName::parse("\"s\"\"x\".\"t\"").unwrap();
        assert_eq!(
            (quoted.schema.as_deref(), &*quoted.table),
            (Some("s\"x"), "t")
        );
        assert_eq!(
            &*TableName::parse("x\"; drop table y; --").unwrap().table,
            "x\"; drop table y; --"
        );
    }

    #[test]
    fn refuses_what_cannot_be_a_name() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a.b.c",
            "\"a",
            "\"a\"b",
            "a\0b",
            long.as_str(),
        ] {
            let fault = TableName::parse(bad).unwrap_err();
            assert_eq!(fault.class, FaultClass::Invalid, "{bad:?}");
        }
    }

    #[test]
    fn a_refused_name_is_told_by_its_beginning() {
        let message = |name: &str| check_column(name).unwrap_err().message.to_string();
        assert_eq!(message("a\0b"), "the name \"a\\0b\" holds a NUL character");
        let long = message(&"é".repeat(MAX_NAME_BYTES));
        let begins = format!(
            "the name \"{}\".. is 510 bytes long",
            "é".repeat(SHOWN_CHARS)
        );
        assert!(long.starts_with(&begins), "{long}");
        let many = TableName::parse(&"a.".repeat(100_000)).unwrap_err();
        assert!(many.message.len() < 300, "{}", many.message.len());
    }
}
