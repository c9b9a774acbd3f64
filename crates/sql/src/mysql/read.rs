//! Parses INSERT, REPLACE, UPDATE and DELETE.

use windrow_core::{Conflict, Expression, Name, Op, ParsedStatement, TableName};

use super::expression::{EndingWords, expression, item};
use super::filter::filter;
use super::modes::Modes;
use super::reader::Reader;
use super::reserved::is_reserved;
use crate::lex::TokenKind;
use crate::parse::{Refusal, SYNTAX};
use crate::text::Text;
use crate::write;

const INSERT_SELECT: Refusal = "INSERT .. SELECT";
const SEVERAL_ROWS: Refusal = "several rows of VALUES";
const SEVERAL_TABLES: Refusal = "several tables";
const PRIORITY: Refusal = "LOW_PRIORITY, DELAYED, HIGH_PRIORITY or QUICK";
const IGNORE: Refusal = "IGNORE of an UPDATE or DELETE";
const PARTITION: Refusal = "PARTITION";
const ORDER: Refusal = "ORDER BY";
const RETURNING: Refusal = "RETURNING that MySQL does not have";
const NO_WRITE: Refusal = "no write of rows";

/// Parses a lifted text, or one that a client prepares. Also explains why another text is not
/// joined.
///
/// # Errors
/// A short phrase, the same for all statements of a kind.
pub fn read(text: &str, modes: Modes) -> Result<ParsedStatement, &'static str> {
    Text::read(text, |text| parsed(text, modes))
}

fn parsed(text: Text<'_>, modes: Modes) -> Result<ParsedStatement, Refusal> {
    let mut reader = Reader::new(text, modes)?.without_doubt()?;
    let parsed = if reader.word("insert") {
        insert(&mut reader, false)
    } else if reader.word("replace") {
        insert(&mut reader, true)
    } else if reader.word("update") {
        update(&mut reader)
    } else if reader.word("delete") {
        delete(&mut reader)
    } else {
        Err(NO_WRITE)
    }?;
    match reader.kind() {
        TokenKind::End => Ok(ParsedStatement {
            functions: reader.functions.into(),
            ..parsed
        }),
        _ => Err(SYNTAX),
    }
}

/// Returns a statement of which only the table is known.
fn empty(text: &str, op: Op, table: TableName, alias: Option<Name>) -> ParsedStatement {
    ParsedStatement {
        set_based: false,
        ..write::empty(text, &[], op, table, alias)
    }
}

/// Refuses the words that change when a statement is executed.
fn no_priority(reader: &Reader<'_>) -> Result<(), Refusal> {
    match reader.is_any_at(
        reader.at,
        &["low_priority", "delayed", "high_priority", "quick"],
    ) {
        true => Err(PRIORITY),
        false => Ok(()),
    }
}

fn insert(reader: &mut Reader<'_>, replaces: bool) -> Result<ParsedStatement, Refusal> {
    no_priority(reader)?;
    let ignores = !replaces && reader.word("ignore");
    reader.word("into");
    let table = reader.table_name()?;
    let row = row(reader)?;
    if reader.kind() == TokenKind::Comma {
        return Err(SEVERAL_ROWS);
    }
    let alias = row_alias(reader)?;
    let conflict = match (on_duplicate(reader)?, replaces, ignores) {
        (Some(conflict), false, _) => Some(conflict),
        (Some(_), true, _) => return Err(SYNTAX),
        (None, true, _) => Some(without_clause(true)),
        (None, _, true) => Some(without_clause(false)),
        (None, false, false) => None,
    };
    let returning = returning(reader)?;
    Ok(ParsedStatement {
        set_based: conflict.is_none() && alias.is_none() && !row.has_columns,
        columns: row.columns,
        values: row.values,
        conflict,
        returning,
        ..empty(reader.text, Op::Insert, table, alias)
    })
}

/// The one row of an INSERT.
struct Row {
    columns: Option<Box<[Name]>>,
    values: Box<[Expression]>,
    /// True if a value may read columns.
    has_columns: bool,
}

/// Parses the columns and VALUES, or SET.
fn row(reader: &mut Reader<'_>) -> Result<Row, Refusal> {
    if reader.is_word_at(reader.at, "partition") {
        return Err(PARTITION);
    }
    if reader.word("set") {
        let assignments = reader.list(assignment)?;
        let has_columns = assignments.iter().any(|(_, _, has_columns)| *has_columns);
        let (columns, values): (Vec<_>, Vec<_>) = assignments
            .into_iter()
            .map(|(column, value, _)| (column, value))
            .unzip();
        return Ok(Row {
            columns: Some(columns.into()),
            values: values.into(),
            has_columns,
        });
    }
    let queries = ["select", "with", "table"];
    let columns = match reader.take(TokenKind::Open) {
        true => Some(columns(reader, &queries)?),
        false => None,
    };
    if reader.kind() == TokenKind::Open || reader.is_any_at(reader.at, &queries) {
        return Err(INSERT_SELECT);
    }
    if !reader.word("values") && !reader.word("value") {
        return Err(SYNTAX);
    }
    reader.expect(TokenKind::Open)?;
    let values = match reader.kind() {
        TokenKind::Close => Vec::new(),
        _ => reader.list(item)?,
    };
    reader.expect(TokenKind::Close)?;
    let has_columns = values.iter().any(|(_, has_columns)| *has_columns);
    Ok(Row {
        columns,
        values: values.into_iter().map(|(value, _)| value).collect(),
        has_columns,
    })
}

