//! Builds the commands of calls: texts as their clients wrote them, executions of prepared
//! statements with their values' bytes, and INSERTs of many rows.

use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;
use windrow_core::{Expression, Formats, ParsedStatement, Piece, SqlCall};
use windrow_database::quote::backtick::{push_idents, push_table};
use windrow_mysqlwire::command;

/// The type of a NULL, without a flag.
const NULL_TYPE: [u8; 2] = [6, 0];

/// Bytes before the values' types in an execution.
const EXECUTE_HEAD_BYTES: usize = 10;

/// Returns true if the values are those of a prepared statement.
pub(super) fn is_prepared(call: &SqlCall) -> bool {
    call.formats == Formats::Binary
}

/// Returns the text of a call that is executed by itself: the client's own, or, for a prepared
/// statement, the one to prepare.
pub(super) fn own_text(call: &SqlCall) -> &[u8] {
    match &call.origin {
        Some(origin) => &origin.text,
        None => call.statement.parsed().text.as_bytes(),
    }
}

/// Returns a hash of the types of a call's values.
pub(super) fn types_hash(call: &SqlCall) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    for value in &call.arguments {
        hasher.write(value.and_then(type_of).unwrap_or(&NULL_TYPE));
    }
    hasher.finish()
}

fn type_of(value: &[u8]) -> Option<&[u8; 2]> {
    value.first_chunk()
}

/// Returns the command that executes a prepared statement with the values of these calls, one after
/// another.
pub(super) fn execute(id: u32, calls: &[&SqlCall]) -> Vec<u8> {
    let values = || calls.iter().flat_map(|call| &call.arguments);
    let count = values().count();
    let bytes: usize = calls
        .iter()
        .map(|call| call.arguments.as_bytes().len())
        .sum();
    let mut content = Vec::with_capacity(EXECUTE_HEAD_BYTES + count.div_ceil(8) + 1 + bytes);
    content.push(command::STMT_EXECUTE);
    content.extend_from_slice(&id.to_le_bytes());
    content.push(0);
    content.extend_from_slice(&1_u32.to_le_bytes());
    if count == 0 {
        return content;
    }
    let mut nulls = vec![0_u8; count.div_ceil(8)];
    for (at, _) in values().enumerate().filter(|(_, value)| value.is_none()) {
        if let Some(byte) = nulls.get_mut(at / 8) {
            *byte |= 1 << (at % 8);
        }
    }
    content.extend_from_slice(&nulls);
    content.push(1);
    for value in values() {
        content.extend_from_slice(value.and_then(type_of).unwrap_or(&NULL_TYPE));
    }
    for value in values().flatten() {
        content.extend_from_slice(value.get(2..).unwrap_or_default());
    }
    content
}

/// The parts of an INSERT of many rows.
#[derive(Debug)]
pub(super) struct RowForm {
    head: String,
    /// The row with its parentheses, split at the parameters, which are in their order.
    between: Box<[Box<str>]>,
    tail: String,
}

impl RowForm {
    /// Returns the form of a plain INSERT of one row. `None` if its parameters are not in their
    /// order, or some are not in the row.
    pub(super) fn of(parsed: &ParsedStatement, parameters: usize) -> Option<Self> {
        let mut head = "INSERT INTO ".to_owned();
        push_table(&mut head, &parsed.table);
        if let Some(columns) = &parsed.columns {
            head.push_str(" (");
            push_idents(&mut head, columns);
            head.push(')');
        }
        head.push_str(" VALUES ");
        let mut between = Vec::new();
        let mut text = "(".to_owned();
        for (at, value) in parsed.values.iter().enumerate() {
            text.push_str(if at > 0 { ", " } else { "" });
            let pieces = match value {
                Expression::Default => {
                    text.push_str("DEFAULT");
                    continue;
                }
                Expression::Sql(pieces) => pieces,
            };
            for piece in pieces {
                match piece {
                    Piece::Text(sql) => text.push_str(sql),
                    Piece::Parameter(n) if usize::from(*n) == between.len() => {
                        between.push(std::mem::take(&mut text).into());
                    }
                    Piece::Parameter(_) => return None,
                }
            }
        }
        text.push(')');
        let is_whole = between.len() == parameters;
        between.push(text.into());
        let returning = parsed.returning.as_deref();
        let tail = returning.map_or_else(String::new, |list| format!(" RETURNING {list}"));
        is_whole.then_some(Self {
            head,
            between: between.into(),
            tail,
        })
    }

    /// Returns the number of parameters of a row.
    pub(super) fn parameters(&self) -> usize {
        self.between.len() - 1
    }

    /// Returns the most bytes that a call's row takes in a statement.
    pub(super) fn row_bytes(&self, call: &SqlCall) -> usize {
        let texts: usize = self.between.iter().map(|text| text.len()).sum();
        texts + call.arguments.as_bytes().len() + 1
    }

    /// Returns the bytes of a statement besides its rows.
    pub(super) fn fixed_bytes(&self) -> usize {
        self.head.len() + self.tail.len() + EXECUTE_HEAD_BYTES
    }

