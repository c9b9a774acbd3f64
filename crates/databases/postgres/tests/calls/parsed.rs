//! Parsed statements, written as SQL is: this much of reading it is enough for tests.

use std::sync::Arc;

use windrow_core::{Conflict, Expression, Name, Op, ParsedStatement, Piece, TableName};

/// An expression cut at its parameters.
pub(crate) fn sql(text: &str) -> Expression {
    if text.trim().eq_ignore_ascii_case("default") {
        return Expression::Default;
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].into()));
        }
        let behind = &rest[at + 1..];
        let digits = behind.len()
            - behind
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let number: u16 = behind[..digits].parse().unwrap();
        pieces.push(Piece::Parameter(number - 1));
        rest = &behind[digits..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.into()));
    }
    Expression::Sql(pieces.into())
}

/// A parsed statement under construction.
#[derive(Clone)]
pub(crate) struct Make {
    parsed: ParsedStatement,
}

fn names(list: &str) -> Box<[Name]> {
    list.split(',').map(|name| name.trim().into()).collect()
}

/// Commas outside of brackets and quotes.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start) = (0, false, 0);
    let mut parts = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts
}

fn make(op: Op, table: &str) -> Make {
    let mut words = table.split(" as ");
    let name = TableName::parse(words.next().unwrap()).unwrap();
    Make {
        parsed: ParsedStatement {
            text: "".into(),
            types: [].into(),
            op,
            table: name,
            alias: words.next().map(Name::from),
            columns: None,
            values: [].into(),
            overriding: None,
            conflict: None,
            assignments: [].into(),
            keys: [].into(),
            conditions: None,
            returning: None,
            returning_names: None,
            functions: [].into(),
            set_based: true,
        },
    }
}

/// `insert into table (columns) values (values)`.
pub(crate) fn insert(table: &str, columns: &str, values: &str) -> Make {
    let mut made = make(Op::Insert, table);
    let listed = if columns.is_empty() {
        String::new()
    } else {
        format!(" ({columns})")
    };
    made.parsed.text = format!("insert into {table}{listed} values ({values})").into();
    made.parsed.columns = (!columns.is_empty()).then(|| names(columns));
    made.parsed.values = split(values).into_iter().map(sql).collect();
    made
}

fn pairs(list: &str) -> Box<[(Name, Expression)]> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap();
        (Name::from(name.trim()), sql(value.trim()))
    };
    split(list).into_iter().map(pair).collect()
}

/// `update table set assignments where keys`.
pub(crate) fn update(table: &str, assignments: &str, keys: &str) -> Make {
    let mut made = make(Op::Update, table);
    let and = keys.replace(',', " and ");
    made.parsed.text = format!("update {table} set {assignments} where {and}").into();
    made.parsed.assignments = pairs(assignments);
    made.parsed.keys = pairs(keys);
    made
}

/// `delete from table where keys`.
pub(crate) fn delete(table: &str, keys: &str) -> Make {
    let mut made = make(Op::Delete, table);
    let and = keys.replace(',', " and ");
    made.parsed.text = format!("delete from {table} where {and}").into();
    made.parsed.keys = pairs(keys);
    made
}

impl Make {
    fn append(&mut self, text: &str) {
        self.parsed.text = format!("{} {text}", self.parsed.text).into();
    }

    /// ` and (conditions)`.
    pub(crate) fn and(mut self, conditions: &str) -> Self {
        self.append(&format!("and ({conditions})"));
        self.parsed.conditions = Some(sql(conditions));
        self
    }

    /// ` on conflict (columns) do ..`.
    pub(crate) fn conflict(mut self, columns: &str, action: &str) -> Self {
        let target = if columns.is_empty() {
            String::new()
        } else {
            format!("({columns}) ")
        };
        let clause = format!("on conflict {target}do {action}");
        self.append(&clause);
        let set = action.strip_prefix("update set ");
        let mut parts = set.unwrap_or_default().splitn(2, " where ");
        let assignments = parts.next().filter(|_| set.is_some());
        self.parsed.conflict = Some(Conflict {
            columns: (!columns.is_empty()).then(|| names(columns)),
            update: set.is_some(),
            assignments: assignments.map(pairs).unwrap_or_default(),
            has_condition: parts.next().is_some(),
            sql: sql(&clause),
        });
        self
    }

    pub(crate) fn returning(mut self, list: &str) -> Self {
        self.append(&format!("returning {list}"));
        self.parsed.returning = Some(list.into());
        self
    }

    pub(crate) fn calls(mut self, functions: &[&str]) -> Self {
        let name = |name: &&str| TableName::parse(name).unwrap();
        self.parsed.functions = functions.iter().map(name).collect();
        self
    }

    /// A form that cannot be taken apart.
    pub(crate) fn whole(mut self, text: &str) -> Self {
        self.parsed.text = text.into();
        self.parsed.values = [].into();
        self.parsed.set_based = false;
        self
    }

    pub(crate) fn parsed(self) -> Arc<ParsedStatement> {
        Arc::new(self.parsed)
    }
}
