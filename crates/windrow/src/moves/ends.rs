//! Opens the two databases of a move: the source's and the destination's.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use windrow_bookkeeping::{has_strange_markers, prepare_markers};
use windrow_core::bookkeeping::MARKERS;
use windrow_core::moves::TableFacts;
use windrow_core::{Budget, Database, Fault, Intake, Limits, Moves, Name, TableName};
use windrow_database::Options;
use windrow_lanes::{Lane, LaneMetrics};
use windrow_move::{Elsewhere, MoveError, fingerprint, tag};

use super::checks::{invalid, of_table};
use crate::databases;
use crate::lanes::LANE_CAPACITY;

/// The memory for rows on their way to another database.
const LANE_MEMORY: usize = 128 << 20;

pub(super) async fn source_of(url: &str) -> Result<(Arc<dyn Database>, Arc<dyn Moves>), MoveError> {
    let sink = databases::open_existing(url, &Options::default())
        .await
        .map_err(invalid)?;
    let moves = sink.moves().ok_or_else(|| {
        MoveError::Invalid(
            format!(
                "rows cannot be moved out of {}; it can only be a destination",
                sink.profile().name
            )
            .into(),
        )
    })?;
    Ok((sink, moves))
}

/// Returns the destination's database, if it is not the source's.
pub(super) async fn destination_of(
    url: &str,
    from: &dyn Moves,
    create: bool,
    routed: bool,
) -> Result<Option<Arc<dyn Database>>, MoveError> {
    let options = Options {
        create_tables: create,
        extend_tables: create,
        exact_names: routed,
        ..Options::default()
    };
    let sink = databases::open(url, &options).await.map_err(invalid)?;
    let away = |fault| MoveError::Database {
        place: "the destination".into(),
        fault,
    };
    // The database's product is known only after a ping.
    sink.ping().await.map_err(away)?;
    let Some(moves) = sink.moves() else {
        return Ok(Some(sink));
    };
    let (there, here) = (moves.place().await.map_err(away)?, from.place().await);
    let here = here.map_err(|fault| MoveError::Database {
        place: "the source".into(),
        fault,
    })?;
    Ok((there != here).then_some(sink))
}

/// Returns the lane to the destination.
pub(super) fn elsewhere(
    sink: &Arc<dyn Database>,
    facts: &TableFacts,
    url: &str,
) -> (Elsewhere, Lane) {
    let (intake, lane) = lane_to(sink);
    let profile = sink.profile();
    let relocation = fingerprint(&facts.identity);
    let elsewhere = Elsewhere {
        intake,
        transactional: profile.transactional,
        described: sink.moves(),
        gives: facts.takes.clone(),
        document_key: document_key(&**sink),
        batches: batches(profile.name, url, &relocation),
        relocation,
        tag: tag(facts.naming()),
    };
    (elsewhere, lane)
}

/// Returns the prefix for the names of a move's batches. Other moves out of the same database note
/// theirs in the same table, even those to the same destination.
fn batches(database: &str, url: &str, relocation: &str) -> Box<str> {
    let destination = fingerprint(&format!("{database} {}", without_user(url)));
    let first = |name: &str| name.get(..16).unwrap_or(name).to_owned();
    format!("{}{}.", first(&destination), first(relocation)).into()
}

/// Returns the column that identifies every row of such a database, if there is one.
fn document_key(sink: &dyn Database) -> Option<Name> {
    (sink.profile().name == "ArangoDB").then(|| Name::from("_key"))
}

/// Checks that the source's columns do not conflict with the attributes that the destination's
/// documents have of their own.
pub(super) fn check_documents(sink: &dyn Database, facts: &TableFacts) -> Result<(), MoveError> {
    let Some(key) = document_key(sink) else {
        return Ok(());
    };
    let database = sink.profile().name;
    let owned = facts
        .plain()
        .find(|name| matches!(&***name, "_id" | "_rev"));
    if let Some(owned) = owned {
        let message = format!(
            "{database} gives every document a {owned} of its own, so the source's column of that name cannot be brought along; rename it"
        );
        return Err(MoveError::Invalid(message.into()));
    }
    let given = facts.plain().any(|name| *name == key);
    if given && !facts.tells_apart(std::slice::from_ref(&key)) {
        let message = format!(
            "documents of {database} are identified by {key}, and the source's column of that name does not identify its rows: make it \
             NOT NULL and unique, or rename it"
        );
        return Err(MoveError::Invalid(message.into()));
    }
    Ok(())
}

/// Returns a URL without user and password.
fn without_user(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => format!(
            "{}:{}{}",
            url.host_str().unwrap_or_default(),
            url.port().map(|port| port.to_string()).unwrap_or_default(),
            url.path()
        ),
        Err(_) => String::new(),
    }
}

/// Returns true if one database reads without loss what the other writes.
pub(super) fn alike(from: &dyn Database, to: &dyn Database) -> bool {
    let family = |sink: &dyn Database| match sink.profile().name {
        "CockroachDB" => "PostgreSQL",
        name => name,
    };
    family(from) == family(to)
}

/// Prepares the table of markers. Refuses to continue if an earlier move wrote rows under other
/// names than they would have now, because they would be written again.
pub(super) async fn prepare_destination(
    sink: &dyn Database,
    elsewhere: &Elsewhere,
    source: &TableName,
) -> Result<(), MoveError> {
    let of_markers = |fault| of_table(&TableName::bare(MARKERS), fault);
    let tables = sink.bookkeeping();
    let tables = tables.ok_or_else(|| of_markers(Fault::internal("it keeps no tables")))?;
    prepare_markers(&*tables).await.map_err(of_markers)?;
    let (relocation, tag) = (&*elsewhere.relocation, &*elsewhere.tag);
    let strange = has_strange_markers(&*tables, relocation, tag).await;
    match strange.map_err(of_markers)? {
        false => Ok(()),
        true => Err(MoveError::Invalid(
            format!(
                "an earlier move of {source} was ended half-way, and {MARKERS} of the destination names rows that it wrote by other columns than \
                 those that name them now: the primary key or the unique indexes of {source} have changed since, or the move was of an earlier \
                 version. Rows could be written twice. Give the table the keys that it had and move again, or take the rows out of {source} \
                 that have been written, and delete from {MARKERS} WHERE move = '{relocation}'"
            )
            .into(),
        )),
    }
}

fn lane_to(sink: &Arc<dyn Database>) -> (Intake, Lane) {
    let (intake, arrivals) = Intake::channel(Budget::new(LANE_MEMORY), LANE_CAPACITY);
    let metrics = LaneMetrics::register(&mut Registry::default());
    let limits = Limits::default();
    let lane = Lane::start(sink.clone(), limits, arrivals, metrics, "move".into());
    (intake, lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_in_no_name() {
        assert_eq!(without_user("postgres://a:secret@h:1/d"), "h:1/d");
    }

    #[test]
    fn moves_of_two_tables_to_one_destination_name_their_batches_apart() {
        let (url, other) = ("mysql://a:secret@h/d", "mysql://b@h/d");
        let (one, two) = (fingerprint("orders"), fingerprint("payments"));
        let name = batches("MySQL", url, &one);
        assert!(!name.starts_with(&*batches("MySQL", url, &two)));
        assert_eq!(name, batches("MySQL", other, &one));
        // The table of the batches takes names of 128 characters, also those of claims.
        assert!(name.len() < 50, "{name}");
    }
}
