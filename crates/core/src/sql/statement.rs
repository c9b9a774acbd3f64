//! Parsed statements as the database understands them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::arguments::{Arguments, Formats};
use super::parsed::ParsedStatement;
use super::preview::{Doubt, PreviewReference, PreviewValue};
use super::signature::Signature;
use crate::apart::Apart;
use crate::budget::UsualAnswer;
use crate::fault::Fault;
use crate::inventory::KeyedRow;
use crate::shape::Shape;
use crate::value::Row;
use async_trait::async_trait;

/// Knowledge of the database that described a statement about the rows that calls of it touch.
pub trait Touches: Send + Sync {
    /// Adds a hash for each row that a call with these values touches and whose key is known. Two
    /// calls that touch the same row share a hash. Adding none is always allowed.
    ///
    /// `scratch` is working memory; its contents do not matter.
    fn touches(
        &self,
        arguments: &Arguments,
        formats: &Formats,
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    );

    /// True if it is proven that nothing drops or adds rows: a plain INSERT writes as many rows as
    /// it names, or fails.
    fn keeps_rows(&self) -> bool {
        false
    }

    /// Returns the call as a write of a row; `None` unless it is certain that the write stores the
    /// same row as the call, and that the call counts one row.
    fn as_row(&self, _: &Arguments, _: &Formats) -> Option<AsRow> {
        None
    }

    /// Returns the reason, for the client, why a call is no write of a row; `None` if it is one, or
    /// if the reason is not known.
    fn why_no_row(&self, _: &Arguments, _: &Formats) -> Option<Box<str>> {
        None
    }

    /// Returns true if the type of a parameter certainly accepts a literal, under any setting of
    /// the session and at any time. Such a literal may become a value of the parameter. `None` is
    /// NULL.
    fn takes_literal(&self, _place: usize, _literal: Option<&[u8]>) -> bool {
        false
    }

    /// Returns the one row that the call may change; `None` if that is not certain.
    fn row_of(&self, _: &Arguments, _: &Formats) -> Option<KeyedRow> {
        None
    }

    /// Returns a hash of that row's key, the same for all spellings of a value. Two calls with
    /// different hashes change different rows if their tables are the same. `None` if equal values
    /// cannot be recognized.
    fn row_key(&self, _: &Arguments, _: &Formats) -> Option<u64> {
        None
    }

    /// Returns the plan by which calls are answered before they are executed; `None` if only
    /// executing them gives the answers.
    fn preview(&self) -> Option<&Arc<Preview>> {
        None
    }

    /// Returns the reason why there is no such plan, if it is known.
    fn doubt(&self) -> Option<&'static Doubt> {
        None
    }

    /// Returns the form of a write of one row that is executed as late as at COMMIT; `None` if the
    /// write may count another number of rows, or returns some.
    fn late_write(&self) -> Option<&Arc<LateWrite>> {
        None
    }

    /// Returns the text of a write of such a plan that also returns a boolean: true if the stored
    /// row is the one that was answered.
    fn verified_text(&self) -> Option<&str> {
        None
    }

    /// Returns true if the database certainly stores the values of a call as they are, whatever its
    /// other columns hold.
    fn fits(&self, _: &Arguments, _: &Formats) -> bool {
        false
    }

    /// Returns true if the values of a call mean the same whenever the server reads them. A text
    /// such as `now` does not. Only such a call may be answered before it is executed.
    fn has_lasting_values(&self, _: &Arguments, _: &Formats) -> bool {
        true
    }
}

/// A call as a write of a row.
#[derive(Clone, Debug)]
pub struct AsRow {
    /// The shape of the write.
    pub shape: Arc<Shape>,
    /// The values of the write.
    pub row: Row,
    /// True if one of the values is taken from a sequence when the row is written.
    pub generates: bool,
    /// The number that an `AUTO_INCREMENT` column gives the row.
    pub number: RowNumber,
}

/// The number that an `AUTO_INCREMENT` column gives a row.
#[derive(Clone, Debug, Default)]
pub enum RowNumber {
    /// None.
    #[default]
    None,
    /// The client has given it.
    Given(u64),
    /// The database generates the number. Contains the shape of the write that returns it.
    Generated(Arc<Shape>),
}

