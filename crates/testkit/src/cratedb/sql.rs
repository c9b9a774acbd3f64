//! The statements that Windrow's sink says, read.

/// A statement. Values are parameters, in the order in which they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// `SELECT 1`, `REFRESH`.
    Nothing,
    /// The sink's question for the columns of a table.
    Columns,
    /// The sink's question for the primary key of a table.
    Key,
    Create {
        table: String,
        columns: Vec<(String, String)>,
        key: Vec<String>,
        dynamic: bool,
    },
    Add {
        table: String,
        column: String,
        data_type: String,
    },
    Insert {
        table: String,
        columns: Vec<String>,
        conflict: Conflict,
        returning: Vec<String>,
    },
    Update {
        table: String,
        columns: Vec<String>,
        key: Vec<String>,
        returning: Vec<String>,
    },
    Delete {
        table: String,
        key: Vec<String>,
    },
    Select {
        columns: Vec<String>,
        table: String,
        /// Alternatives of columns that are compared with parameters.
        keys: Vec<Vec<String>>,
    },
}

/// The action of an insert whose key exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Conflict {
    #[default]
    Fail,
    Nothing,
    Update(Vec<String>),
}

/// Returns the words of a statement: a quoted name or text has its first quote before it.
fn words(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            _ if c.is_whitespace() => {}
            '"' | '\'' => {
                let mut word = String::from(c);
                while let Some(next) = chars.next() {
                    if next == c && chars.next_if_eq(&c).is_none() {
                        break;
                    }
                    word.push(next);
                }
                words.push(word);
            }
            _ if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(next) = chars.next_if(|n| n.is_alphanumeric() || *n == '_') {
                    word.push(next);
                }
                words.push(word.to_uppercase());
            }
            _ => words.push(c.to_string()),
        }
    }
    words
}

struct Reader {
    words: std::iter::Peekable<std::vec::IntoIter<String>>,
}

impl Reader {
    fn is(&mut self, word: &str) -> bool {
        self.words.next_if(|next| next == word).is_some()
    }

    fn all(&mut self, words: &[&str]) -> Option<()> {
        words.iter().all(|word| self.is(word)).then_some(())
    }

    fn name(&mut self) -> Option<String> {
        let word = self.words.next()?;
        Some(match word.strip_prefix('"') {
            Some(quoted) => quoted.to_owned(),
            None => word.to_lowercase(),
        })
    }

    /// `"schema"."table"` or `table`, with its schema.
    fn table(&mut self) -> Option<String> {
        let first = self.name()?;
        Some(match self.is(".") {
            true => format!("{first}.{}", self.name()?),
            false => format!("doc.{first}"),
        })
    }

    fn names(&mut self) -> Option<Vec<String>> {
        let mut names = vec![self.name()?];
        while self.is(",") {
            names.push(self.name()?);
        }
        Some(names)
    }

    fn listed(&mut self) -> Option<Vec<String>> {
        self.all(&["("])?;
        let names = self.names()?;
        self.all(&[")"])?;
        Some(names)
    }

    /// `"a" = ? AND "b" = ?`
    fn matches(&mut self, between: &str) -> Option<Vec<String>> {
        let mut names = Vec::new();
        loop {
            names.push(self.name()?);
            self.all(&["=", "?"])?;
            if !self.is(between) {
                return Some(names);
            }
        }
    }

    fn returning(&mut self) -> Option<Vec<String>> {
        match self.is("RETURNING") {
            true => self.names(),
            false => Some(Vec::new()),
        }
    }

    /// Returns the words of a type, up to a comma or the closing bracket.
    fn data_type(&mut self) -> String {
        let mut words = Vec::new();
        while let Some(word) = self
            .words
            .next_if(|w| !matches!(&**w, "," | ")" | "(" | "PRIMARY"))
        {
            words.push(word.to_lowercase());
        }
        let mut data_type = words.join(" ");
        if self.is("(") {
            let inner: Vec<String> =
                std::iter::from_fn(|| self.words.next_if(|w| w != ")")).collect();
            self.is(")");
            if data_type == "numeric" {
                data_type = format!("numeric({})", inner.concat());
            }
        }
        data_type
    }
}

