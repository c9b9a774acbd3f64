//! Parses INSERT, UPDATE and DELETE.

use windrow_core::{Expression, Name, Op, ParsedStatement, TableName};

use crate::clause::{assignment, conflict, filter, item, names, returning};
use crate::lex::{Token, TokenKind};
use crate::numbered::numbered_rows;
use crate::parse::{Parser, Refusal, SYNTAX};
use crate::word::Use;

/// Reads one statement that begins with INSERT, UPDATE or DELETE.
pub(crate) fn parsed(
    text: &str,
    tokens: &[Token],
    types: &[u32],
) -> Result<ParsedStatement, Refusal> {
    let mut parser = Parser::new(text, tokens);
    let parsed = if parser.word("insert") {
        insert(&mut parser, types)
    } else if parser.word("update") {
        update(&mut parser, types)
    } else {
        parser.expect_word("delete")?;
        delete(&mut parser, types)
    }?;
    match parser.kind(0) {
        TokenKind::End => Ok(ParsedStatement {
            functions: parser.functions.into(),
            ..parsed
        }),
        _ => Err(SYNTAX),
    }
}

/// Returns a statement of which only the table is known.
pub(crate) fn empty(
    text: &str,
    types: &[u32],
    op: Op,
    table: TableName,
    alias: Option<Name>,
) -> ParsedStatement {
    ParsedStatement {
        text: text.into(),
        types: types.into(),
        op,
        table,
        alias,
        columns: None,
        values: [].into(),
        overriding: None,
        conflict: None,
        assignments: [].into(),
        keys: [].into(),
        conditions: None,
        returning: None,
        returning_names: None,
        functions: [].into(),
        set_based: true,
    }
}

fn insert(parser: &mut Parser<'_>, types: &[u32]) -> Result<ParsedStatement, Refusal> {
    let target = insert_target(parser)?;
    let mut columns = target.columns;
    let is_numbered = columns.is_some() && parser.is_word(0, "select");
    let mut rows = match is_numbered {
        true => numbered_rows(parser)
            .map(|_| Vec::new())
            .map_err(|_| INSERT_SELECT)?,
        false => rows(parser)?,
    };
    let several = is_numbered || rows.len() > 1;
    let values = if several {
        columns = columns.map(|columns| without_defaults(columns, &rows));
        Vec::new()
    } else {
        rows.pop().unwrap_or_default()
    };
    let conflict = conflict(parser)?;
    let returning = returning(parser)?;
    Ok(ParsedStatement {
        columns,
        values: values.into(),
        overriding: target.overriding,
        conflict,
        returning: returning.list,
        returning_names: returning.names,
        set_based: !several,
        ..empty(parser.text, types, Op::Insert, target.table, target.alias)
    })
}

/// The beginning of an INSERT.
pub(crate) struct InsertTarget {
    table: TableName,
    alias: Option<Name>,
    columns: Option<Box<[Name]>>,
    overriding: Option<Box<str>>,
}

/// Parses an INSERT up to VALUES or SELECT, after its first word.
pub(crate) fn insert_target(parser: &mut Parser<'_>) -> Result<InsertTarget, Refusal> {
    parser.expect_word("into")?;
    let table = parser.table_name()?;
    let alias = if parser.word("as") {
        Some(parser.column_name()?)
    } else {
        None
    };
    qualify(parser, &table, alias.as_ref());
    Ok(InsertTarget {
        columns: insert_columns(parser)?,
        overriding: overriding(parser)?,
        table,
        alias,
    })
}

/// Returns the columns that get a value in one of several rows.
fn without_defaults(columns: Box<[Name]>, rows: &[Vec<Expression>]) -> Box<[Name]> {
    let is_default = |place: usize| {
        let mut values = rows.iter().map(|row| row.get(place));
        !rows.is_empty() && values.all(|value| value == Some(&Expression::Default))
    };
    let columns = columns.into_iter().enumerate();
    let given = columns.filter(|(place, _)| !is_default(*place));
    given.map(|(_, name)| name).collect()
}

/// Sets the names that may qualify a column.
fn qualify(parser: &mut Parser<'_>, table: &TableName, alias: Option<&Name>) {
    parser.qualifiers = vec![alias.unwrap_or(&table.table).clone()];
    let has_both = alias.is_none() && table.schema.is_some();
    parser.relation = has_both.then(|| table.clone());
}

