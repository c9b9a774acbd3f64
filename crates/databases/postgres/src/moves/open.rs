//! Looks destinations up, and creates them like the source.

use windrow_core::moves::Destination;
use windrow_core::{Fault, FaultClass, Name, TableName};
use windrow_database::quote::push_ident;
use windrow_pgwire::wire::Wire;

use super::facts;
use super::facts::quoted;
use super::text::Texts;
use crate::own_tables::MAKING;
use crate::talk::{Ask, talk, text};

/// Selects columns whose default is taken from a sequence, which the source must not share.
const COUNTED: &str = "\
SELECT a.attname FROM pg_attrdef d
JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
WHERE d.adrelid = to_regclass($1) AND a.attgenerated = '' AND EXISTS (
  SELECT FROM pg_depend p JOIN pg_class c ON c.oid = p.refobjid AND c.relkind = 'S'
  WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass)";

/// Selects the foreign keys of a table to others, which LIKE leaves out.
const REFERENCES: &str = "\
SELECT c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c
WHERE c.conrelid = to_regclass($1) AND c.contype = 'f' AND c.confrelid <> c.conrelid AND c.conparentid = 0
ORDER BY c.conname";

/// Looks up a destination, creates it if wanted, and asks the server whether rows can be written
/// there.
pub(super) async fn open(
    wire: &mut Wire,
    texts: &Texts,
    source: (&TableName, &str, &[Name]),
    table: &TableName,
    create: bool,
) -> Result<Destination, Fault> {
    let (source, oid, columns) = source;
    let found = match facts::read(wire, table).await? {
        None if create => {
            make(wire, source, table).await?;
            facts::read(wire, table).await?
        }
        found => found,
    };
    let Some(found) = found else {
        return Err(Fault::new(
            FaultClass::NoTable,
            "42P01",
            format!("there is no table {table}; --create makes destinations like the source"),
        )
        .with_table(Some(&*table.table)));
    };
    if found.oid == oid {
        return Err(Fault::invalid(format!(
            "the destination {table} is the source itself"
        )));
    }
    let destination = Destination::new(table, &found.table, columns)?;
    talk(
        wire,
        &[Ask::of(texts.trial(&destination))],
        false,
        &mut |_, _| {},
    )
    .await?;
    Ok(destination)
}

/// Creates a table like another: columns, defaults, checks, indexes, foreign keys, but no
/// sequences.
async fn make(wire: &mut Wire, source: &TableName, table: &TableName) -> Result<(), Fault> {
    let (from, to) = (quoted(source), quoted(table));
    let asks = [
        Ask::of(MAKING),
        Ask::of(format!(
            "CREATE TABLE IF NOT EXISTS {to} (LIKE {from} INCLUDING ALL EXCLUDING IDENTITY)"
        )),
        Ask::of(COUNTED).text(&to),
        Ask::of(REFERENCES).text(&from),
        // Another session may have created the table during the wait for the lock.
        Ask::of(REFERENCES).text(&to),
    ];
    let (mut more, mut has) = (Vec::new(), Vec::new());
    talk(wire, &asks, false, &mut |at, row| {
        let word = |place| text(&row, place).unwrap_or_default();
        let mut name = String::new();
        push_ident(&mut name, &word(0));
        match at {
            2 => more.push(format!("ALTER TABLE {to} ALTER COLUMN {name} DROP DEFAULT")),
            3 => more.push(format!(
                "ALTER TABLE {to} ADD CONSTRAINT {name} {}",
                word(1)
            )),
            4 => has.push(word(0)),
            _ => {}
        }
    })
    .await?;
    if !has.is_empty() {
        return Ok(());
    }
    let more: Vec<Ask> = more.into_iter().map(Ask::of).collect();
    talk(wire, &more, false, &mut |_, _| {}).await?;
    tracing::info!(%table, "created like the source");
    Ok(())
}
