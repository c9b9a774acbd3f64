//! Update and delete by a full unique key.

use windrow_core::{Name, Op};

use super::words::uses;
use super::{Text, W};
use crate::postgres::calls::key::Part;
use crate::postgres::calls::spoken::bare;
use crate::postgres::fused::{Fused, Told};
use crate::postgres::statement::push;
use crate::sql::quote::push_ident;
use windrow_core::statement::Expression;

impl Text<'_> {
    /// Update or delete by a full unique key.
    pub(super) fn by_key(&self) -> Option<Fused> {
        let draft = self.draft;
        let told = |parts: &[Part]| !parts.iter().any(|part| matches!(part, Part::Unknown));
        let moves = draft
            .assignments
            .iter()
            .any(|(name, _)| self.is_unique(name));
        if moves || !self.keys.iter().any(|(_, parts)| told(parts)) {
            return None;
        }
        let mut sql = String::from(if draft.op == Op::Update {
            "UPDATE "
        } else {
            "DELETE FROM "
        });
        self.push_table(&mut sql);
        for (number, (name, value)) in draft.assignments.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { " SET " });
            push_ident(&mut sql, name);
            sql.push_str(" = ");
            self.push_expression(&mut sql, value);
        }
        sql.push_str(if draft.op == Op::Update {
            " FROM "
        } else {
            " USING "
        });
        self.push_hidden_source(&mut sql);
        for (number, (name, value)) in draft.keys.iter().enumerate() {
            sql.push_str(if number > 0 { " AND " } else { " WHERE " });
            self.push_target(&mut sql);
            sql.push('.');
            push_ident(&mut sql, name);
            sql.push_str(" = (");
            self.push_expression(&mut sql, value);
            sql.push(')');
        }
        if let Some(conditions) = &draft.conditions {
            sql.push_str(" AND (");
            self.push_expression(&mut sql, conditions);
            sql.push(')');
        }
        push(&mut sql, format_args!(" RETURNING {W}.\"windrow ord\", 1"));
        if let Some(returning) = &draft.returning {
            sql.push_str(", ");
            self.push_returning(&mut sql, returning)?;
        }
        Some(Fused {
            sql,
            told: Told::Framed,
        })
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
            sql.push_str(returning);
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
        let draft = self.draft;
        let assigned = draft
            .values
            .iter()
            .chain(draft.assignments.iter().map(|(_, v)| v));
        let others = draft
            .keys
            .iter()
            .map(|(_, value)| value)
            .chain(&draft.conditions)
            .chain(draft.conflict.as_ref().map(|conflict| &conflict.sql));
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
