//! A client of its own, by PostgreSQL's driver for Rust.

use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use futures_util::SinkExt;
use futures_util::future::try_join_all;
use tokio_postgres::{Config, NoTls, Statement};
use windrow_testkit::pgclient::Address;

const NOTE: &str = "as it was seen at the time";

/// The form in which rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineForm {
    /// Each row is a statement, and waits for its answer.
    Rows,
    /// The same between BEGIN and COMMIT.
    Transaction,
    /// The same, and the server makes each row's key and returns it.
    Returning,
    /// Each row is a statement, and none waits for the answer of another.
    Pipelined,
    /// One statement with all rows.
    MultiRow,
    /// One COPY.
    Copy,
    /// All rows are read.
    Select,
}

/// A connected client.
pub(super) struct LineClient(tokio_postgres::Client);

impl LineClient {
    /// Connects. `setting`: one of Windrow's, for this session.
    pub(super) async fn connect(address: &Address, setting: Option<&str>) -> Result<Self> {
        let mut config: Config = address.url().parse()?;
        if let Some(setting) = setting {
            config.options(format!("-c {setting}"));
        }
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(Self(client))
    }

    /// Gets ready, writes so many rows, and says how long that took.
    pub(super) async fn write(&self, form: LineForm, rows: u32) -> Result<Duration> {
        self.get_ready(form).await?;
        let insert = self.insert("lines", form).await?;
        let many = "insert into lines select * from unnest($1::bigint[], $2::float8[], $3::text[])";
        let many = self.0.prepare(many).await?;
        let read = self.0.prepare("select id, value, note from lines").await?;
        let start = Instant::now();
        match form {
            LineForm::Rows => self.rows(&insert, rows).await?,
            LineForm::Transaction | LineForm::Returning => {
                self.transaction(&insert, rows, form).await?;
            }
            LineForm::Pipelined => {
                let all = (0..rows).map(|id| self.row(&insert, id));
                try_join_all(all).await?;
            }
            LineForm::MultiRow => {
                let ids: Vec<i64> = (0..rows).map(i64::from).collect();
                let values: Vec<f64> = (0..rows).map(f64::from).collect();
                let notes = vec![NOTE; ids.len()];
                self.0.execute(&many, &[&ids, &values, &notes]).await?;
            }
            LineForm::Copy => self.copy(rows).await?,
            LineForm::Select => {
                let found = self.0.query(&read, &[]).await?.len();
                ensure!(found == rows as usize, "{found} rows");
            }
        }
        Ok(start.elapsed())
    }

    /// Lets the connection and the gateway find out before what they find out once.
    async fn get_ready(&self, form: LineForm) -> Result<()> {
        self.0.batch_execute("truncate ready").await?;
        let insert = self.insert("ready", form).await?;
        match form {
            LineForm::Transaction | LineForm::Returning => self.transaction(&insert, 3, form).await,
            _ => self.rows(&insert, 3).await,
        }
    }

    async fn insert(&self, table: &str, form: LineForm) -> Result<Statement> {
        let text = match form {
            LineForm::Returning => {
                format!("insert into {table} (value, note) values ($1, $2) returning id")
            }
            _ => format!("insert into {table} (id, value, note) values ($1, $2, $3)"),
        };
        Ok(self.0.prepare(&text).await?)
    }

    async fn transaction(&self, insert: &Statement, rows: u32, form: LineForm) -> Result<()> {
        self.0.batch_execute("begin").await?;
        match form {
            LineForm::Returning => {
                for value in 0..rows {
                    let value = f64::from(value);
                    let row = self.0.query_one(insert, &[&value, &NOTE]).await?;
                    let _key: i64 = row.try_get(0)?;
                }
            }
            _ => self.rows(insert, rows).await?,
        }
        Ok(self.0.batch_execute("commit").await?)
    }

    async fn rows(&self, insert: &Statement, rows: u32) -> Result<()> {
        for id in 0..rows {
            self.row(insert, id).await?;
        }
        Ok(())
    }

    async fn row(&self, insert: &Statement, id: u32) -> Result<()> {
        let (id, value) = (i64::from(id), f64::from(id));
        let written = self.0.execute(insert, &[&id, &value, &NOTE]).await?;
        ensure!(written == 1, "{written} rows of one");
        Ok(())
    }

    async fn copy(&self, rows: u32) -> Result<()> {
        let text: String = (0..rows)
            .map(|id| format!("{id}\t{id}\t{NOTE}\n"))
            .collect();
        let mut sink = pin!(self.0.copy_in("copy lines from stdin").await?);
        sink.send(Bytes::from(text)).await?;
        sink.finish().await?;
        Ok(())
    }
}
