//! A statement, parsed from its text.

use crate::name::{Name, TableName};
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};

/// A statement, parsed from its text. Unquoted names are folded already, as in the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParsedStatement {
    /// The text to be prepared: the client's own, or the same with `$n` in place of lifted
    /// literals.
    pub text: Box<str>,
    /// The types of parameters that the client, or the spelling of a lifted literal, names, by the
    /// database's numbers (PostgreSQL's OIDs); 0: the server decides. May be shorter than the list
    /// of parameters.
    pub types: Box<[u32]>,
    /// The operation. [`Op::Get`] is a question by Windrow that reads no row of the table.
    pub op: Op,
    /// The table that is written.
    pub table: TableName,
    /// The alias of the table in the statement.
    pub alias: Option<Name>,
    /// The columns that an INSERT names; `None` for all, in the table's order.
    pub columns: Option<Box<[Name]>>,
    /// The one row of an INSERT's VALUES; empty for DEFAULT VALUES. For several rows, see
    /// [`ParsedStatement::set_based`].
    pub values: Box<[Expression]>,
    /// An INSERT's `OVERRIDING { SYSTEM | USER } VALUE`, unchanged.
    pub overriding: Option<Box<str>>,
    /// The ON CONFLICT clause of an INSERT.
    pub conflict: Option<Conflict>,
    /// The assignments of an UPDATE, in order.
    pub assignments: Box<[(Name, Expression)]>,
    /// The conditions `column = expression` of an UPDATE or DELETE that must all hold. Their
    /// expressions name no column.
    pub keys: Box<[(Name, Expression)]>,
    /// All other conditions of an UPDATE or DELETE, joined by AND. They may name columns of the
    /// table.
    pub conditions: Option<Expression>,
    /// The list of RETURNING, unchanged. It has no parameters.
    pub returning: Option<Box<str>>,
    /// `WITH (OLD AS o, NEW AS n)` after RETURNING, unchanged.
    pub returning_names: Option<Box<str>>,
    /// The functions that the statement calls, each once. The database says what they are.
    pub functions: Box<[TableName]>,
    /// False if the statement can only run unchanged: several rows of VALUES, or a form that cannot
    /// be taken apart. It can still share a transaction with others.
    pub set_based: bool,
}

impl ParsedStatement {
    /// Returns the shape of its writes, as far as the text shows it: an INSERT without a list of
    /// columns has no columns in it. Expressions and other conditions remain in the text only.
    pub fn shape(&self) -> Shape {
        let inserted = self.columns.iter().flatten();
        let assigned = self.assignments.iter().map(|(name, _)| name);
        let keys: Box<[Name]> = self.keys.iter().map(|(name, _)| name.clone()).collect();
        Shape::new(ShapeParts {
            op: self.op,
            table: self.table.clone(),
            columns: inserted.chain(assigned).cloned().collect(),
            key: match keys.is_empty() {
                true => Key::Primary,
                false => Key::Columns(keys),
            },
            on_conflict: match &self.conflict {
                None => OnConflict::Error,
                Some(conflict) if conflict.update => OnConflict::Update,
                Some(_) => OnConflict::Ignore,
            },
            returning: match self.returning {
                Some(_) => Returning::All,
                None => Returning::Nothing,
            },
        })
    }
}

/// A value expression as the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// The word DEFAULT.
    Default,
    /// SQL, split at its parameters.
    Sql(Box<[Piece]>),
}

/// A piece of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// SQL without parameters.
    Text(Box<str>),
    /// The parameter `$n`, counted from 0.
    Parameter(u16),
}

/// An ON CONFLICT clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// The columns of the target, if it is a plain list of columns.
    pub columns: Option<Box<[Name]>>,
    /// True for DO UPDATE, false for DO NOTHING.
    pub update: bool,
    /// The columns that DO UPDATE sets, in order.
    pub assignments: Box<[(Name, Expression)]>,
    /// True if DO UPDATE has a WHERE.
    pub has_condition: bool,
    /// The whole clause, from the words ON CONFLICT to its end.
    pub sql: Expression,
}