/// Knows no rows; for stand-ins of a database in tests.
impl Touches for () {
    fn touches(&self, _: &Arguments, _: &Formats, _: &mut Vec<u8>, _: &mut Vec<u64>) {}
}

/// A parsed statement as the database understands it under one role and its settings. Shared by all
/// clients of a lane.
pub struct Statement {
    id: u64,
    parsed: Arc<ParsedStatement>,
    shape: Arc<Shape>,
    signature: Arc<Signature>,
    touches: Arc<dyn Touches>,
    retired: AtomicBool,
    /// The usual length of its calls' rows; `None` if they are always short.
    usual: Option<UsualAnswer>,
}

impl Statement {
    /// Returns the statement with its types and a function for the rows that its calls touch.
    pub fn new(
        parsed: Arc<ParsedStatement>,
        signature: Arc<Signature>,
        touches: Arc<dyn Touches>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            usual: signature.has_long_rows().then(UsualAnswer::default),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            shape: Arc::new(parsed.shape()),
            parsed,
            signature,
            touches,
            retired: AtomicBool::new(false),
        }
    }

    /// Returns a number that no other statement of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the parsed statement.
    pub fn parsed(&self) -> &Arc<ParsedStatement> {
        &self.parsed
    }

    /// Returns the table, columns and key that the text names.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Returns the types of the parameters and result columns.
    pub fn signature(&self) -> &Arc<Signature> {
        &self.signature
    }

    /// Returns the types of all parameters.
    pub fn parameters(&self) -> &[u32] {
        &self.signature.parameters
    }

    /// Returns the body of RowDescription, with all formats text; `None` if the statement returns
    /// no rows.
    pub fn fields(&self) -> Option<&[u8]> {
        self.signature.fields.as_deref()
    }

    /// Returns the usual length of its calls' rows; `None` if they are always short.
    pub fn usual_answer(&self) -> Option<&UsualAnswer> {
        self.usual.as_ref()
    }

    /// Retires the statement, because the schema has changed. Frontends describe the parsed
    /// statement again before the next use. Calls under way are not affected.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Returns true if the statement has been retired.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}

/// The knowledge that the database has of the calls.
impl Deref for Statement {
    type Target = dyn Touches;

    fn deref(&self) -> &Self::Target {
        &*self.touches
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("id", &self.id)
            .field("text", &self.parsed.text)
            .finish_non_exhaustive()
    }
}

/// The plan by which the calls of an INSERT of one row are answered before they are executed. Calls
/// with values that [`Touches::has_lasting_values`] refuses are not answered by it.
///
/// A frontend that keeps the writes of a transaction until its COMMIT has to answer each at once.
/// `question` gives the answer and has no effect except that it takes numbers from sequences.
/// Later, `write` stores exactly the row that was answered.
///
/// Calls of these statements fail with SQLSTATE 40001 once a change of the table would have
/// answered or stored another row.
#[derive(Debug)]
pub struct Preview {
    /// Computes the row of one call. Its parameters are those of the INSERT and a `timestamptz`:
    /// the time of the transaction, or NULL if no call of the transaction has reported it yet. It
    /// returns one row: the columns of RETURNING, the computed columns, a boolean, and the time of
    /// the transaction. If the boolean is true, the server will accept the row; otherwise nothing
    /// is known.
    pub question: Arc<Statement>,
    /// Computes the columns of future rows; `None` if they depend on values of a call, or if
    /// RETURNING has any other column. Its first parameter is the number of rows, an `int4`. Each
    /// row has the computed columns twice. Serves calls that [`Touches::fits`] accepts.
    pub ahead: Option<Arc<Statement>>,
    /// True if future rows contain the time of their transaction, and can only be used in it. Then
    /// `ahead` has a second parameter, and each row two more columns, as `question` has.
    pub ahead_has_time: bool,
    /// Stores a row of which all columns are known, by an INSERT that returns nothing. A given
    /// parameter has the type that it has in the INSERT, a computed one that of its column.
    pub write: Arc<Statement>,
    /// The origin of each parameter of `write`.
    pub values: Box<[PreviewValue]>,
    /// The number of computed columns of a row.
    pub computed: usize,
    /// The columns of RETURNING, as positions among the computed columns; `None` for a column whose
    /// value is in the call.
    pub returned: Box<[Option<usize>]>,
    /// The OID of the table.
    pub table: u32,
    /// Columns in which each row has a value of its own, by their numbers in the table, with their
    /// positions among the parameters of `write`.
    pub new_keys: Box<[(i16, usize)]>,
    /// The foreign keys of the table.
    pub references: Box<[PreviewReference]>,
    /// The sequence from which each call takes a value, with the position of the value among the
    /// computed columns.
    pub sequence: Option<(u32, usize)>,
    /// The reason, apart from foreign keys, why the database may refuse a row at COMMIT although
    /// its preview succeeded; `None` if it cannot.
    pub doubt: Option<&'static Doubt>,
}

