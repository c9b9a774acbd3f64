//! The SQL of a plan's statements.

use windrow_database::quote::{push_ident, push_table};

use super::columns::{Origin, RowColumn, moment};
use crate::calls::given_values::MAX_INDEXED;
use crate::catalog::column::{Column, Kind};
use crate::catalog::table::{Facts, Test};
use crate::statement::of_shape::push;

/// A prefix of names that no column of a table may have.
pub(super) const OURS: &str = "windrow ";

/// Maximum number of arguments of one call of a function.
const MAX_ARGUMENTS: usize = 64;

/// A plan's columns, ready to be written as SQL.
pub(super) struct PreviewTexts<'a> {
    pub(super) facts: &'a Facts,
    pub(super) columns: &'a [RowColumn<'a>],
    /// The columns of RETURNING.
    pub(super) returned: &'a [&'a Column],
    /// The number of parameters of the INSERT.
    pub(super) parameters: usize,
}

impl PreviewTexts<'_> {
    /// Returns the question. Each expression is evaluated once: OFFSET keeps the planner from
    /// moving it.
    pub(super) fn question(&self) -> String {
        let mut sql = String::from("SELECT ");
        for column in self.returned {
            push_column(&mut sql, column);
            sql.push_str(", ");
        }
        for column in self.columns.iter().filter(|c| c.is_computed()) {
            push_column(&mut sql, column.column);
            sql.push_str(", ");
        }
        self.push_condition(&mut sql);
        push(
            &mut sql,
            format_args!(", {} FROM (", moment(self.parameters)),
        );
        self.push_padded(&mut sql);
        sql.push_str(") AS r");
        sql
    }

    /// Returns true if a column of future rows is the time of the transaction.
    pub(super) fn has_time(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|c| c.is_stored && c.is_time(self.parameters))
    }

    /// Returns the statement that computes the columns of future rows.
    pub(super) fn ahead(&self) -> String {
        // The number of rows is its first parameter, and the time its second one.
        let (own, time) = (moment(self.parameters), moment(1));
        let computed = || self.columns.iter().filter(|c| c.is_computed());
        let mut sql = String::from("SELECT");
        for (number, column) in computed().chain(computed()).enumerate() {
            sql.push_str(if number > 0 { ", " } else { " " });
            push_column(&mut sql, column.column);
        }
        if self.has_time() {
            sql.push_str(", true");
            let not_null = computed().map(|c| c.column).filter(|c| c.not_null);
            push_counts(&mut sql, not_null, "= 0");
            push(&mut sql, format_args!(", {time}"));
        }
        sql.push_str(" FROM (SELECT");
        for (number, column) in computed().enumerate() {
            sql.push_str(if number > 0 { ", " } else { " " });
            let mut value = String::new();
            push_value(&mut value, column, &column.type_name);
            sql.push_str(&value.replace(&own, &time));
        }
        sql.push_str(" FROM pg_catalog.generate_series(1, $1) OFFSET 0) AS r");
        sql
    }

    /// Returns the statement that stores a row, and its OVERRIDING clause.
    pub(super) fn write(&self) -> (String, Option<&'static str>) {
        let stored = || self.columns.iter().filter(|c| c.is_stored);
        let mut sql = String::from("INSERT INTO ");
        push_table(&mut sql, &self.facts.name);
        sql.push_str(" (");
        for (number, column) in stored().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            push_ident(&mut sql, &column.column.name);
        }
        sql.push(')');
        let overriding = stored().any(|column| column.column.always_generated);
        let overriding = overriding.then_some("OVERRIDING SYSTEM VALUE");
        if let Some(clause) = overriding {
            push(&mut sql, format_args!(" {clause}"));
        }
        sql.push_str(" VALUES (");
        for (number, _) in stored().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            push(&mut sql, format_args!("${}", number + 1));
        }
        sql.push(')');
        (sql, overriding)
    }

    /// Returns the statement that stores a row, and gives back true if the row is the one that was
    /// answered: a trigger, or another type of a column, may change values. Columns that the role
    /// may not read are not compared.
    pub(super) fn verified(&self, write: &str) -> String {
        let stored = self.columns.iter().filter(|c| c.is_stored).enumerate();
        let (mut names, mut values) = (String::new(), String::new());
        for (number, column) in stored.filter(|(_, c)| c.column.may_read) {
            let joint = if names.is_empty() { "" } else { ", " };
            names.push_str(joint);
            push_ident(&mut names, &column.column.name);
            let (place, type_name) = (number + 1, &column.type_name);
            push(&mut values, format_args!("{joint}${place}::{type_name}"));
        }
        format!(
            "{write} RETURNING ROW({names})::pg_catalog.text OPERATOR(pg_catalog.=) ROW({values})::pg_catalog.text"
        )
    }

    /// Appends the row's columns with their lengths: a cast pads a `char(n)`.
    fn push_padded(&self, sql: &mut String) {
        let is_padded = |column: &&RowColumn<'_>| {
            column.column.kind == Kind::Char && column.column.longest().is_some()
        };
        if !self.columns.iter().any(|column| is_padded(&column)) {
            return self.push_row(sql);
        }
        sql.push_str("SELECT ");
        for (number, column) in self.columns.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            push_column(sql, column.column);
            if is_padded(&column) {
                push(sql, format_args!("::{} AS ", column.type_name));
                push_ident(sql, &column.column.name);
            }
        }
        for (number, _) in self.lengths().enumerate() {
            push(sql, format_args!(", r.\"{OURS}{number}\""));
        }
        sql.push_str(" FROM (");
        self.push_row(sql);
        sql.push_str(") AS r");
    }

    /// Appends the row: each column as an expression that is evaluated once.
    fn push_row(&self, sql: &mut String) {
        let lengths = self.lengths().count() > 0;
        if lengths {
            sql.push_str("SELECT r.*");
            for (number, (column, longest)) in self.lengths().enumerate() {
                sql.push_str(", (pg_catalog.char_length(");
                push_column(sql, column);
                push(
                    sql,
                    format_args!(") > {longest}) IS NOT TRUE AS \"{OURS}{number}\""),
                );
            }
            sql.push_str(" FROM (");
        }
        sql.push_str("SELECT");
        for (number, column) in self.columns.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { " " });
            // A length would cut a text that the server refuses.
            let whole = column.column.longest().and(column.column.cast.as_deref());
            push_value(sql, column, whole.unwrap_or(&column.type_name));
        }
        sql.push_str(" OFFSET 0");
        if lengths {
            sql.push_str(") AS r");
        }
    }

    /// Returns the columns with a limit on their length, and the limit.
    fn lengths(&self) -> impl Iterator<Item = (&Column, usize)> {
        let columns = self.columns.iter().map(|column| column.column);
        columns.filter_map(|column| Some((column, column.longest()?)))
    }

    /// Appends the condition under which the server stores the row.
    fn push_condition(&self, sql: &mut String) {
        sql.push_str("true");
        let columns: Vec<&RowColumn<'_>> = self.columns.iter().collect();
        // An expression without a use is not evaluated, and does not fail.
        push_counts(sql, columns.iter().map(|c| c.column), ">= 0");
        let not_null = columns.iter().map(|c| c.column).filter(|c| c.not_null);
        push_counts(sql, not_null, "= 0");
        for (number, _) in self.lengths().enumerate() {
            push(sql, format_args!(" AND r.\"{OURS}{number}\""));
        }
        let checks = self.facts.conditions.iter();
        for check in checks.filter_map(|condition| match &condition.test {
            Test::Check(check) => Some(check),
            Test::Reference(..) => None,
        }) {
            push(sql, format_args!(" AND ({check}) IS NOT FALSE"));
        }
        self.push_sizes(sql);
    }

    /// Appends the condition that the row's index entries are not too large.
    fn push_sizes(&self, sql: &mut String) {
        let is_long = |column: &&RowColumn<'_>| {
            self.facts.indexed.contains(&column.place) && !column.column.kind.has_fixed_size()
        };
        let mut joint = " AND ";
        for column in self.columns.iter().filter(is_long) {
            push(
                sql,
                format_args!("{joint}coalesce(pg_catalog.pg_column_size("),
            );
            push_column(sql, column.column);
            sql.push_str("), 0)");
            joint = " + ";
        }
        if joint == " + " {
            push(sql, format_args!(" <= {MAX_INDEXED}"));
        }
    }
}

fn push_counts<'c>(sql: &mut String, columns: impl Iterator<Item = &'c Column>, demand: &str) {
    let columns: Vec<&Column> = columns.collect();
    for part in columns.chunks(MAX_ARGUMENTS) {
        sql.push_str(" AND pg_catalog.num_nulls(");
        for (number, column) in part.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            push_column(sql, column);
        }
        push(sql, format_args!(") {demand}"));
    }
}

fn push_column(sql: &mut String, column: &Column) {
    sql.push_str("r.");
    push_ident(sql, &column.name);
}

/// Appends the value of a column as this type, under the column's name.
fn push_value(sql: &mut String, column: &RowColumn<'_>, type_name: &str) {
    match &column.origin {
        Origin::Parameter(place) => push(sql, format_args!("${}", place + 1)),
        Origin::Expression(value) | Origin::Default(value) => push(sql, format_args!("({value})")),
        Origin::Null => sql.push_str("NULL"),
    }
    push(sql, format_args!("::{type_name}"));
    // A check compares by the collation of the column.
    if let Some(collation) = &column.column.collation {
        push(sql, format_args!(" COLLATE {collation}"));
    }
    sql.push_str(" AS ");
    push_ident(sql, &column.column.name);
}
