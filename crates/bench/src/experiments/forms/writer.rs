//! One connection that writes readings in any form: by the driver for Rust, and pipelined by
//! messages of our own, because PostgreSQL's driver puts a Sync behind each statement.

use std::fmt::Write as _;
use std::ops::Range;
use std::pin::pin;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures_util::stream;
use mysql_async::prelude::Queryable;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use windrow_testkit::pgclient::{Address, frontend};

use super::form::Form;
use crate::generator::pg::Mode;
use crate::generator::{Call, Connection, Inserts, Job, Style, Target};
use crate::reading::{NOTE, Reading};
use crate::servers::{Driver, Param, PgDriver, Table};

const UNNEST: &str = "insert into readings select * from unnest($1::bigint[], $2::int[], \
     $3::timestamptz[], $4::float8[], $5::text[])";
const COPY: &str = "copy readings from stdin (format binary)";
const LOAD: &str = "load data local infile 'rows' into table readings";

/// Columns of a reading.
pub(super) const COLUMNS: usize = 5;

/// The job of pipelined statements.
const PIPELINED: Style = Style::Pg(Mode::Prepared);

pub(super) struct FormWriter {
    driver: Driver,
    /// The statement of one row, and the one of the last batch with its number of rows.
    insert: String,
    values: (u32, String),
    /// The connection whose statements go out without a Sync of their own.
    pipe: Option<Connection>,
}

impl FormWriter {
    pub(super) fn connect(table: &Table) -> Result<Self> {
        let driver = Driver::connect(table)?;
        let pipe = match &driver {
            Driver::Postgres(pg) => {
                let target = Target::Pg(Address::of(&table.url)?);
                Some(pg.runtime.block_on(async {
                    let mut pipe = Connection::open(&target).await?;
                    let mut prepare = Vec::new();
                    Inserts::from(PIPELINED, 0).prepare(&mut prepare);
                    pipe.succeed(&prepare).await?;
                    anyhow::Ok(pipe)
                })?)
            }
            _ => None,
        };
        let insert = insert(&driver, 1);
        let values = (1, insert.clone());
        Ok(Self {
            driver,
            insert,
            values,
            pipe,
        })
    }

    /// Returns true if a form has a place for so many rows.
    pub(super) fn takes(&self, form: Form, rows: u32) -> bool {
        form != Form::Values || rows as usize * COLUMNS <= self.driver.max_params()
    }

    /// Writes and commits one batch, of the readings from `first` on.
    pub(super) fn write(&mut self, form: Form, first: u64, rows: u32) -> Result<()> {
        let ids = first..first + u64::from(rows);
        match form {
            Form::Single => self.each(ids),
            Form::Transaction => {
                let begin = match self.driver {
                    Driver::Sqlite(_) => "begin immediate",
                    _ => "begin",
                };
                self.driver.run(begin)?;
                self.each(ids)?;
                self.driver.run("commit")
            }
            Form::Values => {
                if self.values.0 != rows {
                    self.values = (rows, insert(&self.driver, rows));
                }
                let mut values = Vec::with_capacity(rows as usize * COLUMNS);
                for id in ids {
                    values.extend(Param::of(&Reading::new(id))?);
                }
                self.driver.execute(&self.values.1, &values)
            }
            Form::LoadData => self.load_data(ids),
            Form::Pipelined => self.pipelined(ids),
            Form::Unnest => unnest(self.postgres()?, ids),
            Form::Copy => copy(self.postgres()?, ids),
        }
    }

    fn each(&mut self, ids: Range<u64>) -> Result<()> {
        for id in ids {
            let values = Param::of(&Reading::new(id))?;
            self.driver.execute(&self.insert, &values)?;
        }
        Ok(())
    }

    fn postgres(&mut self) -> Result<&mut PgDriver> {
        match &mut self.driver {
            Driver::Postgres(pg) => Ok(pg),
            _ => bail!("only PostgreSQL has this form"),
        }
    }

    fn load_data(&mut self, ids: Range<u64>) -> Result<()> {
        let Driver::MySql(my) = &mut self.driver else {
            bail!("only MariaDB has this form");
        };
        let mut text = String::new();
        for row in ids.map(Reading::new) {
            let (id, device, temperature) = (row.id, row.device, row.temperature);
            writeln!(
                text,
                "{id}\t{device}\t2026-01-01 00:00:00\t{temperature}\t{NOTE}"
            )?;
        }
        my.conn.set_infile_handler(async move {
            let file = stream::once(async move { Ok(Bytes::from(text)) });
            Ok(Box::pin(file) as _)
        });
        Ok(my.runtime.block_on(my.conn.query_drop(LOAD))?)
    }

    fn pipelined(&mut self, ids: Range<u64>) -> Result<()> {
        let (mut all, mut sync) = (Vec::new(), Vec::new());
        frontend::sync(&mut sync);
        for id in ids {
            Inserts::from(PIPELINED, id).write(Call::new(0, 0), &mut all);
            let calls = all.strip_suffix(sync.as_slice());
            let end = calls.context("a call without its Sync")?.len();
            all.truncate(end);
        }
        all.extend_from_slice(&sync);
        let Driver::Postgres(pg) = &self.driver else {
            bail!("only PostgreSQL has this form");
        };
        let pipe = self.pipe.as_mut().context("no connection")?;
        pg.runtime.block_on(pipe.pipeline(&all))
    }
}

fn insert(driver: &Driver, rows: u32) -> String {
    let lists = driver.lists(rows as usize, COLUMNS);
    format!("insert into readings values {lists}")
}

fn unnest(pg: &mut PgDriver, ids: Range<u64>) -> Result<()> {
    let rows = || ids.clone().map(Reading::new);
    let keys: Vec<i64> = rows()
        .map(|r| i64::try_from(r.id))
        .collect::<Result<_, _>>()?;
    let devices: Vec<i32> = rows()
        .map(|r| i32::try_from(r.device))
        .collect::<Result<_, _>>()?;
    let temperatures: Vec<f64> = rows().map(|r| r.temperature).collect();
    let notes: Vec<&str> = rows().map(|r| r.note).collect();
    let at = vec![Param::Time; keys.len()];
    let statement = pg.prepared(UNNEST)?;
    let all: [&(dyn ToSql + Sync); 5] = [&keys, &devices, &at, &temperatures, &notes];
    pg.runtime.block_on(pg.client.execute(&statement, &all))?;
    Ok(())
}

fn copy(pg: &mut PgDriver, ids: Range<u64>) -> Result<()> {
    let types = [
        Type::INT8,
        Type::INT4,
        Type::TIMESTAMPTZ,
        Type::FLOAT8,
        Type::TEXT,
    ];
    let client = &pg.client;
    pg.runtime.block_on(async {
        let sink = client.copy_in(COPY).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for id in ids {
            let row = Param::of(&Reading::new(id))?;
            let row = row.each_ref().map(|value| value as &(dyn ToSql + Sync));
            writer.as_mut().write(&row).await?;
        }
        writer.finish().await?;
        Ok(())
    })
}
