//! A connection that moves rows.

use async_trait::async_trait;
use mysql_async::Value as Cell;
use windrow_core::bookkeeping::OwnAnswer;
use windrow_core::moves::{
    Destination, Part, PickMost, Picked, Refused, Rejected, Swept, TableFacts,
};
use windrow_core::{Fault, Mover, TableName, Value, record};

use super::connect::connect;
use super::held::Held;
use super::keys;
use super::keys::Key;
use super::script::{Broken, Lookup, Script, Verb, not_deleted};
use super::source::Source;
use super::{destination, letters};
use crate::fault::{Scope, Trouble, unknown};
use crate::own_tables;
use crate::server::MysqlServer;
use crate::session::{Fetched, Session};
use crate::values::cell::get;
use crate::values::decode;

/// The savepoint before each part of a transaction.
const SAVEPOINT: &str = "windrow";

/// A connection, the rows that it holds, and the facts that it has learned.
pub(super) struct MysqlMover {
    session: Session,
    source: Source,
    server: MysqlServer,
    /// A connection for statements that would commit the transaction: looking up and creating
    /// tables.
    side: Option<Session>,
    picked: Held,
    in_transaction: bool,
    /// The last key that was locked, if more rows may follow it.
    after: Option<Cell>,
    lookup: Lookup,
}

impl MysqlMover {
    pub(super) fn new(session: Session, source: Source, server: MysqlServer) -> Self {
        let lookup = match (session.server.mariadb, session.server.timeout_ends_all) {
            (false, _) => Lookup::Listed,
            (true, false) => Lookup::Quick,
            (true, true) => Lookup::Single,
        };
        Self {
            session,
            source,
            server,
            side: None,
            picked: Held::default(),
            in_transaction: false,
            after: None,
            lookup,
        }
    }

    /// Begins a transaction and locks rows. If there are none, the transaction has ended.
    async fn lock(&mut self, most: PickMost) -> Result<Fetched, Fault> {
        let locked = self.try_lock(most).await;
        match locked {
            Ok(fetched) if !fetched.rows.is_empty() => Ok(fetched),
            Ok(fetched) => {
                self.rollback().await?;
                Ok(fetched)
            }
            Err(trouble) => {
                self.undo().await;
                Err(trouble.into())
            }
        }
    }

    async fn try_lock(&mut self, most: PickMost) -> Result<Fetched, Trouble> {
        self.picked.clear();
        self.session.say("START TRANSACTION").await?;
        self.in_transaction = true;
        let limit = Cell::UInt(most.rows.max(1) as u64);
        let (source, session) = (&self.source, &mut self.session);
        let mut fetched = Fetched::default();
        if let (Some(sql), Some(after)) = (&source.lock_after, self.after.take()) {
            let cells = vec![after, limit.clone()];
            fetched = session.fetch(sql, cells, most.bytes).await?;
        }
        // Rows that others have released meanwhile may come before it.
        if fetched.rows.is_empty() {
            fetched = session.fetch(&source.lock, vec![limit], most.bytes).await?;
        }
        if fetched.rows.len() == most.rows {
            let last = fetched.rows.last().and_then(|row| row.first());
            self.after = last.filter(|_| source.lock_after.is_some()).cloned();
        }
        Ok(fetched)
    }

    /// Takes over a locked row: keeps its key and returns the rest.
    fn take(&mut self, columns: &[mysql_async::Column], cells: Vec<Cell>) -> Result<Picked, Fault> {
        let source = &self.source;
        let width = source.key.len();
        let held = keys::read(&source.key, cells.get(..width).unwrap_or_default())?;
        let mut picked = Picked::default();
        let mut cells = cells.into_iter().skip(width);
        let mut columns = columns.iter().skip(width);
        let mut value = |kind| match (columns.next(), cells.next()) {
            (Some(column), Some(cell)) => decode::value(column, kind, cell),
            _ => Value::Null,
        };
        if source.route.is_some() {
            picked.route = match value(None) {
                Value::Null => None,
                Value::Text(text) => Some(text),
                Value::Bytes(bytes) => match str::from_utf8(&bytes) {
                    Ok(text) => Some(text.into()),
                    Err(_) => {
                        picked.unfit = Some(Picked::nameless());
                        None
                    }
                },
                other => Some(format!("{other:?}").into()),
            };
        }
        if !source.read.is_empty() {
            let names: Vec<Value> = source.names.iter().map(|kind| value(Some(*kind))).collect();
            picked.name = record::name(&names).into();
            picked.values = source.read.iter().map(|kind| value(Some(*kind))).collect();
        }
        self.picked.push(held, picked.route.clone());
        Ok(picked)
    }