/// Reads a statement.
pub(super) fn read(sql: &str) -> Option<Statement> {
    if sql.contains("FROM information_schema.columns WHERE") {
        return Some(Statement::Columns);
    }
    if sql.contains("FROM information_schema.key_column_usage WHERE") {
        return Some(Statement::Key);
    }
    let mut reader = Reader {
        words: words(sql).into_iter().peekable(),
    };
    let r = &mut reader;
    match r.words.next()?.as_str() {
        "REFRESH" => Some(Statement::Nothing),
        "CREATE" => create(r),
        "ALTER" => {
            r.all(&["TABLE"])?;
            let table = r.table()?;
            r.all(&["ADD", "COLUMN"])?;
            let column = r.name()?;
            let data_type = r.data_type();
            Some(Statement::Add {
                table,
                column,
                data_type,
            })
        }
        "INSERT" => insert(r),
        "UPDATE" => {
            let table = r.table()?;
            r.all(&["SET"])?;
            let columns = r.matches(",")?;
            r.all(&["WHERE"])?;
            let key = r.matches("AND")?;
            let returning = r.returning()?;
            Some(Statement::Update {
                table,
                columns,
                key,
                returning,
            })
        }
        "DELETE" => {
            r.all(&["FROM"])?;
            let table = r.table()?;
            r.all(&["WHERE"])?;
            Some(Statement::Delete {
                table,
                key: r.matches("AND")?,
            })
        }
        "SELECT" if r.is("1") => Some(Statement::Nothing),
        "SELECT" => select(r),
        _ => None,
    }
}

fn create(r: &mut Reader) -> Option<Statement> {
    r.all(&["TABLE"])?;
    if r.is("IF") {
        r.all(&["NOT", "EXISTS"])?;
    }
    let table = r.table()?;
    r.all(&["("])?;
    let (mut columns, mut key) = (Vec::new(), Vec::new());
    loop {
        if r.is("PRIMARY") {
            r.all(&["KEY"])?;
            key = r.listed()?;
        } else {
            let name = r.name()?;
            let data_type = r.data_type();
            if r.is("PRIMARY") {
                r.all(&["KEY"])?;
                key.push(name.clone());
            }
            columns.push((name, data_type));
        }
        if !r.is(",") {
            break;
        }
    }
    r.all(&[")"])?;
    let dynamic = r.words.any(|word| word == "'dynamic");
    Some(Statement::Create {
        table,
        columns,
        key,
        dynamic,
    })
}

fn insert(r: &mut Reader) -> Option<Statement> {
    r.all(&["INTO"])?;
    let table = r.table()?;
    let columns = r.listed()?;
    r.all(&["VALUES", "("])?;
    while r.is("?") || r.is(",") {}
    r.all(&[")"])?;
    let mut conflict = Conflict::Fail;
    if r.is("ON") {
        r.all(&["CONFLICT"])?;
        r.listed()?;
        r.all(&["DO"])?;
        if r.is("NOTHING") {
            conflict = Conflict::Nothing;
        } else {
            r.all(&["UPDATE", "SET"])?;
            let mut names = Vec::new();
            loop {
                names.push(r.name()?);
                r.all(&["=", "EXCLUDED", "."])?;
                r.name()?;
                if !r.is(",") {
                    break;
                }
            }
            conflict = Conflict::Update(names);
        }
    }
    let returning = r.returning()?;
    Some(Statement::Insert {
        table,
        columns,
        conflict,
        returning,
    })
}

fn select(r: &mut Reader) -> Option<Statement> {
    let columns = r.names()?;
    r.all(&["FROM"])?;
    let table = r.table()?;
    let mut keys = Vec::new();
    if r.is("WHERE") {
        loop {
            let bracket = r.is("(");
            keys.push(r.matches("AND")?);
            if bracket {
                r.all(&[")"])?;
            }
            if !r.is("OR") {
                break;
            }
        }
    }
    Some(Statement::Select {
        columns,
        table,
        keys,
    })
}
