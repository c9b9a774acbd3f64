//! A connection and its statements: sends a request, receives its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::value::RawValue;
use tokio::time::Instant;
use windrow_core::{Fault, Name, TableName, Tally};
use windrow_database::web::{Answer, Ask, Client, Loss, Origin, push_text};

use crate::answer::{Failure, Reply};
use crate::catalog::cache;
use crate::catalog::cache::{COLUMNS, KEY};
use crate::catalog::table::Facts;
use crate::fault::refusal;

/// The most bytes that an answer may have.
const ANSWER: usize = 64 << 20;

/// CrateDB's default schema.
const SCHEMA: &str = "doc";

/// A connection, and the schema of names that have none.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    schema: Name,
}

/// An answer, or the server's reason why there is none.
pub(crate) type Answered = Result<Answer, Failure>;

impl Session {
    /// Makes a session.
    ///
    /// # Errors
    /// The schema cannot be written into a header.
    pub(crate) fn new(origin: Arc<Origin>, schema: Option<&str>) -> Result<Self, Fault> {
        let mut headers = HeaderMap::new();
        if let Some(schema) = schema {
            let value = HeaderValue::from_str(schema).map_err(|_| {
                Fault::invalid("the schema of the URL cannot be written into a header")
            })?;
            headers.insert("Default-Schema", value);
        }
        Ok(Self {
            client: Client::new(origin, headers),
            schema: schema.unwrap_or(SCHEMA).into(),
        })
    }

    /// Returns the table with its schema.
    pub(crate) fn whole_name(&self, table: &TableName) -> TableName {
        TableName {
            schema: Some(table.schema.clone().unwrap_or_else(|| self.schema.clone())),
            table: table.table.clone(),
        }
    }

    /// Executes one statement. `args` are JSON values, separated by commas.
    pub(crate) async fn single(
        &mut self,
        sql: &str,
        args: &[u8],
        tally: &mut Tally,
    ) -> Result<Answered, Loss> {
        self.ask(sql, b"args", args, tally).await
    }

    /// Executes one statement for many rows. `rows` are JSON arrays, separated by commas.
    pub(crate) async fn bulk(
        &mut self,
        sql: &str,
        rows: &[u8],
        tally: &mut Tally,
    ) -> Result<Answered, Loss> {
        self.ask(sql, b"bulk_args", rows, tally).await
    }

    async fn ask(
        &mut self,
        sql: &str,
        field: &[u8],
        args: &[u8],
        tally: &mut Tally,
    ) -> Result<Answered, Loss> {
        let mut body = Vec::with_capacity(sql.len() + args.len() + 40);
        body.extend_from_slice(b"{\"stmt\":");
        push_text(&mut body, sql);
        body.extend_from_slice(b",\"");
        body.extend_from_slice(field);
        body.extend_from_slice(b"\":[");
        body.extend_from_slice(args);
        body.extend_from_slice(b"]}");
        let ask = Ask {
            method: Method::POST,
            path: "/_sql".to_owned(),
            body: Bytes::from(body),
            most: ANSWER,
        };
        let start = Instant::now();
        let answered = self.client.exchange(&ask).await;
        tally.in_database += start.elapsed();
        tally.round_trips += 1;
        let answer = answered?;
        Ok(match answer.status.is_success() {
            true => Ok(answer),
            false => Err(Failure::of(&answer)),
        })
    }

    /// Checks that the server answers and accepts the login.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Unavailable`] if trying again may help.
    pub(crate) async fn greet(&mut self) -> Result<(), Fault> {
        let answered = self.single("SELECT 1", b"", &mut Tally::default()).await;
        match answered.map_err(Loss::harmless)? {
            Ok(_) => Ok(()),
            Err(failure) => Err(harmless(&failure, &TableName::bare("sys.cluster"))),
        }
    }

    /// Reads the description of a table (with its schema). Returns `None` if the table does not
    /// exist or is not visible to the user.
    ///
    /// # Errors
    /// The failure of the query, which writes nothing.
    pub(crate) async fn read(
        &mut self,
        table: &TableName,
        tally: &mut Tally,
    ) -> Result<Option<Facts>, Fault> {
        let mut args = Vec::new();
        push_text(&mut args, table.schema.as_deref().unwrap_or(SCHEMA));
        args.push(b',');
        push_text(&mut args, &table.table);
        let columns = self.catalog(table, COLUMNS, &args, tally).await?;
        if columns.is_empty() {
            return Ok(None);
        }
        let key = self.catalog(table, KEY, &args, tally).await?;
        let columns = columns.into_iter().filter_map(|row| match row.as_slice() {
            [name, data_type, nullable] => Some((text(name), text(data_type), nullable != "false")),
            _ => None,
        });
        let key: Vec<String> = key
            .iter()
            .filter_map(|row| Some(text(row.first()?)))
            .collect();
        Ok(cache::facts(table.clone(), columns.collect(), &key))
    }

    async fn catalog(
        &mut self,
        table: &TableName,
        sql: &str,
        args: &[u8],
        tally: &mut Tally,
    ) -> Result<Vec<Vec<String>>, Fault> {
        let answered = self.single(sql, args, tally).await;
        let answer = answered
            .map_err(Loss::harmless)?
            .map_err(|failure| harmless(&failure, table))?;
        let reply: Reply<'_> = serde_json::from_slice(&answer.body).map_err(|e| unreadable(&e))?;
        let texts = |row: Vec<&RawValue>| row.iter().map(|raw| raw.get().to_owned()).collect();
        Ok(reply
            .rows
            .unwrap_or_default()
            .into_iter()
            .map(texts)
            .collect())
    }
}

/// Returns the fault of a query. In any case, nothing was written.
fn harmless(failure: &Failure, table: &TableName) -> Fault {
    let mut fault = refusal(failure, table).fault;
    if fault.class == windrow_core::FaultClass::Unknown {
        fault.class = windrow_core::FaultClass::Unavailable;
        fault.code = "08001".into();
    }
    fault
}

/// Returns the fault of an answer that does not follow the protocol.
pub(crate) fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::new(
        windrow_core::FaultClass::Other,
        "08P01",
        format!("the answer of CrateDB cannot be read: {error}"),
    )
}

fn text(raw: &str) -> String {
    crate::values::decode::text(raw)
}
