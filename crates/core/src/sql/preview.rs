//! INSERTs that are answered before they are executed: what is asked of the database first, and
//! what is stored later.
//!
//! A frontend that keeps the writes of a transaction until its COMMIT has to give the answer of
//! each at once. The plan says which question gives that answer and leaves no trace but numbers
//! taken from sequences, and which write stores later exactly the row that was answered.

use std::sync::Arc;

use super::statement::Statement;

/// The plan by which the calls of an INSERT of one row are answered before they are executed. Calls
/// with values that [`Statement::has_lasting_values`] refuses are not answered by it.
///
/// The calls of its statements fail with SQLSTATE 40001 once a change of the table would have
/// answered or stored another row.
#[derive(Debug)]
pub struct Preview {
    /// Computes the row of one call, as a call of its own. Its parameters are those of the INSERT
    /// and one more, a `timestamptz`: the time of the transaction, NULL if no call of the
    /// transaction has learned it yet. It gives one row: the columns of RETURNING, the computed
    /// columns, a boolean, and the time of the transaction. The boolean is true if the server
    /// will store the row; otherwise nothing is known.
    pub question: Arc<Statement>,
    /// Computes the columns of rows to come, where they depend on no value of a call and on no
    /// time; `None` if they do, or if RETURNING gives back any other column. Its one parameter is
    /// the number of rows, an `int4`. Each row has the computed columns twice. Serves calls for which
    /// [`Statement::fits`] is true.
    pub ahead: Option<Arc<Statement>>,
    /// Stores a row of which all columns are known: an INSERT that gives nothing back. A parameter
    /// that is given has the type that it has in the INSERT, a computed one that of its column.
    pub write: Arc<Statement>,
    /// The origin of each parameter of `write`.
    pub values: Box<[PreviewValue]>,
    /// The number of columns that a row computes.
    pub computed: usize,
    /// The columns that RETURNING gives back, as places among the computed columns; `None` for a
    /// column that is given by the call.
    pub returned: Box<[Option<usize>]>,
    /// The table, by its number in the database's catalog.
    pub table: u32,
    /// Columns of which each row has a value that no other row has, by their numbers in the table,
    /// and their places among the parameters of `write`.
    pub new_keys: Box<[(i16, usize)]>,
    /// The foreign keys of the table.
    pub references: Box<[PreviewReference]>,
    /// The sequence that each call takes a value from, with the place of the value among the
    /// computed columns.
    pub sequence: Option<(u32, usize)>,
    /// The reason why the database may refuse a row at COMMIT although its preview was good, apart
    /// from foreign keys; `None` if it cannot.
    pub doubt: Option<&'static str>,
}

/// The origin of a value that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewValue {
    /// The parameter of the INSERT at this place, in the format of the call.
    Given(usize),
    /// The computed column at this place, in binary.
    Computed(usize),
}

/// A foreign key of one integer or `uuid` column. The plan of a table with any other has a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewReference {
    /// The place of the column among the parameters of `write`.
    pub value: usize,
    /// The table that is referred to, by its number in the database's catalog.
    pub table: u32,
    /// The column that is referred to, by its number in that table.
    pub column: i16,
}
