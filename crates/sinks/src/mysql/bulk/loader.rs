//! A portion: one transaction.

use async_trait::async_trait;
use windrow_core::{Fault, FaultClass, LoadFault, Loaded, Loader, Mark, Rows};

use super::plan::Load;
use super::{feed, marks};
use crate::mysql::fault::{DUPLICATE, Scope, Trouble, unavailable, unknown};
use crate::mysql::line::Line;
use crate::mysql::schema::{get, print};

/// Warnings that a server tells of one statement at most.
const MOST_WARNINGS: u64 = 65_535;

/// A connection that loads.
#[derive(Debug)]
pub(super) struct MysqlLoader {
    line: Line,
    load: Load,
}

impl MysqlLoader {
    pub(super) fn new(line: Line, load: Load) -> Self {
        Self { line, load }
    }

    async fn write(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        self.open().await?;
        let loaded = self.rows(rows).await?;
        if let Some(mark) = mark {
            let sql = marks::insert(mark);
            self.line.say(&sql).await.map_err(of_mark)?;
        }
        Ok(loaded)
    }

    /// Opens the transaction; the table is as it was described.
    async fn open(&mut self) -> Result<(), LoadFault> {
        let (results, ended) = self.line.results(&self.load.open).await;
        ended.map_err(of_trouble)?;
        let same = results.first().map(|columns| print(columns));
        if same.as_deref() == Some(&*self.load.print) {
            return Ok(());
        }
        let message = format!("table {} was altered", self.load.table);
        Err(LoadFault::Again(Fault::new(
            FaultClass::Conflict,
            "55006",
            message,
        )))
    }

    async fn rows(&mut self, rows: &Rows) -> Result<Loaded, LoadFault> {
        if rows.is_empty() {
            return Ok(Loaded::default());
        }
        if rows.columns() != self.load.width() {
            let why = "a portion has another number of columns than its load";
            return Err(LoadFault::Hopeless(Fault::internal(why)));
        }
        let (file, contents) = feed::file();
        let load = &self.load;
        let (said, fed) = {
            let mut loading = std::pin::pin!(self.line.load(&load.sql, contents));
            let mut feeding = std::pin::pin!(feed::write(rows, load, file));
            // Where the statement ends before it has read all, it says why.
            tokio::select! {
                biased;
                said = &mut loading => (said, Ok(())),
                fed = &mut feeding => (loading.await, fed),
            }
        };
        let (written, warnings) = said.map_err(of_trouble)?;
        fed.map_err(LoadFault::Refused)?;
        self.judge(rows.len() as u64, written, warnings).await
    }

    /// Whether all that was sent was written as it was sent.
    async fn judge(&mut self, sent: u64, written: u64, warnings: u64) -> Result<Loaded, LoadFault> {
        let ignored = sent.saturating_sub(written);
        if written > sent {
            return Err(LoadFault::Refused(odd(sent, written)));
        }
        if warnings == 0 && ignored == 0 {
            return Ok(Loaded {
                written,
                ignored: 0,
            });
        }
        let duplicates = match self.load.ignores && warnings < MOST_WARNINGS {
            true => self.duplicates().await?,
            false => None,
        };
        if duplicates == Some(ignored) {
            return Ok(Loaded { written, ignored });
        }
        Err(LoadFault::Refused(self.first_warning(sent, written).await?))
    }

    /// How many warnings there are, if each of them is of a key that was there already.
    async fn duplicates(&mut self) -> Result<Option<u64>, LoadFault> {
        let rows = self.line.rows("SHOW WARNINGS").await.map_err(of_trouble)?;
        let duplicate = |row: &mysql_async::Row| get::<u32>(row, 1) == Some(DUPLICATE.into());
        Ok(rows.iter().all(duplicate).then_some(rows.len() as u64))
    }

    async fn first_warning(&mut self, sent: u64, written: u64) -> Result<Fault, LoadFault> {
        let sql = "SHOW WARNINGS LIMIT 1";
        let rows = self.line.rows(sql).await.map_err(of_trouble)?;
        let told = rows.first().and_then(|row| get::<String>(row, 2));
        Ok(match told {
            Some(told) => Fault::new(FaultClass::Other, "01000", told),
            None => odd(sent, written),
        })
    }

    async fn commit(&mut self) -> Result<(), LoadFault> {
        match self.line.say("COMMIT").await {
            Ok(_) => Ok(()),
            Err(Trouble::Lost(why)) => Err(LoadFault::Unknown(unknown(&why))),
            Err(Trouble::Refused(refusal)) => Err(match refusal.scope {
                // Another node of a cluster was faster, or a lock: certainly rolled back.
                Scope::Transaction | Scope::Lock => LoadFault::Again(refusal.fault),
                Scope::Statement | Scope::Connection => {
                    LoadFault::Unknown(unknown(&refusal.fault.message))
                }
            }),
        }
    }
}

#[async_trait]
impl Loader for MysqlLoader {
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        if !self.line.is_usable() {
            let why = "it had ended before";
            return Err(LoadFault::Again(unavailable(why)));
        }
        match self.write(rows, mark).await {
            Ok(loaded) => self.commit().await.map(|()| loaded),
            Err(fault) => {
                // Without an answer the connection is lost, and the server rolls back by itself.
                if self.line.is_usable() && self.line.say("ROLLBACK").await.is_err() {
                    self.line.give_up();
                }
                Err(fault)
            }
        }
    }

    async fn close(self: Box<Self>) {
        self.line.close().await;
    }
}

/// What a failure before the commit means for the portion.
fn of_trouble(trouble: Trouble) -> LoadFault {
    match trouble {
        Trouble::Lost(why) => LoadFault::Again(unavailable(&why)),
        Trouble::Refused(refusal) => match (refusal.scope, refusal.fault.class) {
            (Scope::Lock | Scope::Transaction | Scope::Connection, _) => {
                LoadFault::Again(refusal.fault)
            }
            (_, FaultClass::NoTable | FaultClass::NoColumn | FaultClass::Denied) => {
                LoadFault::Hopeless(refusal.fault)
            }
            _ => LoadFault::Refused(refusal.fault),
        },
    }
}

/// A mark that cannot be written is no fault of the rows.
fn of_mark(trouble: Trouble) -> LoadFault {
    match of_trouble(trouble) {
        LoadFault::Refused(fault) => LoadFault::Hopeless(fault),
        other => other,
    }
}

fn odd(sent: u64, written: u64) -> Fault {
    let message = format!("of {sent} rows LOAD DATA wrote {written}");
    Fault::new(FaultClass::Other, "XX000", message)
}
