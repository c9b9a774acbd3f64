//! From the client to the server: what CockroachDB would refuse is made to fail, and what only it
//! knows is translated.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::refusals::{AMBIGUOUS, Refusal, failing, refusal};
use super::shared::{Fates, Trouble, Troubles, Upstream};
use super::upsert;
use crate::pgclient::backend::Message;
use crate::pgclient::frontend;

const RESTART: Refusal = (
    "40001",
    "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE - failed preemptive refresh due to encountered recently written committed value)",
);

/// One connection's statements.
pub(super) struct Front<'l> {
    upstream: &'l Arc<Upstream>,
    troubles: &'l Troubles,
    fates: &'l Fates,
    /// Prepared statements by name: do they write?
    writing: HashMap<Vec<u8>, bool>,
    /// True if a statement that was bound since the last Sync writes.
    writes: bool,
}

impl<'l> Front<'l> {
    pub(super) fn new(
        upstream: &'l Arc<Upstream>,
        troubles: &'l Troubles,
        fates: &'l Fates,
    ) -> Self {
        Self {
            upstream,
            troubles,
            fates,
            writing: HashMap::new(),
            writes: false,
        }
    }

    /// Returns the bytes for the server in place of a message.
    pub(super) async fn pass(&mut self, message: Message) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        match message.tag {
            b'P' => self.parse(&message.body, &mut out).await?,
            b'Q' => self.query(&message.body, &mut out).await?,
            b'B' => {
                let mut parts = message.body.split(|byte| *byte == 0);
                let statement = parts.nth(1).context("a Bind without a statement")?;
                self.writes |= self.writing.get(statement).copied().unwrap_or(false);
                forward(&message, &mut out);
            }
            b'E' => {
                if self.writes && self.troubles.take(|t| t == Trouble::Restart).is_some() {
                    self.writes = false;
                    frontend::parse(&mut out, "", &failing(RESTART), &[]);
                }
                forward(&message, &mut out);
            }
            b'S' => {
                let trouble = self.at_commit();
                if let Some(refusal) = lost(trouble) {
                    frontend::parse(&mut out, "", &failing(refusal), &[]);
                }
                self.fates.add(trouble == Some(Trouble::AmbiguousWritten));
                forward(&message, &mut out);
            }
            _ => forward(&message, &mut out),
        }
        Ok(out)
    }

    async fn parse(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (name, rest) = text(body)?;
        let (sql, rest) = text(rest)?;
        let numbers = rest.get(2..).unwrap_or_default().chunks_exact(4);
        let types: Vec<u32> = numbers
            .filter_map(|oid| Some(u32::from_be_bytes(oid.try_into().ok()?)))
            .collect();
        let sql = self.translate(sql, &types).await?;
        self.writing
            .insert(name.as_bytes().to_vec(), is_write(&sql));
        frontend::parse(out, name, &sql, &types);
        Ok(())
    }

    async fn query(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (sql, _) = text(body)?;
        let mut sql = self.translate(sql, &[]).await?;
        self.writes = is_write(&sql);
        let restart = self.writes && self.troubles.take(|t| t == Trouble::Restart).is_some();
        let trouble = if restart {
            Some(Trouble::RestartAtCommit)
        } else {
            self.at_commit()
        };
        if let Some(refusal) = lost(trouble) {
            sql = failing(refusal);
        }
        self.fates.add(trouble == Some(Trouble::AmbiguousWritten));
        self.writes = false;
        frontend::query(out, &sql);
        Ok(())
    }

    /// Returns the trouble of the transaction that ends here.
    fn at_commit(&mut self) -> Option<Trouble> {
        let writes = std::mem::take(&mut self.writes);
        let trouble = writes.then(|| self.troubles.take(|t| t != Trouble::Restart));
        trouble.flatten()
    }

    async fn translate(&self, sql: &str, types: &[u32]) -> Result<String> {
        if let Some(refused) = refusal(sql, types) {
            self.troubles.note_refused(sql, refused.1);
            return Ok(failing(refused));
        }
        if upsert::is_one(sql) {
            self.troubles.note_upsert();
            return upsert::translate(sql, self.upstream).await;
        }
        let version = format!("'{}'::text", self.upstream.version);
        Ok(sql.replace("version()", &version))
    }
}

/// Returns the error of a transaction that is lost at its end.
fn lost(trouble: Option<Trouble>) -> Option<Refusal> {
    match trouble? {
        Trouble::RestartAtCommit => Some(RESTART),
        Trouble::AmbiguousLost => Some(AMBIGUOUS),
        Trouble::None | Trouble::Restart | Trouble::AmbiguousWritten => None,
    }
}

fn is_write(sql: &str) -> bool {
    let sql = sql.to_ascii_lowercase();
    ["insert into ", "update ", "delete from "]
        .iter()
        .any(|word| sql.starts_with(word) || sql.contains(&format!("({word}")))
}

fn forward(message: &Message, out: &mut Vec<u8>) {
    frontend::message(out, message.tag, |body| {
        body.extend_from_slice(&message.body);
    });
}

/// Returns a text that ends with a zero byte, and what stands behind it.
fn text(body: &[u8]) -> Result<(&str, &[u8])> {
    let end = body
        .iter()
        .position(|byte| *byte == 0)
        .context("a text without an end")?;
    let (text, rest) = body.split_at(end);
    Ok((
        std::str::from_utf8(text)?,
        rest.get(1..).unwrap_or_default(),
    ))
}