    async fn try_sweep(&mut self, rows: usize, to: &Destination) -> Result<u64, Fault> {
        let most = PickMost {
            rows,
            bytes: usize::MAX,
        };
        let fetched = self.lock(most).await?;
        for cells in &fetched.rows {
            let key = cells.get(..self.source.key.len()).unwrap_or_default();
            self.picked.push(keys::read(&self.source.key, key)?, None);
        }
        if fetched.rows.is_empty() {
            return Ok(0);
        }
        let mut script = Script::new(&self.source, self.lookup, self.session.server.packet);
        let keys: Vec<&Key> = self.picked.keys().iter().collect();
        script.copy(0, to, &keys);
        script.delete(0, &keys);
        if let Err(broken) = script.run(&mut self.session).await {
            self.learn(&broken);
            return Err(self.fault(broken, &[&to.table]));
        }
        self.commit().await?;
        Ok(fetched.rows.len() as u64)
    }

    /// Runs statements on some of the picked rows: all of them, or none.
    async fn apply(&mut self, write: impl Fn(&mut Script<'_>, &Held)) -> Result<(), Broken> {
        loop {
            let begun = self.session.say(&format!("SAVEPOINT {SAVEPOINT}")).await;
            begun.map_err(at_start)?;
            let mut script = Script::new(&self.source, self.lookup, self.session.server.packet);
            write(&mut script, &self.picked);
            let Err(broken) = script.run(&mut self.session).await else {
                return Ok(());
            };
            self.back(&broken).await?;
            if !self.learn(&broken) {
                return Err(broken);
            }
        }
    }

    /// Rolls back to the savepoint, if the transaction still exists.
    async fn back(&mut self, broken: &Broken) -> Result<(), Broken> {
        if let Broken::Failed { trouble, .. } = broken
            && !self.outlives(trouble)
        {
            self.in_transaction = false;
            return Ok(());
        }
        let undone = self
            .session
            .say(&format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}"))
            .await;
        undone.map(|_| ()).map_err(at_start)
    }

    /// Returns true if the transaction continues after a failure.
    fn outlives(&self, trouble: &Trouble) -> bool {
        match trouble {
            Trouble::Lost(_) => false,
            Trouble::Refused(refusal) => match refusal.scope {
                Scope::Statement => true,
                Scope::Lock => !self.session.server.timeout_ends_all,
                Scope::Transaction | Scope::Connection => false,
            },
        }
    }

    /// Returns true if the same statements may succeed in another form: a delete would have had to
    /// wait.
    fn learn(&mut self, broken: &Broken) -> bool {
        let learned = self.lookup == Lookup::Quick && broken.waits();
        if learned {
            self.lookup = Lookup::Single;
        }
        learned
    }

    fn fault(&self, broken: Broken, tables: &[&TableName]) -> Fault {
        match broken {
            Broken::Failed { trouble, .. } => trouble.into(),
            Broken::Miscounted {
                verb: Verb::Copy,
                part,
            } => match tables.get(part) {
                Some(table) => TableFacts::left_out(table),
                None => not_deleted(&self.source),
            },
            Broken::Miscounted { .. } => not_deleted(&self.source),
        }
    }

    /// Rolls back after a failure that is reported anyway.
    async fn undo(&mut self) {
        self.rollback().await.ok();
    }

    async fn side(&mut self) -> Result<&mut Session, Fault> {
        let usable = self.side.as_ref().is_some_and(Session::is_usable);
        if !usable {
            self.side = None;
        }
        match &mut self.side {
            Some(session) => Ok(session),
            empty @ None => Ok(empty.insert(connect(&self.server).await?)),
        }
    }
}

fn at_start(trouble: Trouble) -> Broken {
    Broken::Failed {
        verb: Verb::Copy,
        part: 0,
        trouble,
    }
}

#[async_trait]
impl Mover for MysqlMover {
    async fn sweep(&mut self, rows: usize, to: &Destination) -> Result<Swept, Fault> {
        loop {
            let lookup = self.lookup;
            let fault = match self.try_sweep(rows, to).await {
                // Rows before the last ones that were locked have not been read.
                Ok(rows) => return Ok(Swept { rows, more: true }),
                Err(fault) => fault,
            };
            self.undo().await;
            if self.lookup == lookup || !self.session.is_usable() {
                return Err(fault);
            }
        }
    }

