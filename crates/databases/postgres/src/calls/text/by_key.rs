//! Update and delete by a full unique key.

use windrow_core::{Name, Op};

use super::pieces::push_clocked;
use super::{Text, W};
use crate::calls::key::Part;
use crate::calls::parsed::{bare, uses};
use crate::compiled::Fused;
use crate::moment::MOMENT;
use crate::rows::statement::push;
use windrow_calls::Expression;
use windrow_database::quote::push_ident;

impl Text<'_> {
    /// Update or delete by a full unique key.
    pub(super) fn by_key(&self) -> Option<Fused> {
        let parsed = self.parsed;
        let told = |parts: &[Part]| !parts.iter().any(|part| matches!(part, Part::Unknown));
        let moves = parsed
            .assignments
            .iter()
            .any(|(name, _)| self.is_unique(name));
        if moves || !self.keys.iter().any(|(_, parts)| told(parts)) {
            return None;
        }
        let mut sql = String::from(if parsed.op == Op::Update {
            "UPDATE "
        } else {
            "DELETE FROM "
        });
        self.push_table(&mut sql);
        for (number, (name, value)) in parsed.assignments.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { " SET " });
            push_ident(&mut sql, name);
            sql.push_str(" = ");
            self.push_expression(&mut sql, value);
        }
        sql.push_str(if parsed.op == Op::Update {
            " FROM "
        } else {
            " USING "
        });
        self.push_hidden_source(&mut sql);
        for (number, (name, value)) in parsed.keys.iter().enumerate() {
            sql.push_str(if number > 0 { " AND " } else { " WHERE " });
            self.push_target(&mut sql);
            sql.push('.');
            push_ident(&mut sql, name);
            sql.push_str(" = (");
            self.push_expression(&mut sql, value);
            sql.push(')');
        }
        if let Some(conditions) = &parsed.conditions {
            sql.push_str(" AND (");
            self.push_expression(&mut sql, conditions);
            sql.push(')');
        }
        self.push_word_returning(&mut sql);
        push(&mut sql, format_args!("{W}.\"windrow ord\", 1"));
        if let Some(returning) = &parsed.returning {
            sql.push_str(", ");
            self.push_returning(&mut sql, returning)?;
        }
        Some(self.statement(sql, false))
    }

    fn is_unique(&self, name: &Name) -> bool {
        let place = self.facts.place_of(name);
        let mut uniques = self.facts.uniques.iter();
        self.facts.hidden_unique || uniques.any(|u| place.is_some_and(|p| u.columns.contains(&p)))
    }

    /// A bare star would be the source's columns too; another one may be a product.
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

    /// A domain is carried as what it stands for: only an assignment to a column makes it a domain
    /// again.
    pub(super) fn domains_are_assigned(&self) -> bool {
        let domains = || (0..).zip(self.carriers).filter(|(_, c)| c.is_domain);
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
