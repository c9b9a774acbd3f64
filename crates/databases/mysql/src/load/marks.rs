//! Stores marks of loaded portions in a table.

use async_trait::async_trait;
use mysql_async::Opts;
use windrow_bookkeeping::create_all;
use windrow_core::bookkeeping::OwnTable;
use windrow_core::{Fault, Mark, Marks, Span};
use windrow_database::Options;

use crate::fault::Trouble;
use crate::own_tables::MysqlBookkeeping;
use crate::session::Session;
use crate::values::cell::get;
use crate::values::literal::push_text;

/// The table of marks.
pub(super) struct MysqlMarks {
    opts: Opts,
    options: Options,
}

impl MysqlMarks {
    pub(super) fn new(opts: &Opts, options: &Options) -> Self {
        Self {
            opts: opts.clone(),
            options: options.clone(),
        }
    }

    async fn connect(&self) -> Result<Session, Fault> {
        Session::connect(&self.opts, None, &self.options).await
    }

    /// Executes statements on a connection of their own, one after another.
    async fn say(&self, statements: &[String]) -> Result<(), Fault> {
        let mut session = self.connect().await?;
        for sql in statements {
            // What is open when the connection ends is rolled back.
            session.say(sql).await.map_err(Trouble::into_fault)?;
        }
        session.close().await;
        Ok(())
    }
}

#[async_trait]
impl Marks for MysqlMarks {
    async fn prepare(&self) -> Result<(), Fault> {
        let tables = MysqlBookkeeping::new(&self.opts, &self.options);
        create_all(&tables, &[OwnTable::Loads]).await
    }

    async fn read(&self, load: &str) -> Result<Vec<Span>, Fault> {
        let mut sql = format!(
            "SELECT `{}`, `{}` FROM `{}` WHERE `{}` = ",
            Mark::FIRST,
            Mark::END,
            Mark::TABLE,
            Mark::LOAD
        );
        push_text(&mut sql, load);
        sql.push_str(&format!(" ORDER BY `{}`", Mark::FIRST));
        let mut session = self.connect().await?;
        let rows = session.rows(&sql).await.map_err(Trouble::into_fault)?;
        session.close().await;
        let span = |row: &mysql_async::Row| {
            Some(Span {
                first: get(row, 0)?,
                end: get(row, 1)?,
            })
        };
        rows.iter()
            .map(|row| span(row).ok_or_else(unreadable))
            .collect()
    }

    async fn merge(&self, mark: &Mark) -> Result<(), Fault> {
        let mut delete = format!("DELETE FROM `{}` WHERE `{}` = ", Mark::TABLE, Mark::LOAD);
        push_text(&mut delete, &mark.load);
        delete.push_str(&format!(
            " AND `{}` >= {} AND `{}` <= {}",
            Mark::FIRST,
            mark.span.first,
            Mark::END,
            mark.span.end
        ));
        let begin = "START TRANSACTION".to_owned();
        self.say(&[
            begin,
            delete,
            insert(&mark.load, &[mark.span]),
            "COMMIT".to_owned(),
        ])
        .await
    }
}

/// The statement that writes marks, one at least.
pub(super) fn insert(load: &str, spans: &[Span]) -> String {
    let mut sql = format!(
        "INSERT INTO `{}` (`{}`, `{}`, `{}`) VALUES ",
        Mark::TABLE,
        Mark::LOAD,
        Mark::FIRST,
        Mark::END
    );
    for (at, span) in spans.iter().enumerate() {
        sql.push_str(if at > 0 { ", (" } else { "(" });
        push_text(&mut sql, load);
        sql.push_str(&format!(", {}, {})", span.first, span.end));
    }
    sql
}

fn unreadable() -> Fault {
    Fault::invalid(format!(
        "table {} holds a row that is no mark of a load; was it made by something else?",
        Mark::TABLE
    ))
}
