//! Splits INSERTs of several rows into INSERTs of one row each.
//!
//! The PostgreSQL frontend keeps the rows of a transaction one by one until COMMIT. A text that is
//! split was parsed before: this module expects what [`crate::read`] accepts.

use std::sync::Arc;

use windrow_core::Piece;

use crate::lex::TokenKind;
use crate::numbered::{Part, numbered_rows};
use crate::parse::{Parser, Refusal};
use crate::read::statements;
use crate::text::Text;
use crate::tokens::Tokens;
use crate::write::insert_target;

/// The most rows of one text.
const MAX_ROWS: usize = 1_000;

/// The most bytes of all different texts of rows: each has all that stands around the rows.
const MAX_ROWS_BYTES: usize = 1 << 20;

/// A row of an INSERT of several rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleRow {
    /// The INSERT of this row alone. Its parameters are counted in the order of their first use.
    pub text: Arc<str>,
    /// The parameters of `text` among those of the INSERT of all rows, counted from 0.
    pub parameters: Box<[u16]>,
}

/// Takes an INSERT of several rows apart, with VALUES or as `numbered_rows` reads it. Returns
/// `None` for any other text, one with parameters outside of its rows, and one of more than 1,000
/// rows or 1 MiB of texts.
pub fn single_rows(text: &str) -> Option<Vec<SingleRow>> {
    Text::read(text, taken_apart)
}

fn taken_apart(text: Text<'_>) -> Option<Vec<SingleRow>> {
    let tokens = Tokens::of(text, true).ok()?;
    let text = text.as_str();
    let mut all = statements(&tokens.list);
    let tokens = all.next().filter(|_| all.next().is_none())?;
    let mut parser = Parser::new(text, tokens);
    if !parser.word("insert") {
        return None;
    }
    insert_target(&mut parser).ok()?;
    let from = parser.at;
    let rows = match parser.word("values") {
        true => values(&mut parser).ok()?,
        false => numbered_rows(&mut parser).ok()?,
    };
    let behind = parser.at..tokens.len();
    let has_parameters = behind.clone().any(|at| {
        let token = tokens.get(at);
        token.is_some_and(|token| token.kind == TokenKind::Parameter)
    });
    if has_parameters || rows.len() > MAX_ROWS {
        return None;
    }
    let (head, tail) = (
        parser.text_of(0, from),
        parser.text_of(behind.start, behind.end),
    );
    let (mut known, mut bytes): (Option<Arc<str>>, _) = (None, 0_usize);
    let rows = rows.into_iter().map(|row| {
        let mut parameters = Vec::new();
        let values = row.iter().map(|value| one(&parser, value, &mut parameters));
        let values = values.collect::<Option<Vec<_>>>()?.join(", ");
        let text = format!("{head} VALUES ({values}) {tail}");
        let text = text.trim_end();
        let text = known
            .take()
            .filter(|known| **known == *text)
            .unwrap_or_else(|| {
                bytes += text.len();
                text.into()
            });
        if bytes > MAX_ROWS_BYTES {
            return None;
        }
        known = Some(Arc::clone(&text));
        let parameters = parameters.into();
        Some(SingleRow { text, parameters })
    });
    rows.collect()
}

/// Returns a value with the parameters of its own row. `parameters` are those that the row has so
/// far.
fn one(parser: &Parser<'_>, value: &Part, parameters: &mut Vec<u16>) -> Option<String> {
    let mut pieces = Vec::new();
    parser.pieces(value.start, value.end, &mut pieces).ok()?;
    let mut sql = String::new();
    for piece in &pieces {
        match piece {
            Piece::Text(text) => sql.push_str(text),
            Piece::Parameter(place) => {
                let known = parameters.iter().position(|known| known == place);
                let at = known.unwrap_or(parameters.len());
                if known.is_none() {
                    parameters.push(*place);
                }
                sql.push_str(&format!("${}", at + 1));
            }
        }
    }
    Some(sql)
}

