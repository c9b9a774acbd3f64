//! MariaDB, by its driver for Rust. The protocol knows no pipeline.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::stream;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Params, Statement, Value};
use tokio::runtime::Runtime;

use super::form::{COLUMNS, Client, Form, lists};
use crate::reading::{NOTE, Reading};

const AT: &str = "2026-01-01 00:00:00";
const LOAD: &str = "load data local infile 'rows' into table readings";

/// Placeholders that a statement can have.
const MOST_PLACEHOLDERS: u32 = 65_535;

pub(super) struct MariaDb {
    runtime: Runtime,
    conn: Conn,
    insert: Statement,
    values: Option<Statement>,
}

impl MariaDb {
    pub(super) fn connect(url: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let opts = Opts::from_url(url)?;
        let (conn, insert) = runtime.block_on(async {
            let mut conn = Conn::new(opts).await?;
            let insert = conn.prep(insert(1)).await?;
            anyhow::Ok((conn, insert))
        })?;
        Ok(Self {
            runtime,
            conn,
            insert,
            values: None,
        })
    }

    async fn each(conn: &mut Conn, insert: &Statement, first: u64, rows: u32) -> Result<()> {
        for reading in readings(first, rows) {
            let mut values = Vec::with_capacity(5);
            push(&mut values, reading);
            conn.exec_drop(insert, Params::Positional(values)).await?;
        }
        Ok(())
    }
}

fn insert(rows: u32) -> String {
    format!(
        "insert into readings values {}",
        lists(rows, |_| "?".to_owned())
    )
}

fn readings(first: u64, rows: u32) -> impl Iterator<Item = Reading> {
    (first..first + u64::from(rows)).map(Reading::new)
}

fn push(values: &mut Vec<Value>, reading: Reading) {
    values.push(reading.id().into());
    values.push(reading.device().into());
    values.push(AT.into());
    values.push(reading.temperature().into());
    values.push(NOTE.into());
}

fn lines(first: u64, rows: u32) -> Bytes {
    let mut text = String::new();
    for row in readings(first, rows) {
        let (id, device, temperature) = (row.id(), row.device(), row.temperature());
        writeln!(text, "{id}\t{device}\t{AT}\t{temperature}\t{NOTE}").ok();
    }
    text.into()
}

impl Client for MariaDb {
    fn forms(&self) -> &'static [Form] {
        &[
            Form::Single,
            Form::Transaction,
            Form::Values,
            Form::LoadData,
        ]
    }

    fn ready(&mut self, form: Form, rows: u32) -> Result<bool> {
        if form == Form::Values {
            if rows * COLUMNS > MOST_PLACEHOLDERS {
                return Ok(false);
            }
            self.values = Some(self.runtime.block_on(self.conn.prep(insert(rows)))?);
        }
        Ok(true)
    }

    fn write(&mut self, form: Form, first: u64, rows: u32) -> Result<()> {
        let Self {
            runtime,
            conn,
            insert,
            values,
        } = self;
        runtime.block_on(async {
            match form {
                Form::Transaction => {
                    conn.query_drop("start transaction").await?;
                    Self::each(conn, insert, first, rows).await?;
                    conn.query_drop("commit").await?;
                }
                Form::Values => {
                    let mut all = Vec::new();
                    readings(first, rows).for_each(|reading| push(&mut all, reading));
                    let values = values.as_ref().context("it was not prepared")?;
                    conn.exec_drop(values, Params::Positional(all)).await?;
                }
                Form::LoadData => {
                    let text = lines(first, rows);
                    conn.set_infile_handler(async move {
                        let file = stream::once(async move { Ok(text) });
                        Ok(Box::pin(file) as _)
                    });
                    conn.query_drop(LOAD).await?;
                }
                _ => Self::each(conn, insert, first, rows).await?,
            }
            Ok(())
        })
    }
}
