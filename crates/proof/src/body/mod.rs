//! Parses the bodies of harmless trigger functions, in a small strict grammar of PL/pgSQL.
//!
//! A body of this grammar sets columns of NEW and its own variables, decides, raises and returns.
//! Its expressions consist of literals, rows, variables and listed built-in functions. It reads no
//! table, calls nothing else and leaves nothing behind. A body outside of the grammar is not
//! proven, however harmless it may be.

mod expression;
mod tokens;

use tokens::{Tokens, Why};

/// The effects of a harmless body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Body {
    /// True if the body may raise a message or an error, of which each client must get its own.
    pub(crate) speaks: bool,
    /// True if the body may return NULL or the old row, so that the written row may differ from the
    /// reported one.
    pub(crate) drops: bool,
    /// The columns that it sets.
    pub(crate) assigns: Vec<Box<str>>,
    /// The columns that it sets to the clock's value.
    pub(crate) stamps: Vec<Box<str>>,
    /// True if the body reads the transaction's clock for something else.
    pub(crate) looks_at_clock: bool,
}

impl Body {
    /// Returns the effects of a body that only reads its row.
    pub(crate) fn guard() -> Self {
        Self::default()
    }

    /// Returns the effects of a body that the operator trusts and that was not parsed.
    pub(crate) fn unknown() -> Self {
        Self {
            speaks: true,
            drops: true,
            assigns: Vec::new(),
            stamps: Vec::new(),
            looks_at_clock: false,
        }
    }
}

/// Parses a body. `shadows` are words that may mean functions that are not built in, `operators`
/// those that are not proven.
///
/// # Errors
/// The reason why the body is not proven to be harmless.
pub(crate) fn read(
    body: &str,
    shadows: &[Box<str>],
    operators: &[Box<str>],
) -> Result<Body, String> {
    let tokens = Tokens::of(body).map_err(|Why(why)| why)?;
    let mut reader = Reader {
        tokens,
        shadows,
        operators,
        variables: Vec::new(),
        depth: 0,
        body: Body::default(),
    };
    reader.block().map_err(|Why(why)| why)?;
    Ok(reader.body)
}

struct Reader<'a> {
    tokens: Tokens<'a>,
    shadows: &'a [Box<str>],
    operators: &'a [Box<str>],
    variables: Vec<Box<str>>,
    /// The depth of nested statements and expressions.
    depth: usize,
    body: Body,
}

/// The deepest nesting of statements and expressions.
const DEEPEST: usize = 64;

/// Names that a variable may not have, because they have another meaning.
const TAKEN: [&str; 4] = ["new", "old", "found", "sqlstate"];