/// Parses the rows after VALUES.
fn values(parser: &mut Parser<'_>) -> Result<Vec<Vec<Part>>, Refusal> {
    parser.list(|parser| {
        parser.expect(TokenKind::Open)?;
        let row = parser.list(|parser| {
            let from = parser.at;
            if !parser.word("default") {
                parser.expression()?;
            }
            Ok(from..parser.at)
        })?;
        parser.expect(TokenKind::Close)?;
        Ok(row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Option<Vec<(String, Vec<u16>)>> {
        let rows = single_rows(text)?.into_iter();
        Some(
            rows.map(|row| (row.text.to_string(), row.parameters.to_vec()))
                .collect(),
        )
    }

    #[test]
    fn rows_of_values_become_inserts_of_their_own() {
        let text =
            "insert into t (a, b) values ($1, $2), ($3, default),($2,'x' || $2) returning id;";
        let row = |values: &str, parameters: &[u16]| {
            let text = format!("insert into t (a, b) VALUES ({values}) returning id");
            (text, parameters.to_vec())
        };
        let expected = [
            row("$1, $2", &[0, 1]),
            row("$1, default", &[2]),
            row("$1, 'x' || $1", &[1]),
        ];
        assert_eq!(rows(text).unwrap(), expected);
    }

    #[test]
    fn numbered_rows_become_inserts_of_their_own() {
        let text = "INSERT INTO t (a, b) SELECT p0::INTEGER, p1::VARCHAR(3) FROM (VALUES \
            ($1::INTEGER, $2::VARCHAR(3), 0), ($3::integer, $4::varchar(3), 1)) \
            AS imp_sen(p0, p1, sen_counter) ORDER BY sen_counter RETURNING t.id, t.id AS id__1";
        let row = |values: &str, parameters: &[u16]| {
            let text =
                format!("INSERT INTO t (a, b) VALUES ({values}) RETURNING t.id, t.id AS id__1");
            (text, parameters.to_vec())
        };
        let expected = [
            row("$1::INTEGER, $2::VARCHAR(3)", &[0, 1]),
            row("$1::integer, $2::varchar(3)", &[2, 3]),
        ];
        assert_eq!(rows(text).unwrap(), expected);
        assert!(
            matches!(crate::read(text, &[]), crate::Reading::Join(parsed) if !parsed.set_based)
        );
        for (part, other) in [
            ("p0::INTEGER", "p0::BIGINT"),
            ("p0::INTEGER", "p0"),
            ("p0::INTEGER", "p1::INTEGER"),
            ("p0::INTEGER", "p0::INTEGER + 1"),
            ("$1::INTEGER", "$1"),
            ("$1::INTEGER", "1::INTEGER"),
            (", 1))", ", 0))"),
            (", 1))", ", $5))"),
            ("(p0, p1, sen_counter)", "(p0, p1)"),
            ("(p0, p1, sen_counter)", "(p1, p0, sen_counter)"),
            ("ORDER BY sen_counter", "ORDER BY p0"),
            ("ORDER BY sen_counter", "ORDER BY sen_counter DESC"),
            ("ORDER BY sen_counter", ""),
            ("AS imp_sen", "AS imp_sen WITH ORDINALITY"),
            ("INTO t (a, b)", "INTO t"),
        ] {
            let other = text.replacen(part, other, 1);
            assert!(
                matches!(crate::read(&other, &[]), crate::Reading::Apart(_)),
                "{other}"
            );
        }
    }

    #[test]
    fn other_texts_have_no_single_rows() {
        for text in [
            "insert into t default values",
            "insert into t (a) select 1",
            "insert into t values (1); insert into t values (2)",
            "update t set a = 1 where id = 2",
            "insert into t values ($1), ($2) on conflict (a) do update set a = $3",
        ] {
            assert_eq!(rows(text), None, "{text}");
        }
        let many = |count: usize| format!("insert into t values (1){}", ", (1)".repeat(count - 1));
        assert_eq!(rows(&many(1_000)).unwrap().len(), 1_000);
        assert_eq!(rows(&many(1_001)), None);
        let wide = |count: i32| {
            let values: Vec<String> = (0..count).map(|n| format!("({n})")).collect();
            let behind = "x".repeat(50_000);
            format!(
                "insert into t values {} returning '{behind}'",
                values.join(", ")
            )
        };
        assert_eq!(rows(&wide(20)).unwrap().len(), 20);
        assert_eq!(rows(&wide(30)), None);
    }
}
