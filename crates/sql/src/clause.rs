//! Parses the clauses that INSERT, UPDATE and DELETE share: the columns that get values,
//! assignments, WHERE, ON CONFLICT and RETURNING.

use windrow_core::{Conflict, Expression, Name, Piece};

use crate::lex::TokenKind;
use crate::parse::{Form, Node, Parser, Refusal, SUBQUERY, SYNTAX};
use crate::word::{self, Use};

const NO_KEY: Refusal = "no condition column = value";

/// The most conditions of a statement that are taken for keys, more than an index has columns. The
/// others are conditions like any other.
pub(crate) const MAX_KEYS: usize = 100;

/// The texts of RETURNING.
#[derive(Default)]
pub(crate) struct Returning {
    /// The content of `WITH (OLD AS o, NEW AS n)`.
    pub(crate) names: Option<Box<str>>,
    /// The list of returned values.
    pub(crate) list: Option<Box<str>>,
}

/// Parses `(a, b)`.
pub(crate) fn names(parser: &mut Parser<'_>) -> Result<Vec<Name>, Refusal> {
    parser.expect(TokenKind::Open)?;
    let names = parser.list(target)?;
    parser.expect(TokenKind::Close)?;
    Ok(names)
}

/// Parses a column that gets a value.
pub(crate) fn target(parser: &mut Parser<'_>) -> Result<Name, Refusal> {
    let name = parser.column_name()?;
    match parser.kind(0) {
        TokenKind::Dot | TokenKind::OpenBracket => Err("an element or a field as the target"),
        _ => Ok(name),
    }
}

/// Parses an expression or DEFAULT. The second value is true if it names columns.
pub(crate) fn item(parser: &mut Parser<'_>) -> Result<(Expression, bool), Refusal> {
    if parser.word("default") {
        return Ok((Expression::Default, false));
    }
    let node = parser.expression()?;
    Ok((parser.expression_of(&node)?, node.columns))
}

/// Parses `column = value`, or `(a, b) = (x, y)`, which has the meaning of `a = x, b = y`.
pub(crate) fn assignment(parser: &mut Parser<'_>) -> Result<Vec<(Name, Expression)>, Refusal> {
    if parser.kind(0) != TokenKind::Open {
        let column = target(parser)?;
        equals(parser)?;
        return Ok(vec![(column, item(parser)?.0)]);
    }
    let columns = names(parser)?;
    equals(parser)?;
    let row = parser.word("row");
    parser.expect(TokenKind::Open)?;
    if ["select", "with", "values", "table"]
        .iter()
        .any(|w| parser.is_word(0, w))
    {
        return Err(SUBQUERY);
    }
    let values = parser.list(|parser| Ok(item(parser)?.0))?;
    parser.expect(TokenKind::Close)?;
    if values.len() != columns.len() || (values.len() == 1 && !row) {
        return Err(SYNTAX);
    }
    Ok(columns.into_iter().zip(values).collect())
}

fn equals(parser: &mut Parser<'_>) -> Result<(), Refusal> {
    if parser.operator("=") {
        Ok(())
    } else {
        Err(SYNTAX)
    }
}

fn condition(parser: &mut Parser<'_>) -> Result<Node, Refusal> {
    if parser.is_word(0, "current") && parser.is_word(1, "of") {
        return Err("WHERE CURRENT OF");
    }
    parser.expression()
}

/// Parses WHERE into keys and all other conditions.
#[expect(clippy::type_complexity, reason = "the two fields of a parsed")]
pub(crate) fn filter(
    parser: &mut Parser<'_>,
) -> Result<(Box<[(Name, Expression)]>, Option<Expression>), Refusal> {
    if !parser.word("where") {
        return Err(NO_KEY);
    }
    let condition = condition(parser)?;
    let all = match condition.form {
        Form::And(all) => all,
        _ => vec![condition],
    };
    let mut keys: Vec<(Name, Expression)> = Vec::new();
    let mut others = Vec::new();
    for node in &all {
        match key(node) {
            // A second condition on the same column is a condition like any other.
            Some((name, value))
                if keys.len() < MAX_KEYS && !keys.iter().any(|(known, _)| known == name) =>
            {
                keys.push((name.clone(), parser.expression_of(value)?));
            }
            _ => {
                if !others.is_empty() {
                    others.push(Piece::Text(" AND ".into()));
                }
                parser.pieces(node.from, node.to, &mut others)?;
            }
        }
    }
    if keys.is_empty() {
        return Err(NO_KEY);
    }
    let conditions = (!others.is_empty()).then(|| Expression::Sql(others.into()));
    Ok((keys.into(), conditions))
}

