//! Side effects of deleting rows of a table, and foreign keys that keep its rows from being
//! deleted.

use mysql_async::Row;
use windrow_core::TableName;
use windrow_core::moves::{Referrer, TableFacts};
use windrow_database::quote::backtick::{push_ident, push_table};

use crate::catalog::information::about;
use crate::fault::{Scope, Trouble};
use crate::session::Session;
use crate::values::cell::get;
use crate::values::literal::push_text;

/// Returns the other changes that deleting rows of the table causes, as far as the user may see
/// them.
pub(super) async fn read(
    session: &mut Session,
    name: &TableName,
) -> Result<Vec<Box<str>>, Trouble> {
    let more = " AND EVENT_MANIPULATION = 'DELETE' ORDER BY TRIGGER_NAME";
    let triggers = about("TRIGGERS", "TRIGGER_NAME", "EVENT_OBJECT", name, more);
    let more = " AND DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') ORDER BY TABLE_NAME, CONSTRAINT_NAME";
    let what = "CONCAT(CONSTRAINT_SCHEMA, '.', TABLE_NAME), CONSTRAINT_NAME, DELETE_RULE";
    let keys = about("REFERENTIAL_CONSTRAINTS", what, "REFERENCED", name, more);
    let mut effects = Vec::new();
    for row in session.rows(&keys).await? {
        let word = |place| get::<String>(&row, place).unwrap_or_default();
        effects.push(TableFacts::effect_of_key(&word(0), &word(1), &word(2)));
    }
    for row in session.rows(&triggers).await? {
        let trigger = get::<String>(&row, 0).unwrap_or_default();
        effects.push(TableFacts::effect_of_trigger(&name.to_string(), &trigger));
    }
    Ok(effects)
}

/// Returns the foreign keys of other tables that keep rows of the table from being deleted while
/// others refer to them, as far as the user may read those tables.
pub(super) async fn referrers(
    session: &mut Session,
    name: &TableName,
) -> Result<Vec<Referrer>, Trouble> {
    let more = " AND DELETE_RULE IN ('RESTRICT', 'NO ACTION') \
        AND (CONSTRAINT_SCHEMA <> UNIQUE_CONSTRAINT_SCHEMA OR TABLE_NAME <> REFERENCED_TABLE_NAME) ORDER BY 1, 2, 3";
    let what = "CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME";
    let keys = about("REFERENTIAL_CONSTRAINTS", what, "REFERENCED", name, more);
    let mut referrers = Vec::new();
    for key in session.rows(&keys).await? {
        let word = |place| get::<String>(&key, place).unwrap_or_default();
        let mut child = TableName::bare(word(1));
        child.schema = Some(word(0).into());
        let mut more = " AND CONSTRAINT_NAME = ".to_owned();
        push_text(&mut more, &word(2));
        more.push_str(" AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY ORDINAL_POSITION");
        let what = "COLUMN_NAME, REFERENCED_COLUMN_NAME";
        let columns = about("KEY_COLUMN_USAGE", what, "TABLE", &child, &more);
        let condition = referred(name, &child, &session.rows(&columns).await?);
        let mut look = "SELECT 1 FROM ".to_owned();
        push_table(&mut look, &child);
        look.push_str(" WHERE FALSE");
        match session.say(&look).await {
            Ok(_) => referrers.push(Referrer::new(&child.to_string(), &word(2), condition)),
            Err(Trouble::Refused(refusal)) if refusal.scope == Scope::Statement => {}
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(referrers)
}

/// Returns the condition that a row of `child` refers to a row of a table. `columns` are those of
/// the child and those that they refer to.
fn referred(table: &TableName, child: &TableName, columns: &[Row]) -> String {
    let mut sql = "EXISTS (SELECT 1 FROM ".to_owned();
    push_table(&mut sql, child);
    sql.push_str(" AS windrow_child WHERE ");
    for (place, row) in columns.iter().enumerate() {
        let word = |place| get::<String>(row, place).unwrap_or_default();
        sql.push_str(if place > 0 { " AND " } else { "" });
        sql.push_str("windrow_child.");
        push_ident(&mut sql, &word(0));
        sql.push_str(" = ");
        push_ident(&mut sql, &table.table);
        sql.push('.');
        push_ident(&mut sql, &word(1));
    }
    sql.push(')');
    sql
}