fn insert_columns(parser: &mut Parser<'_>) -> Result<Option<Box<[Name]>>, Refusal> {
    if parser.kind(0) != TokenKind::Open {
        return Ok(None);
    }
    if ["select", "with", "values", "table"]
        .iter()
        .any(|w| parser.is_word(1, w))
        || parser.kind(1) == TokenKind::Open
    {
        return Err(INSERT_SELECT);
    }
    Ok(Some(names(parser)?.into()))
}

fn overriding(parser: &mut Parser<'_>) -> Result<Option<Box<str>>, Refusal> {
    let from = parser.at;
    if !parser.word("overriding") {
        return Ok(None);
    }
    if !parser.word("system") {
        parser.expect_word("user")?;
    }
    parser.expect_word("value")?;
    Ok(Some(parser.text_of(from, parser.at).into()))
}

/// Parses the rows of VALUES; returns none for DEFAULT VALUES.
fn rows(parser: &mut Parser<'_>) -> Result<Vec<Vec<Expression>>, Refusal> {
    if parser.words(&["default", "values"]) {
        return Ok(Vec::new());
    }
    if !parser.word("values") {
        let query = parser.kind(0) == TokenKind::Open
            || ["select", "with", "table"]
                .iter()
                .any(|w| parser.is_word(0, w));
        return Err(if query { INSERT_SELECT } else { SYNTAX });
    }
    parser.list(|parser| {
        parser.expect(TokenKind::Open)?;
        let row = parser.list(value)?;
        parser.expect(TokenKind::Close)?;
        Ok(row)
    })
}

fn value(parser: &mut Parser<'_>) -> Result<Expression, Refusal> {
    let (value, columns) = item(parser)?;
    if columns {
        Err("a column among the values")
    } else {
        Ok(value)
    }
}

fn update(parser: &mut Parser<'_>, types: &[u32]) -> Result<ParsedStatement, Refusal> {
    let (table, alias) = changed_table(parser)?;
    parser.expect_word("set")?;
    let assignments: Vec<_> = parser.list(assignment)?.into_iter().flatten().collect();
    if parser.is_word(0, "from") {
        return Err("UPDATE .. FROM");
    }
    let (keys, conditions) = filter(parser)?;
    let returning = returning(parser)?;
    Ok(ParsedStatement {
        assignments: assignments.into(),
        keys,
        conditions,
        returning: returning.list,
        returning_names: returning.names,
        ..empty(parser.text, types, Op::Update, table, alias)
    })
}

fn delete(parser: &mut Parser<'_>, types: &[u32]) -> Result<ParsedStatement, Refusal> {
    parser.expect_word("from")?;
    let (table, alias) = changed_table(parser)?;
    if parser.is_word(0, "using") {
        return Err("DELETE .. USING");
    }
    let (keys, conditions) = filter(parser)?;
    let returning = returning(parser)?;
    Ok(ParsedStatement {
        keys,
        conditions,
        returning: returning.list,
        returning_names: returning.names,
        ..empty(parser.text, types, Op::Delete, table, alias)
    })
}

/// Parses the table of UPDATE and DELETE and its alias. Without AS, the grammar does not read SET
/// as an alias.
fn changed_table(parser: &mut Parser<'_>) -> Result<(TableName, Option<Name>), Refusal> {
    if parser.is_word(0, "only") {
        return Err(INHERITANCE);
    }
    let table = parser.table_name()?;
    if parser.is_operator(0, "*") {
        return Err(INHERITANCE);
    }
    let bare = matches!(parser.kind(0), TokenKind::Word | TokenKind::Quoted)
        && !parser.is_word(0, "set")
        && parser.name_at(0, &[Use::Any, Use::Column]).is_ok();
    let alias = if parser.word("as") || bare {
        Some(parser.column_name()?)
    } else {
        None
    };
    qualify(parser, &table, alias.as_ref());
    Ok((table, alias))
}

const INSERT_SELECT: Refusal = "INSERT .. SELECT";
const INHERITANCE: Refusal = "ONLY or * behind the table";
