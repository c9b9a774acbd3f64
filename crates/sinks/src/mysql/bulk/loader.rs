//! A portion: one transaction.

use async_trait::async_trait;
use windrow_core::{Claim, Fault, FaultClass, LoadFault, Loaded, Loader, Mark, Rows, Sifted};

use super::plan::Load;
use super::probe::Probe;
use super::sieve::Sieve;
use super::{feed, marks};
use crate::mysql::fault::{DUPLICATE, Scope, Trouble, unavailable, unknown};
use crate::mysql::guard;
use crate::mysql::line::Line;
use crate::mysql::schema::get;

/// Warnings that a server tells of one statement at most.
const MOST_WARNINGS: u64 = 65_535;

/// A connection that loads.
#[derive(Debug)]
pub(super) struct MysqlLoader {
    pub(super) line: Line,
    pub(super) load: Load,
    pub(super) probe: Probe,
}

impl MysqlLoader {
    pub(super) fn new(line: Line, load: Load) -> Self {
        let probe = Probe::new();
        Self { line, load, probe }
    }

    async fn write(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        self.open().await?;
        let loaded = self.rows(rows).await?;
        if let Some(mark) = mark {
            let sql = marks::insert(&mark.load, &[mark.span]);
            self.line.say(&sql).await.map_err(of_mark)?;
        }
        Ok(loaded)
    }

    /// Opens the transaction; the table is as it was described.
    pub(super) async fn open(&mut self) -> Result<(), LoadFault> {
        let (seen, ended) = self.line.looks(&self.load.open).await;
        ended.map_err(of_trouble)?;
        if guard::holds(&self.load.print, &seen) {
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
        let load = &self.load;
        let (written, warnings) = send(&mut self.line, load, &load.sql, rows, None).await?;
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

    pub(super) async fn first_warning(
        &mut self,
        sent: u64,
        written: u64,
    ) -> Result<Fault, LoadFault> {
        let sql = "SHOW WARNINGS LIMIT 1";
        let rows = self.line.rows(sql).await.map_err(of_trouble)?;
        let told = rows.first().and_then(|row| get::<String>(row, 2));
        Ok(match told {
            Some(told) => Fault::new(FaultClass::Other, "01000", told),
            None => odd(sent, written),
        })
    }

    /// The connection can be used.
    fn check(&self) -> Result<(), LoadFault> {
        if self.line.is_usable() {
            return Ok(());
        }
        let why = "it had ended before";
        Err(LoadFault::Again(unavailable(why)))
    }

    /// Commits what was written, or undoes it.
    async fn finish<T>(&mut self, written: Result<T, LoadFault>) -> Result<T, LoadFault> {
        if written.is_ok() {
            self.commit().await?;
        } else if self.line.is_usable() && self.line.say("ROLLBACK").await.is_err() {
            // Without an answer the connection is lost, and the server rolls back by itself.
            self.line.give_up();
        }
        written
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

/// Executes a LOAD DATA whose file is these rows, or those of them that a sieve lets through. Gives
/// back how many rows were written, and how many warnings there are.
pub(super) async fn send(
    line: &mut Line,
    load: &Load,
    sql: &str,
    rows: &Rows,
    mut sieve: Option<&mut Sieve>,
) -> Result<(u64, u64), LoadFault> {
    if rows.columns() != load.width() {
        let why = "a portion has another number of columns than its load";
        return Err(LoadFault::Hopeless(Fault::internal(why)));
    }
    if let Some(sieve) = &mut sieve {
        sieve.begin();
    }
    let (file, contents) = feed::file();
    let (said, fed) = {
        let mut loading = std::pin::pin!(line.load(sql, contents));
        let mut feeding = std::pin::pin!(feed::write(rows, load, sieve, file));
        // Where the statement ends before it has read all, it says why.
        tokio::select! {
            biased;
            said = &mut loading => (said, Ok(())),
            fed = &mut feeding => (loading.await, fed),
        }
    };
    let answer = said.map_err(of_trouble)?;
    fed.map_err(LoadFault::Refused)?;
    Ok(answer)
}

#[async_trait]
impl Loader for MysqlLoader {
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        self.check()?;
        let written = self.write(rows, mark).await;
        self.finish(written).await
    }

    async fn sift(&mut self, rows: &Rows, claim: Option<&Claim<'_>>) -> Result<Sifted, LoadFault> {
        self.check()?;
        let written = self.write_sifted(rows, claim).await;
        self.finish(written).await
    }

    async fn close(self: Box<Self>) {
        self.line.close().await;
    }
}

/// What a failure before the commit means for the portion.
pub(super) fn of_trouble(trouble: Trouble) -> LoadFault {
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
pub(super) fn of_mark(trouble: Trouble) -> LoadFault {
    match of_trouble(trouble) {
        LoadFault::Refused(fault) => LoadFault::Hopeless(fault),
        other => other,
    }
}

pub(super) fn odd(sent: u64, written: u64) -> Fault {
    let message = format!("of {sent} rows LOAD DATA wrote {written}");
    Fault::new(FaultClass::Other, "XX000", message)
}
