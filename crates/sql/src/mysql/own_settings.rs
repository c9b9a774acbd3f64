//! Windrow's own settings of a session of MySQL: variables `@windrow_NAME`, which SET assigns.

use windrow_core::{Expression, Piece};

use super::modes::Modes;
use super::reader::{Reader, unquote};
use super::scanner::Scanner;
use super::settings::{name, skip_value};
use crate::lex::{Token, TokenKind};
use crate::parse::Refusal;
use crate::text::Text;

/// The beginning of the variables' names.
const PREFIX: &str = "windrow_";

/// The value that SET assigns to one of Windrow's variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignedValue {
    /// A plain string.
    Text(Box<str>),
    /// NULL.
    Null,
    /// The parameter at this place, counted from 0.
    Parameter(usize),
    /// Another expression, whose value only the server knows.
    Other,
}

/// Returns the assignments of a SET to variables `@windrow_NAME`: the name after the prefix, in
/// lower case, and the value. Any other text has none, and neither has one that begins with a
/// comment.
pub fn own_settings(text: &str, modes: Modes) -> Vec<(Box<str>, AssignedValue)> {
    let verb = text.trim_start().get(..3).unwrap_or_default();
    match verb.eq_ignore_ascii_case("set") {
        true => Text::read(text, |text| read(text, modes)).unwrap_or_default(),
        false => Vec::new(),
    }
}

/// Returns the first variable `@windrow_NAME` that a text of several statements names: the name
/// after the prefix, in lower case. Only a SET in a text of its own assigns one.
pub fn own_name_among_several(text: &str, modes: Modes) -> Option<Box<str>> {
    if !text.contains(';') || !text.to_ascii_lowercase().contains(PREFIX) {
        return None;
    }
    Text::read(text, |text| own_name(text, modes))
}

fn own_name(text: Text<'_>, modes: Modes) -> Option<Box<str>> {
    let is_separator = |token: &Token| token.kind == TokenKind::Semicolon;
    let tokens = tokens(text, modes)?;
    let last = tokens.iter().rposition(|token| !is_separator(token))?;
    if !tokens.get(..last)?.iter().any(is_separator) {
        return None;
    }
    let mut pairs = tokens.windows(2);
    pairs.find_map(|pair| {
        let [at, name] = pair else { return None };
        let slice = |token: &Token| text.get(token.start..token.end).unwrap_or_default();
        let is_variable = at.kind == TokenKind::Operator && slice(at) == "@";
        let name = match name.kind {
            TokenKind::Quoted | TokenKind::Text => unquote(slice(name)),
            _ => slice(name).to_owned(),
        };
        let name = name.to_ascii_lowercase();
        let own = name.strip_prefix(PREFIX).filter(|_| is_variable);
        own.map(Into::into)
    })
}

fn tokens(text: Text<'_>, modes: Modes) -> Option<Vec<Token>> {
    let mut scanner = Scanner::new(text, modes).ok()?;
    let mut tokens = Vec::new();
    loop {
        let token = scanner.token().ok()?;
        match token.kind {
            TokenKind::End => return Some(tokens),
            TokenKind::Odd => return None,
            _ => tokens.push(token),
        }
    }
}

fn read(text: Text<'_>, modes: Modes) -> Result<Vec<(Box<str>, AssignedValue)>, Refusal> {
    let mut reader = Reader::new(text, modes)?;
    reader.at = 1;
    let assigned = reader.list(|reader| {
        let is_variable = reader.is_operator_at(reader.at, "@");
        let own = match is_variable {
            true => {
                reader.at += 1;
                assigned_name(reader)?
            }
            false => None,
        };
        Ok(match own {
            Some(own) => Some((own, assigned_value(reader)?)),
            None => {
                skip_value(reader);
                None
            }
        })
    })?;
    Ok(assigned.into_iter().flatten().collect())
}

