//! A statement, parsed from its text.

use crate::name::{Name, TableName};
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};

/// A statement, parsed from its text. Unquoted names are folded already, as the database knows
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParsedStatement {
    /// The text that is prepared: the client's own, or, where literals were lifted out of it, the
    /// same with `$n` in their places.
    pub text: Box<str>,
    /// The type of each parameter that the client (or a lifted literal's own spelling) names, as
    /// the database numbers types (PostgreSQL's OIDs); 0: the server decides. May be shorter
    /// than the list of parameters.
    pub types: Box<[u32]>,
    /// The operation. [`Op::Get`]: a question of Windrow's own, which reads no row of the table.
    pub op: Op,
    /// The table that is written.
    pub table: TableName,
    /// The name that the statement gives the table.
    pub alias: Option<Name>,
    /// INSERT: the columns that it names; `None`: all of them, in the table's order.
    pub columns: Option<Box<[Name]>>,
    /// INSERT: the one row of VALUES (empty for DEFAULT VALUES). Several rows: see
    /// [`ParsedStatement::set_based`].
    pub values: Box<[Expression]>,
    /// INSERT: `OVERRIDING { SYSTEM | USER } VALUE`, as it stands.
    pub overriding: Option<Box<str>>,
    /// The ON CONFLICT clause of an INSERT.
    pub conflict: Option<Conflict>,
    /// UPDATE: what is set, in order.
    pub assignments: Box<[(Name, Expression)]>,
    /// UPDATE and DELETE: the conditions `column = expression` that all must hold, where the
    /// expression names no column.
    pub keys: Box<[(Name, Expression)]>,
    /// UPDATE and DELETE: all other conditions, joined by AND: they may name columns of the table.
    pub conditions: Option<Expression>,
    /// The list of RETURNING, unchanged. It has no parameters.
    pub returning: Option<Box<str>>,
    /// `WITH (OLD AS o, NEW AS n)` behind RETURNING, as it stands.
    pub returning_names: Option<Box<str>>,
    /// The functions that are called anywhere in it, each once. The database says what they are.
    pub functions: Box<[TableName]>,
    /// False where the statement can only run as it stands: several rows of VALUES, or a form that
    /// cannot be taken apart. It still joins others in their transaction.
    pub set_based: bool,
}

impl ParsedStatement {
    /// Returns the shape of its writes, as far as the text names one: for an INSERT without a list
    /// of columns it has none. Expressions and other conditions stand in the text alone.
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
    /// SQL without parameters, as it stands.
    Text(Box<str>),
    /// The parameter `$n`, counted from 0.
    Parameter(u16),
}

/// An ON CONFLICT clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// The columns that are named as the target, where it is a plain list of columns.
    pub columns: Option<Box<[Name]>>,
    /// True for DO UPDATE, false for DO NOTHING.
    pub update: bool,
    /// The columns that DO UPDATE sets, in order.
    pub assignments: Box<[(Name, Expression)]>,
    /// True if DO UPDATE has a WHERE.
    pub has_condition: bool,
    /// The whole clause from the words ON CONFLICT to its end.
    pub sql: Expression,
}