/// Returns the column and the expression of a condition `column = expression`, if the expression
/// names no column.
fn key(node: &Node) -> Option<(&Name, &Node)> {
    match &node.form {
        Form::Equal(sides) => match &**sides {
            (
                Node {
                    form: Form::Column(name),
                    ..
                },
                value,
            ) if !value.columns => Some((name, value)),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn conflict(parser: &mut Parser<'_>) -> Result<Option<Conflict>, Refusal> {
    let from = parser.at;
    if !parser.words(&["on", "conflict"]) {
        return Ok(None);
    }
    let columns = conflict_target(parser)?;
    parser.expect_word("do")?;
    let update = !parser.word("nothing");
    let (mut assignments, mut has_condition) = (Vec::new(), false);
    if update {
        parser.expect_word("update")?;
        parser.expect_word("set")?;
        parser.qualifiers.push("excluded".into());
        assignments = parser.list(assignment)?;
        has_condition = parser.word("where");
        if has_condition {
            condition(parser)?;
        }
        parser.qualifiers.pop();
    }
    let mut pieces = Vec::new();
    parser.pieces(from, parser.at, &mut pieces)?;
    Ok(Some(Conflict {
        columns,
        update,
        assignments: assignments.into_iter().flatten().collect(),
        has_condition,
        sql: Expression::Sql(pieces.into()),
    }))
}

/// Returns the columns of the conflict target, if it consists of columns only.
fn conflict_target(parser: &mut Parser<'_>) -> Result<Option<Box<[Name]>>, Refusal> {
    if parser.words(&["on", "constraint"]) {
        parser.column_name()?;
        return Ok(None);
    }
    if !parser.take(TokenKind::Open) {
        return Ok(None);
    }
    let elements = parser.list(index_element)?;
    parser.expect(TokenKind::Close)?;
    let partial = parser.word("where");
    if partial {
        condition(parser)?;
    }
    let columns: Option<Box<[Name]>> = elements.into_iter().collect();
    Ok(columns.filter(|_| !partial))
}

/// Parses a column, a call or an expression in parentheses.
fn index_element(parser: &mut Parser<'_>) -> Result<Option<Name>, Refusal> {
    let column = matches!(parser.kind(1), TokenKind::Comma | TokenKind::Close);
    if column {
        return parser.column_name().map(Some);
    }
    if parser.take(TokenKind::Open) {
        parser.expression()?;
        parser.expect(TokenKind::Close)?;
        return Ok(None);
    }
    // This must be a call of a function, and not a form with a syntax of its own.
    if parser.kind(1) != TokenKind::Open || parser.name_at(0, &[Use::Any, Use::Function]).is_err() {
        return Err(SYNTAX);
    }
    parser.primary()?;
    Ok(None)
}

pub(crate) fn returning(parser: &mut Parser<'_>) -> Result<Returning, Refusal> {
    if !parser.word("returning") {
        return Ok(Returning::default());
    }
    let known = parser.qualifiers.len();
    let names = names_of_versions(parser)?;
    let from = parser.at;
    parser.list(returned)?;
    parser.qualifiers.truncate(known);
    let mut pieces = Vec::new();
    parser.pieces(from, parser.at, &mut pieces)?;
    if pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Parameter(_)))
    {
        return Err("a parameter in RETURNING");
    }
    let list = Some(parser.text_of(from, parser.at).into());
    Ok(Returning { names, list })
}

/// Parses `WITH (OLD AS o, NEW AS n)`, and allows the names of both versions of a row. Servers
/// before PostgreSQL 18 refuse them.
fn names_of_versions(parser: &mut Parser<'_>) -> Result<Option<Box<str>>, Refusal> {
    let from = parser.at;
    let mut named = [("old", None), ("new", None)];
    let is_with = parser.is_word(0, "with");
    if is_with {
        parser.at += 1;
        parser.expect(TokenKind::Open)?;
        parser.list(|parser| name_of_version(parser, &mut named))?;
        parser.expect(TokenKind::Close)?;
    }
    for (usual, given) in named {
        // A table with that name or alias takes precedence.
        let name = given.unwrap_or_else(|| usual.into());
        parser.qualifiers.push(name);
    }
    Ok(is_with.then(|| parser.text_of(from, parser.at).into()))
}

/// Parses `OLD AS name` or `NEW AS name`, each once.
fn name_of_version(
    parser: &mut Parser<'_>,
    named: &mut [(&'static str, Option<Name>)],
) -> Result<(), Refusal> {
    let version = named.iter_mut().find(|(word, _)| parser.is_word(0, word));
    let (_, place) = version.filter(|(_, given)| given.is_none()).ok_or(SYNTAX)?;
    parser.at += 1;
    parser.expect_word("as")?;
    *place = Some(parser.column_name()?);
    Ok(())
}

fn returned(parser: &mut Parser<'_>) -> Result<(), Refusal> {
    if parser.operator("*") {
        return Ok(());
    }
    if parser.kind(1) == TokenKind::Dot && parser.is_operator(2, "*") {
        let qualifier = parser.column_name()?;
        parser.at += 2;
        return if parser.qualifiers.contains(&qualifier) {
            Ok(())
        } else {
            Err(SYNTAX)
        };
    }
    parser.expression()?;
    let bare = match parser.kind(0) {
        TokenKind::Quoted => true,
        TokenKind::Word => parser.name_at(0, &[Use::Any]).is_ok() && !needs_as(parser.slice(0)),
        _ => false,
    };
    if parser.word("as") || bare {
        parser.label()?;
    }
    Ok(())
}

/// Returns true for words that need AS to be a label, although they may be names.
fn needs_as(word: &str) -> bool {
    const NEED: &[&str] = &[
        "day", "filter", "hour", "minute", "month", "over", "second", "within", "without", "year",
    ];
    word::listed(NEED, word)
}
