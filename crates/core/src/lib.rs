//! The types and the ports that all crates of Windrow share. No I/O happens here.
//!
//! The modules, in the order in which a write passes them:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`name`] | table and column names as the client wrote them |
//! | [`value`] | one value, exact, not yet converted to a column's type |
//! | [`shape`] | a statement without its values |
//! | [`write`](mod@write) | a shape with one row of values, or an SQL client's call |
//! | [`sql`] | writes of SQL clients: statements and the values of their calls |
//! | [`apart`] | the reason why a write is not joined with others |
//! | [`advice`](mod@advice) | what an operator can do about such a reason |
//! | [`source`] | the identity of one client's ordered stream of writes |
//! | [`mod@unit`] | writes of one client that commit together |
//! | [`budget`] | the process-wide memory budget |
//! | [`intake`] | the port between frontends and a lane: submit units, await their outcomes |
//! | [`lane_ports`] | the way of an SQL client's writes into its lane |
//! | [`promise`] | the promises to every client, and which of them a database lacks |
//! | [`sink`] | the port between a lane and a database: execute a batch, report on each unit |
//! | [`background`] | the connection of the drain or a replica, which must know of each break |
//! | [`database`] | other abilities of a database: bulk loads, moves, a health check |
//! | [`standing`] | the level at which a table's writes may share a batch, and what prevents more |
//! | [`bookkeeping`] | the tables that Windrow keeps for itself in a database |
//! | [`inventory`] | the port to a database's tables, their keys and their rows |
//! | [`spooling`] | the port between frontends and a spool, which acknowledges before the database |
//! | [`cancel`] | cancelling a batch that is under way |
//! | [`trace`] | spans of sampled requests, for collectors of traces |
//! | [`mod@load`] | the port between a load and a database: many rows of one table by its bulk form |
//! | [`moves`] | the port between a move and a database: rows of a table that serves as a queue |
//! | [`record`] | rows as JSON texts, the form in which dead letters keep them |
//! | [`outcome`] | the outcome of one unit |
//! | [`fault`] | the reason of a failure, classified where it arose |
//! | [`retry`] | how a failed write may be tried again, and how long to wait before that |
//! | [`calendar`] | days of the calendar, and their numbers |
//! | [`long_text`] | reading long texts while other clients go on |
//! | [`secret`] | what is shown nowhere |
//! | [`limits`] | limits that a user may set: rows, bytes, flights, memory, waiting time |
//!
//! All other crates may import this one; it imports none of them.

pub mod advice;
pub mod apart;
pub mod background;
pub mod bookkeeping;
pub mod budget;
pub mod calendar;
pub mod cancel;
pub mod database;
pub mod fault;
pub mod intake;
pub mod inventory;
pub mod lane_ports;
pub mod lane_status;
pub mod limits;
pub mod load;
pub mod long_text;
pub mod moves;
pub mod name;
pub mod outcome;
pub mod promise;
pub mod record;
pub mod retry;
pub mod secret;
pub mod shape;
pub mod sink;
pub mod source;
pub mod spooling;
pub mod sql;
pub mod standing;
pub mod trace;
pub mod unit;
pub mod value;
pub mod write;

pub use advice::advice;
pub use apart::Apart;
pub use background::BackgroundConnection;
pub use bookkeeping::Bookkeeping;
pub use budget::{AnswerPermit, AnswerRoom, Budget, Permit, UsualAnswer};
pub use cancel::Canceller;
pub use database::{Database, WriteRights};
pub use fault::{Fault, FaultClass};
pub use intake::{Arrivals, Intake, Outcomes, Submission, Units};
pub use inventory::{
    Inventory, KeyRange, KeyedRow, KeyedTable, RowFilter, RowPage, RowSum, RowSums, RowTest,
};
pub use lane_ports::LanePorts;
pub use lane_status::{LaneCounts, LaneStatus};
pub use limits::Limits;
pub use load::{
    Bulk, Claim, Contents, CsvStyle, CsvText, Field, Filtered, FormSkips, Holds, LoadColumn,
    LoadFault, LoadPlan, Loaded, Loader, Mark, Marks, Means, Rows, Span,
};
pub use moves::{MovePlan, Mover, Moves, News};
pub use name::{Name, TableName};
pub use outcome::{Dones, Extra, Generated, Returned, UnitFault, UnitOutcome, WriteDone};
pub use promise::{Limitation, Promise};
pub use retry::{BackgroundRetry, Backoff, Retry, RetryPolicy};
pub use secret::{Secret, shown_parameter};
pub use shape::{Key, OnConflict, Op, Returning, Shape};
pub use sink::{Executor, Profile, Purpose, Report, Rung, Sink, Tally, Verdict};
pub use source::SourceId;
pub use spooling::{SpoolPlace, SpooledWrites, Spooling};
pub use sql::{
    Arguments, AsRow, Conflict, CurrentStatements, Described, Describer, Doubt, Expression,
    Formats, LateWrite, Origin, ParsedStatement, Piece, Preview, PreviewReference, PreviewValue,
    REFUSED, RowNumber, Signature, SqlCall, Statement, Touches,
};
pub use standing::{Level, Standing};
pub use trace::{Trace, TraceContext, TracedRequest, Tracer};
pub use unit::Unit;
pub use value::{Row, Value};
pub use write::Write;
