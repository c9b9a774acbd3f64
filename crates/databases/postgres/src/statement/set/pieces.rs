//! The pieces that all forms are made of.

use windrow_calls::{Expression, Piece};
use windrow_database::quote::{push_ident, push_table};
use windrow_proof::{Clock, clock};

use super::{SetBuilder, W, comma};
use crate::moment::MOMENT;
use crate::statement::of_shape::{is_upsert, push};

impl SetBuilder<'_> {
    pub(super) fn push_conflict(&self, sql: &mut String) {
        let Some(conflict) = &self.parsed.conflict else {
            return;
        };
        if is_upsert(self.parsed, self.facts) {
            return;
        }
        sql.push(' ');
        match &self.clock.excluded {
            Some(name) => {
                let mut moment = String::from("excluded.");
                push_ident(&mut moment, name);
                self.push_over(sql, &conflict.sql, &moment);
            }
            // The source is not to be named here.
            None => self.push_over(sql, &conflict.sql, "pg_catalog.transaction_timestamp()"),
        }
    }

    /// Appends RETURNING with the names that it gives both versions of a row.
    pub(super) fn push_word_returning(&self, sql: &mut String) {
        sql.push_str(" RETURNING ");
        if let Some(names) = &self.parsed.returning_names {
            push(sql, format_args!("{names} "));
        }
    }

    /// The table as the statement names it: its expressions may name it by that.
    pub(super) fn push_table(&self, sql: &mut String) {
        push_table(sql, &self.parsed.table);
        if let Some(alias) = &self.parsed.alias {
            sql.push_str(" AS ");
            push_ident(sql, alias);
        }
    }

    /// The name that columns of the table are qualified with.
    pub(super) fn push_target(&self, sql: &mut String) {
        push_ident(
            sql,
            self.parsed
                .alias
                .as_ref()
                .unwrap_or(&self.parsed.table.table),
        );
    }

    pub(super) fn push_expression(&self, sql: &mut String, expression: &Expression) {
        self.push_over(sql, expression, MOMENT);
    }

    /// An expression over a moment in place of the transaction's clock.
    fn push_over(&self, sql: &mut String, expression: &Expression, moment: &str) {
        match expression {
            Expression::Default => sql.push_str("DEFAULT"),
            Expression::Sql(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => push_clocked(sql, text, moment),
                        Piece::Parameter(place) => self.push_parameter(sql, usize::from(*place)),
                    }
                }
            }
        }
    }

    pub(super) fn push_parameter(&self, sql: &mut String, place: usize) {
        let parameter = self.parameters.get(place);
        let cast = parameter.and_then(|parameter| parameter.cast.as_ref());
        match cast {
            Some(cast) => push(sql, format_args!("({W}.\"windrow {}\"::{cast})", place + 1)),
            None => push(sql, format_args!("{W}.\"windrow {}\"", place + 1)),
        }
    }

    /// Appends the rows of the writes: an array a column. `numbered`: with the place of each row.
    pub(super) fn push_source(&self, sql: &mut String, numbered: bool) {
        if numbered && self.facts.dialect.subscripts {
            return self.push_subscripts(sql);
        }
        sql.push_str("unnest(");
        for number in 0..self.parameters.len() {
            push(sql, format_args!("{}${}", comma(number), number + 1));
        }
        self.push_distances(sql, "", "");
        sql.push_str(if numbered { ") WITH ORDINALITY" } else { ")" });
        self.push_names(sql, numbered);
    }

    /// The parameter of the rows' distances, behind all others.
    fn push_distances(&self, sql: &mut String, before: &str, behind: &str) {
        if self.clock.is_carried {
            let number = self.parameters.len();
            push(
                sql,
                format_args!("{}{before}${}{behind}", comma(number), number + 1),
            );
        }
    }

    /// The same, but the planner does not see how long the arrays are: for a long one it would read
    /// a whole table in place of looking rows up in the index.
    pub(super) fn push_hidden_source(&self, sql: &mut String) {
        if self.facts.dialect.subscripts {
            return self.push_subscripts(sql);
        }
        sql.push_str("unnest(");
        for number in 0..self.parameters.len() {
            push(
                sql,
                format_args!("{}(SELECT ${})", comma(number), number + 1),
            );
        }
        self.push_distances(sql, "(SELECT ", ")");
        sql.push_str(") WITH ORDINALITY");
        self.push_names(sql, true);
    }

    /// Appends `ROWS FROM (unnest($1), .., generate_subscripts($1, 1))`: the columns of one row of
    /// such a source have the same place, by definition.
    fn push_subscripts(&self, sql: &mut String) {
        sql.push_str("ROWS FROM (");
        for number in 1..=self.parameters.len() {
            push(sql, format_args!("unnest(${number}), "));
        }
        sql.push_str("generate_subscripts($1, 1))");
        self.push_names(sql, true);
    }

    fn push_names(&self, sql: &mut String, numbered: bool) {
        push(sql, format_args!(" AS {W}("));
        for number in 0..self.parameters.len() {
            push(
                sql,
                format_args!("{}\"windrow {}\"", comma(number), number + 1),
            );
        }
        if self.clock.is_carried {
            push(
                sql,
                format_args!("{}\"windrow at\"", comma(self.parameters.len())),
            );
        }
        sql.push_str(if numbered { ", \"windrow ord\")" } else { ")" });
    }
}

/// Appends SQL over a moment in place of the transaction's clock.
pub(super) fn push_clocked(sql: &mut String, text: &str, moment: &str) {
    match clock(text, moment) {
        Clock::Read { sql: over, .. } => sql.push_str(&over),
        Clock::Unread | Clock::Unclear => sql.push_str(text),
    }
}