    /// Returns the INSERT of the rows of these calls, with the literals as their clients spelled
    /// them.
    pub(super) fn text(&self, calls: &[&SqlCall]) -> Vec<u8> {
        let rows: usize = calls.iter().map(|call| self.row_bytes(call)).sum();
        let mut sql = Vec::with_capacity(self.fixed_bytes() + rows);
        sql.extend_from_slice(self.head.as_bytes());
        for (at, call) in calls.iter().enumerate() {
            if at > 0 {
                sql.push(b',');
            }
            let mut literals = call.arguments.iter();
            for text in &self.between {
                sql.extend_from_slice(text.as_bytes());
                if let Some(literal) = literals.next() {
                    sql.extend_from_slice(literal.unwrap_or(b"NULL"));
                }
            }
        }
        sql.extend_from_slice(self.tail.as_bytes());
        sql
    }

    /// Returns the INSERT of so many rows, to be prepared.
    pub(super) fn prepared_text(&self, rows: usize) -> String {
        let row = self.between.join("?");
        let rows = vec![row.as_str(); rows].join(",");
        format!("{}{rows}{}", self.head, self.tail)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_core::{Arguments, Op, Signature, Statement, TableName};

    use super::*;

    fn parsed(values: Vec<Expression>) -> ParsedStatement {
        ParsedStatement {
            text: "insert".into(),
            types: [].into(),
            op: Op::Insert,
            table: TableName {
                schema: Some("s".into()),
                table: "a`b".into(),
            },
            alias: None,
            columns: Some(["x".into(), "y".into()].into()),
            values: values.into(),
            overriding: None,
            conflict: None,
            assignments: [].into(),
            keys: [].into(),
            conditions: None,
            returning: Some("x".into()),
            returning_names: None,
            functions: [].into(),
            set_based: true,
        }
    }

    fn sql(pieces: Vec<Piece>) -> Expression {
        Expression::Sql(pieces.into())
    }

    fn call(parsed: &ParsedStatement, values: &[Option<&[u8]>], formats: Formats) -> SqlCall {
        let mut bytes = Vec::new();
        for value in values {
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(value.unwrap_or_default());
        }
        let signature = Arc::new(Signature::default());
        let statement = Statement::new(Arc::new(parsed.clone()), signature, Arc::new(()));
        SqlCall {
            statement: Arc::new(statement),
            arguments: Arguments::of(bytes, values.len()).unwrap(),
            formats,
            results: Formats::Text,
            fresh: false,
            origin: None,
        }
    }

    #[test]
    fn rows_are_built_from_the_clients_pieces() {
        let upper = Piece::Text("UPPER(".into());
        let first = sql(vec![upper, Piece::Parameter(0), Piece::Text(")".into())]);
        let parsed = parsed(vec![first, sql(vec![Piece::Parameter(1)])]);
        let form = RowForm::of(&parsed, 2).unwrap();
        let one = call(&parsed, &[Some(b"'a''b'"), Some(b"0x1")], Formats::Text);
        let other = call(&parsed, &[Some(b"5"), Some(b"NULL")], Formats::Text);
        let text = String::from_utf8(form.text(&[&one, &other])).unwrap();
        assert_eq!(
            text,
            "INSERT INTO `s`.`a``b` (`x`, `y`) VALUES (UPPER('a''b'), 0x1),(UPPER(5), NULL) RETURNING x"
        );
        assert_eq!(
            form.prepared_text(2),
            "INSERT INTO `s`.`a``b` (`x`, `y`) VALUES (UPPER(?), ?),(UPPER(?), ?) RETURNING x"
        );
    }

    #[test]
    fn a_row_without_all_parameters_has_no_form() {
        let of = |values: &[u16], count| {
            let value = |n: &u16| sql(vec![Piece::Parameter(*n)]);
            RowForm::of(&parsed(values.iter().map(value).collect()), count).is_some()
        };
        assert!(of(&[0, 1], 2) && of(&[], 0));
        assert!(!of(&[1, 0], 2) && !of(&[0, 1], 3) && !of(&[0, 0], 2));
        let default = parsed(vec![Expression::Default]);
        assert!(
            RowForm::of(&default, 0)
                .unwrap()
                .prepared_text(1)
                .contains("(DEFAULT)")
        );
    }

    #[test]
    fn values_are_executed_with_their_types() {
        let parsed = parsed(vec![]);
        let one = call(
            &parsed,
            &[Some(&[3, 0x80, 7, 0, 0, 0]), None],
            Formats::Binary,
        );
        let content = execute(9, &[&one, &one]);
        let mut expected = vec![0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0b1010, 1];
        expected.extend_from_slice(&[3, 0x80, 6, 0, 3, 0x80, 6, 0]);
        expected.extend_from_slice(&[7, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(content, expected);
        let none = call(&parsed, &[], Formats::Binary);
        assert_eq!(execute(1, &[&none]).len(), EXECUTE_HEAD_BYTES);
    }
}
