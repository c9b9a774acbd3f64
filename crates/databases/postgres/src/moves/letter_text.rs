//! The statement that writes rows to the dead letters.

use windrow_core::Name;
use windrow_core::moves::REJECTED;
use windrow_core::record::UNREADABLE;
use windrow_database::quote::push_ident;

use super::text::{Texts, hex};

impl Texts {
    /// Returns the statement that writes rows to the dead letters, and returns these. Parameters
    /// after the handles: the source, then arrays of destinations, codes, messages and constraints.
    /// `unreadable`: columns of which the bytes are kept.
    pub(super) fn reject(&self, unreadable: &[Name]) -> String {
        let handles = self.handles();
        let (mut names, mut arrays) = (String::new(), String::new());
        for place in 0..handles {
            names.push_str(&format!("h{place}, "));
            arrays.push_str(&format!("${}::text[], ", place + 1));
        }
        let next = |n: usize| handles + n;
        format!(
            "WITH gone({names}key_, row_) AS (DELETE FROM {source} WHERE {held} RETURNING {texts}, {key}, {row}), \
             refused AS (SELECT * FROM unnest({arrays}${d}::text[], ${c}::text[], ${m}::text[], ${r}::text[]) \
               AS t({names}destination_, code_, message_, constraint_)), \
             put AS (INSERT INTO {rejected} (source, destination, key, \"row\", code, message, \"constraint\") \
               SELECT ${s}, destination_, key_::json, row_, code_, message_, constraint_ FROM gone JOIN refused USING ({using}) RETURNING key, \"row\", message) \
             SELECT * FROM put",
            source = self.source,
            held = self.held(),
            texts = self.handle_texts(),
            key = self.key_json(unreadable),
            row = self.row_json(unreadable),
            s = next(1),
            d = next(2),
            c = next(3),
            m = next(4),
            r = next(5),
            rejected = REJECTED,
            using = names.trim_end_matches(", "),
        )
    }

    /// Returns an expression for the key as an array of JSON, as text.
    fn key_json(&self, unreadable: &[Name]) -> String {
        let mut sql = String::from("json_build_array(");
        for (place, name) in self.plan.key.iter().enumerate() {
            sql.push_str(if place > 0 { ", " } else { "" });
            self.push_kept(&mut sql, name, unreadable);
        }
        sql.push_str(")::text");
        sql
    }

    /// Returns an expression for the row as JSON.
    fn row_json(&self, unreadable: &[Name]) -> String {
        let mut sql = String::new();
        if unreadable.is_empty() {
            sql.push_str("to_json(");
            push_ident(&mut sql, &self.plan.source.table);
            sql.push_str(".*)");
            return sql;
        }
        sql.push_str("(SELECT to_json(r) FROM (SELECT ");
        for (place, name) in self.all.iter().enumerate() {
            sql.push_str(if place > 0 { ", " } else { "" });
            self.push_kept(&mut sql, name, unreadable);
            sql.push_str(" AS ");
            push_ident(&mut sql, name);
        }
        sql.push_str(") AS r)");
        sql
    }

    /// Appends a column as a dead letter keeps it: unchanged, or as bytes if it cannot be read.
    fn push_kept(&self, sql: &mut String, name: &Name, unreadable: &[Name]) {
        let mut column = String::new();
        push_ident(&mut column, &self.plan.source.table);
        column.push('.');
        push_ident(&mut column, name);
        sql.push_str(&match unreadable.contains(name) {
            true => format!("json_build_object('{UNREADABLE}', {})", hex(&column)),
            false => column,
        });
    }
}
