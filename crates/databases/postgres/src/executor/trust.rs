//! The server's answers to prepared statements, and whether descriptions may be relied on.

use windrow_pgwire::wire::{Answer, Field, ServerError};

/// The state of the descriptions that a batch relies on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The descriptions match the server.
    #[default]
    Good,
    /// A table has changed since it was read.
    Stale,
    /// The table of this version was locked for too long, or waiting for the lock was cancelled.
    Locked(u64, Box<ServerError>),
}

/// Returns [`Trust::Locked`] if the error comes from waiting for a version of a table.
pub(super) fn locked(version: u64, error: &ServerError) -> Option<Trust> {
    let waited = matches!(&*error.code, "55P03" | "57014");
    waited.then(|| Trust::Locked(version, Box::new(error.clone())))
}

/// The answers up to a ReadyForQuery.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) parsed: bool,
    pub(super) error: Option<ServerError>,
    pub(super) fields: Vec<(String, u32, i32)>,
    /// The body of RowDescription.
    pub(super) body: Option<Box<[u8]>>,
    /// The first column of the last row.
    pub(super) said: Option<Box<[u8]>>,
}

/// Collects the answers to a number of Syncs.
#[derive(Default)]
pub(super) struct AnsweredReader {
    syncs: usize,
    answered: Vec<Answered>,
    now: Answered,
}

impl AnsweredReader {
    /// Expects the answers to this number of Syncs.
    pub(super) fn new(syncs: usize) -> Self {
        Self {
            syncs,
            ..Self::default()
        }
    }

    /// Returns the number of Syncs whose answers are expected.
    pub(super) fn syncs(&self) -> usize {
        self.syncs
    }

    /// Returns true once all Syncs are answered.
    pub(super) fn is_done(&self) -> bool {
        self.answered.len() >= self.syncs
    }

    /// Takes in one message.
    pub(super) fn take(&mut self, answer: Answer<'_>) {
        let now = &mut self.now;
        match answer {
            Answer::ParseComplete => now.parsed = true,
            Answer::Error(error) => now.error = Some(error),
            Answer::DataRow(row) => now.said = row.get(0).map(Into::into),
            Answer::RowDescription(fields) => {
                now.body = Some(fields.body().into());
                let field = |f: Field<'_>| (f.name.into_owned(), f.type_oid, f.type_modifier);
                now.fields = fields.map(field).collect();
            }
            Answer::Ready(_) => self.answered.push(std::mem::take(now)),
            _ => {}
        }
    }

    /// Returns the answers to each Sync.
    pub(super) fn end(self) -> Vec<Answered> {
        self.answered
    }
}
