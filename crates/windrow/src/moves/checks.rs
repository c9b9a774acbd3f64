//! Checks a move's settings against the tables.

use windrow_core::moves::{Destination, Referrer, TableFacts};
use windrow_core::{Fault, FaultClass, MovePlan, Moves, Name, TableName};
use windrow_move::MoveError;

pub(super) async fn described(
    moves: &dyn Moves,
    table: &TableName,
) -> Result<TableFacts, MoveError> {
    match moves.describe(table).await {
        Ok(Some(facts)) => Ok(facts),
        Ok(None) => Err(MoveError::Invalid(
            format!("there is no table {table}").into(),
        )),
        Err(fault) => Err(of_table(table, fault)),
    }
}

/// Returns the columns that identify rows.
pub(super) fn key(
    facts: &TableFacts,
    source: &TableName,
    asked: Option<&[String]>,
) -> Result<Box<[Name]>, MoveError> {
    let Some(asked) = asked else {
        if facts.key.is_empty() {
            return Err(MoveError::Invalid(
                format!(
                    "the table {source} has no primary key: name the columns of a unique index, all NOT NULL, by --key, or give it a primary key"
                )
                .into(),
            ));
        }
        return Ok(facts.key.clone().into());
    };
    let key: Box<[Name]> = asked.iter().map(|name| Name::from(name.as_str())).collect();
    for column in &key {
        has_column(facts, source, column)?;
    }
    if !facts.tells_apart(&key) {
        return Err(MoveError::Invalid(
            format!(
                "--key {} does not tell the rows of {source} apart: it must hold all columns of its primary key, or of a unique index whose columns are NOT NULL",
                asked.join(",")
            )
            .into(),
        ));
    }
    Ok(key)
}

pub(super) fn has_column(
    facts: &TableFacts,
    table: &TableName,
    column: &Name,
) -> Result<(), MoveError> {
    match facts.columns.contains(column) {
        true => Ok(()),
        false => Err(MoveError::Invalid(
            format!("the table {table} has no column {column}").into(),
        )),
    }
}

/// Checks that the rows of a plan fit a table. `create` is true if columns that another database's
/// table lacks are added to it.
///
/// # Errors
/// As [`Destination::new`].
pub(super) fn fits(
    table: &TableName,
    mut facts: TableFacts,
    plan: &MovePlan,
    create: bool,
) -> Result<(), Fault> {
    // Some databases ignore case in names. The others report names that differ in case themselves.
    let names = facts.columns.iter_mut().chain(&mut facts.required);
    for name in names.chain(&mut facts.generated) {
        let mut alike = plan.columns.iter();
        let same = alike.find(|column| column.to_lowercase() == name.to_lowercase());
        if let Some(same) = same.filter(|_| !plan.columns.contains(name)) {
            *name = same.clone();
        }
    }
    match plan.across && create {
        true => facts.filled(table, &plan.columns),
        false => Destination::new(table, &facts, &plan.columns).map(|_| ()),
    }
}

pub(super) fn of_table(table: &TableName, fault: Fault) -> MoveError {
    MoveError::Database {
        place: table.to_string().into(),
        fault,
    }
}

/// Converts a fault of the settings to an error. A fault of the database keeps its code.
pub(super) fn invalid(fault: Fault) -> MoveError {
    match fault.class {
        FaultClass::Invalid => MoveError::Invalid(fault.message),
        _ => MoveError::Database {
            place: "the database".into(),
            fault,
        },
    }
}

/// Returns the condition on rows that are moved: that of the settings, and that no row of another
/// table refers to them.
pub(super) fn passing_over(filter: Option<&str>, referrers: &[Referrer]) -> Option<Box<str>> {
    let free = referrers.iter().map(|r| format!("NOT ({})", r.condition));
    let asked = filter.map(|filter| format!("({filter}\n)"));
    let conditions: Vec<String> = asked.into_iter().chain(free).collect();
    match &*conditions {
        [] => None,
        conditions => Some(conditions.join(" AND ").into()),
    }
}

/// Returns the condition on rows that meet the settings and stay because others refer to them.
/// `None` if there cannot be any.
pub(super) fn referred(filter: Option<&str>, referrers: &[Referrer]) -> Option<Box<str>> {
    let held: Vec<&str> = referrers.iter().map(|r| &*r.condition).collect();
    let asked = filter.map(|filter| format!("({filter}\n) AND "));
    let condition = || format!("{}({})", asked.unwrap_or_default(), held.join(" OR "));
    (!held.is_empty()).then(condition).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_must_tell_rows_apart() {
        let names = |names: &[&str]| names.iter().map(|n| Name::from(*n)).collect::<Vec<_>>();
        let facts = TableFacts {
            columns: names(&["id", "code", "v"]),
            key: names(&["id"]),
            uniques: vec![names(&["id"]), names(&["code"])],
            ..TableFacts::default()
        };
        let table = TableName::bare("t");
        let asked = |columns: &[&str]| {
            let columns: Vec<String> = columns.iter().map(|c| (*c).to_owned()).collect();
            key(&facts, &table, Some(&columns))
        };
        assert_eq!(&*key(&facts, &table, None).unwrap(), names(&["id"]));
        assert_eq!(&*asked(&["v", "code"]).unwrap(), names(&["v", "code"]));
        assert!(asked(&["v"]).is_err());
        assert!(asked(&["w"]).is_err());
        let bare = TableFacts::default();
        assert!(key(&bare, &table, None).is_err());
    }
}
