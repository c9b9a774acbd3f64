//! Update, delete and read by a full unique key.

use windrow_core::{Expression, Op};

use super::pieces::push_clocked;
use super::{Fused, SetBuilder, W};
use crate::moment::MOMENT;
use crate::statement::of_shape::push;
use crate::statement::parsed::{bare, uses};
use windrow_database::quote::push_ident;

impl SetBuilder<'_> {
    /// Returns an update, a delete or a read by a full unique key.
    pub(super) fn by_key(&self) -> Option<Fused> {
        let parsed = self.parsed;
        let mut set = parsed.assignments.iter();
        if !self.is_keyed || set.any(|(name, _)| self.facts.is_key(name)) {
            return None;
        }
        let mut sql = String::with_capacity(256);
        match parsed.op {
            Op::Update => self.push_update(&mut sql),
            Op::Delete => {
                sql.push_str("DELETE FROM ");
                self.push_table(&mut sql);
                sql.push_str(" USING ");
            }
            Op::Get => {
                sql.push_str("SELECT ");
                self.push_answer(&mut sql)?;
                sql.push_str(" FROM ");
                self.push_table(&mut sql);
                sql.push_str(", ");
            }
            Op::Insert => return None,
        }
        self.push_hidden_source(&mut sql);
        self.push_condition(&mut sql);
        if parsed.op != Op::Get {
            self.push_word_returning(&mut sql);
            self.push_answer(&mut sql)?;
        }
        Some(self.statement(sql, false))
    }

    fn push_update(&self, sql: &mut String) {
        sql.push_str("UPDATE ");
        self.push_table(sql);
        for (number, (name, value)) in self.parsed.assignments.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { " SET " });
            push_ident(sql, name);
            sql.push_str(" = ");
            self.push_expression(sql, value);
        }
        sql.push_str(" FROM ");
    }

    fn push_condition(&self, sql: &mut String) {
        for (number, (name, value)) in self.parsed.keys.iter().enumerate() {
            sql.push_str(if number > 0 { " AND " } else { " WHERE " });
            self.push_target(sql);
            sql.push('.');
            push_ident(sql, name);
            sql.push_str(" = (");
            self.push_expression(sql, value);
            sql.push(')');
        }
        if let Some(conditions) = &self.parsed.conditions {
            sql.push_str(" AND (");
            self.push_expression(sql, conditions);
            sql.push(')');
        }
    }

    /// Appends the result columns: the position of a row's write, that the write was executed, and
    /// the returned columns.
    fn push_answer(&self, sql: &mut String) -> Option<()> {
        push(sql, format_args!("{W}.\"windrow ord\", 1"));
        if let Some(returning) = &self.parsed.returning {
            sql.push_str(", ");
            self.push_returning(sql, returning)?;
        }
        Some(())
    }

    /// Appends the returned columns. A bare star would include the source's columns. Any other star
    /// may be a product, so there is `None` for it.
    fn push_returning(&self, sql: &mut String, returning: &str) -> Option<()> {
        if returning.trim() == "*" {
            self.push_target(sql);
            sql.push_str(".*");
        } else if returning.contains('*') {
            return None;
        } else {
            push_clocked(sql, returning, MOMENT);
        }
        Some(())
    }

    /// Returns true if every parameter of a domain is only assigned to columns. A domain is carried
    /// as its base type, and only an assignment to a column makes it a domain again.
    pub(super) fn domains_are_assigned(&self) -> bool {
        let domains = || (0..).zip(self.parameters).filter(|(_, p)| p.is_domain);
        if domains().next().is_none() {
            return true;
        }
        let parsed = self.parsed;
        let assigned = parsed
            .values
            .iter()
            .chain(parsed.assignments.iter().map(|(_, v)| v));
        let others = parsed
            .keys
            .iter()
            .map(|(_, value)| value)
            .chain(&parsed.conditions)
            .chain(parsed.conflict.as_ref().map(|conflict| &conflict.sql));
        let whole: Vec<&Expression> = assigned.collect();
        domains().all(|(place, _)| {
            let elsewhere = whole
                .iter()
                .copied()
                .filter(|value| bare(value).is_none())
                .chain(others.clone());
            !elsewhere.into_iter().any(|value| uses(value, place))
        })
    }
}
