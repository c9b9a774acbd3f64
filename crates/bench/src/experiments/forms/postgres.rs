//! PostgreSQL: by its driver for Rust, and pipelined by messages of our own, because the driver
//! puts a Sync behind each statement.

use std::pin::pin;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, Statement};
use windrow_testkit::pgclient::{Address, frontend};

use super::form::{Client, Form, lists};
use crate::pg::session::Session;
use crate::pg::{Inserts, job};
use crate::reading::{NOTE, Reading};

const INSERT: &str = "insert into readings values ($1, $2, $3, $4, $5)";
const UNNEST: &str = "insert into readings select * from unnest($1::bigint[], $2::int[], \
     $3::timestamptz[], $4::float8[], $5::text[])";
const COPY: &str = "copy readings from stdin (format binary)";

/// The time of all readings, in seconds since 1970.
const AT: Duration = Duration::from_secs(1_767_225_600);

/// Parameters that a statement can have.
const MOST_PARAMETERS: u32 = 65_535;

pub(super) struct Postgres {
    runtime: Runtime,
    client: tokio_postgres::Client,
    pipe: Pipe,
    insert: Statement,
    unnest: Statement,
    values: Option<Statement>,
}

/// The columns of a batch.
struct Columns {
    ids: Vec<i64>,
    devices: Vec<i32>,
    at: SystemTime,
    temperatures: Vec<f64>,
}

impl Columns {
    fn of(first: u64, rows: u32) -> Result<Self> {
        let readings = || (first..first + u64::from(rows)).map(Reading::new);
        Ok(Self {
            ids: readings()
                .map(|r| i64::try_from(r.id()))
                .collect::<Result<_, _>>()?,
            devices: readings()
                .map(|r| i32::try_from(r.device()))
                .collect::<Result<_, _>>()?,
            at: SystemTime::UNIX_EPOCH + AT,
            temperatures: readings().map(|r| r.temperature()).collect(),
        })
    }

    /// The values of each row.
    fn rows(&self) -> impl Iterator<Item = [&(dyn ToSql + Sync); 5]> {
        let columns = self.ids.iter().zip(&self.devices).zip(&self.temperatures);
        columns.map(|((id, device), temperature)| {
            let row: [&(dyn ToSql + Sync); 5] = [id, device, &self.at, temperature, &NOTE];
            row
        })
    }
}

impl Postgres {
    pub(super) fn connect(url: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (client, pipe, insert, unnest) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            let insert = client.prepare(INSERT).await?;
            let unnest = client.prepare(UNNEST).await?;
            let pipe = Pipe::open(&Address::of(url)?).await?;
            anyhow::Ok((client, pipe, insert, unnest))
        })?;
        Ok(Self {
            runtime,
            client,
            pipe,
            insert,
            unnest,
            values: None,
        })
    }

    async fn batch(
        client: &tokio_postgres::Client,
        insert: &Statement,
        columns: &Columns,
    ) -> Result<()> {
        for row in columns.rows() {
            client.execute(insert, &row).await?;
        }
        Ok(())
    }
}

impl Client for Postgres {
    fn forms(&self) -> &'static [Form] {
        &[
            Form::Single,
            Form::Transaction,
            Form::Pipelined,
            Form::Values,
            Form::Unnest,
            Form::Copy,
        ]
    }

    fn ready(&mut self, form: Form, rows: u32) -> Result<bool> {
        if form == Form::Values {
            if rows * super::form::COLUMNS > MOST_PARAMETERS {
                return Ok(false);
            }
            let text = format!(
                "insert into readings values {}",
                lists(rows, |n| format!("${n}"))
            );
            self.values = Some(self.runtime.block_on(self.client.prepare(&text))?);
        }
        Ok(true)
    }

    fn write(&mut self, form: Form, first: u64, rows: u32) -> Result<()> {
        let Self {
            runtime,
            client,
            pipe,
            insert,
            unnest,
            values,
        } = self;
        if form == Form::Pipelined {
            return runtime.block_on(pipe.write(first, rows));
        }
        let columns = Columns::of(first, rows)?;
        runtime.block_on(async {
            match form {
                Form::Transaction => {
                    client.batch_execute("begin").await?;
                    Self::batch(client, insert, &columns).await?;
                    client.batch_execute("commit").await?;
                }
                Form::Values => {
                    let values = values.as_ref().context("it was not prepared")?;
                    let all: Vec<_> = columns.rows().flatten().collect();
                    client.execute(values, &all).await?;
                }
                Form::Unnest => {
                    let (at, notes) = (
                        vec![columns.at; columns.ids.len()],
                        vec![NOTE; columns.ids.len()],
                    );
                    let all: [&(dyn ToSql + Sync); 5] = [
                        &columns.ids,
                        &columns.devices,
                        &at,
                        &columns.temperatures,
                        &notes,
                    ];
                    client.execute(unnest, &all).await?;
                }
                Form::Copy => {
                    let types = [
                        Type::INT8,
                        Type::INT4,
                        Type::TIMESTAMPTZ,
                        Type::FLOAT8,
                        Type::TEXT,
                    ];
                    let sink = client.copy_in(COPY).await?;
                    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
                    for row in columns.rows() {
                        writer.as_mut().write(&row).await?;
                    }
                    writer.finish().await?;
                }
                _ => Self::batch(client, insert, &columns).await?,
            }
            Ok(())
        })
    }
}

/// A connection whose statements go out without a Sync of their own.
struct Pipe {
    session: Session,
    job: Inserts,
}

impl Pipe {
    async fn open(address: &Address) -> Result<Self> {
        let (mut session, job) = (Session::open(address).await?, Inserts::default());
        session.expect(&job::prepare(&job)).await?;
        Ok(Self { session, job })
    }

    async fn write(&mut self, first: u64, rows: u32) -> Result<()> {
        let (mut all, mut one, mut sync) = (Vec::new(), Vec::new(), Vec::new());
        frontend::sync(&mut sync);
        for n in first..first + u64::from(rows) {
            job::call(&self.job, 0, n, &mut one);
            let call = one.strip_suffix(sync.as_slice());
            all.extend_from_slice(call.context("a call without its Sync")?);
        }
        all.extend_from_slice(&sync);
        self.session.pipeline(&all).await
    }
}