    async fn pick(&mut self, most: PickMost) -> Result<Vec<Picked>, Fault> {
        let fetched = self.lock(most).await?;
        let mut picked = Vec::with_capacity(fetched.rows.len());
        for cells in fetched.rows {
            match self.take(&fetched.columns, cells) {
                Ok(row) => picked.push(row),
                Err(fault) => {
                    self.undo().await;
                    return Err(fault);
                }
            }
        }
        Ok(picked)
    }

    async fn open(&mut self, table: &TableName, create: bool) -> Result<Destination, Fault> {
        self.side().await?;
        match &mut self.side {
            Some(side) => destination::open(side, &self.source, table, create).await,
            None => Err(Fault::internal("no connection to look a table up by")),
        }
    }

    async fn transfer(&mut self, parts: &[Part<'_>]) -> Result<(), Refused> {
        let write = |script: &mut Script<'_>, picked: &Held| {
            for (place, part) in parts.iter().enumerate() {
                match picked.stretch(part.rows) {
                    Some(stretch) => script.copy_stretch(place, part.to, stretch, part.rows.len()),
                    None => script.copy(place, part.to, &picked.at(part.rows.iter().copied())),
                }
            }
            // All at once, so that the rows are consecutive. Running the other parts again shows
            // which delete failed.
            let mut rows: Vec<usize> = parts.iter().flat_map(|part| part.rows).copied().collect();
            rows.sort_unstable();
            script.delete(parts.len().saturating_sub(1), &picked.at(rows));
        };
        let applied = self.apply(write).await;
        applied.map_err(|broken| {
            let (Broken::Failed { part, .. } | Broken::Miscounted { part, .. }) = &broken;
            let tables: Vec<&TableName> = parts.iter().map(|part| &part.to.table).collect();
            Refused {
                at: *part,
                fault: self.fault(broken, &tables),
            }
        })
    }

    async fn delete(&mut self, rows: &[usize]) -> Result<(), Fault> {
        let write = |script: &mut Script<'_>, picked: &Held| {
            script.delete(0, &picked.at(rows.iter().copied()));
        };
        let applied = self.apply(write).await;
        applied.map_err(|broken| self.fault(broken, &[]))
    }

    async fn reject(&mut self, rows: &[Rejected<'_>]) -> Result<(), Fault> {
        self.session.say("SAVEPOINT windrow_letters").await?;
        let mut done =
            letters::write(&mut self.session, &self.source, self.picked.keys(), rows).await;
        if done.is_ok() {
            let places: Vec<usize> = rows.iter().map(|rejected| rejected.row).collect();
            done = self.delete(&places).await;
        }
        if done.is_err() && self.session.is_usable() {
            // If the transaction has ended, so has the savepoint.
            self.session
                .say("ROLLBACK TO SAVEPOINT windrow_letters")
                .await
                .ok();
        }
        done
    }

    async fn run(&mut self, sql: &str) -> Result<OwnAnswer, Fault> {
        let ran = own_tables::run(&mut self.session, sql).await;
        Ok(ran?)
    }

    async fn commit(&mut self) -> Result<(), Fault> {
        self.in_transaction = false;
        self.picked.clear();
        match self.session.say("COMMIT").await {
            Ok(_) => Ok(()),
            Err(Trouble::Lost(why)) => Err(unknown(&why)),
            Err(Trouble::Refused(refusal)) => match refusal.scope {
                // Another node of a cluster committed first, or a lock timed out: certainly rolled
                // back.
                Scope::Transaction | Scope::Lock => Err(refusal.fault),
                Scope::Statement | Scope::Connection => Err(unknown(&refusal.fault.message)),
            },
        }
    }

    async fn rollback(&mut self) -> Result<(), Fault> {
        self.picked.clear();
        self.after = None;
        if !std::mem::take(&mut self.in_transaction) {
            return Ok(());
        }
        if !self.session.is_usable() {
            return Err(Fault::unavailable("the connection to MySQL is lost"));
        }
        self.session.say("ROLLBACK").await?;
        Ok(())
    }

    async fn left(&mut self) -> Result<bool, Fault> {
        let rows = self.session.rows(&self.source.left).await?;
        Ok(rows.first().and_then(|row| get::<u64>(row, 0)) == Some(1))
    }

    async fn close(self: Box<Self>) {
        self.session.close().await;
        if let Some(side) = self.side {
            side.close().await;
        }
    }
}
