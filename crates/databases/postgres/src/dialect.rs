//! The differences between databases that speak PostgreSQL's protocol.
//!
//! PostgreSQL's behavior is the rule. The differences of CockroachDB are from its documentation
//! (<https://www.cockroachlabs.com/docs/stable/postgresql-compatibility>), or from its sources if
//! the documentation does not say.

use windrow_core::{Fault, FaultClass, Profile};
use windrow_pgwire::wire::Wire;

/// A database that speaks PostgreSQL's protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) profile: Profile,
    /// True if descriptions are read by plain queries on a table's number, and from what `SELECT *`
    /// returns: the catalog has no partition trees, no domains and no transaction numbers, and
    /// shows columns that are hidden elsewhere.
    pub(super) plain_catalog: bool,
    /// True if `UPSERT` replaces whole rows without reading them first.
    pub(super) upserts: bool,
    /// True if rows of arrays are numbered by `generate_subscripts`, because no promise is made of
    /// the order in which ORDINALITY counts.
    pub(super) subscripts: bool,
    /// True if a table can be locked and altered within a transaction, and its comment marks that
    /// Windrow created it.
    pub(super) alters: bool,
    /// The maximum number of units in one transaction.
    pub(super) piece: usize,
    /// The reason why statements of SQL clients are not joined, if they are not.
    pub(super) apart: Option<&'static str>,
    /// The reason why portions of a load are not sent by COPY, if they are not.
    pub(super) no_copy: Option<&'static str>,
}

/// The capabilities of PostgreSQL.
pub(crate) const PROFILE: Profile = Profile {
    name: "PostgreSQL",
    transactional: true,
    flights: 8,
    batch_rows: 10_000,
    limitations: &[],
};

/// The capabilities of CockroachDB. Its commits wait for a quorum of nodes, so more flights are
/// useful. Its transactions hold on to all that they write, so smaller ones are better: its
/// documentation advises 100 to 1,000 rows.
pub(crate) const COCKROACH_PROFILE: Profile = Profile {
    name: "CockroachDB",
    transactional: true,
    flights: 16,
    batch_rows: 1_000,
    limitations: &[],
};

/// PostgreSQL itself, and servers that report to be PostgreSQL.
pub(super) static POSTGRES: Dialect = Dialect {
    profile: PROFILE,
    plain_catalog: false,
    upserts: false,
    subscripts: false,
    alters: true,
    piece: usize::MAX,
    apart: None,
    no_copy: None,
};

/// CockroachDB.
pub(super) static COCKROACH: Dialect = Dialect {
    profile: COCKROACH_PROFILE,
    plain_catalog: true,
    upserts: true,
    subscripts: true,
    alters: false,
    piece: 1_000,
    // The check after each batch needs what CockroachDB's catalog does not have: the transaction
    // that wrote a row of it.
    apart: Some("CockroachDB's catalog cannot be checked behind a batch"),
    // CockroachDB refuses COPY in the extended protocol, by which a portion and its mark are one
    // transaction, and releases before v22.2 commit it in pieces
    // (<https://www.cockroachlabs.com/docs/v22.1/copy-from>).
    no_copy: Some(
        "CockroachDB's COPY cannot write rows and their mark in one transaction of one round trip; its rows go as batches of INSERT",
    ),
};

/// The first release in which all statements up to a Sync are one transaction. Earlier releases
/// committed each statement by itself, and the first half of a failed batch would have stayed.
const OLDEST: (u32, u32) = (22, 1);

/// The prefix of the versions that CockroachDB reports.
const COCKROACH_SAYS: &str = "CockroachDB";

impl Dialect {
    /// Returns the dialect of the database that reports this version.
    ///
    /// # Errors
    /// [`FaultClass::Unsupported`] if the release is too old.
    pub(super) fn of(version: &str) -> Result<&'static Self, Fault> {
        let Some(rest) = version.strip_prefix(COCKROACH_SAYS) else {
            return Ok(&POSTGRES);
        };
        match release(rest) {
            Some(release) if release < OLDEST => Err(Fault::new(
                FaultClass::Unsupported,
                "0A000",
                format!(
                    "this is CockroachDB v{}.{}, which commits each statement of a batch by itself; v{}.{} is the oldest that can be used",
                    release.0, release.1, OLDEST.0, OLDEST.1
                ),
            )),
            _ => Ok(&COCKROACH),
        }
    }

    /// Returns the dialect of the server that this connection leads to, by the version that the
    /// server reports. `known`: the dialect that another connection of the sink found, which saves
    /// the query.
    ///
    /// # Errors
    /// [`FaultClass::Unavailable`] if the connection breaks, and as [`Dialect::of`].
    pub(super) async fn recognize(
        wire: &mut Wire,
        known: Option<&'static Self>,
    ) -> Result<&'static Self, Fault> {
        // CockroachDB reports its version with each connection. A pooler between here and the
        // server may not pass that on.
        if let Some(version) = wire.parameter("crdb_version") {
            return Self::of(version);
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let rows = match wire.simple("SELECT version()").await {
            Ok(answer) => answer.map_err(Fault::from)?,
            Err(broken) => return Err(broken.unavailable()),
        };
        let version = rows.into_iter().flatten().flatten().next();
        Self::of(version.as_deref().unwrap_or_default())
    }
}

/// Returns the release of a version: `24.1` of ` CCL v24.1.0-rc.1 (x86_64-pc-linux-gnu, ..)`.
fn release(version: &str) -> Option<(u32, u32)> {
    let numbers = version.split_whitespace().find_map(|word| {
        let numbers = word.strip_prefix('v')?;
        numbers
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some(numbers)
    })?;
    let mut parts = numbers.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(version: &str) -> Result<&'static str, String> {
        let found = Dialect::of(version);
        found
            .map(|d| d.profile.name)
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn databases_are_told_by_their_own_words() {
        for (version, expected) in [
            (
                "PostgreSQL 17.2 (Debian 17.2-1) on x86_64-pc-linux-gnu",
                "PostgreSQL",
            ),
            (
                "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2 X:nocoverageredesign)",
                "CockroachDB",
            ),
            (
                "CockroachDB OSS v22.1.0-beta.3 (linux amd64)",
                "CockroachDB",
            ),
            ("CockroachDB CCL master-build", "CockroachDB"),
            ("", "PostgreSQL"),
        ] {
            assert_eq!(name(version).as_deref(), Ok(expected), "{version}");
        }
        let old = name("CockroachDB CCL v21.2.17 (x86_64)").unwrap_err();
        assert!(old.contains("v21.2") && old.contains("v22.1"), "{old}");
    }
}