impl Reader<'_> {
    /// Parses `[DECLARE ..] BEGIN .. END[;]`.
    fn block(&mut self) -> Result<(), Why> {
        if self.tokens.skip("declare") {
            while !self.tokens.skip("begin") {
                self.declaration()?;
            }
        } else {
            self.tokens.expect("begin")?;
        }
        self.statements(&["end"])?;
        self.tokens.expect("end")?;
        self.tokens.skip_semicolon();
        self.tokens.end()
    }

    /// Parses `name [CONSTANT] type [NOT NULL] [{:= | = | DEFAULT} expression];`
    fn declaration(&mut self) -> Result<(), Why> {
        let name = self.tokens.name()?;
        if TAKEN.contains(&&*name) || name.starts_with("tg_") {
            return Err(self.tokens.why_behind());
        }
        self.tokens.skip("constant");
        self.type_name()?;
        if self.tokens.skip("not") {
            self.tokens.expect("null")?;
        }
        if self.tokens.skip_assignment() || self.tokens.skip("default") {
            self.expression()?;
        }
        self.variables.push(name);
        self.tokens.semicolon()
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Why>) -> Result<T, Why> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Why("it is too deep".to_owned()));
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Parses statements up to one of these words.
    fn statements(&mut self, ends: &[&str]) -> Result<(), Why> {
        self.deeper(|reader| {
            while !ends.iter().any(|end| reader.tokens.is(end)) {
                reader.statement()?;
            }
            Ok(())
        })
    }

    fn statement(&mut self) -> Result<(), Why> {
        if self.tokens.skip("if") {
            self.conditional()
        } else if self.tokens.skip("case") {
            self.choice()
        } else if self.tokens.skip("return") {
            self.result()
        } else if self.tokens.skip("raise") {
            self.raise()
        } else if self.tokens.skip("null") {
            self.tokens.semicolon()
        } else {
            self.assignment()
        }
    }

    fn conditional(&mut self) -> Result<(), Why> {
        self.expression()?;
        self.tokens.expect("then")?;
        loop {
            self.statements(&["elsif", "elseif", "else", "end"])?;
            if self.tokens.skip("elsif") || self.tokens.skip("elseif") {
                self.expression()?;
                self.tokens.expect("then")?;
                continue;
            }
            if self.tokens.skip("else") {
                self.statements(&["end"])?;
            }
            self.tokens.expect("end")?;
            self.tokens.expect("if")?;
            return self.tokens.semicolon();
        }
    }

    fn choice(&mut self) -> Result<(), Why> {
        if !self.tokens.is("when") {
            self.expression()?;
        }
        while self.tokens.skip("when") {
            self.list()?;
            self.tokens.expect("then")?;
            self.statements(&["when", "else", "end"])?;
        }
        // Without ELSE it may fail, like any expression.
        if self.tokens.skip("else") {
            self.statements(&["end"])?;
        }
        self.tokens.expect("end")?;
        self.tokens.expect("case")?;
        self.tokens.semicolon()
    }

    fn result(&mut self) -> Result<(), Why> {
        match () {
            () if self.tokens.skip("new") => {}
            () if self.tokens.skip("old") || self.tokens.skip("null") => self.body.drops = true,
            () => return Err(self.tokens.why()),
        }
        self.tokens.semicolon()
    }

    /// Parses `RAISE [level] 'format' [, expression ..] [USING option = expression ..];`, or the
    /// form with a condition's name or SQLSTATE.
    fn raise(&mut self) -> Result<(), Why> {
        self.body.speaks = true;
        for level in ["debug", "log", "info", "notice", "warning", "exception"] {
            if self.tokens.skip(level) {
                break;
            }
        }
        if self.tokens.skip("sqlstate") {
            self.tokens.literal()?;
        } else if self.tokens.skip_literal() {
            while self.tokens.skip_comma() {
                self.expression()?;
            }
        } else if !self.tokens.is("using") {
            self.tokens.name()?;
        }
        if self.tokens.skip("using") {
            loop {
                self.tokens.name()?;
                if !self.tokens.skip_assignment() {
                    return Err(self.tokens.why());
                }
                self.expression()?;
                if !self.tokens.skip_comma() {
                    break;
                }
            }
        }
        self.tokens.semicolon()
    }

    /// Parses `NEW.column := expression;` or `variable := expression;`
    fn assignment(&mut self) -> Result<(), Why> {
        let mut column = None;
        if self.tokens.skip("new") {
            self.tokens.dot()?;
            let name = self.tokens.any_name()?;
            self.body.assigns.push(name.clone());
            column = Some(name);
        } else {
            let at = self.tokens.clone();
            let name = self.tokens.name()?;
            if !self.variables.contains(&name) {
                return Err(at.why());
            }
        }
        if !self.tokens.skip_assignment() {
            return Err(self.tokens.why());
        }
        let looked = std::mem::take(&mut self.body.looks_at_clock);
        self.expression()?;
        let reads = std::mem::replace(&mut self.body.looks_at_clock, looked);
        match column.filter(|_| reads) {
            Some(column) => self.body.stamps.push(column),
            None => self.body.looks_at_clock |= reads,
        }
        self.tokens.semicolon()
    }
}

#[cfg(test)]
mod tests;
