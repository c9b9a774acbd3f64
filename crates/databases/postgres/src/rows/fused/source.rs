//! Where the rows of a set-based statement come from: one array a column.

use super::Text;
use crate::rows::statement::push;

impl Text<'_> {
    /// `unnest($1, ..) AS w(p1, ..)`. `numbered`: with the place of each row, as `ord`.
    pub(super) fn push_source(&self, sql: &mut String, numbered: bool) {
        if numbered && self.facts.dialect.subscripts {
            return self.push_subscripts(sql);
        }
        sql.push_str("unnest(");
        for number in 1..=self.row.len() {
            let comma = if number > 1 { ", " } else { "" };
            push(sql, format_args!("{comma}${number}"));
        }
        if self.has_moments() {
            push(sql, format_args!(", ${}", self.row.len() + 1));
        }
        sql.push_str(if numbered { ") WITH ORDINALITY" } else { ")" });
        self.push_names(sql, numbered);
    }

    /// The same, but the planner does not see how long the arrays are. It would plan anew for each
    /// length, and for a long one read a whole table in place of looking rows up in the index.
    pub(super) fn push_hidden_source(&self, sql: &mut String) {
        if self.facts.dialect.subscripts {
            return self.push_subscripts(sql);
        }
        sql.push_str("unnest(");
        for number in 1..=self.row.len() {
            let comma = if number > 1 { ", " } else { "" };
            push(sql, format_args!("{comma}(SELECT ${number})"));
        }
        sql.push_str(") WITH ORDINALITY");
        self.push_names(sql, true);
    }

    /// `ROWS FROM (unnest($1), .., generate_subscripts($1, 1)) AS w(p1, .., ord)`: what stands side
    /// by side there has the same place, by definition.
    fn push_subscripts(&self, sql: &mut String) {
        sql.push_str("ROWS FROM (");
        for number in 1..=self.row.len() {
            push(sql, format_args!("unnest(${number}), "));
        }
        sql.push_str("generate_subscripts($1, 1))");
        self.push_names(sql, true);
    }

    fn push_names(&self, sql: &mut String, numbered: bool) {
        sql.push_str(" AS w(");
        for number in 1..=self.row.len() {
            let comma = if number > 1 { ", " } else { "" };
            push(sql, format_args!("{comma}p{number}"));
        }
        sql.push_str(if self.has_moments() { ", m" } else { "" });
        sql.push_str(if numbered { ", ord)" } else { ")" });
    }
}
