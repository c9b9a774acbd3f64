//! Conditions of a table, evaluated on rows before they are inserted.

use windrow_database::quote::push_ident;

use crate::catalog::table::{Condition, Facts, Test};
use crate::statement::of_shape::push;

/// Returns an expression that is true for rows that fulfil a condition; `None` if not all of its
/// columns are given. `value`: the SQL of the value that is given for a column.
pub(crate) fn test(
    facts: &Facts,
    condition: &Condition,
    value: &dyn Fn(usize) -> Option<String>,
) -> Option<String> {
    let columns = condition.columns.iter();
    let values: Vec<String> = columns.map(|c| value(*c)).collect::<Option<_>>()?;
    let mut sql = String::new();
    match &condition.test {
        Test::Check(check) => {
            let columns = condition.columns.iter().copied().zip(&values);
            push_check(&mut sql, facts, check, columns);
        }
        Test::Reference(table, names, _) => push_reference(&mut sql, table, names, &values),
    }
    Some(sql)
}

/// Appends a check, which is fulfilled by true and by NULL.
fn push_check<'v>(
    sql: &mut String,
    facts: &Facts,
    check: &str,
    columns: impl Iterator<Item = (usize, &'v String)>,
) {
    push(
        sql,
        format_args!("(SELECT ({check}) IS NOT FALSE FROM (SELECT "),
    );
    for (number, (place, value)) in columns.enumerate() {
        sql.push_str(if number > 0 { ", " } else { "" });
        sql.push_str(value);
        if let Some(column) = facts.columns.get(place) {
            push(sql, format_args!("::{} AS ", column.type_name));
            push_ident(sql, &column.name);
        }
    }
    sql.push_str(") AS r)");
}

/// Appends a foreign key, which is fulfilled by a row, and by a NULL in any of its columns.
fn push_reference(sql: &mut String, table: &str, names: &[String], values: &[String]) {
    sql.push('(');
    for value in values {
        push(sql, format_args!("{value} IS NULL OR "));
    }
    push(sql, format_args!("EXISTS (SELECT FROM {table} AS r"));
    for (number, (name, value)) in names.iter().zip(values).enumerate() {
        sql.push_str(if number > 0 { " AND r." } else { " WHERE r." });
        push_ident(sql, name);
        push(sql, format_args!(" = {value}"));
    }
    sql.push_str("))");
}
