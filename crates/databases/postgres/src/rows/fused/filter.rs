//! Which rows would fail, asked before they are inserted.

use windrow_database::quote::push_ident;

use super::Text;
use crate::catalog::table::{Condition, Facts, Test};
use crate::rows::statement::push;

impl Text<'_> {
    /// ` WHERE ..`: the conditions whose columns are all given.
    pub(super) fn push_filter(&self, sql: &mut String) {
        push_conditions(sql, self.facts, &|column| {
            let name = &self.facts.columns.get(column)?.name;
            let place = self.shape.columns.iter().position(|n| n == name)?;
            let mut value = String::new();
            self.push_value(&mut value, place);
            Some(value)
        });
    }
}

/// Appends ` WHERE ..`: the conditions whose columns are all given. `value`: the SQL of what is
/// given for a column.
pub(crate) fn push_conditions(
    sql: &mut String,
    facts: &Facts,
    value: &dyn Fn(usize) -> Option<String>,
) {
    let mut joint = " WHERE ";
    for condition in &facts.conditions {
        if let Some(test) = test(facts, condition, value) {
            sql.push_str(joint);
            sql.push_str(&test);
            joint = " AND ";
        }
    }
}

/// What is true for rows that fulfil a condition; `None`: not all of its columns are given.
/// `value`: the SQL of what is given for a column.
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
        Test::Reference(table, names) => push_reference(&mut sql, table, names, &values),
    }
    Some(sql)
}

/// A check is fulfilled by true and by NULL.
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

/// A foreign key is fulfilled by a row, and by a NULL in any of its columns.
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
