//! Quotes names as SQL identifiers. No other code does that.

use windrow_core::TableName;

macro_rules! quoting {
    ($quote:literal) => {
        /// Appends `name` as an identifier.
        ///
        /// A quote in the name is doubled, so no name can end the identifier. [`TableName::parse`]
        /// refuses names with NUL.
        pub fn push_ident(sql: &mut String, name: &str) {
            sql.push($quote);
            for c in name.chars() {
                if c == $quote {
                    sql.push($quote);
                }
                sql.push(c);
            }
            sql.push($quote);
        }

        /// Appends a table with its schema, if it has one.
        pub fn push_table(sql: &mut String, table: &TableName) {
            if let Some(schema) = &table.schema {
                push_ident(sql, schema);
                sql.push('.');
            }
            push_ident(sql, &table.table);
        }

        /// Appends names as identifiers, separated by commas.
        pub fn push_idents<S: AsRef<str>>(sql: &mut String, names: impl IntoIterator<Item = S>) {
            for (i, name) in names.into_iter().enumerate() {
                if i > 0 {
                    sql.push_str(", ");
                }
                push_ident(sql, name.as_ref());
            }
        }
    };
}

// Standard double quotes: PostgreSQL, CockroachDB, SQLite, CrateDB.
quoting!('"');

/// The functions with backticks, for MySQL and MariaDB, whatever their `sql_mode`.
pub mod backtick {
    use windrow_core::TableName;

    quoting!('`');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_can_end_its_identifier() {
        let mut sql = String::new();
        push_table(
            &mut sql,
            &TableName {
                schema: Some("s".into()),
                table: "t\"; drop table x; --".into(),
            },
        );
        assert_eq!(sql, r#""s"."t""; drop table x; --""#);
        sql.clear();
        push_idents(&mut sql, ["a", "B c", "\""]);
        assert_eq!(sql, "\"a\", \"B c\", \"\"\"\"");
        sql.clear();
        backtick::push_table(
            &mut sql,
            &TableName {
                schema: Some("s".into()),
                table: "t`; drop table x; --".into(),
            },
        );
        assert_eq!(sql, "`s`.`t``; drop table x; --`");
    }
}
