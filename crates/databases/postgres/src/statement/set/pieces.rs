//! The pieces of all forms of a set-based statement, and the key by which an inserted row is
//! matched to its source.

use windrow_core::{Expression, Piece};
use windrow_database::quote::{push_ident, push_table};
use windrow_proof::{Clock, clock};

use super::filter::test;
use super::{KeyPart, Match, Matched, SetBuilder, W, comma};
use crate::catalog::column::Column;
use crate::catalog::table::Unique;
use crate::moment::MOMENT;
use crate::statement::defaults::takes;
use crate::statement::of_shape::{is_upsert, push};
use crate::statement::parsed::{bare, given};

impl<'a> SetBuilder<'a> {
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
            // An expression must not name the source here.
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

    /// Appends the table as the statement names it, because the statement's expressions may use
    /// that name.
    pub(super) fn push_table(&self, sql: &mut String) {
        push_table(sql, &self.parsed.table);
        if let Some(alias) = &self.parsed.alias {
            sql.push_str(" AS ");
            push_ident(sql, alias);
        }
    }

    /// Appends the name that columns of the table are qualified with.
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

    /// Appends an expression over a moment in place of the transaction's clock.
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

    /// Appends the rows of the writes: an array for each column. `numbered`: with the position of
    /// each row.
    pub(super) fn push_source(&self, sql: &mut String, numbered: bool) {
        match (self.facts.dialect.subscripts, numbered) {
            (true, true) => return self.push_subscripts(sql),
            (false, false) => return self.push_selected(sql),
            _ => sql.push_str("unnest("),
        }
        for number in 0..self.parameters.len() {
            push(sql, format_args!("{}${}", comma(number), number + 1));
        }
        self.push_distances(sql, "", "");
        sql.push_str(if numbered { ") WITH ORDINALITY" } else { ")" });
        self.push_names(sql, numbered);
    }

    /// Appends `(SELECT unnest($1), unnest($2), ..)`, which PostgreSQL reads row by row. It first
    /// stores all rows of each function in FROM: an eighth of the time of a long insert.
    fn push_selected(&self, sql: &mut String) {
        sql.push_str("(SELECT ");
        for number in 0..self.parameters.len() {
            push(
                sql,
                format_args!("{}unnest(${})", comma(number), number + 1),
            );
        }
        self.push_distances(sql, "unnest(", ")");
        sql.push(')');
        self.push_names(sql, false);
    }

    /// Appends the parameter of the rows' distances, which follows all others.
    fn push_distances(&self, sql: &mut String, before: &str, behind: &str) {
        if self.clock.is_carried {
            let number = self.parameters.len();
            push(
                sql,
                format_args!("{}{before}${}{behind}", comma(number), number + 1),
            );
        }
    }

    /// Appends the same source, but hides the lengths of the arrays from the planner. For a long
    /// array it would read a whole table instead of looking rows up in the index.
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

    /// Appends ` WHERE ..`: the conditions whose columns are all given by parameters.
    pub(super) fn push_filter(&self, sql: &mut String) {
        let given = given(self.parsed, self.facts).unwrap_or_default();
        let value = |column: usize| {
            let name = &self.facts.columns.get(column)?.name;
            let (_, value) = given.iter().find(|(given, _)| *given == name)?;
            let mut sql = String::new();
            self.push_parameter(&mut sql, bare(value)?);
            Some(sql)
        };
        let mut joint = " WHERE ";
        for condition in &self.facts.conditions {
            if let Some(test) = test(self.facts, condition, &value) {
                sql.push_str(joint);
                sql.push_str(&test);
                joint = " AND ";
            }
        }
    }

