//! The server's answers to prepared statements, and whether descriptions may be relied on.

use windrow_pgwire::wire::{Answer, Broken, Field, ServerError, Wire};

/// The state of the descriptions that a batch relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The descriptions match the server.
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

/// Sends the buffer, and collects the answers up to the last Sync.
pub(super) async fn answers(wire: &mut Wire, syncs: usize) -> Result<Vec<Answered>, Broken> {
    let mut answers = Vec::new();
    let mut now = Answered::default();
    wire.exchange(syncs, &mut |answer| match answer {
        Answer::ParseComplete => now.parsed = true,
        Answer::Error(error) => now.error = Some(error),
        Answer::DataRow(row) => now.said = row.get(0).map(Into::into),
        Answer::RowDescription(fields) => {
            now.body = Some(fields.body().into());
            let field = |f: Field<'_>| (f.name.into_owned(), f.type_oid, f.type_modifier);
            now.fields = fields.map(field).collect();
        }
        Answer::Ready(_) => answers.push(std::mem::take(&mut now)),
        _ => {}
    })
    .await?;
    Ok(answers)
}
