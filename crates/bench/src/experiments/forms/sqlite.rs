//! SQLite, as durably as Windrow writes by default.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use windrow_testkit::procfs;

use super::form::{COLUMNS, Client, Form, lists};
use crate::reading::{AT, NOTE, Reading};

/// Placeholders that a statement can have (`SQLITE_MAX_VARIABLE_NUMBER`).
const MOST_PLACEHOLDERS: u32 = 32_766;

pub(super) struct Sqlite(Connection);

impl Sqlite {
    pub(super) fn open(file: &Path) -> Result<Self> {
        let db = Connection::open(file)?;
        db.pragma_update(None, "synchronous", "full")?;
        Ok(Self(db))
    }

    fn each(&self, first: u64, rows: u32) -> Result<()> {
        let mut insert = self.0.prepare_cached(&insert(1))?;
        for id in first..first + u64::from(rows) {
            insert.execute(params_from_iter(values(id)?))?;
        }
        Ok(())
    }
}

fn insert(rows: u32) -> String {
    format!(
        "insert into readings values {}",
        lists(rows, |n| format!("?{n}"))
    )
}

fn values(id: u64) -> Result<[Value; 5]> {
    let reading = Reading::new(id);
    Ok([
        i64::try_from(id)?.into(),
        i64::try_from(reading.device())?.into(),
        AT.to_owned().into(),
        reading.temperature().into(),
        NOTE.to_owned().into(),
    ])
}

impl Client for Sqlite {
    fn forms(&self) -> &'static [Form] {
        &[Form::Single, Form::Transaction, Form::Values]
    }

    fn ready(&mut self, form: Form, rows: u32) -> Result<bool> {
        Ok(form != Form::Values || rows * COLUMNS <= MOST_PLACEHOLDERS)
    }

    fn write(&mut self, form: Form, first: u64, rows: u32) -> Result<()> {
        match form {
            Form::Transaction => {
                self.0.execute_batch("begin immediate")?;
                self.each(first, rows)?;
                self.0.execute_batch("commit")?;
            }
            Form::Values => {
                let mut all = Vec::new();
                for id in first..first + u64::from(rows) {
                    all.extend(values(id)?);
                }
                self.0
                    .prepare_cached(&insert(rows))?
                    .execute(params_from_iter(all))?;
            }
            _ => self.each(first, rows)?,
        }
        Ok(())
    }

    fn own_cpu(&self) -> Result<Option<Duration>> {
        procfs::thread_cpu_time().map(Some)
    }
}