    /// Finds a key by which an inserted row is matched to its source: its values are all given, or
    /// else generated in the source. A row that an upsert changes is found by the key of the upsert
    /// alone. NULL is never found again: a key without NULL is preferred, and no other serves if
    /// rows are left out.
    pub(super) fn matching(&self, matched: Matched) -> Option<Match<'a>> {
        let update = self.parsed.conflict.as_ref().is_some_and(|c| c.update);
        let arbiter = self.arbiter();
        let uniques = self.facts.uniques.iter().filter(|u| u.immediate);
        let fitting = uniques.filter(|u| !update || arbiter.is_some_and(|a| std::ptr::eq(a, *u)));
        let found = fitting.filter_map(|unique| {
            let parts = unique.columns.iter().map(|place| self.part(*place));
            Some(Match {
                unique,
                parts: parts.collect::<Option<_>>()?,
            })
        });
        let may_be_null = |found: &Match<'_>| self.nullable(found.unique).next().is_some();
        let is_generated = |part: &KeyPart<'_>| matches!(part, KeyPart::Generated(..));
        let best =
            found.min_by_key(|found| (may_be_null(found), found.parts.iter().any(is_generated)));
        best.filter(|best| matched != Matched::Telling || !may_be_null(best))
    }

    /// Returns the parameters of a key's columns that may be NULL.
    pub(super) fn nullable(&self, unique: &'a Unique) -> impl Iterator<Item = usize> {
        let columns = unique.columns.iter().filter(|place| {
            let column = self.facts.columns.get(**place);
            column.is_some_and(|column| !column.not_null)
        });
        columns.filter_map(|place| match self.part(*place)? {
            KeyPart::Parameter(parameter) => Some(parameter),
            KeyPart::Generated(..) | KeyPart::Moment(_) => None,
        })
    }

    fn part(&self, place: usize) -> Option<KeyPart<'a>> {
        let column = self.facts.columns.get(place)?;
        if let Some(taken) = self.taken.filter(|taken| taken.name == column.name) {
            let source = taken.source.as_deref().filter(|_| column.narrowed < 0)?;
            return Some(KeyPart::Generated(&column.name, source));
        }
        if self.clock.exact.contains(&column.name) {
            return Some(KeyPart::Moment(self.moment_of(column)?));
        }
        let given = given(self.parsed, self.facts)?;
        let Some((_, value)) = given.into_iter().find(|(name, _)| **name == column.name) else {
            return self.generated_part(column);
        };
        let parameter = bare(value)?;
        // Two values that are equal to the server might not be known to be equal here.
        let makes_keys = self.parameters.get(parameter)?.makes_keys;
        makes_keys.then_some(KeyPart::Parameter(parameter))
    }

    /// Returns the column's own default, to be evaluated in the source. A value that the column
    /// shortens would not be found again.
    fn generated_part(&self, column: &'a Column) -> Option<KeyPart<'a>> {
        let mut moments = self.clock.defaults.iter();
        let is_moment = moments.any(|(name, _)| *name == column.name);
        let default = column.default.as_deref()?;
        // A sequence of which only the name is known may be another one by the time the statement
        // runs.
        let is_known = column.sequence != 0 || self.facts.dialect.plain_catalog;
        let is_new = is_new(default) && (is_known || !takes(column));
        let is_found = column.makes_keys() && column.not_null && column.narrowed < 0;
        (self.generates_keys && is_new && is_found && !is_moment)
            .then_some(KeyPart::Generated(&column.name, default))
    }

    /// Returns the value of a column that holds the moment of the row.
    fn moment_of(&self, column: &Column) -> Option<String> {
        let mut defaults = self.clock.defaults.iter();
        let value = match defaults.find(|(name, _)| *name == column.name) {
            Some((_, sql)) => sql.clone(),
            None => {
                let given = given(self.parsed, self.facts)?;
                let (_, value) = given.into_iter().find(|(name, _)| **name == column.name)?;
                let mut sql = String::new();
                self.push_expression(&mut sql, value);
                sql
            }
        };
        Some(format!("(({value})::{})", column.type_name))
    }
}

/// Appends SQL over a moment in place of the transaction's clock.
pub(super) fn push_clocked(sql: &mut String, text: &str, moment: &str) {
    match clock(text, moment) {
        Clock::Read { sql: over, .. } => sql.push_str(&over),
        Clock::Unread | Clock::Unclear => sql.push_str(text),
    }
}

/// Returns true for defaults that give each row a value that no other has.
fn is_new(default: &str) -> bool {
    let generators = ["nextval(", "uuid", "ulid", "unique_rowid("];
    generators.iter().any(|name| default.contains(name))
}