/// Parses the list of columns after its opening parenthesis.
fn columns(reader: &mut Reader<'_>, queries: &[&str]) -> Result<Box<[Name]>, Refusal> {
    if reader.take(TokenKind::Close) {
        return Ok([].into());
    }
    if reader.kind() == TokenKind::Open || reader.is_any_at(reader.at, queries) {
        return Err(INSERT_SELECT);
    }
    let columns = reader.list(Reader::column)?;
    reader.expect(TokenKind::Close)?;
    Ok(columns.into())
}

/// Parses the name of the new row, and of its columns if it has them: `AS new (a, b)`.
fn row_alias(reader: &mut Reader<'_>) -> Result<Option<Name>, Refusal> {
    if !reader.word("as") {
        return Ok(None);
    }
    let alias = reader.name()?;
    if reader.take(TokenKind::Open) {
        reader.list(Reader::name)?;
        reader.expect(TokenKind::Close)?;
    }
    Ok(Some(alias))
}

/// Returns the conflict action that a word at the beginning of the statement sets.
fn without_clause(update: bool) -> Conflict {
    Conflict {
        columns: None,
        update,
        assignments: [].into(),
        has_condition: false,
        sql: Expression::Sql([].into()),
    }
}

fn on_duplicate(reader: &mut Reader<'_>) -> Result<Option<Conflict>, Refusal> {
    let from = reader.at;
    if !reader.words(&["on", "duplicate", "key", "update"]) {
        return Ok(None);
    }
    let assignments = reader.list(assignment)?;
    let assignments = assignments
        .into_iter()
        .map(|(name, value, _)| (name, value));
    Ok(Some(Conflict {
        assignments: assignments.collect(),
        sql: reader.expression_of(from, reader.at)?,
        ..without_clause(true)
    }))
}

/// Parses `column = value`. The last part is true if the value may read columns.
fn assignment(reader: &mut Reader<'_>) -> Result<(Name, Expression, bool), Refusal> {
    let column = reader.column()?;
    let is_assigned = reader.is_operator_at(reader.at, "=");
    if !is_assigned {
        return Err(SYNTAX);
    }
    reader.at += 1;
    let (value, has_columns) = item(reader)?;
    Ok((column, value, has_columns))
}

fn returning(reader: &mut Reader<'_>) -> Result<Option<Box<str>>, Refusal> {
    if !reader.word("returning") {
        return Ok(None);
    }
    if !reader.modes.is_mariadb {
        return Err(RETURNING);
    }
    let from = reader.at;
    reader.list(|reader| expression(reader, EndingWords::Belong))?;
    let mut tokens = from..reader.at;
    match tokens.any(|at| reader.kind_at(at) == TokenKind::Parameter) {
        true => Err("a parameter in RETURNING"),
        false => Ok(Some(reader.text_of(from, reader.at).into())),
    }
}

fn update(reader: &mut Reader<'_>) -> Result<ParsedStatement, Refusal> {
    no_priority(reader)?;
    if reader.word("ignore") {
        return Err(IGNORE);
    }
    let (table, alias) = changed_table(reader)?;
    if !reader.word("set") {
        return Err(SEVERAL_TABLES);
    }
    let assignments = reader.list(assignment)?;
    let assignments = assignments
        .into_iter()
        .map(|(name, value, _)| (name, value));
    let (keys, conditions) = filter(reader)?;
    limit(reader)?;
    Ok(ParsedStatement {
        assignments: assignments.collect(),
        keys,
        conditions,
        ..empty(reader.text, Op::Update, table, alias)
    })
}

fn delete(reader: &mut Reader<'_>) -> Result<ParsedStatement, Refusal> {
    no_priority(reader)?;
    if reader.word("ignore") {
        return Err(IGNORE);
    }
    if !reader.word("from") {
        return Err(SEVERAL_TABLES);
    }
    let (table, alias) = changed_table(reader)?;
    if reader.kind() == TokenKind::Comma || reader.is_word_at(reader.at, "using") {
        return Err(SEVERAL_TABLES);
    }
    let (keys, conditions) = filter(reader)?;
    limit(reader)?;
    let returning = returning(reader)?;
    Ok(ParsedStatement {
        keys,
        conditions,
        returning,
        ..empty(reader.text, Op::Delete, table, alias)
    })
}

/// Parses the table of UPDATE and DELETE and its alias.
fn changed_table(reader: &mut Reader<'_>) -> Result<(TableName, Option<Name>), Refusal> {
    let table = reader.table_name()?;
    if reader.is_word_at(reader.at, "partition") {
        return Err(PARTITION);
    }
    let is_bare = match reader.kind() {
        TokenKind::Quoted => true,
        TokenKind::Word => !is_reserved(reader.slice_at(reader.at), reader.modes),
        _ => false,
    };
    let is_alias = reader.word("as") || is_bare;
    let alias = match is_alias {
        true => Some(reader.name()?),
        false => None,
    };
    Ok((table, alias))
}

/// Skips a LIMIT, which stays in the text.
fn limit(reader: &mut Reader<'_>) -> Result<(), Refusal> {
    if reader.is_word_at(reader.at, "order") {
        return Err(ORDER);
    }
    if reader.word("limit")
        && !reader.take(TokenKind::Integer)
        && !reader.take(TokenKind::Parameter)
    {
        return Err(SYNTAX);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