/// The form of a write of one row that is answered at once and executed as late as at COMMIT, for
/// clients that accept its errors there. Calls whose values [`Touches::has_lasting_values`]
/// refuses are not executed late.
#[derive(Debug)]
pub struct LateWrite {
    /// Executes the write, with its parameters. Its calls fail if a change of the table may lead to
    /// another row count than one (SQLSTATE 40001), and if they find no row (with
    /// [`Self::NOT_ONE_ROW`] in the message).
    pub write: Arc<Statement>,
    /// For UPDATE and DELETE, asks for the number of rows, a binary `bigint`, with the parameters
    /// of the write. [`Touches::row_of`] returns the row that may be meant.
    pub question: Option<Arc<Statement>>,
    /// True if the row may hold the time of its transaction.
    pub has_time: bool,
    /// True if the write takes a value from a sequence.
    pub generates: bool,
    /// True if the write may change rows of other tables.
    pub cascades: bool,
}

impl LateWrite {
    /// The message of the error of a write that has not changed exactly one row.
    pub const NOT_ONE_ROW: &str = "windrow: not the one row that was answered";

    /// Returns SQL that fails unless a write counts one row. `write`: the SQL of a write that
    /// returns one boolean for each row, true if the row counts.
    pub fn guarded(write: &str) -> String {
        let words = Self::NOT_ONE_ROW;
        format!(
            "WITH windrow (is_exact) AS ({write}) SELECT FROM windrow HAVING \
             (CASE pg_catalog.count(*) FILTER (WHERE is_exact) WHEN 1 THEN '1' ELSE '{words}' END)::pg_catalog.int4 OPERATOR(pg_catalog.>) 1"
        )
    }

    /// Returns true if the row may hold a time or a value of a sequence that is not known before
    /// the write is executed.
    pub fn is_open(&self) -> bool {
        self.has_time || self.generates
    }
}

/// The phrase of the [`Apart`] of a statement that the server refuses.
pub const REFUSED: &str = "the server refuses it";

/// The database's answer to a parsed statement.
#[derive(Clone, Debug)]
pub enum Described {
    /// Calls of the statement may be joined with those of other clients.
    Joined(Arc<Statement>),
    /// The statement must be relayed, for this reason.
    Apart(Arc<Apart>),
}

/// A database that can say what a parsed statement means.
#[async_trait]
pub trait Describer: Send + Sync + 'static {
    /// Asks the database. Callers keep the answer for equal parsed statements until
    /// [`Statement::is_retired`]; [`Described::Apart`] may be asked again after some seconds.
    /// Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`], and any error of the server that is not about the
    /// statement (too many connections, a timeout). A statement that it refuses is no error but
    /// [`Described::Apart`]: sent alone, it will get its own error from the server.
    async fn describe(&self, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault>;

    /// Returns true if the types of a statement are unchanged since its description, and retires it
    /// otherwise. Called before the types are reported to a client that parses its text. Cancel
    /// safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn holds(&self, statement: &Statement) -> Result<bool, Fault>;

    /// Returns true if the meaning of a statement, with all code that its table runs, is unchanged
    /// since its description, and retires it otherwise. Called before its calls are converted to
    /// row writes. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`], and if another session has locked the table. The
    /// statement is not retired then.
    async fn is_current(&self, statement: &Statement) -> Result<bool, Fault>;
}
