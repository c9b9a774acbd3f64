//! Random operations on a small table, as HTTP requests and as the SQL that a client would have
//! sent alone.

use proptest::prelude::*;

/// Keys of a client: its own, so that what other clients do cannot change its answers.
pub const KEYS: i64 = 6;

/// A value as its JSON token; SQL literals are made from the same token.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
}

impl Token {
    pub fn json(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Bool(b) => b.to_string(),
            Self::Number(n) => n.clone(),
            Self::Text(t) => serde_json::to_string(t).unwrap(),
        }
    }

    /// A literal without a type of its own: the database's input function for the column reads it.
    pub fn untyped_literal(&self) -> String {
        match self {
            Self::Null => "NULL".into(),
            Self::Bool(b) => format!("'{b}'"),
            Self::Number(n) => format!("'{n}'"),
            Self::Text(t) => format!("'{}'", t.replace('\'', "''")),
        }
    }

    /// A literal of the JSON type, for a database that types values and not columns.
    pub fn typed_literal(&self) -> String {
        match self {
            Self::Bool(b) => i32::from(*b).to_string(),
            Self::Number(n) => n.clone(),
            other => other.untyped_literal(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Conflict {
    Error,
    Ignore,
    Update,
}

#[derive(Clone, Debug)]
pub enum Operation {
    Insert {
        row: Vec<(String, Token)>,
        conflict: Conflict,
    },
    Update {
        key: i64,
        row: Vec<(String, Token)>,
    },
    Delete {
        key: i64,
    },
    Get {
        key: i64,
    },
}

impl Operation {
    /// Moves the keys and unique codes into a client's own range.
    pub fn for_client(mut self, client: usize) -> Self {
        let base = i64::try_from(client).unwrap() * 1000;
        match &mut self {
            Self::Insert { row, .. } | Self::Update { row, .. } => {
                for (column, token) in row.iter_mut() {
                    match token {
                        Token::Number(n) if column == "id" => {
                            *n = (n.parse::<i64>().unwrap() + base).to_string();
                        }
                        Token::Text(t) if column == "code" => *t = format!("{client}-{t}"),
                        _ => {}
                    }
                }
            }
            Self::Delete { .. } | Self::Get { .. } => {}
        }
        match &mut self {
            Self::Update { key, .. } | Self::Delete { key } | Self::Get { key } => *key += base,
            Self::Insert { .. } => {}
        }
        self
    }

    /// Method, path behind the table and body.
    pub fn request(&self) -> (&'static str, String, Option<String>) {
        match self {
            Self::Insert { row, conflict } => {
                let word = match conflict {
                    Conflict::Error => "error",
                    Conflict::Ignore => "ignore",
                    Conflict::Update => "update",
                };
                (
                    "POST",
                    format!("rows?on_conflict={word}"),
                    Some(object(row)),
                )
            }
            Self::Update { key, row } => ("PATCH", format!("rows/{key}"), Some(object(row))),
            Self::Delete { key } => ("DELETE", format!("rows/{key}"), None),
            Self::Get { key } => ("GET", format!("rows/{key}"), None),
        }
    }

    /// The statement that the client would have sent alone.
    pub fn sql(&self, table: &str, literal: fn(&Token) -> String) -> String {
        match self {
            Self::Insert { row, conflict } => {
                let columns = join(row, |(c, _)| format!("\"{c}\""));
                let values = join(row, |(_, t)| literal(t));
                let sets = row.iter().filter(|(c, _)| c != "id");
                let sets = sets
                    .map(|(c, _)| format!("\"{c}\" = excluded.\"{c}\""))
                    .collect::<Vec<_>>();
                let action = match conflict {
                    Conflict::Error => String::new(),
                    Conflict::Ignore => " ON CONFLICT (id) DO NOTHING".into(),
                    Conflict::Update => {
                        format!(" ON CONFLICT (id) DO UPDATE SET {}", sets.join(", "))
                    }
                };
                format!("INSERT INTO {table} ({columns}) VALUES ({values}){action}")
            }
            Self::Update { key, row } => {
                let sets = join(row, |(c, t)| format!("\"{c}\" = {}", literal(t)));
                format!("UPDATE {table} SET {sets} WHERE id = {key}")
            }
            Self::Delete { key } => format!("DELETE FROM {table} WHERE id = {key}"),
            Self::Get { key } => format!("SELECT * FROM {table} WHERE id = {key}"),
        }
    }
}

fn join<T>(items: &[T], f: impl Fn(&T) -> String) -> String {
    items.iter().map(f).collect::<Vec<_>>().join(", ")
}

fn object(row: &[(String, Token)]) -> String {
    format!(
        "{{{}}}",
        join(row, |(c, t)| format!(
            "{}: {}",
            serde_json::to_string(c).unwrap(),
            t.json()
        ))
    )
}

/// Operations of one client: good ones mostly, and each kind of bad one now and then.
pub fn operations(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(), 1..most)
}

fn operation() -> impl Strategy<Value = Operation> {
    let conflict = prop_oneof![
        4 => Just(Conflict::Error),
        1 => Just(Conflict::Ignore),
        2 => Just(Conflict::Update)
    ];
    prop_oneof![
        6 => (0..KEYS, values(), conflict).prop_map(|(id, mut row, conflict)| {
            row.insert(0, ("id".into(), Token::Number(id.to_string())));
            Operation::Insert { row, conflict }
        }),
        3 => (0..KEYS, values()).prop_map(|(key, row)| Operation::Update { key, row }),
        1 => (0..KEYS).prop_map(|key| Operation::Delete { key }),
        1 => (0..KEYS).prop_map(|key| Operation::Get { key }),
    ]
}

/// The values of all columns but the key. Bad ones: too long, null where it must not be, negative
/// where a check forbids it, no number, a code that is taken, a column that is not there.
fn values() -> impl Strategy<Value = Vec<(String, Token)>> {
    let name = prop_oneof![
        8 => "[a-z]{1,8}".prop_map(Token::Text),
        1 => Just(Token::Null),
        1 => Just(Token::Text("far too long a name".into())),
        1 => Just(Token::Text("it's \\ \"q\" {,}".chars().take(8).collect())),
    ];
    let quantity = prop_oneof![
        8 => (0..1000i64).prop_map(|n| Token::Number(n.to_string())),
        1 => Just(Token::Null),
        1 => Just(Token::Number("-1".into())),
        1 => Just(Token::Text("many".into())),
        1 => Just(Token::Number("99999999999".into())),
    ];
    let code = prop_oneof![
        3 => Just(Token::Null),
        2 => (0..4).prop_map(|n| Token::Text(format!("c{n}"))),
    ];
    let more = prop_oneof![20 => Just(false), 1 => Just(true)];
    (name, quantity, code, more).prop_map(|(name, quantity, code, more)| {
        let mut row = vec![
            ("name".into(), name),
            ("quantity".into(), quantity),
            ("code".into(), code),
        ];
        if more {
            // Which of two errors comes first depends on the protocol: this is to be the only one.
            row = vec![("name".into(), Token::Text("x".into()))];
            row.push(("no such column".into(), Token::Bool(true)));
        }
        row
    })
}