/// Reads the name of a user's variable. `None` if it is none of Windrow's.
fn assigned_name(reader: &mut Reader<'_>) -> Result<Option<Box<str>>, Refusal> {
    let name = name(reader)?;
    let is_assigned =
        reader.is_operator_at(reader.at, "=") || reader.is_operator_at(reader.at, ":=");
    Ok(name
        .strip_prefix(PREFIX)
        .filter(|_| is_assigned)
        .map(Into::into))
}

/// Reads the assignment's operator and the value.
fn assigned_value(reader: &mut Reader<'_>) -> Result<AssignedValue, Refusal> {
    reader.at += 1;
    let from = reader.at;
    skip_value(reader);
    let is_one = reader.at == from + 1;
    if is_one && reader.kind_at(from) == TokenKind::Text {
        let text = plain_text(reader.slice_at(from));
        return Ok(text.map_or(AssignedValue::Other, AssignedValue::Text));
    }
    if is_one && reader.is_word_at(from, "null") {
        return Ok(AssignedValue::Null);
    }
    if let Expression::Sql(pieces) = reader.expression_of(from, reader.at)?
        && let [Piece::Parameter(place)] = &*pieces
    {
        return Ok(AssignedValue::Parameter(usize::from(*place)));
    }
    Ok(AssignedValue::Other)
}

/// Returns the content of a string without escapes and doubled quotes. No value of these variables
/// needs them.
fn plain_text(quoted: &str) -> Option<Box<str>> {
    let quote = quoted
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"'))?;
    let inside = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inside.contains(['\\', quote])).then(|| inside.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, AssignedValue)> {
        let all = own_settings(text, Modes::default()).into_iter();
        all.map(|(name, value)| (name.into(), value)).collect()
    }

    #[test]
    fn own_variables_are_found_among_others() {
        let text = |text: &str| AssignedValue::Text(text.into());
        let ack = |value| vec![("ack".to_owned(), value)];
        for (sql, expected) in [
            ("set @windrow_ack = 'spool'", ack(text("spool"))),
            (" SET @Windrow_Ack:=\"commit\";", ack(text("commit"))),
            ("set @`windrow_ack` = null", ack(AssignedValue::Null)),
            ("set @windrow_ack = ?", ack(AssignedValue::Parameter(0))),
            (
                "set @a = ?, @windrow_ack = ?",
                ack(AssignedValue::Parameter(1)),
            ),
            ("set @windrow_ack = @other", ack(AssignedValue::Other)),
            ("set @windrow_ack = 'a' 'b'", ack(AssignedValue::Other)),
            ("set @windrow_ack = 'a\\'b'", ack(AssignedValue::Other)),
            (
                "set names utf8mb4, @windrow_ack = 'spool', time_zone = '+00:00'",
                ack(text("spool")),
            ),
            (
                "set @windrow_ack = 'a', @windrow_x = concat('a', 'b')",
                vec![
                    ("ack".to_owned(), text("a")),
                    ("x".to_owned(), AssignedValue::Other),
                ],
            ),
        ] {
            assert_eq!(read(sql), expected, "{sql}");
        }
    }

    #[test]
    fn no_other_text_assigns_one() {
        for sql in [
            "select @windrow_ack := 'spool'",
            "set @windrowack = 'spool'",
            "set windrow_ack = 'spool'",
            "set @a = @windrow_ack",
            "set @@windrow_ack = 'spool'",
            "set transaction read only",
            "set @a = 1; set @windrow_ack = 'spool'",
            "",
        ] {
            assert_eq!(read(sql), [], "{sql}");
        }
    }

    #[test]
    fn several_statements_assign_nothing() {
        let found = |text| own_name_among_several(text, Modes::default());
        for text in [
            "SET @windrow_ack = 'spool'; INSERT INTO t VALUES (1)",
            "insert into t values (1);set @`WINDROW_ack`='spool';",
            "SELECT @windrow_ack := 'spool'; SELECT 1",
        ] {
            assert_eq!(found(text).as_deref(), Some("ack"), "{text}");
        }
        for text in [
            "SET @windrow_ack = 'spool';",
            "SET @windrow_ack = 'a;b'",
            "SELECT '@windrow_ack'; SELECT 1",
            "SELECT 1; SELECT 2 -- @windrow_ack",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
