//! Proves from PostgreSQL's catalog which writes may share a transaction or a statement. No I/O.
//!
//! Two writes may share a statement only if no code that runs for one row can see another row of
//! the statement or any table. They may share a transaction only if no code that runs in their
//! statements or at the commit can detect it. PostgreSQL may run triggers, rules, policies, and
//! functions in defaults, checks and indexes. This crate has the queries for the catalog
//! ([`TABLE`], [`TEXT`]), collects their rows ([`Catalog`]) and returns a [`Level`]. It never
//! guesses: a write with unknown code is isolated, and the answer names the object that prevents
//! sharing.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `catalog` | the rows of the answers |
//! | `action` | proves the level for a statement on a table |
//! | `clock` | finds where an expression reads the transaction's clock |
//! | `list` | properties of built-in functions, and of some functions of extensions |
//! | `settings` | the settings of Windrow's own connections |
//! | `body` | the grammar of harmless trigger functions |
//! | `text` | proves whole texts of which only the words are known |

mod action;
mod body;
mod catalog;
mod clock;
mod list;
mod reason;
mod settings;
mod text;
mod trusted;

pub use action::{Action, Clocked, Level};
pub use catalog::{Catalog, Function, Relied};
pub use clock::{Clock, clock, reads_clock};
pub use list::{Company, company};
pub use text::Words;
pub use trusted::Trusted;
pub use windrow_sql::is_moment;

/// Asks for everything that a write to a table may run. `$1`, a text: the table, as SQL; `$2`, a
/// text: words that may name types in the statement, separated by `chr(1)`. Rows for
/// [`Catalog::take`].
///
/// Functions of expressions are taken from the expressions' stored trees, because the catalog keeps
/// no dependencies on what is built in. What is built in and immutable is left out: it is proven.
/// Lists are asked for by arrays, which keeps the server from taking the question for so large a
/// one that it compiles it.
pub const TABLE: &str = concat!(include_str!("sql/table.sql"), include_str!("sql/reach.sql"));

/// Asks for everything that a text may run which is made of these words, whatever they mean in it.
/// `$1`, a text: the words that may name relations, functions or types; `$2`, a text: its
/// operators; `$3`, a text: the schemas that are searched; all separated by `chr(1)`. Rows for
/// [`Catalog::take`].
///
/// The question itself is asked with `pg_catalog` as the only schema that is searched: operators
/// and functions of other schemas must not answer it.
pub const TEXT: &str = concat!(include_str!("sql/text.sql"), include_str!("sql/reach.sql"));
