//! Asks the server what a parsed statement means, in one round trip and one transaction.
//!
//! The statement is sent first. That takes the lock that it will take when it runs, so nothing
//! that follows can be changed by others while it is read.

use postgres_protocol::message::frontend;
use windrow_core::{ParsedStatement, Signature};
use windrow_database::quote::push_table;

use crate::catalog::ask::{self, Fields};
use crate::catalog::schema;
use crate::catalog::table::Facts;
use windrow_pgwire::wire::{Answer, Broken, ServerError, Wire};
use windrow_proof::Words;

/// Query for a table's identity and the session's settings.
const RELATION: &str = concat!(
    "SELECT c.oid, n.nspname, c.relname, ",
    "current_setting('transaction_isolation'), current_setting('transaction_read_only'), ",
    "(current_schemas(true))[1], current_setting('client_encoding'), ",
    "current_setting('TimeZone'), current_setting('DateStyle'), current_setting('IntervalStyle'), ",
    "current_setting('server_encoding') ",
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ",
    "WHERE c.oid = to_regclass($1)"
);

/// Query for all functions with the names that a statement calls.
const FUNCTIONS: &str = "\
SELECT p.proname, p.pronamespace = 'pg_catalog'::regnamespace, p.provolatile, p.proretset OR p.prokind <> 'f',
  n.nspname, l.lanname, n.nspname = ANY (current_schemas(true))
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE p.proname = ANY (string_to_array($1, chr(1)))";

/// The server's description of a parsed statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Description {
    /// The types of its parameters.
    pub(crate) parameters: Vec<u32>,
    /// The body of RowDescription, if the statement returns rows.
    pub(crate) fields: Option<Box<[u8]>>,
    /// Number of columns in the statement's rows.
    pub(crate) width: u16,
    pub(crate) relation: Option<Relation>,
    pub(crate) functions: Vec<Function>,
    pub(crate) facts: Option<Facts>,
}

impl Description {
    /// Returns the types of the statement.
    pub(crate) fn signature(&self) -> Signature {
        Signature {
            parameters: self.parameters.as_slice().into(),
            fields: self.fields.clone(),
        }
    }
}

/// A table's identity, and settings of the session that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    pub(crate) oid: u32,
    pub(crate) schema: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) isolation: Box<str>,
    pub(crate) read_only: bool,
    /// The schema that is searched first.
    pub(crate) first_schema: Box<str>,
    pub(crate) encoding: Box<str>,
    /// True if the database stores texts as UTF-8.
    pub(crate) stores_utf8: bool,
    /// True if the session's time zone is UTC.
    pub(crate) utc: bool,
    /// True if the session reads and writes times like the sessions that write rows.
    pub(crate) usual_times: bool,
}

/// A function that a name may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: Box<str>,
    pub(crate) built_in: bool,
    /// `pg_proc.provolatile`.
    pub(crate) volatile: u8,
    /// True if the function returns sets, or is an aggregate or a window function.
    pub(crate) is_odd: bool,
    pub(crate) schema: Box<str>,
    pub(crate) language: Box<str>,
    /// True if the function is found without its schema.
    pub(crate) is_visible: bool,
}

/// Returns the types that the server gives a parsed statement now. Fails as [`ask()`] does.
pub(crate) async fn types_now(
    wire: &mut Wire,
    parsed: &ParsedStatement,
) -> Result<Result<Signature, ServerError>, Broken> {
    let out = wire.out();
    let start = out.len();
    let types = parsed.types.iter().copied();
    let sent = frontend::parse("", &parsed.text, types, out).is_ok()
        && frontend::describe(b'S', "", out).is_ok();
    if !sent {
        out.truncate(start);
    }
    frontend::sync(out);
    let (mut signature, mut refused) = (Signature::default(), None);
    wire.exchange(1, &mut |answer| match answer {
        Answer::ParameterDescription(oids) => signature.parameters = oids.collect(),
        Answer::RowDescription(fields) => signature.fields = Some(fields.body().into()),
        Answer::Error(error) => refused = Some(error),
        _ => {}
    })
    .await?;
    Ok(refused.map_or(Ok(signature), Err))
}

