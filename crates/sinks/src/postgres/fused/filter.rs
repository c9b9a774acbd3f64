//! Which rows would fail, asked before they are inserted.

use super::Text;
use crate::postgres::statement::push;
use crate::postgres::table::Test;
use crate::sql::quote::push_ident;

impl Text<'_> {
    /// ` WHERE ..`: the conditions whose columns are all given.
    pub(super) fn push_filter(&self, sql: &mut String) {
        let mut joint = " WHERE ";
        for condition in &self.facts.conditions {
            let places: Option<Vec<usize>> =
                condition.columns.iter().map(|c| self.given(*c)).collect();
            if let Some(places) = places {
                sql.push_str(joint);
                joint = " AND ";
                match &condition.test {
                    Test::Check(check) => self.push_check(sql, check, &places),
                    Test::Reference(table, names) => {
                        self.push_reference(sql, table, names, &places);
                    }
                }
            }
        }
    }

    /// Where in the row the value of a column is given.
    fn given(&self, column: usize) -> Option<usize> {
        let name = &self.facts.columns.get(column)?.name;
        self.shape.columns.iter().position(|n| n == name)
    }

    /// A check is fulfilled by true and by NULL.
    fn push_check(&self, sql: &mut String, check: &str, places: &[usize]) {
        push(
            sql,
            format_args!("(SELECT ({check}) IS NOT FALSE FROM (SELECT "),
        );
        for (number, place) in places.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            push(sql, format_args!("w.p{}", place + 1));
            if let Some(column) = self.row.get(*place) {
                push(sql, format_args!("::{} AS ", column.type_name));
                push_ident(sql, &column.name);
            }
        }
        sql.push_str(") AS r)");
    }

    /// A foreign key is fulfilled by a row, and by a NULL in any of its columns.
    fn push_reference(&self, sql: &mut String, table: &str, names: &[String], places: &[usize]) {
        sql.push('(');
        for place in places {
            self.push_value(sql, *place);
            sql.push_str(" IS NULL OR ");
        }
        push(sql, format_args!("EXISTS (SELECT FROM {table} AS r"));
        for (number, (name, place)) in names.iter().zip(places).enumerate() {
            sql.push_str(if number > 0 { " AND r." } else { " WHERE r." });
            push_ident(sql, name);
            sql.push_str(" = ");
            self.push_value(sql, *place);
        }
        sql.push_str("))");
    }
}
