//! Creates tables and columns for the rows that name them.
//!
//! CrateDB cannot change the type of a column, so nothing is ever widened: the first rows decide,
//! and a later value that does not fit has its own error.

use windrow_core::{Name, Shape, TableName, Value};
use windrow_database::infer::{Kind, SeenColumn, SeenColumns};
use windrow_database::new_table::NewTable;
use windrow_database::quote::{push_ident, push_table};

use super::table::Facts;

/// The columns that the rows of a batch need in one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    seen_columns: SeenColumns,
    /// The columns with array values.
    arrays: Vec<Name>,
    pub(crate) new: NewTable,
}

impl Demand {
    /// Notes the values of one write.
    pub(crate) fn see(&mut self, shape: &Shape, row: &[Value]) {
        self.seen_columns.see(&shape.columns, row);
        for (name, value) in shape.columns.iter().zip(row) {
            let array = matches!(value, Value::Json(json) if !json.trim_start().starts_with('{'));
            if array && !self.arrays.contains(name) {
                self.arrays.push(name.clone());
            }
        }
        self.new.see(shape, row);
    }

    /// Returns the type of a new column; `None` while all of its values were NULL.
    fn type_of(&self, seen_column: &SeenColumn) -> Option<&'static str> {
        Some(match seen_column.kind? {
            Kind::Bool => "BOOLEAN",
            Kind::Int => "BIGINT",
            Kind::Number if seen_column.double => "DOUBLE PRECISION",
            // This type accepts any object, so that the fields of one row do not decide about those
            // of the next.
            Kind::Json if !self.arrays.contains(&seen_column.name) => "OBJECT(IGNORED)",
            Kind::Number | Kind::Json | Kind::Text | Kind::Bytes | Kind::Own(_) => "TEXT",
        })
    }
}

/// Returns the DDL that the rows need. Replicas, shards and everything else are the cluster's
/// defaults.
pub(crate) fn statements(name: &TableName, facts: Option<&Facts>, demand: &Demand) -> Vec<String> {
    let typed = |seen_column| Some((seen_column, demand.type_of(seen_column)?));
    let columns: Vec<_> = demand
        .seen_columns
        .columns()
        .iter()
        .filter_map(typed)
        .collect();
    let mut table = String::new();
    push_table(&mut table, name);
    let Some(facts) = facts else {
        let makes = demand.new.is_wanted() && !columns.is_empty();
        return makes
            .then(|| creation(&table, &columns, demand))
            .into_iter()
            .collect();
    };
    let missing = columns
        .iter()
        .filter(|(seen_column, _)| facts.column(&seen_column.name).is_none());
    let addition = |(seen_column, type_name): &(&SeenColumn, &str)| {
        let mut sql = format!("ALTER TABLE {table} ADD COLUMN ");
        push_ident(&mut sql, &seen_column.name);
        sql.push(' ');
        sql.push_str(type_name);
        sql
    };
    missing.map(addition).collect()
}

fn creation(table: &str, columns: &[(&SeenColumn, &'static str)], demand: &Demand) -> String {
    let mut sql = format!("CREATE TABLE IF NOT EXISTS {table} (");
    for (place, (seen_column, type_name)) in columns.iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { "" });
        push_ident(&mut sql, &seen_column.name);
        sql.push(' ');
        sql.push_str(type_name);
    }
    let moment = "TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP";
    demand.new.push_end(&mut sql, &demand.seen_columns, moment);
    sql
}

#[cfg(test)]
mod tests {
    use windrow_core::shape::ShapeParts;

    use windrow_core::{Key, OnConflict, Op, Returning};

    use super::*;

    fn shape(columns: &[&str], key: Key) -> Shape {
        Shape::new(ShapeParts {
            op: Op::Insert,
            table: TableName::bare("t"),
            columns: columns.iter().map(|c| Name::from(*c)).collect(),
            key,
            on_conflict: OnConflict::Update,
            returning: Returning::Nothing,
        })
    }

    #[test]
    fn a_table_is_made_of_what_was_seen() {
        let mut demand = Demand::default();
        let columns = ["id", "f", "d", "o", "a", "later"];
        let row = |d: &str| {
            [
                7.into(),
                Value::Number("1.5".into()),
                Value::Number(d.into()),
                Value::Json("{}".into()),
                Value::Json("[]".into()),
                Value::Null,
            ]
        };
        demand.see(&shape(&columns, Key::Primary), &row("1"));
        demand.see(
            &shape(&columns, Key::Primary),
            &row("0.12345678901234567890123"),
        );
        let made = statements(&TableName::bare("t"), None, &demand);
        assert_eq!(
            made,
            [
                r#"CREATE TABLE IF NOT EXISTS "t" ("id" BIGINT, "f" DOUBLE PRECISION, "d" TEXT, "o" OBJECT(IGNORED), "a" TEXT, PRIMARY KEY ("id"))"#
            ]
        );
    }
}
