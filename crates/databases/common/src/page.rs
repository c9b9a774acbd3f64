//! The SQL of a page of rows ([`RowPage`]), for the databases' different quotes and placeholders.

use windrow_core::{Name, RowPage, RowTest, Value};

/// A database's style for the SQL of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageStyle {
    /// Appends a quoted identifier.
    pub push_ident: fn(&mut String, &str),
    /// True if placeholders are `$1`, `$2`; false if each is `?`.
    pub is_numbered: bool,
    /// True if the database can use an index to compare row values: `(a, b) > (1, 2)`.
    pub compares_rows: bool,
}

/// The SQL of a page after its table's name, and the values of its placeholders in their order.
#[derive(Debug)]
pub struct PageSql<'p> {
    /// The WHERE, ORDER BY and LIMIT clauses, each with a blank before it.
    pub text: String,
    /// The values, each with the column that it is compared with.
    pub values: Vec<(&'p Name, &'p Value)>,
    style: PageStyle,
}

impl<'p> PageSql<'p> {
    /// Returns the SQL of a page.
    pub fn of(page: &RowPage<'p>, style: PageStyle) -> Self {
        let mut sql = Self {
            text: String::new(),
            values: Vec::new(),
            style,
        };
        let mut word = " WHERE ";
        for filter in page.filters {
            sql.text.push_str(std::mem::replace(&mut word, " AND "));
            (style.push_ident)(&mut sql.text, &filter.column);
            match filter.test.sign() {
                Some(sign) => sql.compared(sign, &filter.column, &filter.value),
                None if filter.test == RowTest::Null => sql.text.push_str(" IS NULL"),
                None => sql.text.push_str(" IS NOT NULL"),
            }
        }
        let (after, to) = match page.is_descending {
            true => ("<", ">="),
            false => (">", "<="),
        };
        for (sign, end) in [(after, page.after), (to, page.to)] {
            let Some(end) = end.filter(|_| !page.order.is_empty()) else {
                continue;
            };
            sql.text.push_str(std::mem::replace(&mut word, " AND "));
            match style.compares_rows {
                true => sql.rows_compared(page.order, end, sign),
                false => sql.columns_compared(page.order, end, sign),
            }
        }
        let mut word = " ORDER BY ";
        for column in page.order {
            sql.text.push_str(std::mem::replace(&mut word, ", "));
            (style.push_ident)(&mut sql.text, column);
            sql.text
                .push_str(if page.is_descending { " DESC" } else { "" });
        }
        sql.text.push_str(&format!(" LIMIT {}", page.rows));
        sql
    }

    fn compared(&mut self, sign: &str, column: &'p Name, value: &'p Value) {
        self.text.push_str(&format!(" {sign} "));
        self.placeholder(column, value);
    }

    fn placeholder(&mut self, column: &'p Name, value: &'p Value) {
        self.values.push((column, value));
        match self.style.is_numbered {
            true => self.text.push_str(&format!("${}", self.values.len())),
            false => self.text.push('?'),
        }
    }

    fn rows_compared(&mut self, order: &'p [Name], end: &'p [Value], sign: &str) {
        let mut begin = "(";
        for column in order {
            self.text.push_str(std::mem::replace(&mut begin, ", "));
            (self.style.push_ident)(&mut self.text, column);
        }
        self.text.push_str(&format!(") {sign} ("));
        for (place, (column, value)) in order.iter().zip(end).enumerate() {
            self.text.push_str(if place > 0 { ", " } else { "" });
            self.placeholder(column, value);
        }
        self.text.push(')');
    }

    /// Appends a comparison of the columns one by one: the first that differs decides.
    fn columns_compared(&mut self, order: &'p [Name], end: &'p [Value], sign: &str) {
        self.text.push('(');
        for last in (0..order.len()).rev() {
            let is_first = last + 1 == order.len();
            self.text.push_str(if is_first { "(" } else { " OR (" });
            for (place, (column, value)) in order.iter().zip(end).take(last + 1).enumerate() {
                self.text.push_str(if place > 0 { " AND " } else { "" });
                (self.style.push_ident)(&mut self.text, column);
                let sign = match place < last {
                    true => "=",
                    false if is_first => sign,
                    false => sign.trim_end_matches('='),
                };
                self.compared(sign, column, value);
            }
            self.text.push(')');
        }
        self.text.push(')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote::{backtick, push_ident};
    use windrow_core::{RowFilter, TableName};

    const PG: PageStyle = PageStyle {
        push_ident,
        is_numbered: true,
        compares_rows: true,
    };
    const MYSQL: PageStyle = PageStyle {
        push_ident: backtick::push_ident,
        is_numbered: false,
        compares_rows: false,
    };

    #[test]
    fn a_page_is_filtered_ordered_and_limited() {
        let (table, order) = (TableName::bare("t"), ["a".into(), "b".into()]);
        let filter = |test| RowFilter {
            column: "c".into(),
            test,
            value: Value::text("x"),
        };
        let filters = [filter(RowTest::AtLeast), filter(RowTest::NotNull)];
        let after = [Value::Int(1), Value::Int(2)];
        let page = RowPage {
            filters: &filters,
            after: Some(&after),
            is_descending: true,
            ..RowPage::of(&table, &order, &order, 5)
        };
        let sql = PageSql::of(&page, PG);
        assert_eq!(
            sql.text,
            " WHERE \"c\" >= $1 AND \"c\" IS NOT NULL AND (\"a\", \"b\") < ($2, $3) \
             ORDER BY \"a\" DESC, \"b\" DESC LIMIT 5"
        );
        assert_eq!(sql.values.len(), 3);
        let page = RowPage {
            after: Some(&after),
            ..RowPage::of(&table, &order, &order, 5)
        };
        let sql = PageSql::of(&page, MYSQL);
        assert_eq!(
            sql.text,
            " WHERE ((`a` = ? AND `b` > ?) OR (`a` > ?)) ORDER BY `a`, `b` LIMIT 5"
        );
        assert_eq!(sql.values.len(), 3);
        let page = RowPage::of(&table, &order, &[], 7);
        assert_eq!(PageSql::of(&page, PG).text, " LIMIT 7");
    }
}