/// Asks the server to describe a statement. `types`: the types that are declared for the
/// parameters.
///
/// # Errors
/// Outer: the connection is lost. Inner: the server refuses the statement or its description.
pub(crate) async fn ask(
    wire: &mut Wire,
    parsed: &ParsedStatement,
    types: &[u32],
) -> Result<Result<Description, ServerError>, Broken> {
    let out = wire.out();
    let start = out.len();
    let sent = frontend::parse("", &parsed.text, types.iter().copied(), out).is_ok()
        && frontend::describe(b'S', "", out).is_ok();
    if !sent {
        // A statement that cannot be sent cannot be run either.
        out.truncate(start);
    }
    let mut quoted = String::new();
    push_table(&mut quoted, &parsed.table);
    let names: Vec<&str> = parsed.functions.iter().map(|name| &*name.table).collect();
    ask::ask(wire, RELATION, &quoted);
    ask::ask(wire, FUNCTIONS, &names.join("\u{1}"));
    let words = Words::of(&parsed.text, true).unwrap_or_default();
    schema::append(wire, &quoted);
    schema::append_proof(wire, &quoted, &words.names());
    frontend::sync(wire.out());
    let mut reader = AnswerReader {
        query: 0,
        description: Description::default(),
        schema: schema::SchemaReader::new(&parsed.table, &quoted),
        error: None,
    };
    wire.exchange(1, &mut |answer| reader.take(answer)).await?;
    Ok(reader.end())
}

struct AnswerReader {
    query: usize,
    description: Description,
    schema: schema::SchemaReader,
    error: Option<ServerError>,
}

impl AnswerReader {
    fn take(&mut self, answer: Answer<'_>) {
        if self.query > 1 {
            return self.schema.take(answer);
        }
        match answer {
            Answer::ParameterDescription(oids) => self.description.parameters = oids.collect(),
            Answer::RowDescription(fields) => {
                self.description.width = u16::try_from(fields.len()).unwrap_or(u16::MAX);
                self.description.fields = Some(fields.body().into());
            }
            Answer::DataRow(row) => self.row(&Fields(row)),
            Answer::CommandComplete(_) => self.query += 1,
            Answer::Error(error) => self.error = Some(error),
            _ => {}
        }
    }

    fn row(&mut self, row: &Fields<'_>) {
        match self.query {
            0 => self.description.relation = Some(relation(row)),
            _ => self.description.functions.push(Function {
                name: row.text(0).into(),
                built_in: row.is(1),
                volatile: row.byte(2),
                is_odd: row.is(3),
                schema: row.text(4).into(),
                language: row.text(5).into(),
                is_visible: row.is(6),
            }),
        }
    }

    fn end(self) -> Result<Description, ServerError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let facts = self.schema.end()?;
        let mut description = self.description;
        if let (Some(facts), Some(relation)) = (facts, &description.relation) {
            // Statements may spell the table in several ways; its facts have the name in the
            // catalog.
            let name = windrow_core::TableName {
                schema: Some((*relation.schema).into()),
                table: (*relation.name).into(),
            };
            description.facts = Some(Facts { name, ..facts });
        }
        Ok(description)
    }
}

fn relation(row: &Fields<'_>) -> Relation {
    let utc = matches!(row.text(7), "UTC" | "Etc/UTC" | "GMT" | "Etc/GMT");
    Relation {
        oid: row.number(0),
        schema: row.text(1).into(),
        name: row.text(2).into(),
        isolation: row.text(3).into(),
        read_only: row.text(4) == "on",
        first_schema: row.text(5).into(),
        encoding: row.text(6).into(),
        stores_utf8: row.text(10) == "UTF8",
        utc,
        usual_times: utc && row.text(8).starts_with("ISO") && row.text(9) == "postgres",
    }
}
